//! The file store as everybody else sees it.
//!
//! Lives here: [`FileStore`], which speaks the contract over a [`Journal`], either with threads
//! (the server) or inline (the simulator: every future is ready at once, except `follow`).
//! Stays out: the journal's rules, which are the same in both.

use std::{
    fmt,
    future::Future,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use tokio::sync::{oneshot, watch};

use crate::{
    contract::Store,
    cursor::{Cursor, Gap, Retention},
    disk::{Disk, RealDisk},
    error::{AppendError, Error},
    file::{
        backup::{self, BackupReport},
        book::{Alarm, Options, Shared, SnapshotAt},
        journal::Journal,
        outcome::{Control, Controlled, Staged},
        portable,
        recover::{self, OpenError, RecoveryReport},
        snapshots,
        threads::{Committer, Desk, Request, tidy},
        tidy::dispose,
    },
    lease::{Holder, Lease, Member},
    log::{Appended, Batch, Chain, Head, Stored},
    name::{LeaseName, RoomName, SinkName},
    seams::Seams,
    snapshot::Snapshot,
};

/// A store in a folder. Clones are handles on the same one; the last to go closes it.
pub struct FileStore<D: Disk = RealDisk> {
    inner: Arc<Inner<D>>,
}

struct Inner<D: Disk> {
    // Order matters when dropping: the journal's thread ends first, then the desks it sends to.
    line: Line<D>,
    shared: Arc<Shared<D>>,
}

enum Line<D: Disk> {
    Inline(Box<Mutex<Journal<D>>>),
    Threads { committer: Committer, reading: Desk, slow: Arc<Desk> },
}

impl FileStore<RealDisk> {
    /// Opens the store in `dir`, making it if there is none.
    pub fn open(
        dir: impl Into<PathBuf>,
        options: Options,
        seams: Seams,
    ) -> Result<(FileStore, RecoveryReport), OpenError> {
        FileStore::threaded(RealDisk::new(dir), options, seams)
    }
}

impl<D: Disk> FileStore<D> {
    /// Opens the store on a disk, with its threads.
    pub fn threaded(
        disk: D,
        options: Options,
        seams: Seams,
    ) -> Result<(FileStore<D>, RecoveryReport), OpenError> {
        let (journal, report) = recover::open(disk, options, seams)?;
        let shared = journal.shared().clone();
        let slow = Arc::new(Desk::in_the_background("slow-work"));
        let reading = Desk::start("reading");
        let committer = Committer::start(journal, slow.clone());
        let line = Line::Threads { committer, reading, slow };
        Ok((FileStore { inner: Arc::new(Inner { line, shared }) }, report))
    }

    /// Opens the store on a disk, without threads: whatever is asked is done before the call
    /// returns, an append with a commit of its own. For the simulator and for tools.
    pub fn inline(
        disk: D,
        options: Options,
        seams: Seams,
    ) -> Result<(FileStore<D>, RecoveryReport), OpenError> {
        let (journal, report) = recover::open(disk, options, seams)?;
        let shared = journal.shared().clone();
        let line = Line::Inline(Box::new(Mutex::new(journal)));
        Ok((FileStore { inner: Arc::new(Inner { line, shared }) }, report))
    }

    /// What an operator should know since the last time somebody asked.
    pub fn alarms(&self) -> Vec<Alarm> {
        self.inner.shared.take_alarms()
    }

    /// Bytes of the journal on disk, and in how many segments.
    pub fn journal_size(&self) -> (u64, usize) {
        let book = self.inner.shared.book();
        (book.segments.values().map(|segment| segment.len).sum(), book.segments.len())
    }

    /// Copies the whole store into a new folder while it is running; see `docs/store.md`.
    pub async fn backup(&self, to: &Path) -> Result<BackupReport, Error> {
        let pinned = backup::Pinned::new(self.inner.shared.clone());
        let sealed = match &self.inner.line {
            Line::Inline(journal) => {
                let mut journal = lock(journal);
                journal.seal().map_err(|failure| Error::from(&failure))?
            }
            Line::Threads { committer, .. } => {
                let (answer, sealed) = oneshot::channel();
                committer.send(Request::Seal { answer }).map_err(unavailable)?;
                Answer::Later(sealed)
                    .settled(|| Err(unavailable("the store closed meanwhile")))
                    .await?
            }
        };
        let to = to.to_path_buf();
        self.slowly(move |shared| backup::copy(shared, pinned, sealed, &to)).await
    }

    /// Writes one room to a portable file, with its newest snapshot if its log was trimmed.
    pub async fn export(&self, room: &RoomName, to: &Path) -> Result<Appended, Error> {
        let (room, to) = (room.clone(), to.to_path_buf());
        self.slowly(move |shared| portable::export(shared, &room, &to)).await
    }

    /// Takes a room in from a portable file. Everything is checked before anything is written.
    pub async fn import(&self, from: &Path) -> Result<portable::Import, Error> {
        let path = from.to_path_buf();
        let import = self.slowly(move |shared| portable::check(&*shared.disk, &path)).await?;
        let room = import.room.clone();
        let (base, until, epoch) = (import.base, import.tip.head, import.epoch);
        self.control(Control::Adopt { room: room.clone(), base, until, epoch }).await?;
        let path = from.to_path_buf();
        if import.snapshot == Some(base.head) {
            self.import_snapshot(&import, &path).await?;
        }
        let mut batches = portable::Portable::open(&*self.inner.shared.disk, &path)?;
        // One after another keeps memory small; the commits of an import hurt nobody.
        while let Some(stored) = batches.next_batch()? {
            let control = Control::Adopted { room: room.clone(), stored: Box::new(stored) };
            self.control(control).await?;
        }
        if import.snapshot.is_some_and(|at| at > base.head) {
            self.import_snapshot(&import, &path).await?;
        }
        Ok(import)
    }

    async fn import_snapshot(&self, import: &portable::Import, path: &Path) -> Result<(), Error> {
        let (room, path) = (import.room.clone(), path.to_path_buf());
        self.slowly(move |shared| {
            let Some(found) = portable::snapshot(&*shared.disk, &path)? else { return Ok(()) };
            let at = SnapshotAt { at: found.at, chain: found.chain };
            snapshots::take(shared, &room, at, found.chunks.into_iter())
        })
        .await
    }

    /// For a folder into which a room came back from elsewhere: epochs that its owners may have had
    /// since are left out, so that no ticket of theirs is given a second time.
    pub async fn leave_epochs_out(&self) -> Result<(), Error> {
        self.raise_epochs(super::backup::EPOCHS_LEFT_OUT).await
    }

    /// Raises all epochs: after a restore, those of the lost time must not be given again.
    pub(crate) async fn raise_epochs(&self, by: u32) -> Result<(), Error> {
        self.control(Control::RaiseEpochs { by }).await.map(|_| ())
    }

    /// Sends a request to the journal. It is in line when this returns.
    fn control(
        &self,
        control: Control,
    ) -> impl Future<Output = Result<Controlled, Error>> + Send + 'static + use<D> {
        let answer = match &self.inner.line {
            Line::Inline(journal) => {
                let mut journal = lock(journal);
                let staged = journal.stage(control);
                let group = journal.commit();
                while tidy(&mut journal, &mut |shared, number, len| dispose(shared, number, len)) {}
                Answer::Now(Controlled::settle(staged, &group))
            }
            Line::Threads { committer, .. } => {
                let (answer, settled) = oneshot::channel();
                match committer.send(Request::Control { control, answer }) {
                    Ok(()) => Answer::Later(settled),
                    Err(why) => Answer::Now(Err(Error::refused(why))),
                }
            }
        };
        answer.settled(|| Err(Error::Unknown { why: "the store closed meanwhile".into() }))
    }

    /// Reads from the disk on the reading thread.
    fn reading<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Arc<Shared<D>>) -> Result<T, Error> + Send + 'static,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        self.at_desk(false, read)
    }

    /// Does long work on the thread for it.
    fn slowly<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Shared<D>>) -> Result<T, Error> + Send + 'static,
    ) -> impl Future<Output = Result<T, Error>> + Send {
        self.at_desk(true, work)
    }

    fn at_desk<T: Send + 'static, W>(
        &self,
        long: bool,
        work: W,
    ) -> impl Future<Output = Result<T, Error>> + Send
    where
        W: FnOnce(&Arc<Shared<D>>) -> Result<T, Error> + Send + 'static,
    {
        let shared = self.inner.shared.clone();
        let answer = match &self.inner.line {
            Line::Inline(_) => Answer::Now(work(&shared)),
            Line::Threads { reading, slow, .. } => {
                let desk = if long { slow } else { reading };
                let (answer, done) = oneshot::channel();
                let job = move || {
                    let _ = answer.send(work(&shared));
                };
                match desk.send(job) {
                    Ok(()) => Answer::Later(done),
                    Err(why) => Answer::Now(Err(unavailable(why))),
                }
            }
        };
        answer.settled(|| Err(unavailable("the store closed meanwhile")))
    }
}

