//! What everybody who works on a file store shares.
//!
//! Lives here: [`Shared`], with the committed picture behind one lock (the *book*), the soft state
//! behind another, and the settings.
//! Stays out: who writes. Only the journal changes the book; everyone else reads it.
//! Lock order: book, then soft; nobody takes the book while holding the soft state.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use tokio::sync::watch;

use crate::{
    cursor::HeldBy,
    disk::{Disk, read_span},
    error::Error,
    file::{
        index::{Placed, Recent, RoomLog},
        record::{self, BatchRecord, Record},
        segment,
        state::{Room, State},
    },
    log::{Chain, Head, Stored},
    name::{LeaseName, RoomName, SinkName},
    seams::Seams,
};

/// How a file store is run.
#[derive(Debug, Clone)]
pub struct Options {
    /// A segment that reached this is followed by a new one. Larger ones mean fewer files; the
    /// last one is copied once when opening after a crash, so very large ones open slowly.
    pub segment_bytes: u64,
    /// Where trimmed segments and removed rooms go. Without it they are deleted.
    pub archive: Option<PathBuf>,
    /// Requests that may wait for the disk. Beyond it they are refused at once: memory is bounded.
    pub queue_max: usize,
    /// Payload bytes that may wait for the disk, for the same reason.
    pub queue_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            segment_bytes: 64 << 20,
            archive: None,
            queue_max: 65_536,
            queue_bytes_max: 256 << 20,
        }
    }
}

/// Something an operator should know, that no caller could be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    pub at_ms: u64,
    pub what: String,
}

impl fmt::Display for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// Alarms kept until somebody asks; beyond it the oldest go, as the newest matter more.
const ALARMS_MAX: usize = 100;

pub(crate) struct Shared<D: Disk> {
    pub disk: Arc<D>,
    pub options: Options,
    pub seams: Seams,
    book: RwLock<Book<D>>,
    soft: Mutex<Soft>,
    /// Held to the end: dropping it lets another process in.
    _lock: D::Lock,
}

/// The committed picture.
pub(crate) struct Book<D: Disk> {
    pub state: State,
    pub logs: HashMap<RoomName, RoomLog>,
    pub segments: BTreeMap<u64, Segment<D>>,
    /// Per room, oldest first.
    pub snapshots: HashMap<RoomName, Vec<SnapshotAt>>,
    /// Backups and exports under way: while there are any, no file goes away.
    pub pins: usize,
}

pub(crate) struct Segment<D: Disk> {
    pub file: Arc<D::File>,
    pub len: u64,
    /// Where the records after the checkpoint begin.
    pub body: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SnapshotAt {
    pub at: Head,
    pub chain: Chain,
}

/// What is not worth a disk write, because it means nothing after a restart.
#[derive(Default)]
pub(crate) struct Soft {
    /// Until when each lease runs. After a restart all have run out: their holders were in the
    /// process that ended.
    pub deadlines_ms: HashMap<LeaseName, u64>,
    /// Leases being granted at this moment: renewing the old one must wait.
    pub granting: HashSet<LeaseName>,
    pub members: BTreeMap<String, (Vec<u8>, u64)>,
    pub boards: HashMap<RoomName, Vec<u8>>,
    pub watchers: HashMap<RoomName, watch::Sender<Head>>,
    alarms: Vec<Alarm>,
}

/// What a committed record does to the index.
#[derive(Debug)]
pub(crate) enum Effect {
    Batch(RoomName, Placed),
    Carried(RoomName, Placed),
    Trimmed(RoomName, Head),
    Forgotten(RoomName),
}

impl<D: Disk> Shared<D> {
    pub fn new(disk: Arc<D>, options: Options, seams: Seams, book: Book<D>, lock: D::Lock) -> Self {
        let (book, soft) = (RwLock::new(book), Mutex::default());
        Shared { disk, options, seams, book, soft, _lock: lock }
    }

