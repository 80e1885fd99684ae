//! What a room answers. A refusal or a repeat is an answer without events.
//!
//! Lives here: replies and refusals as plain data; each refusal carries what the visitor or the
//! operator needs to act. Stays out: HTTP, words for people.

use crate::settings::Invalid;
use crate::units::{Epoch, Holder, LaneId, Ticket, Timestamp};
use crate::{event::Session, record::Status};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// An operator's command took effect, or had before.
    Done,
    Joined {
        ticket: Ticket,
        epoch: Epoch,
        holder: Holder,
        fresh: Fresh,
    },
    Claimed {
        ticket: Ticket,
        session: Session,
        fresh: Fresh,
    },
    Renewed {
        ticket: Ticket,
        session: Session,
    },
    /// The ticket is over, by this command or before it.
    Over {
        ticket: Ticket,
        status: Status,
        fresh: Fresh,
    },
    HandedOver {
        ticket: Ticket,
        holder: Holder,
    },
    Moved {
        to: Ticket,
        epoch: Epoch,
    },
    Admitted {
        count: u64,
    },
    Lapsed {
        count: u64,
    },
    Released {
        count: u64,
    },
    Ticked {
        again: bool,
    },
    Refused(Refusal),
}

/// Whether this command made it so, or found it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fresh {
    New,
    Repeat,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// The room has no settings or no owner yet.
    NotReady,
    NotOpenYet {
        opens_at: Timestamp,
    },
    NotStarted,
    DrawPending,
    Paused {
        reason: String,
    },
    Maintenance {
        reason: String,
    },
    /// Nobody new joins; those in line are still let in.
    Draining {
        reason: String,
    },
    Finished {
        reason: String,
    },
    Full {
        max_waiting: u64,
    },
    UnknownLane {
        lane: LaneId,
    },
    UnknownTicket,
    /// The number was given in an epoch whose end the store lost: no place, and nobody else's.
    PlaceLost,
    /// Finished so long ago that only this is known.
    Forgotten,
    /// The place went to another device.
    MovedElsewhere,
    /// The ticket's status does not allow it.
    WrongStatus {
        status: Status,
    },
    ClaimTooLate {
        claim_by: Timestamp,
    },
    /// The `Idempotency-Key` was used with another body.
    KeyReused,
    MetadataTooLarge {
        bytes_max: usize,
    },
    /// An identity or a join key of all zeros, which stands for none.
    NobodyIsNobody,
    Settings(Vec<Invalid>),
    StaleEpoch {
        newest: Epoch,
    },
    /// The draw's commitment, close or reveal does not fit what the log says.
    Draw(DrawRefusal),
    HandedOverTooOften,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DrawRefusal {
    NoDraw,
    AlreadyCommitted,
    AlreadyDrawn,
    NotClosed,
    WrongSeed,
    WrongBeaconRound,
    BeaconMissing,
    BeaconNotAsked,
    TooLate,
    SealedSeedTooLarge,
}
