//! Promise 6: if join A was answered before join B was sent (same lane, no draw, window 1), A is
//! served before B.
//!
//! Two steps that together give it. Numbers: whoever asks after an answer came gets a higher
//! order than that answer told. Service: nobody is inside by a version at which somebody with a
//! lower order of the same lane is still seen waiting; this holds in a draw too.

use std::collections::BTreeMap;

use crate::history::Verb;

use super::Found;
use super::book::{Book, RoomIx, TicketIx};
use super::seen::Seen;

#[derive(Debug, Default)]
pub(super) struct Check {
    lines: BTreeMap<(u16, RoomIx, u8), Line>,
}

/// The joins of a lane, by one clock.
#[derive(Debug, Default)]
struct Line {
    /// When an answer told of an order.
    told: Vec<(u64, u64, TicketIx)>,
    /// When the join was sent that made an order.
    made: Vec<(u64, u64, TicketIx)>,
}

const PROMISE: u8 = 6;

impl super::Check for Check {
    fn promise(&self) -> u8 {
        PROMISE
    }

    fn take(&mut self, seen: &Seen<'_>, book: &Book, _: &mut Found) {
        if seen.call.call != Verb::Join || !book.is_first_come(seen.room) {
            return;
        }
        let (Some(ticket), Some(got)) = (seen.ticket, seen.fine()) else { return };
        let (Some(lane), Some(order)) = (got.lane, got.order) else { return };
        let line = self.lines.entry((seen.clock, seen.room, lane)).or_default();
        line.told.push((seen.call.t1, order, ticket));
        if got.http == Some(201) {
            line.made.push((seen.call.t0, order, ticket));
        }
    }

    fn finish(&mut self, book: &Book, found: &mut Found) {
        for ((_, room, _), line) in &mut self.lines {
            // A draw may have shown itself only later.
            if book.is_first_come(*room) {
                line.numbers_follow_arrival(book, found);
            }
        }
        self.lines.clear();
        service_follows_numbers(book, found);
    }
}

impl Line {
    fn numbers_follow_arrival(&mut self, book: &Book, found: &mut Found) {
        self.told.sort_unstable();
        self.made.sort_unstable();
        let mut earlier = self.told.iter().peekable();
        let mut highest: Option<(u64, TicketIx)> = None;
        for (sent, order, ticket) in &self.made {
            while let Some((_, order, ticket)) = earlier.next_if(|(told, ..)| told < sent) {
                highest = highest.max(Some((*order, *ticket)));
            }
            if let Some((_, before)) = highest.filter(|(highest, _)| highest >= order) {
                let (late, early) = (book.row(*ticket), book.row(before));
                let said = format!("{late} joined after {early} was answered and stands before it");
                found.add(PROMISE, said, &[before, *ticket]);
            }
        }
    }
}

fn service_follows_numbers(book: &Book, found: &mut Found) {
    let mut lanes: BTreeMap<(RoomIx, u8), Vec<(u64, TicketIx)>> = BTreeMap::new();
    for (ticket, row) in book.tickets() {
        if let Some(place) = row.place()
            && (row.waiting_to.is_some() || row.inside_from.is_some())
        {
            lanes.entry((row.room, place.lane)).or_default().push((place.order, ticket));
        }
    }
    for line in lanes.values_mut() {
        line.sort_unstable();
        // From the back: the earliest version by which anybody further back was inside.
        let mut first_in: Option<(u64, TicketIx)> = None;
        for (_, ticket) in line.iter().rev() {
            let row = book.row(*ticket);
            if let (Some(waits_at), Some((inside_by, other))) = (row.waiting_to, first_in)
                && waits_at >= inside_by
            {
                let said = format!(
                    "{} is inside by version {inside_by} while {row} waits at version {waits_at}",
                    book.row(other)
                );
                found.add(PROMISE, said, &[*ticket, other]);
            }
            if let Some(inside_by) = row.inside_from
                && first_in.is_none_or(|(first, _)| inside_by < first)
            {
                first_in = Some((inside_by, *ticket));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Clocks;
    use super::super::tell::{KEPT, broken, judged_by};

    #[test]
    fn who_asks_after_an_answer_came_stands_behind_it() {
        let story = |t0: u64| {
            format!(
                "ana 0..10 join -> 201 t=A v=5 waiting 0:7 pos=1
                 bo {t0}..20 join -> 201 t=B v=6 waiting 0:6 pos=1"
            )
        };
        assert_eq!(broken(&story(11)), [6]);
        assert_eq!(broken(&story(10)), KEPT, "both were under way");
    }

    #[test]
    fn crowds_on_one_machine_are_held_to_one_order() {
        let ana = "ana 0..10 join -> 201 t=A v=5 waiting 0:7 pos=1";
        let bo = "bo 0..5 join -> 201 t=B v=6 waiting 0:6 pos=1";
        // Bo's crowd began this much after ana's. Moments are known to the millisecond.
        let broken = |clocks, began_ms: u64| {
            let verdict = judged_by(clocks, [(1_000, ana), (1_000 + began_ms, bo)]);
            verdict.found.counts().map(|(promise, _)| promise).collect::<Vec<_>>()
        };
        assert_eq!(broken(Clocks::One, 12), [6]);
        assert_eq!(broken(Clocks::One, 11), KEPT, "as far as anybody can tell");
        assert_eq!(broken(Clocks::Each, 12), KEPT, "two clocks say nothing about each other");
    }

    #[test]
    fn lanes_draws_and_repeats_are_told_apart() {
        let other_lane = "
            ana 0..10 join -> 201 t=A v=5 waiting 0:7 pos=1
            bo 11..20 join -> 201 t=B v=6 waiting 1:0 pos=1";
        assert_eq!(broken(other_lane), KEPT);
        let drawn = "
            room shuffled
            ana 0..10 join -> 201 t=A v=5 waiting 0:7 pos=1
            bo 11..20 join -> 201 t=B v=6 waiting 0:6 pos=1";
        assert_eq!(broken(drawn), KEPT);
        let repeat = "
            bo 0..5 join key=b -> lost
            ana 6..10 join key=a -> 201 t=A v=5 waiting 0:7 pos=1
            bo 11..20 join key=b -> 200 t=B v=6 waiting 0:6 pos=1";
        assert_eq!(broken(repeat), KEPT);
    }

    #[test]
    fn nobody_enters_before_one_who_still_waits_ahead() {
        let story = |waits_at: u64| {
            format!(
                "ana 0..1 status A -> 200 v={waits_at} waiting 0:6 pos=1
                 bo 2..3 status B -> 200 v=8 admitted 0:7 pos=0
                 ana 4..5 status A -> 200 v=20 admitted 0:6 pos=0"
            )
        };
        assert_eq!(broken(&story(8)), [6]);
        assert_eq!(broken(&story(7)), KEPT);
    }

    #[test]
    fn service_is_held_to_the_order_in_a_draw_too() {
        let story = "
            room shuffled
            ana 0..1 status A -> 200 v=9 waiting 0:6 pos=1
            bo 2..3 status B -> 200 v=8 admitted 0:7 pos=0";
        assert_eq!(broken(story), [6]);
    }
}