    pub fn book(&self) -> RwLockReadGuard<'_, Book<D>> {
        self.book.read().expect("nobody panics while changing the book")
    }

    pub fn book_mut(&self) -> RwLockWriteGuard<'_, Book<D>> {
        self.book.write().expect("nobody panics while changing the book")
    }

    pub fn soft(&self) -> MutexGuard<'_, Soft> {
        self.soft.lock().expect("nobody panics while changing the soft state")
    }

    pub fn now_ms(&self) -> u64 {
        self.seams.clock.now_ms()
    }

    pub fn alarm(&self, what: String) {
        let at_ms = self.seams.clock.wall_ms();
        let alarms = &mut self.soft().alarms;
        if alarms.len() == ALARMS_MAX {
            alarms.remove(0);
        }
        alarms.push(Alarm { at_ms, what });
    }

    pub fn take_alarms(&self) -> Vec<Alarm> {
        std::mem::take(&mut self.soft().alarms)
    }

    /// Reads committed batches. Looks up under the lock, reads the files without it; an open
    /// segment stays readable even if it is archived meanwhile.
    pub fn read(
        &self,
        room: &RoomName,
        from: Head,
        max_bytes: usize,
    ) -> Result<Vec<Stored>, Error> {
        let mut found: Vec<Stored> = Vec::new();
        let mut bytes = 0;
        let mut reached = from;
        loop {
            let Some((entry, file)) = ({
                let book = self.book();
                let Some(known) = book.state.rooms.get(room) else { return Ok(found) };
                if reached < known.trimmed_to {
                    // Trimmed while we read: what was found so far is still true and whole.
                    let to = known.trimmed_to;
                    return if found.is_empty() { Err(Error::Trimmed { to }) } else { Ok(found) };
                }
                let log = book.logs.get(room);
                let entry = log.and_then(|log| log.after(reached).next().copied());
                entry.map(|entry| (entry, book.segments[&entry.place.segment].file.clone()))
            }) else {
                return Ok(found);
            };
            let damaged = |why: String| Error::Damaged {
                why: format!(
                    "{} at {}: {why}",
                    self.disk.shown(&segment::path(entry.place.segment)),
                    entry.place.start
                ),
            };
            let span = read_span(&*file, entry.place.start, entry.place.end)
                .map_err(|error| Error::Unavailable { why: error.to_string() })?;
            let mut batches = Vec::new();
            let wanted = |batch: BatchRecord<'_>| {
                if batch.room == *room && entry.holds(&batch.link) && batch.link.head() > reached {
                    batches.push((stored(&batch), batch.before));
                }
            };
            for_each_batch(&span, wanted).map_err(|why| damaged(why.into()))?;
            for (stored, before) in batches {
                if let Some(last) = found.last().filter(|last| last.chain != before) {
                    return Err(damaged(format!("the chain breaks after event {}", last.head)));
                }
                bytes += stored.payload.len().max(1);
                if !found.is_empty() && bytes > max_bytes {
                    return Ok(found);
                }
                reached = stored.head;
                found.push(stored);
            }
            if reached < entry.last {
                return Err(damaged(format!("event {} is not where it should be", reached.0 + 1)));
            }
        }
    }
}

fn stored(batch: &BatchRecord<'_>) -> Stored {
    let link = batch.link;
    Stored {
        after: link.after,
        head: link.head(),
        epoch: link.epoch,
        nonce: link.nonce,
        number: link.number,
        events: link.events,
        at_ms: batch.at_ms,
        payload: batch.payload.to_vec(),
        chain: batch.chain(),
    }
}

/// Calls `each` with every batch in a span of whole frames.
pub(crate) fn for_each_batch(
    mut span: &[u8],
    mut each: impl FnMut(BatchRecord<'_>),
) -> Result<(), &'static str> {
    loop {
        match record::frame(span) {
            Ok(frame) => {
                if let Record::Batch(batch) = record::record(&frame)? {
                    each(batch);
                }
                span = &span[frame.len..];
            }
            Err(record::NoFrame::End) => return Ok(()),
            Err(record::NoFrame::Broken(why)) => return Err(why),
        }
    }
}

