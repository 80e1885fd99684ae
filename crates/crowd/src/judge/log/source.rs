//! What the judge reads of a store, and nothing else of it.
//!
//! A seam for planted violations: a real store refuses to hold a log that breaks its contract.

use std::future::Future;

use waitroom_store::{Appended, Error, Head, RoomName, Snapshot, Store, Stored};

/// How much of a log is in memory at once.
const READ_BYTES: usize = 4 << 20;

pub(super) trait Source {
    fn rooms(&self) -> impl Future<Output = Result<Vec<RoomName>, Error>>;
    fn tip(&self, room: &RoomName) -> impl Future<Output = Result<Appended, Error>>;
    fn trimmed_to(&self, room: &RoomName) -> impl Future<Output = Result<Head, Error>>;
    fn read(&self, room: &RoomName, from: Head)
    -> impl Future<Output = Result<Vec<Stored>, Error>>;
    fn latest_snapshot(
        &self,
        room: &RoomName,
    ) -> impl Future<Output = Result<Option<Snapshot>, Error>>;
}

/// A store as a source.
pub(super) struct Of<'a, S>(pub &'a S);

impl<S: Store> Source for Of<'_, S> {
    fn rooms(&self) -> impl Future<Output = Result<Vec<RoomName>, Error>> {
        self.0.rooms()
    }

    fn tip(&self, room: &RoomName) -> impl Future<Output = Result<Appended, Error>> {
        self.0.tip(room)
    }

    fn trimmed_to(&self, room: &RoomName) -> impl Future<Output = Result<Head, Error>> {
        self.0.trimmed_to(room)
    }

    fn read(
        &self,
        room: &RoomName,
        from: Head,
    ) -> impl Future<Output = Result<Vec<Stored>, Error>> {
        self.0.read(room, from, READ_BYTES)
    }

    fn latest_snapshot(
        &self,
        room: &RoomName,
    ) -> impl Future<Output = Result<Option<Snapshot>, Error>> {
        self.0.latest_snapshot(room)
    }
}
