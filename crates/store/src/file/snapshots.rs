//! Snapshot files.
//!
//! Lives here: writing one without stopping the room, reading the newest whole one, keeping two.
//! Stays out: the journal, which knows nothing of snapshots except how far trimming may go.
//!
//! `snapshots/<room>/<head, 20 digits>.snap`, written under a temporary name, synced, renamed:
//! ```text
//! magic    8    "WRSNAPSH"
//! version  u16  1
//! spare    u16  0
//! removals u32  how often a room of this name had been removed: an older one is not ours
//! at       u64
//! chain    32
//! crc      u32  of everything above
//! chunk    …    len u32, crc u32 of len and bytes, bytes
//! end      …    len u32::MAX, crc u32 of the count, count u64
//! ```

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{
    disk::{Disk, DiskFile, TEMPORARY, parent_of, temporary_of},
    error::Error,
    file::book::{Book, SNAPSHOTS, Shared, SnapshotAt, snapshot_dir},
    log::{Chain, Head},
    name::RoomName,
    snapshot::Snapshot,
};

const MAGIC: &[u8; 8] = b"WRSNAPSH";
const VERSION: u16 = 1;
const HEADER: usize = 8 + 2 + 2 + 4 + 8 + 32 + 4;
const END: u32 = u32::MAX;
const SUFFIX: &str = ".snap";
const SET_ASIDE: &str = ".damaged";
/// The newest, and one to fall back to.
const KEPT: usize = 2;
/// Chunks are gathered to writes of about this size.
const WRITE_BYTES: usize = 1 << 20;

fn path(room: &RoomName, at: Head) -> PathBuf {
    snapshot_dir(room).join(format!("{:020}{SUFFIX}", at.0))
}

fn header(removals: u32, snapshot: SnapshotAt) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..10].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&removals.to_le_bytes());
    header[16..24].copy_from_slice(&snapshot.at.0.to_le_bytes());
    header[24..56].copy_from_slice(&snapshot.chain.0);
    let crc = crc32fast::hash(&header[..56]);
    header[56..].copy_from_slice(&crc.to_le_bytes());
    header
}

fn read_header<F: DiskFile>(file: &F) -> Result<(u32, SnapshotAt), Unread> {
    let mut header = [0; HEADER];
    file.read_at(0, &mut header).map_err(Unread::cut("its header is cut off"))?;
    if &header[..8] != MAGIC {
        return Err("it is not a snapshot".into());
    }
    if crc32fast::hash(&header[..56]).to_le_bytes() != header[56..] {
        return Err("its header's checksum is wrong".into());
    }
    let version = u16::from_le_bytes([header[8], header[9]]);
    if version != VERSION {
        return Err(format!("it has format version {version}, this release reads {VERSION}").into());
    }
    let removals = u32::from_le_bytes(header[12..16].try_into().expect("four bytes"));
    let at = Head(u64::from_le_bytes(header[16..24].try_into().expect("eight bytes")));
    let chain = Chain(header[24..56].try_into().expect("32 bytes"));
    Ok((removals, SnapshotAt { at, chain }))
}

