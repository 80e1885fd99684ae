//! Opening: reads the journal back, cuts what was torn, refuses what was damaged.
//!
//! Lives here: [`open`], and the two things it can say: a [`RecoveryReport`] or an [`OpenError`].
//! Stays out: repairing. Recovery never throws away what was once acknowledged; when it would have
//! to, it stops and says what a person can do (`repair`).
//!
//! Torn or damaged? Only the end of the newest segment can be torn, and only its last group, as a
//! group is written after the one before it was synced. Each frame names where its group began. So
//! when a frame is broken, everything behind it is searched: a whole frame of a later group proves
//! that the broken one had been synced, and that is damage. Without such a proof it is a torn tail.
//! Damage to the very last group of a store that was not closed looks the same as a torn write; no
//! reader can tell them apart, and recovery reports how much it cut.

use std::{
    collections::{BTreeMap, HashMap},
    fmt, io,
    path::Path,
    sync::Arc,
};

use crate::{
    disk::{Disk, Locked, TEMPORARY, read_all},
    file::{
        book::{Book, Effect, LOCK, Options, SNAPSHOTS, Segment, Shared},
        index::{Place, Placed},
        journal::Journal,
        outcome::Control,
        record::{self, BatchRecord, NoFrame, Note, Record},
        segment::{self, BadHeader, HEADER},
        snapshots,
        state::{Changes, State},
    },
    name::RoomName,
    seams::Seams,
};

/// What opening found, in a form to log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    pub rooms: usize,
    pub segments: usize,
    pub bytes: u64,
    pub batches: u64,
    /// The store had been closed in good order.
    pub clean: bool,
    /// What was cut off the end: written, perhaps, but acknowledged to nobody.
    pub cut: Option<Cut>,
    /// Imports that had not finished; they were undone.
    pub half_imports: Vec<RoomName>,
    /// Snapshot files that were set aside, or that the disk does not hand out, and why.
    pub set_aside: Vec<String>,
}

/// A torn tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    pub file: String,
    pub at: u64,
    pub bytes: u64,
    pub why: String,
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} rooms, {} batches in {} segments ({} bytes), {}",
            self.rooms,
            self.batches,
            self.segments,
            self.bytes,
            if self.clean { "closed in good order" } else { "not closed in good order" }
        )?;
        if let Some(cut) = &self.cut {
            write!(
                f,
                "\n  cut {} bytes off {} at {}: {}; nothing in them had been acknowledged",
                cut.bytes, cut.file, cut.at, cut.why
            )?;
        }
        for room in &self.half_imports {
            write!(f, "\n  undid the unfinished import of {room}; import it again")?;
        }
        for file in &self.set_aside {
            write!(f, "\n  passed over {file}")?;
        }
        Ok(())
    }
}

