//! What another instance has told of whom it heard, and up to when: by our own clock.
//!
//! A report may be long on its way, come twice, or be overtaken. So each says when it was written,
//! by the writer's clock, and which report of the receiver's was the newest that the writer had by
//! then. The second is a time of the receiver's own clock, and the report was written after it: up
//! to that time all that was heard there is known here. However late it comes, it makes nobody
//! silent who was not.
//! The same word says which reports have arrived, so each tells of everybody since the last one of
//! which that is known ([`Marks`]), and nobody is missed when one is lost.
//! An instance of a release that says nothing of this is not heard of: nobody lapses beside it.

use std::collections::{BTreeMap, VecDeque};
use waitroom_engine::Mark;

/// A time by the clock of one instance. Its clock begins anew with each of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub life: u64,
    pub at_ms: u64,
}

/// The outside of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub written: Stamp,
    /// The newest report of the receiver's that the writer had by then.
    pub answers: Option<Stamp>,
}

/// The word of one other instance.
#[derive(Debug, Default)]
pub(crate) struct Told {
    newest: Option<Stamp>,
    arrived_ms: Option<u64>,
    rooms: BTreeMap<String, u64>,
}

impl Told {
    /// A report about these rooms came, to the instance of this life.
    pub(crate) fn take<'a>(
        &mut self,
        life: u64,
        envelope: Envelope,
        rooms: impl Iterator<Item = &'a str>,
    ) {
        let Envelope { written, answers } = envelope;
        let newer = |it: Stamp| it.life != written.life || it.at_ms < written.at_ms;
        if self.newest.is_none_or(newer) {
            self.newest = Some(written);
        }
        // To whoever had our name before us it said something else.
        let Some(ours) = answers.filter(|it| it.life == life) else { return };
        self.arrived_ms = self.arrived_ms.max(Some(ours.at_ms));
        for room in rooms {
            let known = self.rooms.entry(room.to_owned()).or_default();
            *known = (*known).max(ours.at_ms);
        }
    }

    /// Its newest report, for ours to answer.
    pub(crate) fn newest(&self) -> Option<Stamp> {
        self.newest
    }

    /// When we wrote the newest report that it is known to have.
    pub(crate) fn arrived_ms(&self) -> Option<u64> {
        self.arrived_ms
    }

    /// Up to when all that it heard in a room is known here.
    pub(crate) fn known_ms(&self, room: &str) -> Option<u64> {
        self.rooms.get(room).copied()
    }
}

/// Up to where each of the others was told of whom we heard.
#[derive(Debug, Default)]
pub struct Marks(BTreeMap<String, VecDeque<Written>>);

/// A report that was written, and where in each room it ended.
#[derive(Debug)]
struct Written {
    at_ms: u64,
    rooms: BTreeMap<String, Mark>,
}

/// Reports that are waited for, of which there is one a second. Whoever answers none of so many is
/// told of everybody.
const WRITTEN_MAX: usize = 32;

impl Marks {
    /// Since when this one must be told of a room; none where it must be told of everybody.
    /// `arrived_ms` is when the newest report was written that it is known to have.
    pub fn since(&self, to: &str, room: &str, arrived_ms: Option<u64>) -> Option<Mark> {
        let arrived = self.0.get(to)?.iter().find(|it| Some(it.at_ms) == arrived_ms);
        arrived?.rooms.get(room).copied()
    }

    /// A report is on its way.
    pub fn wrote(
        &mut self,
        to: &str,
        at_ms: u64,
        rooms: BTreeMap<String, Mark>,
        arrived_ms: Option<u64>,
    ) {
        let mut rooms = rooms;
        let written = self.0.entry(to.to_owned()).or_default();
        // Of a room that this one is not about, the other knows what it knew.
        let arrived = written.iter().find(|it| Some(it.at_ms) == arrived_ms);
        for (room, mark) in arrived.into_iter().flat_map(|it| &it.rooms) {
            rooms.entry(room.clone()).or_insert(*mark);
        }
        written.retain(|it| Some(it.at_ms) >= arrived_ms);
        if written.len() == WRITTEN_MAX {
            written.pop_front();
        }
        written.push_back(Written { at_ms, rooms });
    }

