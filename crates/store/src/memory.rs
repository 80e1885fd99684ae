//! The model: a store that keeps everything in plain vectors and maps behind one lock.
//!
//! Lives here: the contract in its simplest form. When another backend and this one disagree,
//! this one is right or the contract is unclear. It shares no bookkeeping with the others.
//! Stays out: durability and speed. It serves tests, the simulator and rehearsals; a clone is
//! another instance's handle on the same store. Futures are ready at once, except `follow`.

use std::{
    collections::BTreeMap,
    future::{Future, ready},
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::sync::oneshot;

use crate::{
    contract::Store,
    cursor::{Cursor, Gap, HeldBy, Retention},
    error::{AppendError, Error},
    lease::{EPOCH_MAX, Holder, Lease, Member, WHO_BYTES_MAX},
    log::{Appended, Batch, Chain, Head, Link, Stored},
    name::{LeaseName, RoomName, SinkName},
    seams::{Entropy, Seams},
    snapshot::Snapshot,
};

/// The model store. Clones share one memory.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    model: Arc<Mutex<Model>>,
    seams: Seams,
}

impl MemoryStore {
    pub fn new(seams: Seams) -> MemoryStore {
        MemoryStore { model: Arc::default(), seams }
    }

    fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().expect("the model never panics while changing itself")
    }

    fn now_ms(&self) -> u64 {
        self.seams.clock.now_ms()
    }
}

#[derive(Debug, Default)]
struct Model {
    rooms: BTreeMap<RoomName, Room>,
    leases: BTreeMap<LeaseName, Granted>,
    members: BTreeMap<String, (Vec<u8>, u64)>,
    boards: BTreeMap<RoomName, Vec<u8>>,
    /// Who waits for a head beyond one, by room, in the order of asking: that is the order in which
    /// they are told, so that a run of the simulator repeats.
    followers: BTreeMap<RoomName, Vec<(Head, oneshot::Sender<Head>)>>,
}

#[derive(Debug, Default)]
struct Room {
    /// Every batch that holds an event after `trimmed_to`.
    batches: Vec<Stored>,
    tip: Appended,
    last: Option<(u32, u64)>,
    trimmed_to: Head,
    floor: Option<Head>,
    cursors: BTreeMap<SinkName, Cursor>,
    /// Oldest first, at most two.
    snapshots: Vec<(Head, Chain, Vec<Vec<u8>>)>,
}

#[derive(Debug)]
struct Granted {
    epoch: u32,
    nonce: u128,
    who: String,
    until_ms: u64,
    released: bool,
}

impl Granted {
    fn is(&self, lease: &Lease) -> bool {
        !self.released && self.epoch == lease.epoch && self.nonce == lease.nonce
    }
}

impl Model {
    fn append(
        &mut self,
        room: &RoomName,
        lease: &Lease,
        expected: Head,
        batch: Batch,
        at_ms: u64,
    ) -> Result<Appended, AppendError> {
        let current = self.leases.get(&LeaseName::room(room));
        if !lease.name.is_of(room) || !current.is_some_and(|granted| granted.is(lease)) {
            return Err(AppendError::Fenced { epoch: current.map_or(0, |granted| granted.epoch) });
        }
        if batch.events == 0 {
            return Err(AppendError::Refused { why: "a batch holds at least one event".into() });
        }
        let empty = Room::default();
        let known = self.rooms.get(room).unwrap_or(&empty);
        if known.last.is_some_and(|last| (lease.epoch, batch.number) <= last) {
            let earlier = known.batches.iter().find(|stored| {
                (stored.epoch, stored.nonce, stored.number)
                    == (lease.epoch, lease.nonce, batch.number)
            });
            return match earlier {
                Some(stored)
                    if stored.payload == batch.payload && stored.events == batch.events =>
                {
                    Ok(Appended { head: stored.head, chain: stored.chain })
                }
                Some(_) => Err(AppendError::Refused {
                    why: format!("batch {} is in the log with another content", batch.number),
                }),
                None => Err(AppendError::Refused {
                    why: format!("batch number {} is not above the newest", batch.number),
                }),
            };
        }
        if expected != known.tip.head {
            return Err(AppendError::Stale { head: known.tip.head });
        }
        let link = Link {
            epoch: lease.epoch,
            nonce: lease.nonce,
            number: batch.number,
            after: expected,
            events: batch.events,
        };
        let room_log = self.rooms.entry(room.clone()).or_default();
        let tip = Appended {
            head: link.head(),
            chain: room_log.tip.chain.next(room, &link, &batch.payload),
        };
        room_log.batches.push(Stored {
            after: link.after,
            head: tip.head,
            epoch: link.epoch,
            nonce: link.nonce,
            number: link.number,
            events: link.events,
            at_ms,
            payload: batch.payload,
            chain: tip.chain,
        });
        room_log.tip = tip;
        room_log.last = Some((link.epoch, link.number));
        self.tell_followers(room, tip.head);
        Ok(tip)
    }

