//! A call as the checkers see it: with its room and ticket found, its status understood.

use crate::history::{Call, Got, Verb};

use super::book::{RoomIx, TicketIx};
use super::name::Name;

#[derive(Debug)]
pub(super) struct Seen<'a> {
    /// Which file, counted from 0, and which line of it.
    pub file: u16,
    /// Times of one clock can be compared.
    pub clock: u16,
    pub line: u64,
    pub call: Call<'a>,
    pub room: RoomIx,
    /// The ticket that the answer is about, or, if it names none, the one that was presented.
    pub ticket: Option<TicketIx>,
    /// The key of a join.
    pub key: Option<Name>,
    pub status: Option<Standing>,
}

/// What a ticket's status comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Waiting,
    /// Admitted or active: it holds a slot.
    Inside,
    Over,
}

impl Standing {
    pub fn of(status: &str) -> Option<Standing> {
        Some(match status {
            "waiting" => Standing::Waiting,
            "admitted" | "active" => Standing::Inside,
            "completed" | "expired" | "left" | "moved" | "closed" | "revoked" => Standing::Over,
            _ => return None,
        })
    }
}

impl<'a> Seen<'a> {
    pub fn got(&self) -> Option<&Got<'a>> {
        self.call.got.as_ref().filter(|_| !self.call.lost)
    }

    /// The answer, if it did what was asked.
    pub fn fine(&self) -> Option<&Got<'a>> {
        self.got().filter(|got| got.is_fine())
    }

    /// The version as of which the answer is exactly true; see `Verb::is_a_look`.
    pub fn looked_at(&self) -> Option<u64> {
        self.fine().and_then(|got| got.version).filter(|_| self.call.call.is_a_look())
    }

    /// Whether an operator did it.
    pub fn is_an_act(&self) -> bool {
        matches!(self.call.call, Verb::Pause | Verb::Resume | Verb::Admit | Verb::Settings)
    }

    /// Where it stands, for a message.
    pub fn at(&self) -> String {
        match self.file {
            0 => format!("line {}", self.line),
            file => format!("file {} line {}", file + 1, self.line),
        }
    }
}
