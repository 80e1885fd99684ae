//! One room in one file, to take elsewhere.
//!
//! Lives here: the portable format, writing it, and reading it with every check there is.
//! Stays out: the journal. An import goes through it like any other request.
//!
//! ```text
//! magic    8   "WRROOM01": the last two digits are the format version
//! item     …   kind u8, len u32, crc u32 of kind, len and body, body
//!   R  room:     name (u8 length, text), base head u64, base chain 32, tip head u64, highest epoch u32
//!   S  snapshot: at u64, chain 32; followed by its chunks. At most one, before the batches
//!   C  chunk:    bytes
//!   B  batch:    epoch u32, nonce u128, number u64, after u64, events u32, at_ms u64, payload
//!   E  end:      tip head u64, tip chain 32, batches u64
//! ```
//! Little-endian. The chain is recomputed batch by batch from the base and must end in the chain of
//! the end item, so a file that reads well is the room's log, whole and unaltered.

use std::{fmt, io, path::Path, sync::Arc};

use crate::{
    disk::{Disk, DiskFile, parent_of, temporary_of},
    error::Error,
    file::{book::Shared, snapshots},
    log::{Appended, Chain, Head, Link, Stored},
    name::RoomName,
    snapshot::Snapshot,
};

pub(super) const MAGIC: &[u8; 8] = b"WRROOM01";
const ITEM_HEAD: usize = 1 + 4 + 4;
const WRITE_BYTES: usize = 1 << 20;
pub(super) const READ_BYTES: usize = 1 << 20;

/// What a portable file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    pub room: RoomName,
    /// Where its log begins.
    pub base: Appended,
    /// Where it ends.
    pub tip: Appended,
    /// The highest epoch in it.
    pub epoch: u32,
    pub batches: u64,
    pub snapshot: Option<Head>,
}

/// What is wrong with a portable file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortableError {
    pub file: String,
    pub at: u64,
    pub why: String,
}

impl fmt::Display for PortableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.file, self.at, self.why)
    }
}

impl std::error::Error for PortableError {}

impl From<PortableError> for Error {
    fn from(error: PortableError) -> Error {
        Error::Damaged { why: error.to_string() }
    }
}

/// Writes a room to `to`. The room goes on meanwhile; should trimming overtake the export, it fails
/// and can be repeated.
pub(crate) fn export<D: Disk>(
    shared: &Arc<Shared<D>>,
    room: &RoomName,
    to: &Path,
) -> Result<Appended, Error> {
    let (trimmed_to, tip) = {
        let book = shared.book();
        let Some(known) = book.state.rooms.get(room) else {
            return Err(Error::refused(format!("there is no room {room}")));
        };
        (known.trimmed_to, known.tip)
    };
    let snapshot = if trimmed_to > Head::EMPTY { snapshots::latest(shared, room)? } else { None };
    let written = write(shared, room, trimmed_to, tip, snapshot, to);
    written.map_err(|error| match error {
        Writing::Store(error) => error,
        Writing::Io(error) => {
            let _ = shared.disk.remove(&temporary_of(to));
            Error::Refused { why: format!("cannot write {}: {error}", shared.disk.shown(to)) }
        }
    })?;
    Ok(tip)
}

enum Writing {
    Store(Error),
    Io(io::Error),
}

impl From<Error> for Writing {
    fn from(error: Error) -> Writing {
        Writing::Store(error)
    }
}

impl From<io::Error> for Writing {
    fn from(error: io::Error) -> Writing {
        Writing::Io(error)
    }
}

