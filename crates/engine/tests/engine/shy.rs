//! A store in memory that cannot be read, or takes its time, when a test says so.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use waitroom_store::{
    AppendError, Appended, Batch, Chain, Cursor, Error, Gap, Head, Holder, Lease, LeaseName,
    Member, MemoryStore, Retention, RoomName, SinkName, Snapshot, Store, Stored,
};

#[derive(Clone, Debug)]
pub struct Shy {
    pub store: Arc<MemoryStore>,
    away: Arc<AtomicBool>,
    slow: Arc<Mutex<BTreeMap<&'static str, Duration>>>,
    asked: Arc<Mutex<Vec<(&'static str, Instant)>>>,
}

impl Shy {
    pub fn new(store: Arc<MemoryStore>) -> Shy {
        Shy { store, away: Arc::default(), slow: Arc::default(), asked: Arc::default() }
    }

    /// From now on `lease`, `renew` or `retire` take so long; `Duration::MAX` is for ever.
    pub fn slow(&self, call: &'static str, by: Duration) {
        self.slow.lock().expect("nobody panics with it").insert(call, by);
    }

    /// When each of these was asked for.
    pub fn asked(&self, call: &str) -> Vec<Instant> {
        let asked = self.asked.lock().expect("nobody panics with it");
        asked.iter().filter(|(name, _)| *name == call).map(|(_, at)| *at).collect()
    }

    async fn begins(&self, call: &'static str) {
        self.asked.lock().expect("nobody panics with it").push((call, Instant::now()));
        let by = self.slow.lock().expect("nobody panics with it").get(call).copied();
        match by {
            Some(Duration::MAX) => std::future::pending().await,
            Some(by) => tokio::time::sleep(by).await,
            None => {}
        }
    }

    pub fn go_away(&self, away: bool) {
        self.away.store(away, Ordering::Release);
    }

    fn here(&self) -> Result<&MemoryStore, Error> {
        match self.away.load(Ordering::Acquire) {
            true => Err(Error::Unavailable { why: "it is shy".to_owned() }),
            false => Ok(&self.store),
        }
    }
}

impl Store for Shy {
    fn append(
        &self,
        room: &RoomName,
        lease: &Lease,
        expected: Head,
        batch: Batch,
    ) -> impl Future<Output = Result<Appended, AppendError>> + Send + 'static + use<> {
        self.store.append(room, lease, expected, batch)
    }
    async fn read(&self, room: &RoomName, from: Head, max: usize) -> Result<Vec<Stored>, Error> {
        self.here()?.read(room, from, max).await
    }
    async fn committed_head(&self, room: &RoomName) -> Result<Head, Error> {
        self.here()?.committed_head(room).await
    }
    async fn tip(&self, room: &RoomName) -> Result<Appended, Error> {
        self.here()?.tip(room).await
    }
    fn follow(
        &self,
        room: &RoomName,
        from: Head,
    ) -> impl Future<Output = Result<Head, Error>> + Send + 'static + use<> {
        self.store.follow(room, from)
    }
    async fn trimmed_to(&self, room: &RoomName) -> Result<Head, Error> {
        self.store.trimmed_to(room).await
    }
    async fn snapshot(
        &self,
        room: &RoomName,
        at: Head,
        chain: Chain,
        chunks: impl Iterator<Item = Vec<u8>> + Send + 'static,
    ) -> Result<(), Error> {
        self.store.snapshot(room, at, chain, chunks).await
    }
    async fn latest_snapshot(&self, room: &RoomName) -> Result<Option<Snapshot>, Error> {
        self.here()?.latest_snapshot(room).await
    }
    async fn trim(&self, room: &RoomName, to: Head) -> Result<(), Error> {
        self.store.trim(room, to).await
    }
    async fn trim_limit(&self, room: &RoomName) -> Result<Head, Error> {
        self.store.trim_limit(room).await
    }
    async fn keep_from(&self, room: &RoomName, floor: Option<Head>) -> Result<(), Error> {
        self.store.keep_from(room, floor).await
    }
    async fn lease(&self, name: &LeaseName, who: &str, ttl_ms: u64) -> Result<Lease, Error> {
        self.begins("lease").await;
        self.store.lease(name, who, ttl_ms).await
    }
    async fn renew(&self, lease: &Lease, ttl_ms: u64) -> Result<(), Error> {
        self.begins("renew").await;
        self.store.renew(lease, ttl_ms).await
    }
    async fn release(&self, lease: &Lease) -> Result<(), Error> {
        self.store.release(lease).await
    }
    async fn holder_of(&self, name: &LeaseName) -> Result<Option<Holder>, Error> {
        self.store.holder_of(name).await
    }
    async fn cursor(&self, room: &RoomName, sink: &SinkName) -> Result<Option<Cursor>, Error> {
        self.store.cursor(room, sink).await
    }
    async fn cursors(&self, room: &RoomName) -> Result<Vec<(SinkName, Cursor)>, Error> {
        self.store.cursors(room).await
    }
    async fn advance(&self, room: &RoomName, sink: &SinkName, to: Head) -> Result<Cursor, Error> {
        self.store.advance(room, sink, to).await
    }
    async fn drop_cursor(&self, room: &RoomName, sink: &SinkName) -> Result<(), Error> {
        self.store.drop_cursor(room, sink).await
    }
    async fn mark_broken(&self, room: &RoomName, sink: &SinkName, to: Head) -> Result<Gap, Error> {
        self.store.mark_broken(room, sink, to).await
    }
    async fn retire(
        &self,
        room: &RoomName,
        keep: Retention,
    ) -> Result<Vec<(SinkName, Gap)>, Error> {
        self.begins("retire").await;
        self.store.retire(room, keep).await
    }
    async fn announce(&self, instance: &str, about: Vec<u8>, ttl_ms: u64) -> Result<(), Error> {
        self.store.announce(instance, about, ttl_ms).await
    }
    async fn instances(&self) -> Result<Vec<Member>, Error> {
        self.store.instances().await
    }
    async fn publish_board(&self, room: &RoomName, board: Vec<u8>) -> Result<(), Error> {
        self.store.publish_board(room, board).await
    }
    async fn board(&self, room: &RoomName) -> Result<Option<Vec<u8>>, Error> {
        self.store.board(room).await
    }
    async fn rooms(&self) -> Result<Vec<RoomName>, Error> {
        self.store.rooms().await
    }
    async fn remove_room(&self, room: &RoomName) -> Result<(), Error> {
        self.store.remove_room(room).await
    }
}
