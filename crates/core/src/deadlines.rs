//! When the time of which slot runs out, in order.
//!
//! Lives here: slots in groups, one for each moment at which some of them end. People are admitted
//! in ticks and claim in rounds, so a moment is shared by many, and there are far fewer moments
//! than slots: a set of pairs, with a walk down a deep tree for every change, took a third of the
//! time of a large sale.
//! Stays out: what a deadline means. The truth about a slot is its entry (`slots.rs`); a group only
//! remembers who was put into it and counts who is left. Taking a slot out is therefore a
//! subtraction, and whoever reads a group asks the entries who still belongs to it.
//!
//! The order is by moment, then by slot: the same for every history that led here.

use crate::units::Timestamp;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct Deadlines {
    /// None of them is empty, so the first one is the next deadline.
    groups: BTreeMap<Timestamp, Group>,
}

#[derive(Clone, Debug, Default)]
struct Group {
    /// Everyone who was put here since the last clean-up, some of them gone or here twice.
    slots: Vec<u32>,
    /// Before this all are gone.
    head: usize,
    /// How many are left.
    live: usize,
    /// Whether `slots` ascend, each once: always so when they were taken in order.
    unsorted: bool,
}

/// A group is cleaned up when most of it is gone: at most so many times those left, and some.
const GONE_TIMES: usize = 3;
const GONE_MORE: usize = 64;

impl Deadlines {
    /// All at once, from slots in ascending order: with many this is ten times faster.
    pub(crate) fn of(slots: impl Iterator<Item = (u64, Timestamp)>) -> Deadlines {
        let mut pairs: Vec<(Timestamp, u32)> = slots.map(|(slot, at)| (at, narrow(slot))).collect();
        pairs.sort_unstable();
        let groups = pairs.chunk_by(|a, b| a.0 == b.0).map(|group| {
            let slots: Vec<u32> = group.iter().map(|(_, slot)| *slot).collect();
            (group[0].0, Group { live: slots.len(), slots, ..Group::default() })
        });
        Deadlines { groups: groups.collect() }
    }

    pub(crate) fn insert(&mut self, at: Timestamp, slot: u64) {
        let group = self.groups.entry(at).or_default();
        let slot = narrow(slot);
        group.unsorted |= group.slots.last().is_some_and(|last| *last >= slot);
        group.slots.push(slot);
        group.live += 1;
    }

    /// Takes a slot out whose entry no longer says `at`. `belongs` asks the entries.
    pub(crate) fn remove(&mut self, at: Timestamp, slot: u64, belongs: impl Fn(u64) -> bool) {
        let group = self.groups.get_mut(&at).expect("what is taken out was put in");
        group.live -= 1;
        if group.live == 0 {
            self.groups.remove(&at);
            return;
        }
        // Those that are due go in order, and a long group must not be walked again for each.
        if group.slots.get(group.head) == Some(&narrow(slot)) {
            group.head += 1;
        }
        if group.slots.len() - group.head > group.live * (1 + GONE_TIMES) + GONE_MORE {
            group.slots = group.in_order(belongs);
            (group.head, group.unsorted) = (0, false);
        }
    }

    pub(crate) fn first(&self) -> Option<Timestamp> {
        self.groups.keys().next().copied()
    }

    /// The first `most` slots whose deadline has come by `at`, earliest first. `belongs` asks the
    /// entries whether a slot's deadline is this.
    pub(crate) fn due(
        &self,
        at: Timestamp,
        most: usize,
        belongs: impl Fn(Timestamp, u64) -> bool,
    ) -> Vec<u64> {
        let mut due = Vec::new();
        for (&when, group) in self.groups.range(..=at) {
            let left = most - due.len();
            if left == 0 {
                break;
            }
            let belongs = |slot| belongs(when, slot);
            if group.unsorted {
                due.extend(group.in_order(belongs).into_iter().map(u64::from).take(left));
            } else {
                let slots = group.slots[group.head..].iter().map(|slot| u64::from(*slot));
                due.extend(slots.filter(|slot| belongs(*slot)).take(left));
            }
        }
        due
    }
}

impl Group {
    /// Who is left, ascending, each once.
    fn in_order(&self, belongs: impl Fn(u64) -> bool) -> Vec<u32> {
        let known = self.slots[self.head..].iter().copied();
        let mut slots: Vec<u32> = known.filter(|slot| belongs(u64::from(*slot))).collect();
        slots.sort_unstable();
        slots.dedup();
        slots
    }
}

/// Half the memory for a number that is bounded by how many may be inside.
fn narrow(slot: u64) -> u32 {
    u32::try_from(slot).expect("a room has fewer slots than ACTIVE_MAX, ten million")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// The plain way: every slot's deadline, and pairs in order.
    #[derive(Default)]
    struct Model {
        entries: BTreeMap<u64, Timestamp>,
    }

    impl Model {
        fn due(&self, at: Timestamp, most: usize) -> Vec<u64> {
            let pairs: BTreeSet<(Timestamp, u64)> =
                self.entries.iter().map(|(slot, at)| (*at, *slot)).collect();
            let due = pairs.into_iter().take_while(|pair| pair.0 <= at);
            due.map(|pair| pair.1).take(most).collect()
        }
    }

    fn belongs(model: &Model) -> impl Fn(Timestamp, u64) -> bool + '_ {
        |at, slot| model.entries.get(&slot) == Some(&at)
    }

    proptest! {
        /// Slots are taken, moved to other moments, freed, and drained in order, in any mixture.
        #[test]
        fn it_is_the_set_of_pairs(
            acts in prop::collection::vec((0..200u64, 0..6u64, 0..8u8), 1..2_000),
        ) {
            let (mut model, mut deadlines) = (Model::default(), Deadlines::default());
            for (slot, at, act) in acts {
                let at = Timestamp(at);
                let was = match act {
                    0 => model.entries.remove(&slot),
                    1 => {
                        deadlines = Deadlines::of(model.entries.iter().map(|(s, at)| (*s, *at)));
                        continue;
                    }
                    2 => {
                        let due = deadlines.due(at, 3, belongs(&model));
                        prop_assert_eq!(&due, &model.due(at, 3));
                        for slot in due {
                            let was = model.entries.remove(&slot).expect("it was due");
                            let left = belongs(&model);
                            deadlines.remove(was, slot, |slot| left(was, slot));
                        }
                        continue;
                    }
                    _ => model.entries.insert(slot, at),
                };
                if let Some(was) = was {
                    let left = belongs(&model);
                    deadlines.remove(was, slot, |slot| left(was, slot));
                }
                if act > 2 {
                    deadlines.insert(at, slot);
                }
                prop_assert_eq!(deadlines.first(), model.entries.values().min().copied());
            }
            let end = Timestamp(9);
            prop_assert_eq!(deadlines.due(end, 1_000, belongs(&model)), model.due(end, 1_000));
        }
    }

    #[test]
    fn a_group_that_most_have_left_gives_its_memory_back() {
        let (at, later) = (Timestamp(5), Timestamp(6));
        let mut deadlines = Deadlines::of((0..100_000).map(|slot| (slot, at)));
        // All but ten go to later, from the back, so that the head does not move.
        for slot in (10..100_000u64).rev() {
            deadlines.remove(at, slot, |other| other < slot);
            deadlines.insert(later, slot);
        }
        assert!(deadlines.groups[&at].slots.capacity() < 500);
        assert_eq!(deadlines.due(at, 100, |_, slot| slot < 10), (0..10).collect::<Vec<_>>());
    }
}
