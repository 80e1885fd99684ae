//! What can be asked of a room.
//!
//! Lives here: the commands, as plain data. Time comes beside them (`decide(at, …)`), randomness
//! inside them: the core has neither of its own.
//! They can be written down as plain data as well, because an instance that does not own a room sends
//! them to the one that does.
//! To add a command: a variant here, a verb file that decides it, an arm in `Room::decide`, a row
//! in the reference model, a line in the simulator's visitors.

use crate::settings::{Rate, Settings};
use crate::units::{Epoch, Identity, JoinKey, LaneId, Number, Presented, Ticket};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// The first of every tenure: a new owner begins.
    Open {
        epoch: Epoch,
    },
    /// Puts new settings in place of the old, or changes nothing at all.
    Configure {
        settings: Box<Settings>,
        by: Actor,
    },
    /// Changes the pace and nothing else, whatever the other settings are at that moment. A room
    /// in which only operators let people in has no pace to change.
    Pace {
        rate: Rate,
        by: Actor,
    },
    Join(Join),
    /// Exchanges an admitted ticket for a pass.
    Claim(Presented),
    /// The visitor goes; from inside this completes the session.
    Leave(Presented),
    /// The session goes on: new deadlines where that is allowed.
    Renew(Presented),
    /// Somebody entitled says that the ticket is over.
    End {
        ticket: Presented,
        how: EndHow,
        by: Actor,
    },
    /// These waiting tickets have been silent for too long.
    Lapse {
        tickets: Vec<Ticket>,
    },
    /// Every gate has confirmed that it refuses these ended sessions: their slots are free.
    Release {
        tickets: Vec<Ticket>,
    },
    /// The place goes to another device; older tokens die.
    HandOver(Presented),
    /// An operator puts a waiting ticket at the end of another lane.
    Move {
        ticket: Presented,
        to: LaneId,
        by: Actor,
    },
    Hold {
        hold: Hold,
        by: Actor,
    },
    Resume {
        by: Actor,
    },
    /// Lets the next `count` in now, outside the bucket, within `max_active`. The entropy seeds a
    /// shuffle window that must be sealed for it.
    AdmitNow {
        count: u64,
        entropy: [u8; 16],
        by: Actor,
    },
    /// The sale is over: no joins, no admissions, waiting tickets end as closed.
    Finish {
        cause: FinishCause,
        reason: String,
        by: Actor,
    },
    /// The sale goes on after all. Tickets that were closed stay closed.
    Reopen {
        by: Actor,
    },
    /// The hash of the draw's secret seed, published before anybody can join.
    CommitDraw {
        commitment: [u8; 32],
        sealed_seed: Vec<u8>,
        beacon: Option<String>,
    },
    /// Seed and beacon, after the draw was closed: everybody gets an order.
    Draw {
        seed: [u8; 32],
        chain: [u8; 32],
        beacon: Option<Vec<u8>>,
        /// Go on although the promised beacon is missing: an operator's act, logged and shown.
        waive_beacon: bool,
        by: Actor,
    },
    /// Time has passed. One phase of work per call; repeat while the reply says `again`.
    /// The entropy seeds shuffle windows that are sealed now, so nobody could know it earlier.
    Tick {
        entropy: [u8; 16],
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    pub lane: LaneId,
    pub identity: Option<Identity>,
    pub key: Option<JoinKey>,
    /// The ticket that the visitor already holds, proved by its token.
    pub holding: Option<Presented>,
    #[serde(with = "shared_bytes")]
    pub metadata: Option<Arc<[u8]>>,
    /// The shop's name for the user, sealed under a data key of the room.
    #[serde(with = "shared_bytes")]
    pub sealed_user: Option<Arc<[u8]>>,
}

/// Who acted, for the audit: an API key's name, `origin`, `visitor`, `bus`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Actor(pub Box<str>);

/// What an operator holds back, and why; visitors see the reason. A room has one hold at a time: a
/// new one takes the place of the old, and `Resume` ends whichever it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hold {
    Paused {
        reason: String,
    },
    Maintenance {
        reason: String,
    },
    /// Nobody new joins; those in line are let in as before.
    Draining {
        reason: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum EndHow {
    Completed,
    CheckoutFailed,
    CheckoutExpired,
    Revoked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FinishCause {
    /// `ends_at` has come.
    Schedule,
    SoldOut,
    Operator,
}

impl Actor {
    pub fn new(name: &str) -> Self {
        Actor(name.into())
    }
}

impl Hold {
    /// Whether those in line stay outside as well.
    pub fn stops_admissions(&self) -> bool {
        !matches!(self, Hold::Draining { .. })
    }

    pub fn reason(&self) -> &str {
        match self {
            Hold::Paused { reason } | Hold::Maintenance { reason } | Hold::Draining { reason } => {
                reason
            }
        }
    }
}

/// A whole block of tickets of one lane is dropped or loses its join keys; see `forget.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    pub lane: LaneId,
    pub index: u64,
}

impl Block {
    pub fn of(ticket: Ticket) -> Block {
        Block { lane: ticket.lane, index: ticket.number.0 / crate::chunked::CHUNK }
    }

    pub fn first(self) -> Number {
        Number(self.index * crate::chunked::CHUNK)
    }
}

/// Bytes that several hold, written as they are.
mod shared_bytes {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::Arc;

    pub fn serialize<S: Serializer>(it: &Option<Arc<[u8]>>, to: S) -> Result<S::Ok, S::Error> {
        it.as_deref().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<[u8]>>, D::Error> {
        Ok(Option::<Vec<u8>>::deserialize(from)?.map(Arc::from))
    }
}
