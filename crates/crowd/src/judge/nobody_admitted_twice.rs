//! Promise 3: at most one admission per ticket; repeats of a claim return the same one.
//!
//! A ticket waits, is inside, is over: by version it never goes back. The pass of a repeated
//! claim carries the same times; only activity may renew them.

use std::collections::HashMap;

use crate::history::Verb;

use super::Found;
use super::book::{Book, TicketIx};
use super::seen::{Seen, Standing};

#[derive(Debug, Default)]
pub(super) struct Check {
    /// By ticket: a version by which it was over.
    over_by: Vec<Option<u64>>,
    /// The times of the pass that a claim gave.
    claimed: HashMap<TicketIx, (Option<u64>, Option<u64>)>,
}

const PROMISE: u8 = 3;

impl super::Check for Check {
    fn promise(&self) -> u8 {
        PROMISE
    }

    fn take(&mut self, seen: &Seen<'_>, book: &Book, found: &mut Found) {
        let Some(ticket) = seen.ticket else { return };
        if seen.call.call == Verb::Activity {
            self.claimed.remove(&ticket);
            return;
        }
        let Some(got) = seen.fine() else { return };
        if let (Some(Standing::Over), Some(version)) = (seen.status, got.version) {
            let at = ticket.0 as usize;
            if self.over_by.len() <= at {
                self.over_by.resize(at + 1, None);
            }
            let by = self.over_by[at].map_or(version, |by| by.min(version));
            self.over_by[at] = Some(by);
        }
        if seen.call.call == Verb::Claim && (got.iat.is_some() || got.exp.is_some()) {
            let pass = (got.iat, got.exp);
            let first = *self.claimed.entry(ticket).or_insert(pass);
            if first != pass {
                let row = book.row(ticket);
                let said = format!(
                    "{}: {row} is claimed again and its pass is {pass:?}, not {first:?}",
                    seen.at()
                );
                found.add(PROMISE, said, &[ticket]);
            }
        }
    }

    fn finish(&mut self, book: &Book, found: &mut Found) {
        for (ticket, row) in book.tickets() {
            if let (Some(waiting), Some(inside)) = (row.waiting_to, row.inside_from)
                && waiting >= inside
            {
                let said =
                    format!("{row} was inside by version {inside} and waits at version {waiting}");
                found.add(PROMISE, said, &[ticket]);
            }
            let over = self.over_by.get(ticket.0 as usize).copied().flatten();
            if let (Some(alive), Some(over)) = (row.waiting_to.max(row.inside_to), over)
                && alive >= over
            {
                let said = format!("{row} was over by version {over} and lives at version {alive}");
                found.add(PROMISE, said, &[ticket]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tell::{KEPT, broken};

    #[test]
    fn one_life_is_fine() {
        let story = "
            ana 0..10 join -> 201 t=A v=5 waiting 0:0 pos=1
            ana 11..12 status A -> 200 v=6 waiting 0:0 pos=1
            ana 13..14 status A -> 200 v=7 admitted pos=0
            ana 15..16 claim A -> 200 v=8 active iat=100 exp=200
            ana 17..18 claim A -> 200 v=9 active iat=100 exp=200
            ana 19..20 complete A -> 200 v=10 completed
            ana 21..22 status A -> 200 v=10 completed";
        assert_eq!(broken(story), KEPT);
    }

    #[test]
    fn a_pass_that_changes_by_a_second_is_found_unless_it_was_renewed() {
        let story = |between: &str| {
            format!(
                "ana 0..10 claim A -> 200 v=8 active iat=100 exp=200
                 {between}
                 ana 17..18 claim A -> 200 v=9 active iat=100 exp=201"
            )
        };
        assert_eq!(broken(&story("")), [3]);
        assert_eq!(broken(&story("ana 11..12 activity A -> lost")), KEPT);
    }

    #[test]
    fn who_was_inside_never_waits_again() {
        let story = |version: u64| {
            format!(
                "ana 0..10 status A -> 200 v=8 admitted pos=0
                 ana 11..12 status A -> 200 v={version} waiting 0:0 pos=1"
            )
        };
        assert_eq!(broken(&story(7)), KEPT, "an older picture");
        // The position rises as well.
        assert_eq!(broken(&story(8)), [3, 8]);
    }

    #[test]
    fn who_is_over_never_lives_again() {
        let story = |version: u64| {
            format!(
                "ana 0..10 leave A -> 200 v=8 left
                 ana 11..12 status A -> 200 v={version} admitted pos=0"
            )
        };
        assert_eq!(broken(&story(7)), KEPT);
        assert_eq!(broken(&story(8)), [3]);
    }
}
