//! The way from one instance to the store: late, cut, and with answers that never come.
//!
//! Lives here: a [`Store`] that forwards to the shared one, after a while or not at all.
//! Stays out: what the store decides. The shared one is the model of the contract.
//! Some planted bugs sit here, where an owner meets the store.

use super::super::bug::Bug;
use super::spoil::{self, Late, Short};
use super::tray::Tray;
use crate::rng::Rng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use waitroom_store::{
    AppendError, Appended, Batch, Chain, Cursor, Error, Gap, Head, Holder, Lease, LeaseName,
    Member, MemoryStore, Retention, RoomName, SinkName, Snapshot, Store, Stored,
};

/// A tick of a room, unless it says otherwise.
const TICK_MS: u64 = 200;

#[derive(Clone, Debug)]
pub(super) struct Wire {
    store: MemoryStore,
    line: Arc<Line>,
    /// Whose way it is: the outbox's, or a room's.
    outbox: bool,
}

/// How the way is now.
#[derive(Debug)]
pub(super) struct Line {
    cut: AtomicBool,
    calm: AtomicBool,
    rng: Mutex<Rng>,
    /// How often something takes long.
    slow: f64,
    pub(super) bug: Option<Bug>,
    tray: Tray,
    short: Mutex<Option<Short>>,
    late: Late,
}

impl Line {
    pub(super) fn new(rng: Rng, slow: f64, bug: Option<Bug>, tray: Tray) -> Arc<Line> {
        let (cut, calm) = (AtomicBool::new(false), AtomicBool::new(false));
        let (rng, short, late) = (Mutex::new(rng), Mutex::default(), Late::default());
        Arc::new(Line { cut, calm, rng, slow, bug, tray, short, late })
    }

