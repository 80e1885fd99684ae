//! The live ticket: opens one live channel, once, within half a minute.
//!
//! A browser cannot send headers when it opens a WebSocket or an event stream, so what proves
//! the visitor travels in the address, where it ends up in logs. Hence short-lived and single
//! use: what a log keeps opens nothing.
//!
//! ```text
//! wl1_ base64url( key id 1 | ticket id 16 | holder 1 | ends, milliseconds 8 | writer 4 | random 12 | MAC 16 )
//! ```
//!
//! Whether it was used is known to whoever wrote it, and to nobody else. Of several instances each
//! reads the others' tickets, and asks the writer before it opens anything.

use std::sync::{Mutex, PoisonError};

use aws_lc_rs::rand;
use waitroom_core::{Holder, id::TicketId};

use crate::{
    sealed::{Sealed, TokenText},
    secrets::WrongSecrets,
    used::Used,
};

const BODY: usize = 42;

/// Long enough for a slow phone to open a socket, short enough to be worthless in a log.
pub const LIVE_TICKET_LIFE_MS: u64 = 30_000;

/// What a genuine live ticket stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveTicket {
    pub id: TicketId,
    pub holder: Holder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveRefused {
    /// We did not write this for this room.
    NotOurs,
    Expired,
    UsedBefore,
}

/// What tells one live ticket from every other: enough to use it up, and nothing of whom it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Who wrote it.
    pub writer: u32,
    pub ends_ms: u64,
    pub name: [u8; 16],
}

/// Writes live tickets, and lets each of its own be used once.
#[derive(Debug)]
pub struct LiveTickets {
    sealed: Sealed<BODY>,
    used: Mutex<Used>,
    writer: u32,
}

impl LiveTickets {
    /// `used_max` bounds the memory of used tickets, at about 100 bytes each: thirty seconds'
    /// worth of openings. When more come, the oldest end early (see `used.rs`).
    pub fn new(keys: &[(u8, [u8; 32])], used_max: usize) -> Result<Self, WrongSecrets> {
        let sealed = Sealed::new("wl1_", "live-ticket", keys)?;
        // By chance, and another after each start: what was used before is not known any more.
        let mut writer = [0; 4];
        rand::fill(&mut writer).expect("the system's random source never fails once started");
        let (used, writer) = (Mutex::new(Used::new(used_max)), u32::from_be_bytes(writer));
        Ok(LiveTickets { sealed, used, writer })
    }

    /// Under which it writes.
    pub fn writer(&self) -> u32 {
        self.writer
    }

    pub fn write(&self, room: &str, id: TicketId, holder: Holder, now_ms: u64) -> TokenText {
        let mut body = [0; BODY];
        body[1..17].copy_from_slice(&id.to_bytes());
        body[17] = holder.0;
        let ends_ms = now_ms.saturating_add(LIVE_TICKET_LIFE_MS);
        body[18..26].copy_from_slice(&ends_ms.to_be_bytes());
        body[26..30].copy_from_slice(&self.writer.to_be_bytes());
        rand::fill(&mut body[30..]).expect("the system's random source never fails once started");
        self.sealed.write(room, body)
    }

    /// Takes the ticket, if it was written here, is in time and was not taken before.
    pub fn take(&self, room: &str, text: &str, now_ms: u64) -> Result<LiveTicket, LiveRefused> {
        let (ticket, mark) = self.read(room, text)?;
        self.use_up(&mark, now_ms)?;
        Ok(ticket)
    }

    /// What a genuine ticket stands for, whoever wrote it; it is not used up by that.
    pub fn read(&self, room: &str, text: &str) -> Result<(LiveTicket, Mark), LiveRefused> {
        let body = self.sealed.read(room, text).ok_or(LiveRefused::NotOurs)?;
        let name: [u8; 16] = body[26..].try_into().expect("sixteen bytes");
        let ticket = LiveTicket {
            id: TicketId::from_bytes(body[1..17].try_into().expect("sixteen bytes")),
            holder: Holder(body[17]),
        };
        let mark = Mark {
            writer: u32::from_be_bytes(body[26..30].try_into().expect("four bytes")),
            ends_ms: u64::from_be_bytes(body[18..26].try_into().expect("eight bytes")),
            name,
        };
        Ok((ticket, mark))
    }

    /// Uses a ticket up that was written here.
    pub fn use_up(&self, mark: &Mark, now_ms: u64) -> Result<(), LiveRefused> {
        if mark.writer != self.writer {
            return Err(LiveRefused::NotOurs);
        }
        // Whoever panicked with the lock held left a set that is still a set.
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.take(mark.ends_ms, mark.name, now_ms)
    }
}