/// Lists what is there when a store opens. Only headers are read; chunks are checked when a
/// snapshot is loaded. What cannot belong to a room of today is removed or set aside. What the disk
/// does not hand out stays: it is looked for again when its room needs it, and keeps no other room
/// from being opened.
pub(crate) fn load<D: Disk>(disk: &D, book: &mut Book<D>) -> io::Result<Vec<String>> {
    let mut unusable = Vec::new();
    for dir in disk.list(Path::new(SNAPSHOTS))? {
        let folder = Path::new(SNAPSHOTS).join(&dir);
        // A folder that is not named like a room is none of ours.
        let Ok(room) = RoomName::parse_stored(&dir) else { continue };
        let known = book.state.rooms.get(&room);
        let mut kept = Vec::new();
        let names = disk.list(&folder).unwrap_or_else(|error| {
            unusable.push(format!("{}: it cannot be listed: {error}", disk.shown(&folder)));
            Vec::new()
        });
        for name in names {
            let file = folder.join(&name);
            if name.ends_with(TEMPORARY) {
                disk.remove(&file)?;
                continue;
            }
            if !name.ends_with(SUFFIX) {
                continue;
            }
            let header = disk.open(&file).map_err(Unread::from);
            let why = match (header.and_then(|file| read_header(&file)), known) {
                (Ok((_, snapshot)), Some(known)) if snapshot.at > known.tip.head => {
                    format!("it is ahead of the log, which ends at {}", known.tip.head)
                }
                (Ok((removals, snapshot)), Some(_))
                    if removals == book.state.incarnation(&room) =>
                {
                    kept.push(snapshot);
                    continue;
                }
                // Of a room that was removed: removing it was interrupted.
                (Ok(_), _) => {
                    disk.remove(&file)?;
                    continue;
                }
                (Err(unread @ Unread::Away(_)), _) => {
                    unusable.push(format!("{}: {}", disk.shown(&file), unread.why()));
                    continue;
                }
                (Err(unread), _) => unread.why(),
            };
            unusable.push(format!("{}: {why}", disk.shown(&file)));
            aside(disk, &file)?;
        }
        kept.sort_by_key(|snapshot| snapshot.at);
        if !kept.is_empty() {
            book.snapshots.insert(room, kept);
        }
    }
    Ok(unusable)
}

fn aside<D: Disk>(disk: &D, file: &Path) -> io::Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(SET_ASIDE);
    disk.rename(file, Path::new(&name))?;
    disk.sync_dir(parent_of(file))
}

/// Writes a snapshot and keeps it. Runs beside the commit thread; the room goes on meanwhile.
pub(crate) fn take<D: Disk>(
    shared: &Shared<D>,
    room: &RoomName,
    snapshot: SnapshotAt,
    chunks: impl Iterator<Item = Vec<u8>>,
) -> Result<(), Error> {
    check_on_chain(shared, room, snapshot)?;
    let removals = shared.book().state.incarnation(room);
    let path = path(room, snapshot.at);
    write(&*shared.disk, &path, removals, snapshot, chunks).map_err(|error| {
        // A half-written one has a temporary name and is removed at the next opening at the latest.
        let _ = shared.disk.remove(&temporary_of(&path));
        Error::Refused { why: format!("cannot write {}: {error}", shared.disk.shown(&path)) }
    })?;
    let surplus = {
        let mut book = shared.book_mut();
        let same_room =
            book.state.rooms.contains_key(room) && book.state.incarnation(room) == removals;
        if !same_room {
            drop(book);
            let _ = shared.disk.remove(&path);
            return Err(Error::refused(format!("room {room} was removed meanwhile")));
        }
        let pinned = book.pins > 0;
        let kept = book.snapshots.entry(room.clone()).or_default();
        kept.retain(|kept| kept.at != snapshot.at);
        kept.push(snapshot);
        kept.sort_by_key(|kept| kept.at);
        let surplus = if pinned { 0 } else { kept.len().saturating_sub(KEPT) };
        kept.drain(..surplus).collect::<Vec<_>>()
    };
    for old in surplus {
        // One that stays for a while costs space, nothing else; the next opening lists it again.
        let _ = shared.disk.remove(&self::path(room, old.at));
    }
    Ok(())
}

fn check_on_chain<D: Disk>(
    shared: &Shared<D>,
    room: &RoomName,
    snapshot: SnapshotAt,
) -> Result<(), Error> {
    let elsewhere = || {
        Error::refused(format!(
            "head {} with chain {} is not in the log",
            snapshot.at, snapshot.chain
        ))
    };
    {
        let book = shared.book();
        let Some(known) = book.state.rooms.get(room) else {
            return Err(Error::refused(format!("there is no room {room}")));
        };
        let newest = book.newest_snapshot(room);
        if let Some(newest) = newest.filter(|newest| snapshot.at < newest.at) {
            return Err(Error::refused(format!("there is a snapshot at {} already", newest.at)));
        }
        let tip = SnapshotAt { at: known.tip.head, chain: known.tip.chain };
        if snapshot.at == Head::EMPTY {
            return Err(elsewhere());
        }
        if snapshot == tip || newest == Some(snapshot) {
            return Ok(());
        }
    }
    let batch = match shared.read(room, Head(snapshot.at.0 - 1), 0) {
        Err(Error::Trimmed { .. }) => return Err(elsewhere()),
        batch => batch?,
    };
    let on_chain = batch
        .first()
        .is_some_and(|stored| stored.head == snapshot.at && stored.chain == snapshot.chain);
    if on_chain { Ok(()) } else { Err(elsewhere()) }
}