fn lock<D: Disk>(journal: &Mutex<Journal<D>>) -> std::sync::MutexGuard<'_, Journal<D>> {
    journal.lock().expect("the journal never panics while changing itself")
}

fn unavailable(why: &str) -> Error {
    Error::Unavailable { why: why.into() }
}

/// An answer that is there, or comes from a thread.
enum Answer<T> {
    Now(T),
    Later(oneshot::Receiver<T>),
}

impl<T> Answer<T> {
    async fn settled(self, lost: impl FnOnce() -> T) -> T {
        match self {
            Answer::Now(answer) => answer,
            Answer::Later(answer) => answer.await.unwrap_or_else(|_| lost()),
        }
    }
}

impl<D: Disk> Drop for Inner<D> {
    fn drop(&mut self) {
        if let Line::Inline(journal) = &self.line
            && let Ok(mut journal) = journal.lock()
        {
            journal.close();
        }
    }
}

impl<D: Disk> Clone for FileStore<D> {
    fn clone(&self) -> Self {
        FileStore { inner: self.inner.clone() }
    }
}

impl<D: Disk> fmt::Debug for FileStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileStore in {}", self.inner.shared.disk.shown(Path::new("")))
    }
}

/// Which cursors are over the cap, and how far trimming could go without them.
fn over_the_cap<D: Disk>(
    shared: &Shared<D>,
    room: &RoomName,
    keep: Retention,
) -> Result<(Vec<SinkName>, Head), Error> {
    let wall_ms = shared.seams.clock.wall_ms();
    let cursors = {
        let book = shared.book();
        let Some(known) = book.state.rooms.get(room) else {
            return Err(Error::refused(format!("there is no room {room}")));
        };
        known.cursors.clone()
    };
    let mut over = Vec::new();
    for (sink, cursor) in cursors.iter().filter(|(_, cursor)| !cursor.broken) {
        let (first, mut bytes) = {
            let book = shared.book();
            let Some(log) = book.logs.get(room) else { continue };
            let mut stretches = log.after(cursor.at);
            let Some(first) = stretches.next().copied() else { continue };
            (first, stretches.map(|stretch| stretch.payload_bytes).sum::<u64>())
        };
        // The first stretch may begin before the cursor: only what is behind it counts.
        let behind = shared.read(room, cursor.at, first.payload_bytes as usize)?;
        let within = behind.iter().filter(|stored| stored.head <= first.last);
        bytes += within.map(|stored| stored.payload.len() as u64).sum::<u64>();
        let oldest_ms = behind.first().map_or(wall_ms, |stored| stored.at_ms);
        if bytes > keep.keep_bytes || wall_ms.saturating_sub(oldest_ms) > keep.keep_age_ms {
            over.push(sink.clone());
        }
    }
    let book = shared.book();
    let snapshot = book.newest_snapshot(room).map(|newest| newest.at);
    let known = book.state.rooms.get(room);
    let limit = known.map_or(Head::EMPTY, |known| book.floor(room, known, snapshot, &over).0);
    Ok((over, limit))
}