    fn tell_followers(&mut self, room: &RoomName, head: Head) {
        let Some(followers) = self.followers.get_mut(room) else { return };
        for (_, tell) in followers.extract_if(.., |(from, _)| *from < head) {
            let _ = tell.send(head);
        }
    }

    fn read(&self, room: &RoomName, from: Head, max_bytes: usize) -> Result<Vec<Stored>, Error> {
        let Some(room) = self.rooms.get(room) else { return Ok(Vec::new()) };
        if from < room.trimmed_to {
            return Err(Error::Trimmed { to: room.trimmed_to });
        }
        let mut bytes = 0;
        let fits = |stored: &&Stored| {
            let first = bytes == 0;
            bytes += stored.payload.len().max(1);
            first || bytes <= max_bytes
        };
        Ok(room
            .batches
            .iter()
            .filter(|stored| stored.head > from)
            .take_while(fits)
            .cloned()
            .collect())
    }

    fn lease(
        &mut self,
        name: &LeaseName,
        who: &str,
        now_ms: u64,
        ttl_ms: u64,
        entropy: &dyn Entropy,
    ) -> Result<Lease, Error> {
        if who.len() > WHO_BYTES_MAX {
            return Err(Error::refused("the holder's name is too long"));
        }
        let mut epoch = 1;
        if let Some(held) = self.leases.get(name) {
            if !held.released && held.until_ms > now_ms && held.who != who {
                return Err(Error::Held { who: held.who.clone(), left_ms: held.until_ms - now_ms });
            }
            epoch = held.epoch + 1;
        }
        if epoch > EPOCH_MAX {
            return Err(Error::refused(format!("{name} has used up its {EPOCH_MAX} epochs")));
        }
        let nonce = entropy.next_u128();
        let until_ms = now_ms.saturating_add(ttl_ms);
        let granted = Granted { epoch, nonce, who: who.into(), until_ms, released: false };
        self.leases.insert(name.clone(), granted);
        Ok(Lease { name: name.clone(), epoch, nonce })
    }

    /// The grant that `lease` proves, if it is still the newest.
    fn granted(&mut self, lease: &Lease) -> Result<&mut Granted, Error> {
        match self.leases.get_mut(&lease.name) {
            Some(granted) if granted.is(lease) => Ok(granted),
            other => Err(Error::Lost { epoch: other.map_or(0, |granted| granted.epoch) }),
        }
    }

    fn room(&mut self, room: &RoomName) -> Result<&mut Room, Error> {
        self.rooms.get_mut(room).ok_or_else(|| Error::refused(format!("there is no room {room}")))
    }
}