    /// Only these are told of anything from now on.
    pub fn keep(&mut self, others: &[String]) {
        self.0.retain(|to, _| others.contains(to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitroom_core::{State, Timestamp};
    use waitroom_engine::liveness::Liveness;

    fn envelope(at_ms: u64, answers: Option<(u64, u64)>) -> Envelope {
        let answers = answers.map(|(life, at_ms)| Stamp { life, at_ms });
        Envelope { written: Stamp { life: 7, at_ms }, answers }
    }

    fn mark(at_ms: u64) -> Mark {
        let liveness = Liveness::open(&State::default(), Timestamp(0));
        liveness.heard_since(None, Timestamp(10_000 + at_ms)).1
    }

    #[test]
    fn a_late_report_is_as_old_as_what_it_answers_and_a_later_one_is_not_undone() {
        let mut told = Told::default();
        let sale = || ["sale"].into_iter();
        told.take(1, envelope(500, None), sale());
        assert_eq!((told.known_ms("sale"), told.newest().map(|it| it.at_ms)), (None, Some(500)));
        told.take(1, envelope(1_500, Some((1, 90_000))), sale());
        assert_eq!((told.known_ms("sale"), told.arrived_ms()), (Some(90_000), Some(90_000)));
        // Overtaken by the one above.
        told.take(1, envelope(1_000, Some((1, 89_000))), sale());
        assert_eq!(
            (told.known_ms("sale"), told.newest().map(|it| it.at_ms)),
            (Some(90_000), Some(1_500))
        );
        // It does not say anything about other rooms.
        assert_eq!(told.known_ms("fair"), None);
    }

    #[test]
    fn an_answer_to_whoever_had_our_name_before_is_none_to_us() {
        let mut told = Told::default();
        told.take(2, envelope(500, Some((1, 90_000))), ["sale"].into_iter());
        assert_eq!((told.known_ms("sale"), told.arrived_ms()), (None, None));
        // And of its own lives the one that speaks counts, although its clock began anew.
        let anew = Envelope { written: Stamp { life: 8, at_ms: 3 }, answers: None };
        told.take(2, anew, [].into_iter());
        assert_eq!(told.newest(), Some(Stamp { life: 8, at_ms: 3 }));
    }

    #[test]
    fn everybody_is_told_of_until_a_report_is_known_to_have_arrived() {
        let mut marks = Marks::default();
        let of = |at_ms: u64| BTreeMap::from([("sale".to_owned(), mark(at_ms))]);
        assert_eq!(marks.since("b", "sale", None), None);
        (1..=3).for_each(|at| marks.wrote("b", at, of(at), None));
        assert_eq!(marks.since("b", "sale", None), None, "nobody knows whether one arrived");
        assert_eq!(marks.since("b", "sale", Some(2)), Some(mark(2)));
        assert_eq!(marks.since("c", "sale", Some(2)), None, "that was told to another");
        assert_eq!(marks.since("b", "fair", Some(2)), None, "that was about another room");
        marks.wrote("b", 4, BTreeMap::new(), Some(2));
        assert_eq!(marks.since("b", "sale", Some(4)), Some(mark(2)), "what it knew it knows");
        assert_eq!(marks.since("b", "sale", Some(1)), None, "what is over is forgotten");
        assert_eq!(marks.since("b", "sale", Some(2)), Some(mark(2)));
        // However long nothing is heard of it, little is kept.
        (5..100).for_each(|at| marks.wrote("b", at, of(at), Some(2)));
        assert!(marks.0["b"].len() <= WRITTEN_MAX);
        assert_eq!(marks.since("b", "sale", Some(2)), None);
        marks.keep(&["c".to_owned()]);
        assert!(marks.0.is_empty());
    }
}