/// Why a store cannot be opened. Names the file, the place, the effect and the next step.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has it.
    InUse {
        dir: String,
        pid: Option<u32>,
    },
    /// Something that had been acknowledged is not there as it was written.
    Damaged {
        file: String,
        at: u64,
        why: String,
    },
    /// Written by a newer release.
    Version {
        file: String,
        found: u16,
    },
    Io {
        doing: String,
        error: io::Error,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::InUse { dir, pid } => {
                let holder =
                    pid.map_or_else(|| "another process".into(), |pid| format!("process {pid}"));
                write!(
                    f,
                    "{dir} is in use by {holder}\n  do      stop it first, or give this one a data folder of its own"
                )
            }
            OpenError::Damaged { file, at, why } => write!(
                f,
                "{file} is damaged at byte {at}: {why}\n  \
                 means   something that was acknowledged cannot be read; nothing was changed, and no room opens\n  \
                 do      keep a copy of the data folder, check the disk, then restore the newest backup;\n          \
                 or go on without what follows: repair --cut {file} {at} (what is cut is moved aside)"
            ),
            OpenError::Version { file, found } => write!(
                f,
                "{file} has format version {found}; this release reads version {}\n  \
                 do      start the release that wrote it, or a newer one",
                segment::VERSION
            ),
            OpenError::Io { doing, error } => write!(f, "cannot {doing}: {error}"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Opens the store on `disk`, or makes a new one there.
pub(crate) fn open<D: Disk>(
    disk: D,
    options: Options,
    seams: Seams,
) -> Result<(Journal<D>, RecoveryReport), OpenError> {
    let disk = Arc::new(disk);
    let lock = take_lock(&*disk)?;
    let mut reading = Reading {
        disk: disk.clone(),
        book: Book {
            state: State::default(),
            logs: HashMap::new(),
            segments: BTreeMap::new(),
            snapshots: HashMap::new(),
            pins: 0,
        },
        changes: Changes::default(),
        report: RecoveryReport::default(),
    };
    let newest = reading.segments()?;
    reading.check_tiling(newest)?;
    let mut report = reading.report;
    report.set_aside = snapshots::load(&*disk, &mut reading.book).map_err(|error| {
        OpenError::Io { doing: format!("read {}", disk.shown(Path::new(SNAPSHOTS))), error }
    })?;
    let half: Vec<RoomName> = {
        let rooms = reading.book.state.rooms.iter();
        let mut half: Vec<_> = rooms
            .filter(|(_, room)| room.adopting.is_some())
            .map(|(name, _)| name.clone())
            .collect();
        half.sort();
        half
    };
    report.rooms = reading.book.state.rooms.len() - half.len();
    let shared = Arc::new(Shared::new(disk, options, seams, reading.book, lock));
    let mut journal = Journal::resume(shared, newest);
    for room in &half {
        journal
            .stage(Control::Remove { room: room.clone() })
            .expect("it is there and no system log");
    }
    journal.commit().map_err(|failure| OpenError::Io {
        doing: "undo an unfinished import".into(),
        error: io::Error::other(failure.why),
    })?;
    report.half_imports = half;
    Ok((journal, report))
}

fn take_lock<D: Disk>(disk: &D) -> Result<D::Lock, OpenError> {
    let made = disk
        .create_dir(Path::new(segment::DIR))
        .and_then(|()| disk.create_dir(Path::new(SNAPSHOTS)));
    made.map_err(|error| OpenError::Io {
        doing: format!("make the data folder {}", disk.shown(Path::new(""))),
        error,
    })?;
    disk.lock(Path::new(LOCK)).map_err(|locked| match locked {
        Locked::By(pid) => OpenError::InUse { dir: disk.shown(Path::new("")), pid },
        Locked::Io(error) => {
            OpenError::Io { doing: format!("lock {}", disk.shown(Path::new(LOCK))), error }
        }
    })
}

/// The picture while it is being put together.
struct Reading<D: Disk> {
    disk: Arc<D>,
    book: Book<D>,
    changes: Changes,
    report: RecoveryReport,
}

impl<D: Disk> Reading<D> {
    /// Reads all segments, oldest first; returns the number of the newest, ready to be written to.
    fn segments(&mut self) -> Result<u64, OpenError> {
        let dir = Path::new(segment::DIR);
        let disk = self.disk.clone();
        let io = |doing: &str, path: &Path| {
            let doing = format!("{doing} {}", disk.shown(path));
            move |error| OpenError::Io { doing, error }
        };
        let mut numbers = Vec::new();
        for name in disk.list(dir).map_err(io("list", dir))? {
            if name.ends_with(TEMPORARY) {
                disk.remove(&dir.join(&name)).map_err(io("remove", &dir.join(&name)))?;
            }
            numbers.extend(segment::number(&name));
        }
        let Some(&newest) = numbers.last() else {
            return self.begin();
        };
        let gap = numbers.windows(2).find(|pair| pair[1] != pair[0] + 1);
        if let Some(pair) = gap {
            return Err(self.damaged(pair[0] + 1, 0, "the segment is missing"));
        }
        for number in numbers {
            let path = segment::path(number);
            let file = disk.open(&path).map_err(io("open", &path))?;
            let bytes = read_all(&file).map_err(io("read", &path))?;
            let (len, body) = self.segment(number, &bytes, number == newest)?;
            self.report.segments += 1;
            self.report.bytes += len;
            let mut file = file;
            if number == newest && !self.report.clean {
                // What we read may be in the machine's memory only, left by a process whose sync
                // failed. From here on it counts as acknowledged, so it must be on the disk.
                file = segment::replace(&*disk, number, &file, len).map_err(io("copy", &path))?;
            }
            self.book.segments.insert(number, Segment { file: Arc::new(file), len, body });
        }
        Ok(newest)
    }

    /// A new store, or a store whose journal was lost: snapshots without a journal tell.
    fn begin(&mut self) -> Result<u64, OpenError> {
        let snapshots = Path::new(SNAPSHOTS);
        let io = |error| OpenError::Io { doing: "begin a journal".into(), error };
        if !self.disk.list(snapshots).map_err(io)?.is_empty() {
            return Err(OpenError::Damaged {
                file: self.disk.shown(Path::new(segment::DIR)),
                at: 0,
                why: "there are snapshots but no journal".into(),
            });
        }
        let (file, len) = segment::create(&*self.disk, 1, &State::default()).map_err(io)?;
        self.book.segments.insert(1, Segment { file: Arc::new(file), len, body: len });
        self.report.clean = true;
        self.report.segments = 1;
        self.report.bytes = len;
        Ok(1)
    }

    /// Folds one segment in; returns how much of it is good, and where its body begins.
    fn segment(
        &mut self,
        number: u64,
        bytes: &[u8],
        newest: bool,
    ) -> Result<(u64, u64), OpenError> {
        segment::check_header(bytes, number).map_err(|bad| match bad {
            BadHeader::Broken(why) => self.damaged(number, 0, why),
            BadHeader::Version(found) => {
                OpenError::Version { file: self.disk.shown(&segment::path(number)), found }
            }
        })?;
        let mut at = HEADER;
        let mut group = HEADER as u64;
        let mut body = None;
        loop {
            let frame = match record::frame(&bytes[at..]) {
                Ok(frame) => frame,
                Err(NoFrame::End) if body.is_some() => break,
                Err(NoFrame::End) => {
                    return Err(self.damaged(
                        number,
                        at as u64,
                        "the segment's checkpoint is missing",
                    ));
                }
                Err(NoFrame::Broken(why)) => {
                    if body.is_none() || !newest || was_synced(bytes, at) {
                        return Err(self.damaged(number, at as u64, why));
                    }
                    let file = self.disk.shown(&segment::path(number));
                    let lost = (bytes.len() - at) as u64;
                    self.report.cut =
                        Some(Cut { file, at: at as u64, bytes: lost, why: why.into() });
                    self.report.clean = false;
                    break;
                }
            };
            let damaged = |this: &Self, why: &str| this.damaged(number, at as u64, why);
            if frame.group < group || frame.group > at as u64 {
                return Err(damaged(self, "a record belongs to an impossible group"));
            }
            group = frame.group;
            let record = record::record(&frame).map_err(|why| damaged(self, why))?;
            let place = Place { segment: number, start: at as u64, end: (at + frame.len) as u64 };
            self.report.clean = matches!(record, Record::Closed);
            match record {
                Record::Checkpoint(state) if body.is_none() => {
                    self.checkpoint(state).map_err(|why| damaged(self, why))?;
                    body = Some(place.end);
                }
                _ if body.is_none() => return Err(damaged(self, "the checkpoint is not first")),
                Record::Checkpoint(_) => return Err(damaged(self, "a second checkpoint")),
                Record::Batch(batch) => {
                    self.batch(&batch, place).map_err(|why| damaged(self, &why))?
                }
                Record::Note(note) => self.note(&note),
                Record::Closed => {}
            }
            at += frame.len;
        }
        self.book.state.merge(&mut self.changes);
        Ok((at as u64, body.expect("the loop ends only after the checkpoint")))
    }

    /// The oldest segment's checkpoint is where we start; later ones must say what we know.
    fn checkpoint(&mut self, state: State) -> Result<(), &'static str> {
        if self.book.segments.is_empty() {
            self.book.state = state;
        } else if self.book.state != state {
            return Err("the checkpoint contradicts the segments before it");
        }
        Ok(())
    }

    fn batch(&mut self, batch: &BatchRecord<'_>, place: Place) -> Result<(), String> {
        let state = &self.book.state;
        let (tip, last) = self
            .changes
            .room(state, &batch.room)
            .map_or_else(Default::default, |room| (room.tip, room.last));
        let link = batch.link;
        if link.after.0.checked_add(u64::from(link.events)).is_none() {
            return Err(format!("a batch of room {} with an impossible head", batch.room));
        }
        let chain = batch.chain();
        let payload_bytes = batch.payload.len() as u64;
        let placed = Placed { link, payload_bytes, before: batch.before, chain, place };
        if batch.carried {
            if link.head() > tip.head {
                return Err(format!("a carried batch of room {} that was never there", batch.room));
            }
            self.book.apply(&Effect::Carried(batch.room.clone(), placed));
            return Ok(());
        }
        let continues =
            link.after == tip.head && batch.before == tip.chain && (link.epoch, link.number) > last;
        if !continues {
            return Err(format!(
                "a batch of room {} that does not follow event {}",
                batch.room, tip.head
            ));
        }
        self.report.batches += 1;
        self.changes.absorb_batch(state, batch, chain);
        self.book.apply(&Effect::Batch(batch.room.clone(), placed));
        Ok(())
    }

    fn note(&mut self, note: &Note) {
        self.changes.absorb(&self.book.state, note);
        match note {
            Note::Trimmed { room, to } => self.book.apply(&Effect::Trimmed(room.clone(), *to)),
            Note::Removed { room } => self.book.apply(&Effect::Forgotten(room.clone())),
            _ => {}
        }
    }

    /// Every event that was not trimmed must be somewhere.
    fn check_tiling(&mut self, newest: u64) -> Result<(), OpenError> {
        let Book { state, logs, .. } = &mut self.book;
        for (name, room) in &state.rooms {
            let log = logs.entry(name.clone()).or_default();
            log.trim(room.trimmed_to);
            if let Some((after, to)) = log.missing(room.trimmed_to, room.tip.head) {
                let why = format!("room {name} lacks its events after {after} up to {to}");
                return Err(self.damaged(newest, 0, &why));
            }
        }
        Ok(())
    }

    fn damaged(&self, number: u64, at: u64, why: &str) -> OpenError {
        OpenError::Damaged { file: self.disk.shown(&segment::path(number)), at, why: why.into() }
    }
}

/// Whether a whole frame behind a broken place proves that the place was synced once.
pub(crate) fn was_synced(bytes: &[u8], broken: usize) -> bool {
    (broken + 1..bytes.len()).any(|at| {
        let here = &bytes[at..];
        record::plausible(here, at as u64)
            && record::frame(here).is_ok_and(|frame| frame.group > broken as u64)
    })
}