fn write<D: Disk>(
    disk: &D,
    path: &Path,
    removals: u32,
    snapshot: SnapshotAt,
    chunks: impl Iterator<Item = Vec<u8>>,
) -> io::Result<()> {
    disk.create_dir(parent_of(path))?;
    let temporary = temporary_of(path);
    let _ = disk.remove(&temporary);
    let file = disk.create(&temporary)?;
    let mut buffer = header(removals, snapshot).to_vec();
    let mut offset = 0;
    let mut count = 0u64;
    for chunk in chunks {
        let len = u32::try_from(chunk.len()).ok().filter(|len| *len != END);
        let len = len.ok_or_else(|| io::Error::other("a chunk of 4 GiB or more"))?.to_le_bytes();
        buffer.extend_from_slice(&len);
        buffer.extend_from_slice(&chunk_crc(&len, &chunk).to_le_bytes());
        buffer.extend_from_slice(&chunk);
        count += 1;
        if buffer.len() >= WRITE_BYTES {
            file.write_at(offset, &buffer)?;
            offset += buffer.len() as u64;
            buffer.clear();
        }
    }
    buffer.extend_from_slice(&END.to_le_bytes());
    buffer.extend_from_slice(&crc32fast::hash(&count.to_le_bytes()).to_le_bytes());
    buffer.extend_from_slice(&count.to_le_bytes());
    file.write_at(offset, &buffer)?;
    file.sync_data()?;
    disk.rename(&temporary, path)?;
    disk.sync_dir(parent_of(path))
}

fn chunk_crc(len: &[u8; 4], bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(len);
    hasher.update(bytes);
    hasher.finalize()
}

/// The newest snapshot that is whole. Damaged ones are set aside and named in the answer; those that
/// the disk does not hand out stay where they are, because that may pass.
pub(crate) fn latest<D: Disk>(
    shared: &Shared<D>,
    room: &RoomName,
) -> Result<Option<Snapshot>, Error> {
    let mut passed_over = Vec::new();
    let mut tried = Vec::new();
    let mut looked_again = false;
    loop {
        let (next, trimmed_to) = {
            let book = shared.book();
            let trimmed_to =
                book.state.rooms.get(room).map(|room| room.trimmed_to).unwrap_or_default();
            let kept = book.snapshots.get(room).into_iter().flatten().rev();
            let next = kept.filter(|it| it.at >= trimmed_to).find(|it| !tried.contains(*it));
            (next.copied(), trimmed_to)
        };
        let Some(next) = next else {
            if trimmed_to == Head::EMPTY {
                return Ok(None);
            }
            // Somebody may have put one back since the store was opened.
            if !looked_again && look_again(shared, room) {
                looked_again = true;
                continue;
            }
            passed_over.push(format!(
                "the log up to event {trimmed_to} was trimmed, and no snapshot that reaches there \
                 can be read from {}",
                shared.disk.shown(&snapshot_dir(room))
            ));
            return Err(Error::Damaged { why: passed_over.join("; ") });
        };
        let path = path(room, next.at);
        let unread = match read(&*shared.disk, &path, next) {
            Ok(chunks) => {
                return Ok(Some(Snapshot { at: next.at, chain: next.chain, chunks, passed_over }));
            }
            Err(unread) => unread,
        };
        let why = format!("{}: {}", shared.disk.shown(&path), unread.why());
        tried.push(next);
        if let Unread::Damaged(_) = unread {
            shared.alarm(format!("a snapshot is damaged and was set aside: {why}"));
            let _ = aside(&*shared.disk, &path);
            if let Some(kept) = shared.book_mut().snapshots.get_mut(room) {
                kept.retain(|kept| *kept != next);
            }
        }
        passed_over.push(why);
    }
}