impl<D: Disk> Book<D> {
    pub fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::Batch(room, placed) => match self.logs.get_mut(room) {
                Some(log) => log.push(placed),
                None => self.logs.entry(room.clone()).or_default().push(placed),
            },
            Effect::Carried(room, placed) => {
                self.logs.entry(room.clone()).or_default().put_over(placed);
            }
            Effect::Trimmed(room, to) => {
                if let Some(log) = self.logs.get_mut(room) {
                    log.trim(*to);
                }
            }
            Effect::Forgotten(room) => {
                self.logs.remove(room);
                self.snapshots.remove(room);
            }
        }
    }

    pub fn newest_snapshot(&self, room: &RoomName) -> Option<SnapshotAt> {
        self.snapshots.get(room).and_then(|kept| kept.last().copied())
    }

    /// How far trimming may go given a snapshot there, and what holds it. `given_up` do not count.
    pub fn floor(
        &self,
        name: &RoomName,
        room: &Room,
        snapshot: Option<Head>,
        given_up: &[SinkName],
    ) -> (Head, HeldBy) {
        if name.is_system() {
            return (Head::EMPTY, HeldBy::Retention);
        }
        let mut lowest = (snapshot.unwrap_or_default(), HeldBy::Snapshot);
        if let Some(floor) = room.floor.filter(|floor| *floor < lowest.0) {
            lowest = (floor, HeldBy::Retention);
        }
        let whole =
            room.cursors.iter().filter(|(sink, cursor)| !cursor.broken && !given_up.contains(sink));
        if let Some((sink, cursor)) = whole.min_by_key(|(_, cursor)| cursor.at)
            && cursor.at < lowest.0
        {
            lowest = (cursor.at, HeldBy::Cursor(sink.clone()));
        }
        lowest
    }

    /// Whether any batch somebody may still ask for lies in that segment.
    pub fn needs(&self, segment: u64) -> bool {
        self.logs.values().any(|log| log.entries().any(|entry| entry.place.segment == segment))
    }

    /// Bytes of batches still needed, in that segment and in all. It decides when carrying is
    /// worth it, nothing else.
    pub fn needed_bytes(&self, segment: u64) -> (u64, u64) {
        let entries = self.logs.values().flat_map(RoomLog::entries);
        entries.fold((0, 0), |(here, all), entry| {
            let bytes = entry.frame_bytes;
            (here + if entry.place.segment == segment { bytes } else { 0 }, all + bytes)
        })
    }

    /// The batch of that name, read back from the log: for retries of long ago.
    pub fn find(
        &self,
        room: &RoomName,
        epoch: u32,
        nonce: u128,
        number: u64,
    ) -> io::Result<Option<Recent>> {
        let Some(entry) = self.logs.get(room).and_then(|log| log.stretch_of(epoch, number)) else {
            return Ok(None);
        };
        let file = &self.segments[&entry.place.segment].file;
        let span = read_span(&**file, entry.place.start, entry.place.end)?;
        let mut found = None;
        let look = |batch: BatchRecord<'_>| {
            let recent = Recent { link: batch.link, before: batch.before, chain: batch.chain() };
            if batch.room == *room
                && entry.holds(&batch.link)
                && recent.is_named(epoch, nonce, number)
            {
                found = Some(recent);
            }
        };
        for_each_batch(&span, look).map_err(io::Error::other)?;
        Ok(found)
    }
}

pub(crate) const LOCK: &str = "LOCK";
pub(crate) const SNAPSHOTS: &str = "snapshots";

pub(crate) fn snapshot_dir(room: &RoomName) -> PathBuf {
    Path::new(SNAPSHOTS).join(room.as_str())
}
