//! Which rooms have something under way to the streams, and since when.
//!
//! Messages follow one another in a *run*, each naming the one before it (`sink.rs`). When a run
//! breaks, whatever of it is still under way is refused; a batch that began behind such a one, in
//! the next run, would be taken before it. So a batch goes only where the room's others are.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use waitroom_store::RoomName;

#[derive(Debug, Default)]
pub(super) struct UnderWay(Mutex<BTreeMap<RoomName, Of>>);

#[derive(Debug, Default)]
struct Of {
    /// The run that they were sent in.
    run: u64,
    count: usize,
}

/// A batch of a room, from when it may be sent until its fate is known or nobody asks any more.
#[derive(Debug)]
pub(super) struct Stay<'a> {
    under_way: &'a UnderWay,
    room: &'a RoomName,
}

impl UnderWay {
    pub fn enter<'a>(&'a self, room: &'a RoomName) -> Stay<'a> {
        self.rooms().entry(room.clone()).or_default().count += 1;
        Stay { under_way: self, room }
    }

    fn rooms(&self) -> MutexGuard<'_, BTreeMap<RoomName, Of>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stay<'_> {
    /// Nothing else of its room is under way.
    pub fn is_alone(&self) -> bool {
        self.with(|of| of.count == 1)
    }

    /// Whether it may be sent in this run: only together with the room's others.
    pub fn joins(&self, run: u64) -> bool {
        self.with(|of| {
            if of.count == 1 {
                of.run = run;
            }
            of.run == run
        })
    }

    fn with<T>(&self, look: impl FnOnce(&mut Of) -> T) -> T {
        let mut rooms = self.under_way.rooms();
        look(rooms.get_mut(self.room).expect("it is there as long as somebody stays"))
    }
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        let mut rooms = self.under_way.rooms();
        if let Some(of) = rooms.get_mut(self.room) {
            of.count -= 1;
            if of.count == 0 {
                rooms.remove(self.room);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_batch_goes_where_the_rooms_others_are_and_nowhere_else() {
        let (under_way, room) = (UnderWay::default(), RoomName::parse("a").expect("a name"));
        let other = RoomName::parse("b").expect("a name");
        let first = under_way.enter(&room);
        assert!(first.is_alone() && first.joins(1));
        let second = under_way.enter(&room);
        assert!(!second.is_alone() && second.joins(1) && !second.joins(2));
        assert!(under_way.enter(&other).joins(2), "rooms do not wait for one another");
        drop(first);
        assert!(second.is_alone() && second.joins(2));
        drop(second);
        assert!(under_way.rooms().is_empty());
    }

    #[test]
    fn what_is_behind_a_breakage_waits_until_nothing_of_its_room_is_under_way() {
        let (under_way, room) = (UnderWay::default(), RoomName::parse("a").expect("a name"));
        let first = under_way.enter(&room);
        assert!(first.joins(1));
        let second = under_way.enter(&room);
        assert!(second.joins(1));
        // Run 1 breaks. The fate of the first becomes known, that of the second is not: a third one
        // in run 2 could be taken before it.
        drop(first);
        let third = under_way.enter(&room);
        assert!(!third.joins(2) && !third.is_alone());
        // Nor does it go with those of the broken run, where it would be refused.
        assert!(
            third.joins(1),
            "the caller knows which run is broken, this knows where others are"
        );
        drop(third);
        drop(second);
        let third = under_way.enter(&room);
        assert!(third.is_alone() && third.joins(2), "nothing is before it any more");
        assert!(under_way.enter(&room).joins(2), "and the next is behind it");
    }

    /// What a sink does with it, in any order.
    #[derive(Clone, Copy, Debug)]
    enum Did {
        Entered(u8),
        Joined(usize),
        Broke,
        Over(usize),
    }

    fn anything() -> impl Strategy<Value = Did> {
        prop_oneof![
            (0..2u8).prop_map(Did::Entered),
            any::<usize>().prop_map(Did::Joined),
            Just(Did::Broke),
            any::<usize>().prop_map(Did::Over),
        ]
    }

    proptest! {
        #[test]
        fn a_room_never_has_batches_in_two_runs(did in prop::collection::vec(anything(), 1..60)) {
            let under_way = UnderWay::default();
            let rooms = ["a", "b"].map(|name| RoomName::parse(name).expect("a name"));
            let mut run = 1;
            let mut stays: Vec<(u8, Stay<'_>, Option<u64>)> = Vec::new();
            for did in did {
                match did {
                    Did::Entered(room) => {
                        stays.push((room, under_way.enter(&rooms[usize::from(room)]), None));
                    }
                    Did::Joined(_) | Did::Over(_) if stays.is_empty() => {}
                    Did::Joined(at) => {
                        let at = at % stays.len();
                        let others = stays.iter().filter(|it| it.0 == stays[at].0).count() - 1;
                        let joins = stays[at].1.joins(run);
                        prop_assert!(joins || others > 0, "who is alone may always go");
                        if joins {
                            stays[at].2 = Some(run);
                        }
                    }
                    Did::Broke => run += 1,
                    Did::Over(at) => drop(stays.swap_remove(at % stays.len())),
                }
                for room in 0..2u8 {
                    let of_room = stays.iter().filter(|it| it.0 == room);
                    let mut runs: Vec<u64> = of_room.filter_map(|it| it.2).collect();
                    runs.dedup();
                    prop_assert!(runs.len() <= 1, "room {} is in runs {:?}", room, runs);
                }
            }
        }
    }
}
