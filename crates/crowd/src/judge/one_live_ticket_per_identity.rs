//! Promise 2: at most one live ticket per identity and room; repeats of a join return the same
//! ticket.
//!
//! A key names one join for ten minutes, whatever became of its ticket. An identity may get a new
//! ticket when the old one is over, so two tickets are wrong only if the old one was seen alive
//! at a version at which the new one had joined: what is over never lives again.

use std::collections::HashMap;

use crate::history::Verb;

use super::Found;
use super::book::{Book, RoomIx, TicketIx};
use super::name::Name;
use super::seen::Seen;

/// How long the server remembers an `Idempotency-Key`.
const KEY_MEMORY_NS: u64 = 600 * 1_000_000_000;

#[derive(Debug, Default)]
pub(super) struct Check {
    newest: HashMap<(RoomIx, Name), TicketIx>,
    /// An older and a newer ticket of one identity.
    pairs: Vec<(TicketIx, TicketIx)>,
}

const PROMISE: u8 = 2;

impl super::Check for Check {
    fn promise(&self) -> u8 {
        PROMISE
    }

    fn take(&mut self, seen: &Seen<'_>, book: &Book, found: &mut Found) {
        if seen.call.call != Verb::Join || seen.fine().is_none() {
            return;
        }
        let Some(ticket) = seen.ticket else { return };
        if let Some(key) = seen.key.and_then(|key| book.key(key))
            && let Some(first) = key.ticket.filter(|first| *first != ticket)
            && key.file == seen.file
            && seen.call.t1 < key.t0.saturating_add(KEY_MEMORY_NS)
            && !book.row(first).moved
        {
            let (one, other) = (book.row(first), book.row(ticket));
            let said = format!("{}: one key gave {one} and {other}", seen.at());
            found.add(PROMISE, said, &[first, ticket]);
        }
        if let Some(user) = &seen.call.sent.user {
            let newest = self.newest.entry((seen.room, Name::of(user))).or_insert(ticket);
            if *newest != ticket {
                self.pairs.push((*newest, ticket));
                *newest = ticket;
            }
        }
    }

    fn finish(&mut self, book: &Book, found: &mut Found) {
        for (older, newer) in self.pairs.drain(..) {
            // Answers of two calls at once may come in either order.
            for (older, newer) in [(older, newer), (newer, older)] {
                let (was, is) = (book.row(older), book.row(newer));
                let alive_at = was.waiting_to.max(was.inside_to);
                let both = alive_at.zip(is.joined_by).filter(|(alive, joined)| alive >= joined);
                let also_alive = is.waiting_to.max(is.inside_to);
                if let Some((alive, joined)) = both
                    && also_alive.zip(was.joined_by).is_some_and(|(alive, joined)| alive >= joined)
                {
                    let said = format!(
                        "one person holds {was}, alive at version {alive}, and {is}, which had \
                         joined by version {joined}"
                    );
                    found.add(PROMISE, said, &[older, newer]);
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tell::{KEPT, broken};

    #[test]
    fn one_key_gives_one_ticket() {
        let story = "
            ana 0..10 join key=k -> 201 t=A v=5 waiting 0:0 pos=1
            ana 20..30 join key=k -> 200 t=A v=6 waiting 0:0 pos=1";
        assert_eq!(broken(story), KEPT);
        let two = "
            ana 0..10 join key=k -> 201 t=A v=5 waiting 0:0 pos=1
            ana 20..30 join key=k -> 201 t=B v=6 waiting 0:1 pos=2";
        assert_eq!(broken(two), [2]);
    }

    #[test]
    fn a_key_is_free_again_after_ten_minutes_and_not_a_millisecond_earlier() {
        let story = |t1: u64| {
            format!(
                "ana 5..10 join key=k -> 201 t=A v=5 waiting 0:0 pos=1
                 ana 600000..{t1} join key=k -> 201 t=B v=6 waiting 0:1 pos=1"
            )
        };
        assert_eq!(broken(&story(600_004)), [2]);
        assert_eq!(broken(&story(600_005)), KEPT);
    }

    #[test]
    fn a_person_whose_ticket_is_over_may_get_another() {
        let story = "
            ana 0..10 join user=ana -> 201 t=A v=5 waiting 0:0 pos=1
            ana 11..12 status A -> 200 v=6 waiting 0:0 pos=1
            ana 13..14 leave A -> 200 v=7 left
            ana 20..30 join user=ana -> 201 t=B v=8 waiting 0:1 pos=1
            ana 40..50 status B -> 200 v=8 waiting 0:1 pos=1";
        assert_eq!(broken(story), KEPT);
    }

    #[test]
    fn two_live_tickets_of_one_person_are_found() {
        let story = |version: u64| {
            format!(
                "ana 0..10 join user=ana -> 201 t=A v=5 waiting 0:0 pos=1
                 bo 20..30 join user=ana -> 201 t=B v=8 waiting 0:1 pos=2
                 bo 31..32 status B -> 200 v=8 waiting 0:1 pos=2
                 ana 40..50 status A -> 200 v={version} waiting 0:0 pos=1"
            )
        };
        assert_eq!(broken(&story(8)), [2]);
        assert_eq!(broken(&story(7)), KEPT, "it may have ended before version 8");
    }
}