impl<D: Disk> Store for FileStore<D> {
    fn append(
        &self,
        room: &RoomName,
        lease: &Lease,
        expected: Head,
        batch: Batch,
    ) -> impl Future<Output = Result<Appended, AppendError>> + Send + 'static + use<D> {
        let answer = match &self.inner.line {
            Line::Inline(journal) => {
                let mut journal = lock(journal);
                let staged = journal.stage_append(room, lease, expected, &batch);
                let group = journal.commit();
                while tidy(&mut journal, &mut |shared, number, len| dispose(shared, number, len)) {}
                Answer::Now(Staged::settle(staged, &group))
            }
            Line::Threads { committer, .. } => {
                let (answer, settled) = oneshot::channel();
                let (room, lease) = (room.clone(), lease.clone());
                match committer.send(Request::Append { room, lease, expected, batch, answer }) {
                    Ok(()) => Answer::Later(settled),
                    Err(why) => Answer::Now(Err(AppendError::Refused { why: why.into() })),
                }
            }
        };
        answer.settled(|| Err(AppendError::Unknown { why: "the store closed meanwhile".into() }))
    }

    async fn read(&self, room: &RoomName, from: Head, max: usize) -> Result<Vec<Stored>, Error> {
        let room = room.clone();
        self.reading(move |shared| shared.read(&room, from, max)).await
    }

    async fn committed_head(&self, room: &RoomName) -> Result<Head, Error> {
        Ok(self.tip(room).await?.head)
    }

    async fn tip(&self, room: &RoomName) -> Result<Appended, Error> {
        let book = self.inner.shared.book();
        Ok(book.state.rooms.get(room).map_or(Appended::default(), |room| room.tip))
    }

    fn follow(
        &self,
        room: &RoomName,
        from: Head,
    ) -> impl Future<Output = Result<Head, Error>> + Send + 'static + use<D> {
        let shared = &self.inner.shared;
        // Subscribe first, look second: a commit in between is seen by one or the other.
        let mut heads = {
            let mut soft = shared.soft();
            let watcher =
                soft.watchers.entry(room.clone()).or_insert_with(|| watch::channel(Head::EMPTY).0);
            watcher.subscribe()
        };
        let head = shared.book().state.rooms.get(room).map_or(Head::EMPTY, |room| room.tip.head);
        async move {
            if head > from {
                return Ok(head);
            }
            let found = heads.wait_for(|head| *head > from).await;
            found.map(|head| *head).map_err(|_| unavailable("the store closed meanwhile"))
        }
    }

    async fn trimmed_to(&self, room: &RoomName) -> Result<Head, Error> {
        let book = self.inner.shared.book();
        Ok(book.state.rooms.get(room).map_or(Head::EMPTY, |room| room.trimmed_to))
    }

    async fn snapshot(
        &self,
        room: &RoomName,
        at: Head,
        chain: Chain,
        chunks: impl Iterator<Item = Vec<u8>> + Send + 'static,
    ) -> Result<(), Error> {
        let room = room.clone();
        let at = SnapshotAt { at, chain };
        self.slowly(move |shared| snapshots::take(shared, &room, at, chunks)).await
    }

    async fn latest_snapshot(&self, room: &RoomName) -> Result<Option<Snapshot>, Error> {
        let room = room.clone();
        self.slowly(move |shared| snapshots::latest(shared, &room)).await
    }

    async fn trim(&self, room: &RoomName, to: Head) -> Result<(), Error> {
        self.control(Control::Trim { room: room.clone(), to }).await.map(|_| ())
    }

    async fn trim_limit(&self, room: &RoomName) -> Result<Head, Error> {
        let book = self.inner.shared.book();
        let Some(known) = book.state.rooms.get(room) else { return Ok(Head::EMPTY) };
        let kept = book.snapshots.get(room);
        let before_newest = kept.and_then(|kept| kept.iter().rev().nth(1)).map(|kept| kept.at);
        let (limit, _) = book.floor(room, known, before_newest, &[]);
        Ok(limit.max(known.trimmed_to))
    }

    async fn keep_from(&self, room: &RoomName, floor: Option<Head>) -> Result<(), Error> {
        self.control(Control::KeepFrom { room: room.clone(), floor }).await.map(|_| ())
    }

    async fn lease(&self, name: &LeaseName, who: &str, ttl_ms: u64) -> Result<Lease, Error> {
        let control = Control::Lease { name: name.clone(), who: who.into(), ttl_ms };
        match self.control(control).await? {
            Controlled::Lease(lease) => Ok(lease),
            other => unreachable!("a lease request was answered with {other:?}"),
        }
    }

    /// In memory only: after a restart every lease has run out anyway. So a thousand rooms renew
    /// twice a second without a single write.
    async fn renew(&self, lease: &Lease, ttl_ms: u64) -> Result<(), Error> {
        let shared = &self.inner.shared;
        let book = shared.book();
        let current = book.state.leases.get(&lease.name);
        if !current.is_some_and(|granted| granted.is(lease)) {
            return Err(Error::Lost { epoch: current.map_or(0, |granted| granted.epoch) });
        }
        let mut soft = shared.soft();
        if soft.granting.contains(&lease.name) {
            return Err(unavailable("the lease is being granted anew at this moment"));
        }
        soft.deadlines_ms.insert(lease.name.clone(), shared.now_ms().saturating_add(ttl_ms));
        Ok(())
    }

    async fn release(&self, lease: &Lease) -> Result<(), Error> {
        self.control(Control::Release { lease: lease.clone() }).await.map(|_| ())
    }

    async fn holder_of(&self, name: &LeaseName) -> Result<Option<Holder>, Error> {
        let shared = &self.inner.shared;
        let book = shared.book();
        let Some(granted) = book.state.leases.get(name).filter(|granted| !granted.released) else {
            return Ok(None);
        };
        let until_ms = shared.soft().deadlines_ms.get(name).copied().unwrap_or(0);
        let left_ms = until_ms.saturating_sub(shared.now_ms());
        let holder = Holder { who: granted.who.to_string(), epoch: granted.epoch, left_ms };
        Ok((left_ms > 0).then_some(holder))
    }

    async fn cursor(&self, room: &RoomName, sink: &SinkName) -> Result<Option<Cursor>, Error> {
        let book = self.inner.shared.book();
        Ok(book.state.rooms.get(room).and_then(|room| room.cursors.get(sink).copied()))
    }

    async fn cursors(&self, room: &RoomName) -> Result<Vec<(SinkName, Cursor)>, Error> {
        let book = self.inner.shared.book();
        let known = book.state.rooms.get(room).map(|room| room.cursors.clone()).unwrap_or_default();
        Ok(known.iter().map(|(sink, cursor)| (sink.clone(), *cursor)).collect())
    }

    async fn advance(&self, room: &RoomName, sink: &SinkName, to: Head) -> Result<Cursor, Error> {
        let control = Control::Advance { room: room.clone(), sink: sink.clone(), to };
        match self.control(control).await? {
            Controlled::Cursor(cursor) => Ok(cursor),
            other => unreachable!("an advance was answered with {other:?}"),
        }
    }

    async fn drop_cursor(&self, room: &RoomName, sink: &SinkName) -> Result<(), Error> {
        let control = Control::DropCursor { room: room.clone(), sink: sink.clone() };
        self.control(control).await.map(|_| ())
    }

    async fn mark_broken(&self, room: &RoomName, sink: &SinkName, to: Head) -> Result<Gap, Error> {
        let control = Control::MarkBroken { room: room.clone(), sink: sink.clone(), to };
        match self.control(control).await? {
            Controlled::Gap(gap) => Ok(gap),
            other => unreachable!("giving a sink up was answered with {other:?}"),
        }
    }

    async fn retire(
        &self,
        room: &RoomName,
        keep: Retention,
    ) -> Result<Vec<(SinkName, Gap)>, Error> {
        let name = room.clone();
        let (over, limit) = self.reading(move |shared| over_the_cap(shared, &name, keep)).await?;
        let mut gaps = Vec::new();
        for sink in over {
            if self.cursor(room, &sink).await?.is_none_or(|cursor| cursor.at >= limit) {
                continue;
            }
            match self.mark_broken(room, &sink, limit).await {
                Ok(gap) => gaps.push((sink, gap)),
                // It advanced meanwhile: not so dead after all.
                Err(Error::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(gaps)
    }

    async fn announce(&self, instance: &str, about: Vec<u8>, ttl_ms: u64) -> Result<(), Error> {
        let until_ms = self.inner.shared.now_ms().saturating_add(ttl_ms);
        self.inner.shared.soft().members.insert(instance.into(), (about, until_ms));
        Ok(())
    }

    async fn instances(&self) -> Result<Vec<Member>, Error> {
        let now_ms = self.inner.shared.now_ms();
        let mut soft = self.inner.shared.soft();
        soft.members.retain(|_, (_, until_ms)| *until_ms > now_ms);
        let member = |(instance, (about, until_ms)): (&String, &(Vec<u8>, u64))| Member {
            instance: instance.clone(),
            about: about.clone(),
            left_ms: until_ms - now_ms,
        };
        Ok(soft.members.iter().map(member).collect())
    }

    async fn publish_board(&self, room: &RoomName, board: Vec<u8>) -> Result<(), Error> {
        self.inner.shared.soft().boards.insert(room.clone(), board);
        Ok(())
    }

    async fn board(&self, room: &RoomName) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.inner.shared.soft().boards.get(room).cloned())
    }

    async fn rooms(&self) -> Result<Vec<RoomName>, Error> {
        let book = self.inner.shared.book();
        let whole = book.state.rooms.iter().filter(|(_, room)| room.adopting.is_none());
        let mut rooms: Vec<RoomName> =
            whole.map(|(name, _)| name).filter(|name| !name.is_system()).cloned().collect();
        rooms.sort();
        Ok(rooms)
    }

    /// With an archive folder the room is exported there first; if that fails, it stays.
    async fn remove_room(&self, room: &RoomName) -> Result<(), Error> {
        let head = self.committed_head(room).await?;
        if let Some(archive) = self.inner.shared.options.archive.clone()
            && head > Head::EMPTY
            && !room.is_system()
        {
            let wall_ms = self.inner.shared.seams.clock.wall_ms();
            let to = archive.join(format!("{room}-{head}-{wall_ms}.wrroom"));
            self.export(room, &to).await?;
        }
        self.control(Control::Remove { room: room.clone() }).await?;
        self.inner.shared.soft().boards.remove(room);
        let room = room.clone();
        self.slowly(move |shared| {
            snapshots::forget(shared, &room);
            Ok(())
        })
        .await
    }
}
