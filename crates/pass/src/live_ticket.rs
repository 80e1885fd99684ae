//! The live ticket: opens one live channel, once, within half a minute.
//!
//! A browser cannot send headers when it opens a WebSocket or an event stream, so what proves
//! the visitor travels in the address, where it ends up in logs. Hence short-lived and single
//! use: what a log keeps opens nothing.
//!
//! ```text
//! wl1_ base64url( key id 1 | ticket id 16 | holder 1 | ends, milliseconds 8 | random 16 | MAC 16 )
//! ```

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

/// Writes live tickets, and takes each of them once. What was used is known to this instance
/// only: of several instances behind one address, each would take a ticket once.
#[derive(Debug)]
pub struct LiveTickets {
    sealed: Sealed<BODY>,
    used: Mutex<Used>,
}

impl LiveTickets {
    /// `used_max` bounds the memory of used tickets, at about 100 bytes each: thirty seconds'
    /// worth of openings. When more come, the oldest end early (see `used.rs`).
    pub fn new(keys: &[(u8, [u8; 32])], used_max: usize) -> Result<Self, WrongSecrets> {
        let sealed = Sealed::new("wl1_", "live-ticket", keys)?;
        Ok(LiveTickets { sealed, used: Mutex::new(Used::new(used_max)) })
    }

    pub fn write(&self, room: &str, id: TicketId, holder: Holder, now_ms: u64) -> TokenText {
        let mut body = [0; BODY];
        body[1..17].copy_from_slice(&id.to_bytes());
        body[17] = holder.0;
        let ends_ms = now_ms.saturating_add(LIVE_TICKET_LIFE_MS);
        body[18..26].copy_from_slice(&ends_ms.to_be_bytes());
        rand::fill(&mut body[26..]).expect("the system's random source never fails once started");
        self.sealed.write(room, body)
    }

    /// Takes the ticket, if it is ours, in time and not taken before.
    pub fn take(&self, room: &str, text: &str, now_ms: u64) -> Result<LiveTicket, LiveRefused> {
        let body = self.sealed.read(room, text).ok_or(LiveRefused::NotOurs)?;
        let ends_ms = u64::from_be_bytes(body[18..26].try_into().expect("eight bytes"));
        let random = body[26..].try_into().expect("sixteen bytes");
        // Whoever panicked with the lock held left a set that is still a set.
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.take(ends_ms, random, now_ms)?;
        Ok(LiveTicket {
            id: TicketId::from_bytes(body[1..17].try_into().expect("sixteen bytes")),
            holder: Holder(body[17]),
        })
    }
}
