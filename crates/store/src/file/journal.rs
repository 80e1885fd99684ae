//! The journal: stages requests, commits them together, and heals itself when the disk fails.
//!
//! Lives here: [`Journal`], a plain struct without threads or waiting, so that the simulator runs
//! exactly this code. `stage_…` looks at a request, answers what will be true, and adds its record
//! to the group; `commit` writes the group with one write and one sync, and only then makes it
//! visible. Answers count once `commit` returned `Ok`; before that nobody may be told.
//! Stays out: queues and threads (`threads`), reading back at start (`recover`); staging what is no
//! append is in `controls`, winning space back in `tidy`.
//!
//! When a write or sync fails, the active segment is given up: its synced beginning is copied to a
//! new file, which takes its place. If that works, what was in flight is certainly not there
//! (`Refused`); if not, it may be (`Unknown`), and the copy is tried again before anything else is
//! taken. A full disk is milder: what was written is cut off again and the segment goes on.

use std::{collections::HashMap, io, sync::Arc};

use crate::{
    disk::{Disk, DiskFile},
    error::AppendError,
    file::{
        book::{Effect, Options, Segment, Shared},
        index::{Place, Placed, Recent},
        outcome::{Failure, Staged},
        record::{self, BatchRecord, PAYLOAD_BYTES_MAX},
        recover::{self, OpenError, RecoveryReport},
        segment,
        state::{Changes, Granted},
    },
    lease::Lease,
    log::{Batch, Head, Link},
    name::{LeaseName, RoomName},
    seams::Seams,
};

/// While the disk fails, healing is tried once in this time, not with every request.
const HEAL_EVERY_MS: u64 = 1_000;

/// The writing end of a file store.
pub struct Journal<D: Disk> {
    pub(super) shared: Arc<Shared<D>>,
    pub(super) active: u64,
    pub(super) file: Arc<D::File>,
    /// How far the active segment is written and synced. The next group begins here.
    pub(super) len: u64,
    /// The group being staged: its bytes, and what it will have done.
    pub(super) buffer: Vec<u8>,
    pub(super) group_at_ms: u64,
    pub(super) changes: Changes,
    pub(super) effects: Vec<Effect>,
    pub(super) recent: Vec<(RoomName, Recent)>,
    pub(super) deadlines_ms: HashMap<LeaseName, u64>,
    pub(super) touched: Vec<(RoomName, Head)>,
    pub(super) failed: Option<Failed>,
    /// Something was trimmed or removed, or a segment began: there may be room to win.
    pub(super) untidy: bool,
}

pub(super) struct Failed {
    why: String,
    tried_at_ms: u64,
}

impl<D: Disk> std::fmt::Debug for Journal<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Journal in segment {} at {}", self.active, self.len)
    }
}

impl<D: Disk> Journal<D> {
    /// Opens the journal on a disk by itself, for whoever drives it without a [`FileStore`].
    ///
    /// [`FileStore`]: crate::file::FileStore
    pub fn open(
        disk: D,
        options: Options,
        seams: Seams,
    ) -> Result<(Journal<D>, RecoveryReport), OpenError> {
        recover::open(disk, options, seams)
    }

