//! The facts of a room's history. The log is a sequence of these; state is their fold.
//!
//! Lives here: the events, as plain data, complete enough that the outbox can publish each one
//! without knowing the room (`waiting` after it, `joined_at`).
//! Stays out: bytes (see `codec.rs`), meaning (see the verbs' `absorb_…`).
//! Each event is one index of the log, also where the codec folds a run of joins into one record.
//! To add an event: a variant here, its bytes in `codec.rs`, its fold in a verb, a cell in the
//! lifecycle table test.

use crate::command::{Actor, Block, FinishCause, Hold};
use crate::record::Status;
use crate::settings::Settings;
use crate::units::{Epoch, Holder, Identity, JoinKey, LaneId, Millis, Number, Ticket, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Timestamp,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Opened {
        epoch: Epoch,
    },
    Configured {
        settings: Arc<Settings>,
        by: Actor,
    },
    Joined(Joined),
    Admitted {
        ticket: Ticket,
        joined_at: Timestamp,
        /// How many wait in the room after this.
        waiting: u64,
        why: AdmitWhy,
        entry: Entry,
        /// The shop's name for the user, still sealed, for those who must publish it.
        sealed_user: Option<Arc<[u8]>>,
    },
    Claimed {
        ticket: Ticket,
        session: Session,
    },
    Renewed {
        ticket: Ticket,
        session: Session,
    },
    Ended {
        ticket: Ticket,
        /// Waiting, admitted or active: tells which of the ticket's events this is.
        was: Status,
        ending: Ending,
        /// How long it waited: until its admission, or until now if it never was admitted.
        waited: Millis,
        waiting: u64,
        /// The slot stays taken until then, because some gate may still accept the pass.
        held_until: Option<Timestamp>,
        sealed_user: Option<Arc<[u8]>>,
        by: Actor,
    },
    /// The slot of an ended session is free.
    Released {
        ticket: Ticket,
    },
    HandedOver {
        ticket: Ticket,
        holder: Holder,
    },
    /// A place that was anonymous belongs to a known person from now on.
    Bound {
        ticket: Ticket,
        identity: Identity,
    },
    Moved {
        from: Ticket,
        to: Ticket,
        joined_at: Timestamp,
        by: Actor,
    },
    Held {
        hold: Hold,
        by: Actor,
    },
    Resumed {
        by: Actor,
    },
    /// An operator let people in; their `Admitted` events follow.
    AdmittedNow {
        asked: u64,
        granted: u64,
        by: Actor,
    },
    DoorsOpened,
    SaleStarted,
    SaleEnded {
        cause: FinishCause,
        reason: String,
        closed: u64,
        by: Actor,
    },
    Reopened {
        by: Actor,
    },
    DrawCommitted {
        commitment: [u8; 32],
        sealed_seed: Vec<u8>,
        beacon: Option<String>,
    },
    DrawClosed {
        counts: Vec<(LaneId, u64)>,
    },
    Drawn {
        seed: [u8; 32],
        chain: [u8; 32],
        beacon: Option<Vec<u8>>,
        /// Whether an operator went on without the promised beacon.
        waived: bool,
        by: Actor,
    },
    /// A shuffle window got its order.
    Sealed {
        lane: LaneId,
        start: Number,
        len: u32,
        seed: [u8; 16],
    },
    ForgotTickets(Block),
    ForgotKeys(Block),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    pub ticket: Ticket,
    /// How many wait in the lane and in the room, this one included.
    pub waiting_in_lane: u64,
    pub waiting: u64,
    pub identity: Option<Identity>,
    pub key: Option<JoinKey>,
    pub metadata: Option<Arc<[u8]>>,
    pub sealed_user: Option<Arc<[u8]>>,
    /// The finished ticket whose re-entry credit this one used up.
    pub returns: Option<Ticket>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdmitWhy {
    /// Its turn; costs a token of the bucket.
    Paced,
    /// Nobody was waiting: straight through; costs a token too.
    Straight,
    /// An operator's `admit n`: outside the bucket.
    Manual,
}

/// How an admitted visitor gets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    MustClaim { by: Timestamp },
    Claimed(Session),
}

/// The times of a session; the pass is a function of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Session {
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
    pub pass_expires_at: Timestamp,
}

/// Why a ticket is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Ending {
    Completed = 1,
    Left = 2,
    Silent = 3,
    TooOld = 4,
    NoShow = 5,
    SessionOver = 6,
    CheckoutFailed = 7,
    CheckoutExpired = 8,
    Revoked = 9,
}

impl Ending {
    pub const ALL: [Ending; 9] = [
        Ending::Completed,
        Ending::Left,
        Ending::Silent,
        Ending::TooOld,
        Ending::NoShow,
        Ending::SessionOver,
        Ending::CheckoutFailed,
        Ending::CheckoutExpired,
        Ending::Revoked,
    ];

    pub fn from_code(code: u8) -> Option<Ending> {
        Ending::ALL.into_iter().find(|ending| *ending as u8 == code)
    }
}

impl What {
    pub fn at(self, at: Timestamp) -> Event {
        Event { at, what: self }
    }

    /// The ticket that this is about, if it is about one.
    pub fn ticket(&self) -> Option<Ticket> {
        match self {
            What::Joined(joined) => Some(joined.ticket),
            What::Admitted { ticket, .. }
            | What::Claimed { ticket, .. }
            | What::Renewed { ticket, .. }
            | What::Ended { ticket, .. }
            | What::Released { ticket }
            | What::Bound { ticket, .. }
            | What::HandedOver { ticket, .. } => Some(*ticket),
            What::Moved { from, .. } => Some(*from),
            _ => None,
        }
    }
}
