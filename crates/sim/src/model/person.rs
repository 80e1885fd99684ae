//! One person's ticket, and what a lane counts.
//!
//! Lives here: plain data. Stays out: every rule.

use std::collections::BTreeSet;
use waitroom_core::{Epoch, Holder, Identity, JoinKey, Session, Status, Ticket, Timestamp};

#[derive(Clone, Debug)]
pub(super) struct Person {
    /// The how manieth ticket of the room this is: tells the newest of an identity.
    pub(super) made: u64,
    pub(super) epoch: Epoch,
    pub(super) holder: Holder,
    pub(super) joined_at: Timestamp,
    pub(super) stage: Stage,
    /// When this one is served in its lane; none before its window is sealed.
    pub(super) order: Option<u64>,
    pub(super) identity: Option<Identity>,
    pub(super) key: Option<JoinKey>,
    pub(super) moved_to: Option<Ticket>,
    /// Whether a newer ticket took the place of this one in the person's life.
    pub(super) succeeded: bool,
    /// Whether the admission cost a token.
    pub(super) paced: bool,
    /// Until when an ended session keeps its slot.
    pub(super) slot_until: Option<Timestamp>,
    /// When nothing was left of this one but the memory: no place, no slot.
    pub(super) gone_at: Timestamp,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    Waiting,
    Admitted { claim_by: Timestamp },
    Active(Session),
    Over { status: Status, at: Timestamp },
}

#[derive(Clone, Debug, Default)]
pub(super) struct Lane {
    /// How many tickets it gave; the next number.
    pub(super) issued: u64,
    /// Numbers below this have their order, by a draw or a sealed window.
    pub(super) ordered_to: u64,
    pub(super) clock: u64,
    pub(super) admissions: u64,
    pub(super) no_shows: u64,
    /// Blocks of tickets that are forgotten, which is written down.
    pub(super) dropped: BTreeSet<u64>,
}

impl Person {
    pub(super) fn status(&self) -> Status {
        match self.stage {
            Stage::Waiting => Status::Waiting,
            Stage::Admitted { .. } => Status::Admitted,
            Stage::Active(_) => Status::Active,
            Stage::Over { status, .. } => status,
        }
    }

    pub(super) fn takes_slot(&self) -> bool {
        matches!(self.stage, Stage::Admitted { .. } | Stage::Active(_)) || self.slot_until.is_some()
    }
}
