//! Promise 1: no acknowledged join is lost; its number never changes; a refused join never
//! appears.
//!
//! Whoever presents a ticket unforged was given it. So from the first answer that names it, no
//! answer may say that nobody knows it; `ticket_forgotten` only after the room's `memory`. A join
//! that was refused for certain (no attempt with its key got lost) and is then found to be there
//! already had happened all the same.

use crate::history::Verb;

use super::book::{Book, TicketIx};
use super::seen::Seen;
use super::{Check as _, Found};

#[derive(Debug, Default)]
pub(super) struct Check {
    /// By ticket: when the join that made it was sent, and in which file.
    made: Vec<Option<Made>>,
    /// By ticket: whether an answer named it.
    told: Vec<bool>,
}

#[derive(Clone, Copy, Debug)]
struct Made {
    file: u16,
    t0: u64,
}

/// What an answer says of a ticket that is not there.
const LOST: [&str; 3] = ["ticket_unknown", "place_lost", "WTR001"];

/// A ticket's token lives as long as the ticket. Sessions also take passes, and those expire.
fn says_it_is_lost(verb: Verb, code: &str) -> bool {
    let by_token = !matches!(verb, Verb::Complete | Verb::Activity);
    LOST.contains(&code) || code == "token_invalid" && by_token
}

impl super::Check for Check {
    fn promise(&self) -> u8 {
        1
    }

    fn take(&mut self, seen: &Seen<'_>, book: &Book, found: &mut Found) {
        let Some(ticket) = seen.ticket else { return };
        let at = ticket.0 as usize;
        if self.made.len() <= at {
            self.made.resize(at + 1, None);
            self.told.resize(at + 1, false);
        }
        if seen.call.sent.forged.is_some() {
            return;
        }
        match seen.fine() {
            Some(got) => {
                self.told[at] |= got.ticket.is_some();
                if seen.call.call == Verb::Join && got.http == Some(201) {
                    self.made[at] = Some(Made { file: seen.file, t0: seen.call.t0 });
                }
                self.place_is_the_same(seen, ticket, book, found);
            }
            None => self.is_still_there(seen, ticket, book, found),
        }
    }

    fn finish(&mut self, book: &Book, found: &mut Found) {
        for key in book.keys().filter(|key| key.refused && key.repeated) {
            if !key.new && !key.unknown {
                let ticket = key.ticket.expect("a repeat names its ticket");
                let said = format!("{} was refused, and was there all the same", book.row(ticket));
                found.add(self.promise(), said, &[ticket]);
            }
        }
    }
}

impl Check {
    fn place_is_the_same(&self, seen: &Seen<'_>, ticket: TicketIx, book: &Book, found: &mut Found) {
        let Some(got) = seen.fine().filter(|got| got.ticket.is_some()) else { return };
        let (Some(lane), Some(order)) = (got.lane, got.order) else { return };
        let row = book.row(ticket);
        let place = row.place().expect("the book took the first place it was told");
        if (place.lane, place.order) != (lane, order) && book.is_first_come(seen.room) {
            let said = format!("{}: {row} is now at {lane}:{order}", seen.at());
            found.add(self.promise(), said, &[ticket]);
        }
    }

    fn is_still_there(&self, seen: &Seen<'_>, ticket: TicketIx, book: &Book, found: &mut Found) {
        let Some(code) = seen.got().and_then(|got| got.code.as_deref()) else { return };
        let at = ticket.0 as usize;
        let row = book.row(ticket);
        if self.told[at] && says_it_is_lost(seen.call.call, code) {
            let said = format!("{}: {row} was acknowledged and now is {code}", seen.at());
            found.add(self.promise(), said, &[ticket]);
        }
        let memory_ms = book.room(seen.room).facts.memory_ms;
        if let (Some(made), Some(memory_ms)) = (self.made[at], memory_ms)
            && code == "ticket_forgotten"
            && made.file == seen.file
            && seen.call.t1 - made.t0 < memory_ms.saturating_mul(1_000_000)
        {
            let said = format!("{}: {row} is forgotten before the room may", seen.at());
            found.add(self.promise(), said, &[ticket]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tell::{KEPT, broken};

    #[test]
    fn a_place_that_stays_is_fine() {
        let story = "
            room memory=1000
            ana 0..10 join key=k -> lost
            ana 20..30 join key=k -> 503 outcome_unknown
            ana 40..50 join key=k -> 200 t=A v=5 waiting 0:0 pos=1
            ana 60..70 status A -> 503 unavailable
            ana 80..90 status A -> 200 v=6 waiting 0:0 pos=1
            bo 90..95 join key=b -> 201 t=B v=7 waiting 0:1 pos=2
            bo 1090..1095 status B -> 410 ticket_forgotten";
        assert_eq!(broken(story), KEPT);
    }

    #[test]
    fn an_acknowledged_place_that_is_gone_is_found() {
        for code in ["404 ticket_unknown", "410 place_lost", "401 token_invalid"] {
            let story = format!(
                "ana 0..10 join key=k -> 201 t=A v=5 waiting 0:0 pos=1
                 ana 20..30 status A -> {code}"
            );
            assert_eq!(broken(&story), [1], "{code}");
        }
    }

    #[test]
    fn a_pass_may_expire_and_the_session_is_still_there() {
        let story = |code: &str| {
            format!(
                "ana 0..10 join key=k -> 201 t=A v=5 waiting 0:0 pos=1
                 ana 20..30 complete A -> {code}"
            )
        };
        assert_eq!(broken(&story("401 token_invalid")), KEPT);
        assert_eq!(broken(&story("404 ticket_unknown")), [1]);
    }

    #[test]
    fn a_forged_one_may_be_unknown() {
        let story = "
            ana 0..10 join key=k -> 201 t=A v=5 waiting 0:0 pos=1
            ana 20..30 status A forged=bit -> 401 token_invalid";
        assert_eq!(broken(story), KEPT);
    }

    #[test]
    fn a_number_that_moves_by_one_is_found() {
        let story = "
            ana 0..10 join key=k -> 201 t=A v=5 waiting 0:7 pos=1
            ana 20..30 status A -> 200 v=6 waiting 0:8 pos=1";
        assert_eq!(broken(story), [1]);
    }

    #[test]
    fn a_ticket_forgotten_one_millisecond_early_is_found() {
        let story = |t1: u64| {
            format!(
                "room memory=1000
                 ana 5..10 join key=k -> 201 t=A v=5 waiting 0:0 pos=1
                 ana 1000..{t1} status A -> 410 ticket_forgotten"
            )
        };
        assert_eq!(broken(&story(1004)), [1]);
        assert_eq!(broken(&story(1005)), KEPT);
    }

    #[test]
    fn a_refused_join_that_appears_is_found() {
        let story = "
            ana 0..10 join key=k -> 503 queue_full
            ana 20..30 join key=k -> 200 t=A v=5 waiting 0:0 pos=1";
        assert_eq!(broken(story), [1]);
        let unknown_before = "
            ana 0..5 join key=k -> lost
            ana 6..10 join key=k -> 503 queue_full
            ana 20..30 join key=k -> 200 t=A v=5 waiting 0:0 pos=1";
        assert_eq!(broken(unknown_before), KEPT);
        let at_last = "
            ana 0..10 join key=k -> 503 queue_full
            ana 20..30 join key=k -> 201 t=A v=5 waiting 0:0 pos=1
            ana 40..50 join key=k -> 200 t=A v=5 waiting 0:0 pos=1";
        assert_eq!(broken(at_last), KEPT);
    }
}