fn write<D: Disk>(
    shared: &Arc<Shared<D>>,
    room: &RoomName,
    trimmed_to: Head,
    tip: Appended,
    snapshot: Option<Snapshot>,
    to: &Path,
) -> Result<(), Writing> {
    shared.disk.create_dir(parent_of(to))?;
    let temporary = temporary_of(to);
    let _ = shared.disk.remove(&temporary);
    let mut out = Out { file: shared.disk.create(&temporary)?, buffer: MAGIC.to_vec(), offset: 0 };
    let mut batches = shared.read(room, trimmed_to, READ_BYTES)?;
    // The log begins at its first whole batch, which may hold events before the trim.
    let base = match (batches.first(), &snapshot) {
        (Some(first), _) => {
            Appended { head: first.after, chain: first_before(shared, room, first)? }
        }
        (None, Some(snapshot)) => Appended { head: snapshot.at, chain: snapshot.chain },
        (None, None) => tip,
    };
    let epoch = shared.book().state.rooms.get(room).map_or(0, |room| room.last.0);
    out.item(b'R', |body| write_room(body, room, base, tip.head, epoch))?;
    if let Some(snapshot) = snapshot.filter(|snapshot| snapshot.at <= tip.head) {
        out.item(b'S', |body| {
            body.extend_from_slice(&snapshot.at.0.to_le_bytes());
            body.extend_from_slice(&snapshot.chain.0);
        })?;
        for chunk in snapshot.chunks {
            out.item(b'C', |body| body.extend_from_slice(&chunk))?;
        }
    }
    let (mut reached, mut count) = (base, 0u64);
    while reached.head < tip.head {
        // The log may have gone on meanwhile; this export ends where it stood at the beginning.
        for stored in batches.into_iter().filter(|stored| stored.head <= tip.head) {
            out.item(b'B', |body| write_batch(body, &stored))?;
            reached = Appended { head: stored.head, chain: stored.chain };
            count += 1;
        }
        batches = shared.read(room, reached.head, READ_BYTES)?;
        if batches.is_empty() && reached.head < tip.head {
            return Err(Error::refused(format!("room {room} was removed meanwhile")).into());
        }
    }
    out.item(b'E', |body| write_end(body, tip, count))?;
    out.flush()?;
    out.file.sync_data()?;
    shared.disk.rename(&temporary, to)?;
    shared.disk.sync_dir(parent_of(to))?;
    Ok(())
}

pub(super) fn write_room(
    body: &mut Vec<u8>,
    room: &RoomName,
    base: Appended,
    tip: Head,
    epoch: u32,
) {
    body.push(room.as_str().len() as u8);
    body.extend_from_slice(room.as_str().as_bytes());
    body.extend_from_slice(&base.head.0.to_le_bytes());
    body.extend_from_slice(&base.chain.0);
    body.extend_from_slice(&tip.0.to_le_bytes());
    body.extend_from_slice(&epoch.to_le_bytes());
}

pub(super) fn write_end(body: &mut Vec<u8>, tip: Appended, count: u64) {
    body.extend_from_slice(&tip.head.0.to_le_bytes());
    body.extend_from_slice(&tip.chain.0);
    body.extend_from_slice(&count.to_le_bytes());
}

/// The chain before a batch: recorded with it, and not part of [`Stored`].
fn first_before<D: Disk>(
    shared: &Shared<D>,
    room: &RoomName,
    first: &Stored,
) -> Result<Chain, Error> {
    if first.after == Head::EMPTY {
        return Ok(Chain::START);
    }
    let found = shared.book().find(room, first.epoch, first.nonce, first.number);
    let found = found.map_err(|error| Error::Unavailable { why: error.to_string() })?;
    found
        .map(|found| found.before)
        .ok_or_else(|| Error::Unavailable { why: "trimmed meanwhile".into() })
}

pub(super) fn write_batch(body: &mut Vec<u8>, stored: &Stored) {
    body.extend_from_slice(&stored.epoch.to_le_bytes());
    body.extend_from_slice(&stored.nonce.to_le_bytes());
    body.extend_from_slice(&stored.number.to_le_bytes());
    body.extend_from_slice(&stored.after.0.to_le_bytes());
    body.extend_from_slice(&stored.events.to_le_bytes());
    body.extend_from_slice(&stored.at_ms.to_le_bytes());
    body.extend_from_slice(&stored.payload);
}

#[derive(Debug)]
pub(super) struct Out<F> {
    pub file: F,
    pub buffer: Vec<u8>,
    pub offset: u64,
}

