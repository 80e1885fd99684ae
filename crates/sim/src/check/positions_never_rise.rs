//! Promise 8: a position never rises in answers with non-falling versions.
//!
//! Judged per client and ticket, as a page would: an answer that is older than one seen before
//! says nothing, everything else is compared with the newest one before it. An operator's move
//! to another lane is a new ticket and a new place; whoever looks by the old id starts anew.

use waitroom_core::Ticket;

use super::quick::Map;
use super::told::Tickets;
use crate::history::{History, Violation};

const PROMISE: u8 = 8;

pub fn check(history: &History) -> Vec<Violation> {
    let tickets = Tickets::of(history);
    let mut found = Vec::new();
    let mut shown: Map<(u32, Ticket), (u64, u64)> = Map::default();
    for seen in &history.seen {
        let Some(position) = seen.position else { continue };
        let place = tickets.resolved(seen.ticket, seen.version);
        let last = shown.entry((seen.client, place)).or_insert((seen.version, position));
        let (version, before) = *last;
        if seen.version < version {
            continue;
        }
        if position > before {
            found.push(Violation::new(
                PROMISE,
                format!(
                    "client {} saw {} at position {before} in version {version}, then at \
                     {position} in version {}",
                    seen.client, seen.ticket, seen.version
                ),
            ));
        }
        *last = (seen.version, position);
    }
    found
}