    /// Takes over after recovery: `active` is the newest segment, whole and synced up to `len`.
    pub(crate) fn resume(shared: Arc<Shared<D>>, active: u64) -> Journal<D> {
        let (file, len) = {
            let book = shared.book();
            let segment = &book.segments[&active];
            (segment.file.clone(), segment.len)
        };
        Journal {
            shared,
            active,
            file,
            len,
            buffer: Vec::new(),
            group_at_ms: 0,
            changes: Changes::default(),
            effects: Vec::new(),
            recent: Vec::new(),
            deadlines_ms: HashMap::new(),
            touched: Vec::new(),
            failed: None,
            untidy: true,
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<D>> {
        &self.shared
    }

    /// Bytes of the group so far.
    pub fn staged_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Stages a batch. The answer counts once [`Journal::commit`] returned `Ok`.
    pub fn stage_append(
        &mut self,
        room: &RoomName,
        lease: &Lease,
        expected: Head,
        batch: &Batch,
    ) -> Result<Staged, AppendError> {
        self.make_ready().map_err(|why| AppendError::Refused { why })?;
        let refused = |why: String| Err(AppendError::Refused { why });
        let at_ms = self.group_at_ms;
        let book = self.shared.book();
        let current =
            self.changes.lease(&book.state, &lease.name).filter(|_| lease.name.is_of(room));
        if !current.is_some_and(|granted| granted.is(lease)) {
            let current = self.changes.lease(&book.state, &LeaseName::room(room));
            return Err(AppendError::Fenced { epoch: current.map_or(0, |granted| granted.epoch) });
        }
        if batch.events == 0 {
            return refused("a batch holds at least one event".into());
        }
        if batch.payload.len() > PAYLOAD_BYTES_MAX {
            return refused(format!("a batch holds at most {PAYLOAD_BYTES_MAX} bytes"));
        }
        let known = self.changes.room(&book.state, room);
        let (tip, last) = known.map_or_else(Default::default, |known| (known.tip, known.last));
        if known.is_some_and(|known| known.adopting.is_some()) {
            return refused(format!("room {room} is being imported"));
        }
        let Lease { epoch, nonce, .. } = *lease;
        if (epoch, batch.number) <= last {
            let staged = self
                .recent
                .iter()
                .find(|(name, recent)| name == room && recent.is_named(epoch, nonce, batch.number));
            let log = book.logs.get(room);
            let earlier = match staged {
                Some((_, recent)) => Some(*recent),
                None => match log.and_then(|log| log.recent(epoch, nonce, batch.number)) {
                    Some(recent) => Some(*recent),
                    None => book
                        .find(room, epoch, nonce, batch.number)
                        .map_err(|error| AppendError::Unknown { why: error.to_string() })?,
                },
            };
            // One that was trimmed since is not in the log any more, even if we remember it.
            let trimmed_to = known.map_or(Head::EMPTY, |known| known.trimmed_to);
            return match earlier.filter(|earlier| earlier.link.head() > trimmed_to) {
                Some(earlier) if earlier.is_the_same(room, batch) => {
                    Ok(Staged { appended: earlier.appended(), committed: staged.is_none() })
                }
                Some(_) => {
                    refused(format!("batch {} is in the log with another content", batch.number))
                }
                None => refused(format!("batch number {} is not above the newest", batch.number)),
            };
        }
        if expected != tip.head {
            return Err(AppendError::Stale { head: tip.head });
        }
        let link =
            Link { epoch, nonce, number: batch.number, after: expected, events: batch.events };
        if link.after.0.checked_add(u64::from(link.events)).is_none() {
            return refused("the log has as many events as a log can have".into());
        }
        let record = BatchRecord {
            carried: false,
            room: room.clone(),
            link,
            at_ms,
            before: tip.chain,
            payload: &batch.payload,
        };
        let chain = record.chain();
        let place = stage_batch(&mut self.buffer, self.active, self.len, &record);
        self.changes.absorb_batch(&book.state, &record, chain);
        let recent = Recent { link, before: tip.chain, chain };
        let payload_bytes = batch.payload.len() as u64;
        let placed = Placed { link, payload_bytes, before: tip.chain, chain, place };
        self.effects.push(Effect::Batch(room.clone(), placed));
        self.recent.push((record.room, recent));
        Ok(Staged { appended: recent.appended(), committed: false })
    }

    /// Writes and syncs the group, then makes it visible. On failure nothing of it is visible.
    pub fn commit(&mut self) -> Result<(), Failure> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written = self.file.write_at(self.len, &self.buffer);
        if let Err(error) = &written
            && error.kind() == io::ErrorKind::StorageFull
        {
            self.forget_group();
            // The part that fitted may hold whole records. They were refused, so they must go.
            let cut = self.file.truncate(self.len).and_then(|()| self.file.sync_data());
            return Err(match cut {
                Ok(()) => Failure { gone: true, why: error.to_string() },
                Err(_) => self.fail(error.to_string()),
            });
        }
        if let Err(error) = written.and_then(|()| self.file.sync_data()) {
            self.forget_group();
            return Err(self.fail(error.to_string()));
        }
        self.len += self.buffer.len() as u64;
        self.publish();
        Ok(())
    }

    /// Makes the synced group visible to readers and to whoever follows.
    fn publish(&mut self) {
        self.touched.clear();
        self.touched.extend(self.changes.heads().map(|(room, head)| (room.clone(), head)));
        {
            let mut book = self.shared.book_mut();
            book.state.merge(&mut self.changes);
            self.effects.iter().for_each(|effect| book.apply(effect));
            book.segments.get_mut(&self.active).expect("the active segment is listed").len =
                self.len;
        }
        let mut soft = self.shared.soft();
        for (name, until_ms) in self.deadlines_ms.drain() {
            soft.granting.remove(&name);
            soft.deadlines_ms.insert(name, until_ms);
        }
        for (room, head) in &self.touched {
            if let Some(watcher) = soft.watchers.get(room) {
                watcher.send_replace(*head);
            }
        }
        drop(soft);
        self.buffer.clear();
        self.effects.clear();
        self.recent.clear();
    }

    fn forget_group(&mut self) {
        let mut soft = self.shared.soft();
        for (name, _) in self.deadlines_ms.drain() {
            soft.granting.remove(&name);
        }
        drop(soft);
        self.buffer.clear();
        self.changes.clear();
        self.effects.clear();
        self.recent.clear();
    }

    /// Gives the active file up and puts a copy of its synced part in its place.
    fn fail(&mut self, why: String) -> Failure {
        self.shared.alarm(format!(
            "writing {} failed: {why}; nobody new is acknowledged until a copy of it is written",
            self.shared.disk.shown(&segment::path(self.active))
        ));
        self.failed = Some(Failed { why: why.clone(), tried_at_ms: 0 });
        let gone = self.heal().is_ok();
        Failure { gone, why }
    }

    fn heal(&mut self) -> io::Result<()> {
        let Some(failed) = &mut self.failed else { return Ok(()) };
        failed.tried_at_ms = self.shared.now_ms();
        let file =
            Arc::new(segment::replace(&*self.shared.disk, self.active, &self.file, self.len)?);
        self.file = file.clone();
        let mut book = self.shared.book_mut();
        book.segments.get_mut(&self.active).expect("the active segment is listed").file = file;
        drop(book);
        self.failed = None;
        Ok(())
    }

    /// Called before a record is staged: heals what failed, and begins a new segment when the
    /// group does and the old one is full.
    pub(super) fn make_ready(&mut self) -> Result<(), String> {
        if let Some(failed) = &self.failed {
            let why = format!("the journal waits for its disk to work again: {}", failed.why);
            if self.shared.now_ms() < failed.tried_at_ms + HEAL_EVERY_MS || self.heal().is_err() {
                return Err(why);
            }
        }
        if self.buffer.is_empty() && self.len >= self.shared.options.segment_bytes {
            // If no new segment can be made, the old one grows on: better too large than closed.
            // On a full disk the write itself will say so.
            let _ = self.rotate();
        }
        if self.buffer.is_empty() {
            // Once a group: asking the clock for every batch would cost as much as its checksum.
            self.group_at_ms = self.shared.seams.clock.wall_ms();
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let number = self.active + 1;
        let (file, len) = segment::create(&*self.shared.disk, number, &self.shared.book().state)?;
        let file = Arc::new(file);
        self.shared
            .book_mut()
            .segments
            .insert(number, Segment { file: file.clone(), len, body: len });
        (self.active, self.file, self.len) = (number, file, len);
        self.untidy = true;
        Ok(())
    }

    /// Begins a new segment and lists those before it, which will not change any more.
    pub(crate) fn seal(&mut self) -> Result<Vec<u64>, Failure> {
        assert!(self.buffer.is_empty(), "a group must be committed before sealing");
        let unsealed = |why: String| Failure { gone: true, why };
        self.make_ready().map_err(unsealed)?;
        self.rotate().map_err(|error| unsealed(error.to_string()))?;
        Ok(self.shared.book().segments.keys().copied().filter(|n| *n < self.active).collect())
    }

    /// The last words: proof for the next opening that everything was synced.
    pub fn close(&mut self) {
        if self.failed.is_none() && self.buffer.is_empty() {
            record::write_closed(&mut self.buffer, self.len);
            // If it cannot be written, the next opening looks more closely; nothing is lost.
            let _ = self.commit();
        }
    }
}

/// Adds a batch's frame to the group and tells where it will be.
pub(super) fn stage_batch(
    buffer: &mut Vec<u8>,
    segment: u64,
    group: u64,
    batch: &BatchRecord<'_>,
) -> Place {
    let start = group + buffer.len() as u64;
    record::write_batch(buffer, group, batch);
    Place { segment, start, end: group + buffer.len() as u64 }
}

impl Granted {
    pub(crate) fn is(&self, lease: &Lease) -> bool {
        !self.released && self.epoch == lease.epoch && self.nonce == lease.nonce
    }
}

impl Recent {
    /// Whether `batch` is this one again, byte for byte: its chain says so.
    fn is_the_same(&self, room: &RoomName, batch: &Batch) -> bool {
        let link = Link { events: batch.events, ..self.link };
        self.before.next(room, &link, &batch.payload) == self.chain
    }
}
