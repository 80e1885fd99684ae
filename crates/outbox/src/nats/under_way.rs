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
}