    pub(super) fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }

    /// From now on everything arrives at once.
    pub(super) fn calm(&self) {
        self.calm.store(true, Ordering::Relaxed);
    }

    fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    fn chance(&self, p: f64) -> bool {
        !self.calm.load(Ordering::Relaxed) && self.rng().chance(p)
    }

    fn rng(&self) -> std::sync::MutexGuard<'_, Rng> {
        self.rng.lock().expect("one thread, and nobody panics while holding it")
    }

    // --- planted bugs

    /// Hides the last batch from whoever takes over.
    async fn spoil_takeover(&self, store: &MemoryStore, lease: &Lease) {
        let mut short = None;
        if self.bug == Some(Bug::TakeoverOneBatchShort) {
            short = Short::of(store, lease).await;
        }
        *self.short.lock().expect("one thread") = short;
    }

    fn short(&self) -> Option<Short> {
        self.short.lock().expect("one thread").filter(|short| short.opening)
    }

    /// How many events the owner of this epoch does not know of.
    fn missing(&self, epoch: u32) -> u64 {
        let mut short = self.short.lock().expect("one thread");
        match short.as_mut().filter(|short| short.epoch == epoch) {
            Some(short) => {
                short.opening = false;
                self.tray.pile().spoiled = true;
                short.missing
            }
            None => 0,
        }
    }

    fn spoil_tip(&self, tip: Appended) -> Appended {
        self.short().map_or(tip, |short| short.tip)
    }

    fn spoil_read(&self, mut read: Vec<Stored>) -> Vec<Stored> {
        if let Some(short) = self.short() {
            read.retain(|stored| stored.head <= short.tip.head);
        }
        read
    }

    async fn spoil_cursor(&self, store: &MemoryStore, room: &RoomName, read: &[Stored]) {
        if let (Some(Bug::CursorBeforeDelivery), Some(newest)) = (self.bug, read.last()) {
            let _ = store.advance(room, &super::bus::sink_name(), newest.head).await;
        }
    }

    /// One way, there or back.
    async fn way(&self) {
        let ms = match self.chance(0.3) {
            false => return,
            true if self.chance(self.slow) => 50 + self.rng().below(2_500),
            true => 1 + self.rng().below(15),
        };
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

impl Wire {
    pub(super) fn new(store: MemoryStore, line: Arc<Line>) -> Wire {
        Wire { store, line, outbox: false }
    }

    pub(super) fn of_outbox(self) -> Wire {
        Wire { outbox: true, ..self }
    }

    /// To the store.
    async fn there(&self) -> Result<(), Error> {
        self.line.way().await;
        self.open()
    }

    /// And back, with whatever it said. Nobody is told of an answer that does not come.
    async fn back<T>(&self, said: Result<T, Error>) -> Result<T, Error> {
        self.line.way().await;
        self.open()?;
        said
    }

    /// A batch has reached the store.
    async fn land(
        &self,
        room: &RoomName,
        lease: &Lease,
        expected: Head,
        batch: Batch,
    ) -> Result<Appended, AppendError> {
        match self.line.bug {
            Some(Bug::FencingForgotten) => {
                spoil::take_anyhow(&self.store, &self.line.tray, room, lease, expected, batch).await
            }
            Some(Bug::TakeoverOneBatchShort) => {
                let missing = self.line.missing(lease.epoch);
                let expected = Head(expected.0 + missing);
                let said = self.store.append(room, lease, expected, batch).await?;
                Ok(Appended { head: Head(said.head.0 - missing), ..said })
            }
            Some(Bug::GivenBeforeDurable) => {
                self.line.late.take(&self.store, room, lease, expected, batch).await
            }
            _ => self.store.append(room, lease, expected, batch).await,
        }
    }

    /// How long a lease lasts in the store that its owner believes to last so long.
    fn lasts(&self, ttl_ms: u64) -> u64 {
        match self.line.bug {
            // The owner gives a twentieth away; it is certain for the rest.
            Some(Bug::LeaseOneTickTooLong) => ttl_ms - ttl_ms / 20 - TICK_MS,
            _ => ttl_ms,
        }
    }

    fn open(&self) -> Result<(), Error> {
        match self.line.is_cut() {
            true => Err(Error::Unavailable { why: "the store cannot be reached".into() }),
            false => Ok(()),
        }
    }
}

impl Store for Wire {
    fn append(
        &self,
        room: &RoomName,
        lease: &Lease,
        expected: Head,
        batch: Batch,
    ) -> impl Future<Output = Result<Appended, AppendError>> + Send + 'static + use<> {
        let (wire, room, lease) = (self.clone(), room.clone(), lease.clone());
        self.line.tray.pile().sends(lease.epoch, batch.number);
        async move {
            let unknown = || AppendError::Unknown { why: "no answer".into() };
            wire.line.way().await;
            // What waits for the line goes out when it is back, however late that is.
            while wire.line.is_cut() && wire.line.bug == Some(Bug::FencingForgotten) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            if wire.line.is_cut() {
                // Where nobody could be called nothing was written; where the line went dead
                // nobody knows, although nothing was.
                return Err(match wire.line.chance(0.5) {
                    true => AppendError::Refused { why: "nobody could be called".into() },
                    false => unknown(),
                });
            }
            let number = batch.number;
            let said = wire.land(&room, &lease, expected, batch).await;
            wire.line.tray.pile().note((lease.epoch, number, &said));
            if let Err(AppendError::Fenced { .. }) = said {
                wire.line.tray.pile().fenced += 1;
            }
            wire.line.way().await;
            if wire.line.is_cut() || wire.line.chance(wire.line.slow / 20.0) {
                wire.line.tray.pile().unknown += 1;
                return Err(unknown());
            }
            said
        }
    }

    async fn read(&self, room: &RoomName, from: Head, max: usize) -> Result<Vec<Stored>, Error> {
        self.there().await?;
        let read = self.store.read(room, from, max).await;
        let read = read.map(|read| self.line.spoil_read(read));
        if let (Ok(read), true) = (&read, self.outbox) {
            self.line.spoil_cursor(&self.store, room, read).await;
        }
        self.back(read).await
    }

    async fn committed_head(&self, room: &RoomName) -> Result<Head, Error> {
        self.there().await?;
        self.store.committed_head(room).await
    }

    async fn tip(&self, room: &RoomName) -> Result<Appended, Error> {
        self.there().await?;
        let tip = self.store.tip(room).await;
        tip.map(|tip| self.line.spoil_tip(tip))
    }

    fn follow(
        &self,
        room: &RoomName,
        from: Head,
    ) -> impl Future<Output = Result<Head, Error>> + Send + 'static + use<> {
        let (wire, follow) = (self.clone(), self.store.follow(room, from));
        async move {
            let head = follow.await?;
            wire.there().await?;
            Ok(head)
        }
    }

    async fn trimmed_to(&self, room: &RoomName) -> Result<Head, Error> {
        self.there().await?;
        self.store.trimmed_to(room).await
    }

    async fn snapshot(
        &self,
        room: &RoomName,
        at: Head,
        chain: Chain,
        chunks: impl Iterator<Item = Vec<u8>> + Send + 'static,
    ) -> Result<(), Error> {
        self.there().await?;
        self.store.snapshot(room, at, chain, chunks).await
    }

    async fn latest_snapshot(&self, room: &RoomName) -> Result<Option<Snapshot>, Error> {
        self.there().await?;
        self.store.latest_snapshot(room).await
    }

    async fn trim(&self, room: &RoomName, to: Head) -> Result<(), Error> {
        self.there().await?;
        self.store.trim(room, to).await
    }

    async fn trim_limit(&self, room: &RoomName) -> Result<Head, Error> {
        self.there().await?;
        self.store.trim_limit(room).await
    }

    async fn keep_from(&self, room: &RoomName, floor: Option<Head>) -> Result<(), Error> {
        self.there().await?;
        self.store.keep_from(room, floor).await
    }

    async fn lease(&self, name: &LeaseName, who: &str, ttl_ms: u64) -> Result<Lease, Error> {
        self.there().await?;
        let ttl_ms = self.lasts(ttl_ms);
        let said = self.store.lease(name, who, ttl_ms).await;
        if let Ok(lease) = &said
            && name.as_str().starts_with("room")
        {
            self.line.tray.pile().granted(lease);
            self.line.spoil_takeover(&self.store, lease).await;
        }
        self.back(said).await
    }

    async fn renew(&self, lease: &Lease, ttl_ms: u64) -> Result<(), Error> {
        let there = self.there().await;
        match self.line.bug {
            Some(Bug::RenewalsUnheard) if there.is_err() => return Ok(()),
            Some(Bug::FencingForgotten) => {
                let _ = self.store.renew(lease, ttl_ms).await;
                return Ok(());
            }
            _ => {}
        }
        there?;
        self.back(self.store.renew(lease, self.lasts(ttl_ms)).await).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), Error> {
        self.there().await?;
        let said = self.store.release(lease).await;
        if said.is_ok() {
            self.line.tray.pile().released(lease.epoch);
        }
        self.back(said).await
    }

    async fn holder_of(&self, name: &LeaseName) -> Result<Option<Holder>, Error> {
        self.there().await?;
        self.store.holder_of(name).await
    }

    async fn cursor(&self, room: &RoomName, sink: &SinkName) -> Result<Option<Cursor>, Error> {
        self.there().await?;
        let cursor = self.store.cursor(room, sink).await?;
        let head = self.store.committed_head(room).await?;
        Ok(cursor.map(|cursor| match self.line.bug {
            Some(Bug::CursorOffByOne) if cursor.at < head => {
                Cursor { at: Head(cursor.at.0 + 1), ..cursor }
            }
            _ => cursor,
        }))
    }

    async fn cursors(&self, room: &RoomName) -> Result<Vec<(SinkName, Cursor)>, Error> {
        self.there().await?;
        self.store.cursors(room).await
    }

    async fn advance(&self, room: &RoomName, sink: &SinkName, to: Head) -> Result<Cursor, Error> {
        self.there().await?;
        self.back(self.store.advance(room, sink, to).await).await
    }

    async fn drop_cursor(&self, room: &RoomName, sink: &SinkName) -> Result<(), Error> {
        self.there().await?;
        self.store.drop_cursor(room, sink).await
    }

    async fn mark_broken(&self, room: &RoomName, sink: &SinkName, to: Head) -> Result<Gap, Error> {
        self.there().await?;
        self.store.mark_broken(room, sink, to).await
    }

    async fn retire(
        &self,
        room: &RoomName,
        keep: Retention,
    ) -> Result<Vec<(SinkName, Gap)>, Error> {
        self.there().await?;
        self.store.retire(room, keep).await
    }

    async fn announce(&self, instance: &str, about: Vec<u8>, ttl_ms: u64) -> Result<(), Error> {
        self.there().await?;
        self.store.announce(instance, about, ttl_ms).await
    }

    async fn instances(&self) -> Result<Vec<Member>, Error> {
        self.there().await?;
        self.store.instances().await
    }

    async fn publish_board(&self, room: &RoomName, board: Vec<u8>) -> Result<(), Error> {
        self.there().await?;
        self.store.publish_board(room, board).await
    }

    async fn board(&self, room: &RoomName) -> Result<Option<Vec<u8>>, Error> {
        self.there().await?;
        self.store.board(room).await
    }

    async fn rooms(&self) -> Result<Vec<RoomName>, Error> {
        self.there().await?;
        self.store.rooms().await
    }

    async fn remove_room(&self, room: &RoomName) -> Result<(), Error> {
        self.there().await?;
        self.store.remove_room(room).await
    }
}