/// Takes note of whole-looking snapshots of a room that were not there, or could not be read, when
/// the store was opened. Says whether there are any.
fn look_again<D: Disk>(shared: &Shared<D>, room: &RoomName) -> bool {
    let dir = snapshot_dir(room);
    let names = shared.disk.list(&dir).unwrap_or_default();
    let mut found = Vec::new();
    for name in names.iter().filter(|name| name.ends_with(SUFFIX)) {
        let file = shared.disk.open(&dir.join(name)).map_err(Unread::from);
        found.extend(file.and_then(|file| read_header(&file)).ok());
    }
    let mut book = shared.book_mut();
    let Some(head) = book.state.rooms.get(room).map(|known| known.tip.head) else { return false };
    let removals = book.state.incarnation(room);
    let kept = book.snapshots.entry(room.clone()).or_default();
    let before = kept.len();
    for (of, snapshot) in found {
        if of == removals && snapshot.at <= head && !kept.contains(&snapshot) {
            kept.push(snapshot);
        }
    }
    kept.sort_by_key(|snapshot| snapshot.at);
    kept.len() > before
}

/// Why a snapshot cannot be used.
#[derive(Debug)]
pub(crate) enum Unread {
    /// Its bytes are not what was written.
    Damaged(String),
    /// The disk did not hand it out.
    Away(io::Error),
}

impl Unread {
    fn why(&self) -> String {
        match self {
            Unread::Damaged(why) => why.clone(),
            Unread::Away(error) => format!("it cannot be read: {error}"),
        }
    }

    /// A file that ends before it should was damaged; any other error is the disk's.
    fn cut(what: &str) -> impl Fn(io::Error) -> Unread {
        move |error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Unread::Damaged(format!("{what}: {error}")),
            _ => Unread::Away(error),
        }
    }
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Unread {
        Unread::Away(error)
    }
}

impl From<String> for Unread {
    fn from(why: String) -> Unread {
        Unread::Damaged(why)
    }
}

impl From<&str> for Unread {
    fn from(why: &str) -> Unread {
        Unread::Damaged(why.into())
    }
}

/// Chunk by chunk, so that a large snapshot is in memory once.
pub(crate) fn read<D: Disk>(
    disk: &D,
    path: &Path,
    expected: SnapshotAt,
) -> Result<Vec<Vec<u8>>, Unread> {
    let file = disk.open(path)?;
    let (_, found) = read_header(&file)?;
    if found != expected {
        return Err("it is another snapshot than its name says".into());
    }
    let file_len = file.len()?;
    let mut chunks = Vec::new();
    let mut offset = HEADER as u64;
    let cut = Unread::cut("it ends too early");
    loop {
        let mut head = [0; 8];
        file.read_at(offset, &mut head).map_err(&cut)?;
        offset += 8;
        let len = [head[0], head[1], head[2], head[3]];
        let crc = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        if len == END.to_le_bytes() {
            let mut count = [0; 8];
            file.read_at(offset, &mut count).map_err(&cut)?;
            let whole = crc32fast::hash(&count) == crc
                && u64::from_le_bytes(count) == chunks.len() as u64
                && offset + 8 == file_len;
            return if whole { Ok(chunks) } else { Err("its end is wrong".into()) };
        }
        let chunk_len = u64::from(u32::from_le_bytes(len));
        if offset + chunk_len > file_len {
            return Err("a chunk reaches beyond the end".into());
        }
        let mut chunk = vec![0; chunk_len as usize];
        file.read_at(offset, &mut chunk).map_err(&cut)?;
        if chunk_crc(&len, &chunk) != crc {
            return Err(format!("chunk {} has a wrong checksum", chunks.len()).into());
        }
        offset += chunk_len;
        chunks.push(chunk);
    }
}

/// Takes a removed room's snapshots away, but not those of a new room of the same name.
pub(crate) fn forget<D: Disk>(shared: &Shared<D>, room: &RoomName) {
    let dir = snapshot_dir(room);
    let removals = shared.book().state.incarnation(room);
    // What cannot be removed now is recognised at the next opening.
    for name in shared.disk.list(&dir).unwrap_or_default() {
        let path = dir.join(name);
        let header = shared.disk.open(&path).map_err(Unread::from);
        if header.and_then(|file| read_header(&file)).is_ok_and(|(found, _)| found < removals) {
            let _ = shared.disk.remove(&path);
        }
    }
}