impl Room {
    fn snapshot(&mut self, at: Head, chain: Chain, chunks: Vec<Vec<u8>>) -> Result<(), Error> {
        let newest = self.snapshots.last().map(|(at, chain, _)| (*at, *chain));
        if let Some((newest, _)) = newest.filter(|(newest, _)| at < *newest) {
            return Err(Error::refused(format!("there is a snapshot at {newest} already")));
        }
        let on_chain = newest == Some((at, chain))
            || self.batches.iter().any(|stored| (stored.head, stored.chain) == (at, chain));
        if !on_chain {
            return Err(Error::refused(format!("head {at} with chain {chain} is not in the log")));
        }
        self.snapshots.retain(|(kept, ..)| *kept != at);
        self.snapshots.push((at, chain, chunks));
        while self.snapshots.len() > 2 {
            self.snapshots.remove(0);
        }
        Ok(())
    }

    /// How far trimming may go at most, and what holds it there. `given_up` sinks do not count.
    fn floor(&self, snapshot: Option<Head>, given_up: &[SinkName]) -> (Head, HeldBy) {
        let mut lowest = (snapshot.unwrap_or_default(), HeldBy::Snapshot);
        if let Some(floor) = self.floor.filter(|floor| *floor < lowest.0) {
            lowest = (floor, HeldBy::Retention);
        }
        for (sink, cursor) in &self.cursors {
            if !cursor.broken && !given_up.contains(sink) && cursor.at < lowest.0 {
                lowest = (cursor.at, HeldBy::Cursor(sink.clone()));
            }
        }
        lowest
    }

    fn newest_snapshot(&self) -> Option<Head> {
        self.snapshots.last().map(|(at, ..)| *at)
    }

    fn trim(&mut self, to: Head) -> Result<(), Error> {
        if to <= self.trimmed_to {
            return Ok(());
        }
        let (floor, held_by) = self.floor(self.newest_snapshot(), &[]);
        if to > floor {
            return Err(Error::AboveFloor { floor, held_by });
        }
        self.trimmed_to = to;
        self.batches.retain(|stored| stored.head > to);
        Ok(())
    }

    fn advance(&mut self, sink: &SinkName, to: Head) -> Result<Cursor, Error> {
        if to > self.tip.head {
            return Err(Error::refused(format!("the log ends at {}, before {to}", self.tip.head)));
        }
        let known = self.cursors.get(sink).copied();
        if let Some(known) = known.filter(|known| to < known.at) {
            return Err(Error::refused(format!("the cursor is at {} already", known.at)));
        }
        // A whole cursor pins what it has not read, so only a new or a broken one can be below.
        if known.is_none_or(|known| known.broken) && to < self.trimmed_to {
            return Err(Error::Trimmed { to: self.trimmed_to });
        }
        let cursor = Cursor { at: to, broken: false, gap: known.and_then(|known| known.gap) };
        self.cursors.insert(sink.clone(), cursor);
        Ok(cursor)
    }

    fn mark_broken(&mut self, sink: &SinkName, to: Head) -> Result<Gap, Error> {
        if to > self.tip.head {
            return Err(Error::refused(format!("the log ends at {}, before {to}", self.tip.head)));
        }
        let Some(cursor) = self.cursors.get_mut(sink) else {
            return Err(Error::refused(format!("there is no cursor {sink}")));
        };
        if to < cursor.at {
            return Err(Error::refused(format!("the cursor is at {} already", cursor.at)));
        }
        // While it stays broken one gap grows; a cursor that was whole begins a new one.
        let after = cursor.gap.filter(|_| cursor.broken).map_or(cursor.at, |gap| gap.after);
        let gap = Gap { after, to };
        *cursor = Cursor { at: to, broken: true, gap: Some(gap) };
        Ok(gap)
    }

    fn retire(&mut self, keep: Retention, wall_ms: u64) -> Vec<(SinkName, Gap)> {
        let over: Vec<SinkName> = self
            .cursors
            .iter()
            .filter(|(_, cursor)| !cursor.broken && self.over_the_cap(cursor.at, keep, wall_ms))
            .map(|(sink, _)| sink.clone())
            .collect();
        let (to, _) = self.floor(self.newest_snapshot(), &over);
        let freed = |sink: SinkName| {
            (self.cursors[&sink].at < to)
                .then(|| (sink.clone(), self.mark_broken(&sink, to).expect("it is in the log")))
        };
        over.into_iter().filter_map(freed).collect()
    }

