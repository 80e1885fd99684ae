//! Promise 11: no forged, altered, expired or foreign token is accepted; a ticket of one room
//! means nothing in another.
//!
//! Whoever writes a history says of a call what is wrong with the proof it presents
//! (`sent.forged`). Such a call must be refused, whatever else it asks.

use super::Found;
use super::book::Book;
use super::seen::Seen;

#[derive(Debug, Default)]
pub(super) struct Check;

const PROMISE: u8 = 11;

impl super::Check for Check {
    fn promise(&self) -> u8 {
        PROMISE
    }

    fn take(&mut self, seen: &Seen<'_>, _: &Book, found: &mut Found) {
        let Some(how) = &seen.call.sent.forged else { return };
        let Some(got) = seen.fine() else { return };
        let tickets: Vec<_> = seen.ticket.into_iter().collect();
        let said = match got.http {
            Some(http) => format!("{}: {how}, and the answer is {http}", seen.at()),
            None => format!("{}: {how}, and it is answered", seen.at()),
        };
        found.add(PROMISE, said, &tickets);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tell::{KEPT, broken};

    #[test]
    fn a_refused_forgery_is_fine() {
        let story = "
            eve 0..1 status A forged=altered -> 401 token_invalid
            eve 2..3 claim A forged=other_room -> 401 token_invalid
            eve 4..5 status A forged=altered -> lost
            eve 6..7 live A forged=used_live_ticket -> 401 token_invalid";
        assert_eq!(broken(story), KEPT);
    }

    #[test]
    fn an_accepted_forgery_is_found_even_if_nothing_came_of_it() {
        for answer in ["200 v=3 waiting 0:1 pos=2", "204", "299"] {
            assert_eq!(broken(&format!("eve 0..1 claim A forged=altered -> {answer}")), [11]);
        }
        assert_eq!(broken("eve 0..1 live A forged=used_live_ticket -> 101"), [11]);
        assert_eq!(broken("eve 0..1 claim A forged=altered -> 300"), KEPT);
    }
}
