//! What visitors were told last, so that nobody sees time run backwards here.
//!
//! A command is answered as soon as it is durable, a look from a board that may be a fifth of a
//! second older. A client that sends the version it has seen is waited for; this is for those that
//! send none. The table is small and fixed: two tickets may share a row, and then one of them may
//! wait for a board it would not have needed, which is published at once.

use std::sync::atomic::{AtomicU64, Ordering};

use waitroom_core::Ticket;

/// 512 KB for all rooms together.
const ROWS: usize = 1 << 16;

#[derive(Debug)]
pub struct Told(Box<[AtomicU64]>);

/// The newest version that anybody in a room was told of. While boards are as new, which is most
/// of the time, no row needs to be looked at.
#[derive(Debug, Default)]
pub struct Newest(AtomicU64);

impl Newest {
    pub fn note(&self, version: u64) {
        self.0.fetch_max(version, Ordering::Relaxed);
    }

    pub fn version(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Told {
    fn default() -> Told {
        Told((0..ROWS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Told {
    /// `room` tells rooms apart; any number that is the room's own will do.
    fn row(&self, room: u64, ticket: Ticket) -> &AtomicU64 {
        let mixed = (ticket.number.0 ^ u64::from(ticket.lane.0) << 48 ^ room)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.0[(mixed >> 48) as usize]
    }

    pub fn note(&self, room: u64, ticket: Ticket, version: u64) {
        self.row(room, ticket).store(version, Ordering::Relaxed);
    }

    /// The version that the ticket was told of, or that of another in its row.
    pub fn version(&self, room: u64, ticket: Ticket) -> u64 {
        self.row(room, ticket).load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_remembered_until_a_neighbour_is_told() {
        let told = Told::default();
        let ticket = Ticket::new(3, 77);
        assert_eq!(told.version(1, ticket), 0);
        told.note(1, ticket, 42);
        assert_eq!(told.version(1, ticket), 42);
        assert_eq!(told.version(2, ticket), 0, "another room's ticket of that number");
    }
}