    fn over_the_cap(&self, at: Head, keep: Retention, wall_ms: u64) -> bool {
        let behind = || self.batches.iter().filter(|stored| stored.head > at);
        let bytes: u64 = behind().map(|stored| stored.payload.len() as u64).sum();
        let age_ms = behind().next().map_or(0, |oldest| wall_ms.saturating_sub(oldest.at_ms));
        bytes > keep.keep_bytes || age_ms > keep.keep_age_ms
    }
}

impl Store for MemoryStore {
    fn append(
        &self,
        room: &RoomName,
        lease: &Lease,
        expected: Head,
        batch: Batch,
    ) -> impl Future<Output = Result<Appended, AppendError>> + Send + 'static + use<> {
        let at_ms = self.seams.clock.wall_ms();
        ready(self.model().append(room, lease, expected, batch, at_ms))
    }

    async fn read(&self, room: &RoomName, from: Head, max: usize) -> Result<Vec<Stored>, Error> {
        self.model().read(room, from, max)
    }

    async fn committed_head(&self, room: &RoomName) -> Result<Head, Error> {
        Ok(self.tip(room).await?.head)
    }

    async fn tip(&self, room: &RoomName) -> Result<Appended, Error> {
        Ok(self.model().rooms.get(room).map_or(Appended::default(), |room| room.tip))
    }

    fn follow(
        &self,
        room: &RoomName,
        from: Head,
    ) -> impl Future<Output = Result<Head, Error>> + Send + 'static + use<> {
        let (tell, told) = oneshot::channel();
        let mut model = self.model();
        let head = model.rooms.get(room).map_or(Head::EMPTY, |room| room.tip.head);
        let followers = model.followers.entry(room.clone()).or_default();
        // Whoever gave up waiting is not told any more.
        followers.retain(|(_, tell)| !tell.is_closed());
        followers.push((from, tell));
        model.tell_followers(room, head);
        async move { told.await.map_err(|_| Error::Unavailable { why: "store closed".into() }) }
    }

    async fn trimmed_to(&self, room: &RoomName) -> Result<Head, Error> {
        Ok(self.model().rooms.get(room).map_or(Head::EMPTY, |room| room.trimmed_to))
    }

    async fn snapshot(
        &self,
        room: &RoomName,
        at: Head,
        chain: Chain,
        chunks: impl Iterator<Item = Vec<u8>> + Send + 'static,
    ) -> Result<(), Error> {
        let chunks = chunks.collect();
        self.model().room(room)?.snapshot(at, chain, chunks)
    }

    async fn latest_snapshot(&self, room: &RoomName) -> Result<Option<Snapshot>, Error> {
        let model = self.model();
        let newest = model.rooms.get(room).and_then(|room| room.snapshots.last());
        Ok(newest.map(|(at, chain, chunks)| Snapshot {
            at: *at,
            chain: *chain,
            chunks: chunks.clone(),
            passed_over: Vec::new(),
        }))
    }

    async fn trim(&self, room: &RoomName, to: Head) -> Result<(), Error> {
        if room.is_system() && to > Head::EMPTY {
            return Err(Error::AboveFloor { floor: Head::EMPTY, held_by: HeldBy::Retention });
        }
        self.model().room(room)?.trim(to)
    }

    async fn trim_limit(&self, room: &RoomName) -> Result<Head, Error> {
        let mut model = self.model();
        let Ok(known) = model.room(room) else { return Ok(Head::EMPTY) };
        let before_newest = known.snapshots.iter().rev().nth(1).map(|(at, ..)| *at);
        let limit = if room.is_system() { Head::EMPTY } else { known.floor(before_newest, &[]).0 };
        Ok(limit.max(known.trimmed_to))
    }

    async fn keep_from(&self, room: &RoomName, floor: Option<Head>) -> Result<(), Error> {
        self.model().room(room)?.floor = floor;
        Ok(())
    }

    async fn lease(&self, name: &LeaseName, who: &str, ttl_ms: u64) -> Result<Lease, Error> {
        self.model().lease(name, who, self.now_ms(), ttl_ms, &*self.seams.entropy)
    }

    async fn renew(&self, lease: &Lease, ttl_ms: u64) -> Result<(), Error> {
        self.model().granted(lease)?.until_ms = self.now_ms().saturating_add(ttl_ms);
        Ok(())
    }

    async fn release(&self, lease: &Lease) -> Result<(), Error> {
        self.model().granted(lease)?.released = true;
        Ok(())
    }

    async fn holder_of(&self, name: &LeaseName) -> Result<Option<Holder>, Error> {
        let now_ms = self.now_ms();
        let model = self.model();
        let held = model.leases.get(name).filter(|held| !held.released && held.until_ms > now_ms);
        Ok(held.map(|held| Holder {
            who: held.who.clone(),
            epoch: held.epoch,
            left_ms: held.until_ms - now_ms,
        }))
    }

    async fn cursor(&self, room: &RoomName, sink: &SinkName) -> Result<Option<Cursor>, Error> {
        Ok(self.model().rooms.get(room).and_then(|room| room.cursors.get(sink).copied()))
    }

    async fn cursors(&self, room: &RoomName) -> Result<Vec<(SinkName, Cursor)>, Error> {
        let model = self.model();
        let cursors = model.rooms.get(room).map(|room| room.cursors.clone()).unwrap_or_default();
        Ok(cursors.into_iter().collect())
    }

    async fn advance(&self, room: &RoomName, sink: &SinkName, to: Head) -> Result<Cursor, Error> {
        self.model().room(room)?.advance(sink, to)
    }

    async fn drop_cursor(&self, room: &RoomName, sink: &SinkName) -> Result<(), Error> {
        if let Some(room) = self.model().rooms.get_mut(room) {
            room.cursors.remove(sink);
        }
        Ok(())
    }

    async fn mark_broken(&self, room: &RoomName, sink: &SinkName, to: Head) -> Result<Gap, Error> {
        self.model().room(room)?.mark_broken(sink, to)
    }

    async fn retire(
        &self,
        room: &RoomName,
        keep: Retention,
    ) -> Result<Vec<(SinkName, Gap)>, Error> {
        let wall_ms = self.seams.clock.wall_ms();
        Ok(self.model().room(room)?.retire(keep, wall_ms))
    }

    async fn announce(&self, instance: &str, about: Vec<u8>, ttl_ms: u64) -> Result<(), Error> {
        let until_ms = self.now_ms().saturating_add(ttl_ms);
        self.model().members.insert(instance.into(), (about, until_ms));
        Ok(())
    }

    async fn instances(&self) -> Result<Vec<Member>, Error> {
        let now_ms = self.now_ms();
        let mut model = self.model();
        model.members.retain(|_, (_, until_ms)| *until_ms > now_ms);
        let member = |(instance, (about, until_ms)): (&String, &(Vec<u8>, u64))| Member {
            instance: instance.clone(),
            about: about.clone(),
            left_ms: until_ms - now_ms,
        };
        Ok(model.members.iter().map(member).collect())
    }

    async fn publish_board(&self, room: &RoomName, board: Vec<u8>) -> Result<(), Error> {
        self.model().boards.insert(room.clone(), board);
        Ok(())
    }

    async fn board(&self, room: &RoomName) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.model().boards.get(room).cloned())
    }

    async fn rooms(&self) -> Result<Vec<RoomName>, Error> {
        Ok(self.model().rooms.keys().filter(|room| !room.is_system()).cloned().collect())
    }

    async fn remove_room(&self, room: &RoomName) -> Result<(), Error> {
        if room.is_system() {
            return Err(Error::refused("the _system log stays"));
        }
        let mut model = self.model();
        model.rooms.remove(room);
        model.boards.remove(room);
        Ok(())
    }
}
