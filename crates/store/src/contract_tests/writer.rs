//! What the clauses write with.
//!
//! Lives here: [`Writer`], a room whose appends go well, and short ways to names and batches.
//! Stays out: appends that are expected to fail; a clause about those makes them itself, so that the
//! reader sees what was wrong with them.

use super::wait;
use crate::{Appended, Batch, Error, Head, Lease, LeaseName, RoomName, SinkName, Store, Stored};

pub(super) fn room(name: &str) -> RoomName {
    RoomName::parse(name).expect("a good name")
}

pub(super) fn sink(name: &str) -> SinkName {
    SinkName::parse(name).expect("a good name")
}

pub(super) fn batch(number: u64, events: u32, payload: &str) -> Batch {
    Batch { number, events, payload: payload.as_bytes().to_vec() }
}

/// A room with its lease, and appends that go well.
pub(super) struct Writer<'a, S: Store> {
    pub(super) store: &'a S,
    pub(super) room: RoomName,
    pub(super) lease: Lease,
    pub(super) tip: Appended,
    pub(super) number: u64,
}

impl<'a, S: Store> Writer<'a, S> {
    pub(super) fn open(store: &'a S, name: &str) -> Writer<'a, S> {
        Self::of(store, room(name))
    }

    pub(super) fn of(store: &'a S, room: RoomName) -> Writer<'a, S> {
        let lease = wait(store.lease(&LeaseName::room(&room), "w", 2_000)).expect("free");
        let tip = wait(store.tip(&room)).expect("readable");
        Writer { store, room, lease, tip, number: 0 }
    }

    pub(super) fn append(&mut self, events: u32, payload: &str) -> Appended {
        self.number += 1;
        let batch = batch(self.number, events, payload);
        let sent = self.store.append(&self.room, &self.lease, self.tip.head, batch);
        self.tip = wait(sent).expect("nothing is in the way");
        self.tip
    }

    pub(super) fn snapshot(&self, text: &str) {
        let chunks = vec![text.as_bytes().to_vec()].into_iter();
        wait(self.store.snapshot(&self.room, self.tip.head, self.tip.chain, chunks))
            .expect("it lies on the chain");
    }

    pub(super) fn payloads(&self, from: u64) -> Vec<String> {
        let stored = wait(self.store.read(&self.room, Head(from), usize::MAX)).expect("readable");
        texts(&stored)
    }

    pub(super) fn trim(&self, to: u64) -> Result<(), Error> {
        wait(self.store.trim(&self.room, Head(to)))
    }
}

fn texts(stored: &[Stored]) -> Vec<String> {
    stored.iter().map(|stored| String::from_utf8_lossy(&stored.payload).into_owned()).collect()
}
