//! Promise 5: for every window, paced admissions ≤ rate × window + burst.
//!
//! Clients do not see the moment of an admission, they see bounds. It lies behind the sending of
//! every join that was answered with a version at which the ticket still waited: that join's
//! event came before the admission's. And it lies before the first answer that shows the ticket
//! inside. An admission whose both bounds lie in a window was made in it; no window may hold more
//! of them than the pace allows. All windows are judged at once, see `windows.rs`.
//! What operators let in is not paced: it is allowed on top, all of it in every window.

mod windows;

use std::collections::BTreeMap;

use crate::history::Verb;

use super::Found;
use super::book::{Book, RoomIx};
use super::seen::{Seen, Standing};
use windows::{Stretch, fullest};

#[derive(Debug, Default)]
pub(super) struct Check {
    /// By ticket: when its join was sent, when it was first seen inside, and by which clock.
    tickets: Vec<Bounds>,
    rooms: BTreeMap<(u16, RoomIx), Joins>,
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    joined: u64,
    inside: u64,
    clock: u16,
}

#[derive(Debug, Default)]
struct Joins {
    /// Version of the answer, moment of the sending.
    made: Vec<(u64, u64)>,
    by_operators: u64,
}

const PROMISE: u8 = 5;
const NEVER: u64 = u64::MAX;

/// The room counts whole milliseconds, at each end of a window.
const ROUNDING_NS: u64 = 2_000_000;

impl super::Check for Check {
    fn promise(&self) -> u8 {
        PROMISE
    }

    fn take(&mut self, seen: &Seen<'_>, _: &Book, _: &mut Found) {
        let room = self.rooms.entry((seen.clock, seen.room)).or_default();
        if seen.call.call == Verb::Admit {
            let granted = match seen.got() {
                Some(got) if got.is_fine() => got.granted.or(seen.call.sent.count),
                Some(got) if !got.is_unknown() => Some(0),
                _ => seen.call.sent.count,
            };
            room.by_operators = room.by_operators.saturating_add(granted.unwrap_or(NEVER));
        }
        let (Some(ticket), Some(got)) = (seen.ticket, seen.fine()) else { return };
        let at = ticket.0 as usize;
        if self.tickets.len() <= at {
            let nothing = Bounds { joined: 0, inside: NEVER, clock: seen.clock };
            self.tickets.resize(at + 1, nothing);
        }
        let bounds = &mut self.tickets[at];
        if bounds.inside == NEVER && bounds.joined == 0 {
            bounds.clock = seen.clock;
        }
        if bounds.clock != seen.clock {
            return;
        }
        if seen.call.call == Verb::Join && got.http == Some(201) {
            bounds.joined = seen.call.t0;
            room.made.extend(got.version.map(|version| (version, seen.call.t0)));
        }
        if seen.status == Some(Standing::Inside) {
            bounds.inside = bounds.inside.min(seen.call.t1);
        }
    }

    fn finish(&mut self, book: &Book, found: &mut Found) {
        for ((clock, room), joins) in &mut self.rooms {
            let about = book.room(*room);
            let Some(pace) = about.facts.pace else { continue };
            if joins.by_operators == NEVER {
                continue;
            }
            joins.rise();
            let stretches: Vec<Stretch> = book
                .tickets()
                .zip(&self.tickets)
                .filter(|((_, row), at)| {
                    row.room == *room && at.clock == *clock && at.inside != NEVER
                })
                .map(|((_, row), at)| {
                    let waited = row.waiting_to.map_or(0, |version| joins.sent_by(version));
                    Stretch { from: waited.max(at.joined).min(at.inside), to: at.inside }
                })
                .collect();
            let one = u128::from(pace.per_ms.max(1)) * 1_000_000;
            let per_ns = u128::from(pace.count);
            let allowed = (u128::from(pace.burst) + u128::from(joins.by_operators)) * one
                + u128::from(ROUNDING_NS) * per_ns;
            if let Some(window) = fullest(stretches, one, per_ns, allowed) {
                let said = format!(
                    "room \"{}\": {} were admitted within {} ms, where the pace is {} per {} ms, \
                     {} at once, and operators let in {}",
                    about.name,
                    window.admitted,
                    (window.to - window.from) / 1_000_000,
                    pace.count,
                    pace.per_ms,
                    pace.burst,
                    joins.by_operators
                );
                found.add(PROMISE, said, &[]);
            }
        }
    }
}

impl Joins {
    /// By version ascending, each with the latest sending so far.
    fn rise(&mut self) {
        self.made.sort_unstable();
        let mut latest = 0;
        for (_, sent) in &mut self.made {
            latest = latest.max(*sent);
            *sent = latest;
        }
    }

    /// The latest sending of a join whose event is not behind this version.
    fn sent_by(&self, version: u64) -> u64 {
        let up_to = self.made.partition_point(|(answered, _)| *answered <= version);
        up_to.checked_sub(1).map_or(0, |last| self.made[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tell::{KEPT, broken};

    /// `people` ask to join at 1000 and are all seen inside by 2000.
    fn story(people: u64, room: &str, more: &str) -> String {
        let mut story = format!("room {room}\n");
        for n in 0..people {
            story += &format!("p{n} 1000..1001 join -> 201 t=T{n} v={} waiting 0:{n}\n", n + 1);
        }
        story += more;
        for n in 0..people {
            story += &format!("\np{n} 1999..2000 status T{n} -> 200 v={} active pos=0", 100 + n);
        }
        story
    }

    #[test]
    fn one_more_than_the_pace_allows_is_found() {
        // Within a second: ten by the rate, one by the burst.
        assert_eq!(broken(&story(11, "pace=10/1000+1", "")), KEPT);
        assert_eq!(broken(&story(12, "pace=10/1000+1", "")), [5]);
    }

    #[test]
    fn what_operators_let_in_is_allowed_on_top() {
        let admit = "op 1001..1002 admit count=5 -> 200 granted=3";
        assert_eq!(broken(&story(3, "pace=0/1000+0", admit)), KEPT);
        assert_eq!(broken(&story(4, "pace=0/1000+0", admit)), [5]);
        let lost = "op 1001..1002 admit count=5 -> lost";
        assert_eq!(broken(&story(5, "pace=0/1000+0", lost)), KEPT);
        assert_eq!(broken(&story(6, "pace=0/1000+0", lost)), [5]);
    }

    #[test]
    fn a_crowd_that_could_have_entered_earlier_is_not_accused() {
        let story = "
            room pace=1/1000+1
            a 0..1 join -> 201 t=A v=1 waiting 0:0
            b 0..1 join -> 201 t=B v=2 waiting 0:1
            a 9000..9001 status A -> 200 v=9 active pos=0
            b 9000..9001 status B -> 200 v=9 active pos=0";
        assert_eq!(broken(story), KEPT);
        // Both still waited at a version behind a join that was sent at 8990.
        let late = format!(
            "{story}
            c 8990..8991 join -> 201 t=C v=5 waiting 0:2
            a 8992..8993 status A -> 200 v=6 waiting 0:0
            b 8992..8993 status B -> 200 v=6 waiting 0:1"
        );
        assert_eq!(broken(&late), [5]);
    }
}
