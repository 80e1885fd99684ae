//! Promise 4: no admission is made while slots held ≥ `max_active`.
//!
//! A ticket that was inside by one version and is seen inside at a later one held its slot at all
//! versions between. So many such stretches over one version were inside at once. Slots that
//! nobody looked at are not counted: what is found here is certain, what is not found is not;
//! the log knows all of them.

use super::Found;
use super::book::{Book, TicketIx};
use super::seen::Seen;

#[derive(Debug, Default)]
pub(super) struct Check;

const PROMISE: u8 = 4;

impl super::Check for Check {
    fn promise(&self) -> u8 {
        PROMISE
    }

    fn take(&mut self, _: &Seen<'_>, _: &Book, _: &mut Found) {}

    fn finish(&mut self, book: &Book, found: &mut Found) {
        for (room, about) in book.rooms() {
            let Some(max_active) = about.facts.max_active else { continue };
            // Each stretch begins at a version and ends before the one after its last.
            let mut steps: Vec<(u64, bool, TicketIx)> = Vec::new();
            for (ticket, row) in book.tickets().filter(|(_, row)| row.room == room) {
                let Some(from) = row.inside_from else { continue };
                let to = row.inside_to.filter(|to| *to >= from).unwrap_or(from);
                // A stretch that is known by a command's answer alone has no certain length.
                if row.inside_to.is_none_or(|to| to < from) {
                    continue;
                }
                steps.push((from, true, ticket));
                steps.push((to.saturating_add(1), false, ticket));
            }
            // At one version ends come before beginnings: `false` sorts first.
            steps.sort_unstable();
            let mut inside = 0u64;
            for (version, begins, ticket) in steps {
                if !begins {
                    inside -= 1;
                    continue;
                }
                inside += 1;
                if inside > max_active {
                    let row = book.row(ticket);
                    let said = format!(
                        "room \"{}\", version {version}: {row} makes {inside} inside where \
                         {max_active} may be",
                        about.name
                    );
                    found.add(PROMISE, said, &[ticket]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tell::{KEPT, broken};

    fn story(max_active: u64, second_from: u64) -> String {
        format!(
            "room max_active={max_active}
             ana 0..1 status A -> 200 v=10 admitted pos=0
             ana 2..3 status A -> 200 v=20 active pos=0
             bo 4..5 status B -> 200 v={second_from} admitted pos=0
             bo 6..7 status B -> 200 v=30 active pos=0"
        )
    }

    #[test]
    fn two_inside_where_one_may_be_are_found() {
        assert_eq!(broken(&story(1, 15)), [4]);
        assert_eq!(broken(&story(2, 15)), KEPT);
    }

    #[test]
    fn they_overlap_in_one_version_or_not_at_all() {
        assert_eq!(broken(&story(1, 20)), [4]);
        assert_eq!(broken(&story(1, 21)), KEPT);
    }

    #[test]
    fn a_limit_that_was_raised_counts_as_raised() {
        let raised = format!("{}\nop 8..9 settings facts=max_active=2 -> 200", story(1, 15));
        assert_eq!(broken(&raised), KEPT);
    }
}