impl<F: DiskFile> Out<F> {
    pub fn item(&mut self, kind: u8, body: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let start = self.buffer.len();
        self.buffer.push(kind);
        self.buffer.extend_from_slice(&[0; 8]);
        body(&mut self.buffer);
        let len = u32::try_from(self.buffer.len() - start - ITEM_HEAD)
            .map_err(|_| io::Error::other("a piece of 4 GiB or more"))?;
        self.buffer[start + 1..start + 5].copy_from_slice(&len.to_le_bytes());
        let crc = item_crc(kind, len, &self.buffer[start + ITEM_HEAD..]);
        self.buffer[start + 5..start + 9].copy_from_slice(&crc.to_le_bytes());
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.file.write_at(self.offset, &self.buffer)?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

fn item_crc(kind: u8, len: u32, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(&len.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// A portable file being read, batch by batch, each checked against the chain.
#[derive(Debug)]
pub struct Portable<F> {
    file: F,
    shown: String,
    len: u64,
    offset: u64,
    import: Import,
    reached: Appended,
    count: u64,
    snapshot: Option<Snapshot>,
    keep_chunks: bool,
    ended: bool,
}

impl<F: DiskFile> Portable<F> {
    /// Opens a file and reads as far as the room's name.
    pub fn open<D: Disk<File = F>>(disk: &D, path: &Path) -> Result<Portable<F>, PortableError> {
        let shown = disk.shown(path);
        let bad = |why: String| PortableError { file: shown.clone(), at: 0, why };
        let file = disk.open(path).map_err(|error| bad(error.to_string()))?;
        let len = file.len().map_err(|error| bad(error.to_string()))?;
        let mut magic = [0; 8];
        file.read_at(0, &mut magic).map_err(|_| bad("it is no exported room".into()))?;
        if &magic != MAGIC {
            return Err(bad("it is no exported room, or of another format version".into()));
        }
        let nowhere = Appended::default();
        let room = RoomName::system();
        let import =
            Import { room, base: nowhere, tip: nowhere, epoch: 0, batches: 0, snapshot: None };
        let mut portable = Portable {
            file,
            shown,
            len,
            offset: 8,
            import,
            reached: nowhere,
            count: 0,
            snapshot: None,
            keep_chunks: false,
            ended: false,
        };
        match portable.item()? {
            (b'R', body) => portable.room(&body).map_err(|why| portable.bad(why))?,
            _ => return Err(portable.bad("it does not begin with a room")),
        }
        Ok(portable)
    }

    pub fn import(&self) -> &Import {
        &self.import
    }

    /// The next batch, checked; `None` after the end item, which is checked too.
    pub fn next_batch(&mut self) -> Result<Option<Stored>, PortableError> {
        while !self.ended {
            let at = self.offset;
            let (kind, body) = self.item()?;
            let understood = match kind {
                b'B' => match self.batch(&body) {
                    Ok(stored) => return Ok(Some(stored)),
                    Err(why) => Err(why),
                },
                b'S' if self.count == 0 && self.import.snapshot.is_none() => self.snapshot(&body),
                b'C' if self.count == 0 && self.import.snapshot.is_some() => {
                    if let Some(snapshot) = self.snapshot.as_mut().filter(|_| self.keep_chunks) {
                        snapshot.chunks.push(body);
                    }
                    Ok(())
                }
                b'E' => self.end(&body),
                _ => Err("something that does not belong there"),
            };
            understood.map_err(|why| PortableError {
                file: self.shown.clone(),
                at,
                why: why.into(),
            })?;
        }
        Ok(None)
    }

    fn bad(&self, why: &str) -> PortableError {
        PortableError { file: self.shown.clone(), at: self.offset, why: why.into() }
    }

    fn item(&mut self) -> Result<(u8, Vec<u8>), PortableError> {
        let mut head = [0; ITEM_HEAD];
        self.file.read_at(self.offset, &mut head).map_err(|_| self.bad("it ends too early"))?;
        let len = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        if self.offset + (ITEM_HEAD as u64) + u64::from(len) > self.len {
            return Err(self.bad("it ends too early"));
        }
        let mut body = vec![0; len as usize];
        let start = self.offset + ITEM_HEAD as u64;
        self.file.read_at(start, &mut body).map_err(|error| self.bad(&error.to_string()))?;
        if item_crc(head[0], len, &body).to_le_bytes() != head[5..9] {
            return Err(self.bad("a checksum is wrong"));
        }
        self.offset = start + u64::from(len);
        Ok((head[0], body))
    }

    fn room(&mut self, body: &[u8]) -> Result<(), &'static str> {
        let bad = "a bad room item";
        let (&len, rest) = body.split_first().ok_or(bad)?;
        let (name, rest) = rest.split_at_checked(usize::from(len)).ok_or(bad)?;
        let rest: &[u8; 52] = rest.try_into().map_err(|_| bad)?;
        let name = std::str::from_utf8(name).map_err(|_| bad)?;
        let room = RoomName::parse_stored(name).map_err(|_| bad)?;
        let base = Appended { head: Head(u64_at(rest, 0)), chain: chain_at(rest, 8) };
        if base.head == Head::EMPTY && base.chain != Chain::START {
            return Err("an empty log with a chain");
        }
        // The tip's chain is known at the end.
        let tip = Appended { head: Head(u64_at(rest, 40)), chain: Chain::START };
        let epoch = u32::from_le_bytes(rest[48..52].try_into().expect("four bytes"));
        self.import = Import { room, base, tip, epoch, batches: 0, snapshot: None };
        self.reached = base;
        Ok(())
    }

    fn snapshot(&mut self, body: &[u8]) -> Result<(), &'static str> {
        let body: &[u8; 40] = body.try_into().map_err(|_| "a bad snapshot item")?;
        let (at, chain) = (Head(u64_at(body, 0)), chain_at(body, 8));
        self.import.snapshot = Some(at);
        self.snapshot = Some(Snapshot { at, chain, chunks: Vec::new(), passed_over: Vec::new() });
        Ok(())
    }

    fn batch(&mut self, body: &[u8]) -> Result<Stored, &'static str> {
        let (head, payload) = body.split_at_checked(48).ok_or("a bad batch item")?;
        let link = Link {
            epoch: u32::from_le_bytes(head[0..4].try_into().expect("four bytes")),
            nonce: u128::from_le_bytes(head[4..20].try_into().expect("sixteen bytes")),
            number: u64_at(head, 20),
            after: Head(u64_at(head, 28)),
            events: u32::from_le_bytes(head[36..40].try_into().expect("four bytes")),
        };
        let fits = link.after == self.reached.head
            && link.events > 0
            && link.epoch <= self.import.epoch
            && self.import.tip.head.0 - self.reached.head.0 >= u64::from(link.events);
        if !fits {
            return Err("a batch that does not follow the one before");
        }
        let chain = self.reached.chain.next(&self.import.room, &link, payload);
        self.reached = Appended { head: link.head(), chain };
        self.count += 1;
        if let Some(snapshot) = &self.snapshot
            && snapshot.at == self.reached.head
            && snapshot.chain != chain
        {
            return Err("the snapshot does not lie on the chain");
        }
        Ok(Stored {
            after: link.after,
            head: link.head(),
            epoch: link.epoch,
            nonce: link.nonce,
            number: link.number,
            events: link.events,
            at_ms: u64_at(head, 40),
            payload: payload.to_vec(),
            chain,
        })
    }

    fn end(&mut self, body: &[u8]) -> Result<(), &'static str> {
        let body: &[u8; 48] = body.try_into().map_err(|_| "a bad end item")?;
        let tip = Appended { head: Head(u64_at(body, 0)), chain: chain_at(body, 8) };
        if tip != self.reached || tip.head != self.import.tip.head || u64_at(body, 40) != self.count
        {
            return Err("the log does not end in the chain it should: something was altered");
        }
        if self.offset != self.len {
            return Err("there is something after the end");
        }
        self.import.tip = tip;
        self.import.batches = self.count;
        self.ended = true;
        Ok(())
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn chain_at(bytes: &[u8], at: usize) -> Chain {
    Chain(bytes[at..at + 32].try_into().expect("32 bytes"))
}

/// Reads a file from end to end and says what is in it.
pub fn check<D: Disk>(disk: &D, path: &Path) -> Result<Import, Error> {
    let mut portable = Portable::open(disk, path)?;
    while portable.next_batch()?.is_some() {}
    Ok(portable.import)
}

/// The snapshot in a file, if there is one.
pub fn snapshot<D: Disk>(disk: &D, path: &Path) -> Result<Option<Snapshot>, Error> {
    let mut portable = Portable::open(disk, path)?;
    portable.keep_chunks = true;
    // The snapshot comes before the batches: the first one ends the search.
    portable.next_batch()?;
    Ok(portable.snapshot)
}
