//! What a room keeps of each ticket: eight bytes.
//!
//! Lives here: the packing of status, flags, holder count and one 40-bit word whose meaning
//! follows the status: when it joined, which slot it holds, when it ended.
//! An all-zero record is a ticket that was forgotten, so a dropped block needs no marks.

use crate::event::Ending;
use crate::units::Holder;
use serde::{Deserialize, Serialize};

/// Where a ticket stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Status {
    Waiting = 1,
    Admitted = 2,
    Active = 3,
    Completed = 4,
    Expired = 5,
    Left = 6,
    Moved = 7,
    Closed = 8,
    Revoked = 9,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record(pub(crate) u64);

// bits 0..4 status, 4 superseded, 5 credit used, 8..16 holder, 16..24 ending, 24..64 word
const STATUS: u64 = 0xF;
const SUPERSEDED: u64 = 1 << 4;
const CREDIT_USED: u64 = 1 << 5;
const HOLDER_AT: u32 = 8;
const ENDING_AT: u32 = 16;
const WORD_AT: u32 = 24;

/// The word holds 40 bits: milliseconds since the room was founded (34 years), or a slot's index.
pub(crate) const WORD_MAX: u64 = (1 << 40) - 1;

impl Status {
    pub const ALL: [Status; 9] = [
        Status::Waiting,
        Status::Admitted,
        Status::Active,
        Status::Completed,
        Status::Expired,
        Status::Left,
        Status::Moved,
        Status::Closed,
        Status::Revoked,
    ];

    pub fn is_live(self) -> bool {
        matches!(self, Status::Waiting | Status::Admitted | Status::Active)
    }

    pub fn from_code(code: u8) -> Option<Status> {
        Status::ALL.into_iter().find(|status| *status as u8 == code)
    }
}

impl Ending {
    /// The status that a ticket has after it.
    pub fn status(self) -> Status {
        match self {
            Ending::Completed => Status::Completed,
            Ending::Left => Status::Left,
            Ending::Revoked => Status::Revoked,
            Ending::Silent
            | Ending::TooOld
            | Ending::NoShow
            | Ending::SessionOver
            | Ending::CheckoutFailed
            | Ending::CheckoutExpired => Status::Expired,
        }
    }
}

impl Record {
    pub(crate) fn waiting(joined_word: u64) -> Record {
        Record(Status::Waiting as u64).with_word(joined_word)
    }

    /// None for a ticket that was forgotten.
    #[inline]
    pub(crate) fn status(self) -> Option<Status> {
        Status::from_code((self.0 & STATUS) as u8)
    }

    #[inline]
    pub(crate) fn is_waiting(self) -> bool {
        self.0 & STATUS == Status::Waiting as u64
    }

    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.0 >> WORD_AT
    }

    pub(crate) fn holder(self) -> Holder {
        Holder((self.0 >> HOLDER_AT) as u8)
    }

    /// Why it ended; none while it lives, when it was moved, or closed with the sale.
    pub(crate) fn ending(self) -> Option<Ending> {
        Ending::from_code((self.0 >> ENDING_AT) as u8)
    }

    /// Whether its identity has a newer ticket: the table of identities points there.
    pub(crate) fn superseded(self) -> bool {
        self.0 & SUPERSEDED != 0
    }

    pub(crate) fn with_status(self, status: Status) -> Record {
        Record(self.0 & !STATUS | status as u64)
    }

    pub(crate) fn with_word(self, word: u64) -> Record {
        debug_assert!(word <= WORD_MAX, "a record's word has 40 bits");
        Record(self.0 & ((1 << WORD_AT) - 1) | word << WORD_AT)
    }

    pub(crate) fn with_holder(self, holder: Holder) -> Record {
        Record(self.0 & !(0xFF << HOLDER_AT) | (holder.0 as u64) << HOLDER_AT)
    }

    pub(crate) fn with_ending(self, ending: Ending) -> Record {
        let cleared = Record(self.0 & !(0xFF << ENDING_AT) | (ending as u64) << ENDING_AT);
        cleared.with_status(ending.status())
    }

    /// Whether somebody came back on it.
    pub(crate) fn credit_used(self) -> bool {
        self.0 & CREDIT_USED != 0
    }

    pub(crate) fn mark_credit_used(self) -> Record {
        Record(self.0 | CREDIT_USED)
    }

    pub(crate) fn mark_superseded(self) -> Record {
        Record(self.0 | SUPERSEDED)
    }
}
