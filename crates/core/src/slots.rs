//! Those inside, and the slots they hold.
//!
//! Lives here: one entry per slot taken, from admission until no gate can accept the pass any
//! more; an ended session whose pass may still be accepted somewhere is `Held`.
//! Entries sit in the copy-on-write array, the lowest free index is used first: where an entry
//! sits is then a function of the history, and a replay puts it in the same place.

use crate::chunked::Chunked;
use crate::deadlines::Deadlines;
use crate::event::Session;
use crate::units::{Ticket, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inside {
    pub(crate) ticket: Ticket,
    pub(crate) joined_at: Timestamp,
    pub(crate) admitted_at: Timestamp,
    /// Whether the admission cost a token of the bucket.
    pub(crate) paced: bool,
    pub(crate) stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Admitted { claim_by: Timestamp },
    Active(Session),
    Held { until: Timestamp },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    pub(crate) entries: Chunked<Option<Inside>>,
    pub(crate) taken: u64,
}

/// What can be worked out from the slots: free places and deadlines in order. Not part of state.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotIndex {
    free: BinaryHeap<Reverse<u64>>,
    deadlines: Deadlines,
    /// Ended tickets that still hold a slot; their record no longer says which.
    pub(crate) held: BTreeMap<Ticket, u64>,
}

impl Inside {
    pub(crate) fn deadline(&self) -> Timestamp {
        match self.stage {
            Stage::Admitted { claim_by } => claim_by,
            Stage::Active(session) => session.expires_at,
            Stage::Held { until } => until,
        }
    }
}

impl Slots {
    pub(crate) fn get(&self, slot: u64) -> &Inside {
        self.entries.get(slot).as_ref().expect("a record's slot is taken while the record says so")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Inside)> {
        (0..self.entries.len()).filter_map(|slot| Some((slot, self.entries.get(slot).as_ref()?)))
    }

    pub(crate) fn put(&mut self, index: &mut SlotIndex, inside: Inside) -> u64 {
        let slot = match index.free.pop() {
            Some(Reverse(slot)) => slot,
            None => {
                self.entries.push(None);
                self.entries.len() - 1
            }
        };
        index.deadlines.insert(inside.deadline(), slot);
        self.entries.set(slot, Some(inside));
        self.taken += 1;
        slot
    }

    pub(crate) fn change(&mut self, index: &mut SlotIndex, slot: u64, stage: Stage) {
        let was = *self.get(slot);
        let inside = Inside { stage, ..was };
        self.entries.set(slot, Some(inside));
        if inside.deadline() != was.deadline() {
            index.deadlines.remove(was.deadline(), slot, |slot| self.ends(slot, was.deadline()));
            index.deadlines.insert(inside.deadline(), slot);
        }
    }

    pub(crate) fn free(&mut self, index: &mut SlotIndex, slot: u64) -> Inside {
        let inside = *self.get(slot);
        index.free.push(Reverse(slot));
        self.entries.set(slot, None);
        self.taken -= 1;
        index.deadlines.remove(inside.deadline(), slot, |slot| self.ends(slot, inside.deadline()));
        inside
    }

    /// Whether a slot is taken and its time runs out at this moment.
    fn ends(&self, slot: u64, at: Timestamp) -> bool {
        self.entries.get(slot).as_ref().is_some_and(|inside| inside.deadline() == at)
    }

    fn deadlines(&self) -> Deadlines {
        Deadlines::of(self.iter().map(|(slot, inside)| (slot, inside.deadline())))
    }
}

impl SlotIndex {
    pub(crate) fn of(slots: &Slots) -> SlotIndex {
        let mut index = SlotIndex { deadlines: slots.deadlines(), ..SlotIndex::default() };
        for slot in 0..slots.entries.len() {
            match slots.entries.get(slot) {
                Some(inside) => {
                    if matches!(inside.stage, Stage::Held { .. }) {
                        index.held.insert(inside.ticket, slot);
                    }
                }
                None => index.free.push(Reverse(slot)),
            }
        }
        index
    }

    /// Puts all deadlines in order anew, after many of them changed.
    pub(crate) fn time_again(&mut self, slots: &Slots) {
        self.deadlines = slots.deadlines();
    }

    pub(crate) fn first_deadline(&self) -> Option<Timestamp> {
        self.deadlines.first()
    }

    /// The first `most` slots whose deadline has come, earliest first.
    pub(crate) fn due(&self, slots: &Slots, at: Timestamp, most: usize) -> Vec<u64> {
        self.deadlines.due(at, most, |when, slot| slots.ends(slot, when))
    }
}
