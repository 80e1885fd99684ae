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

fn read_header<F: DiskFile>(file: &F) -> Result<(u32, SnapshotAt), String> {
    let mut header = [0; HEADER];
    file.read_at(0, &mut header).map_err(|error| format!("its header cannot be read: {error}"))?;
    if &header[..8] != MAGIC {
        return Err("it is not a snapshot".into());
    }
    if crc32fast::hash(&header[..56]).to_le_bytes() != header[56..] {
        return Err("its header's checksum is wrong".into());
    }
    let version = u16::from_le_bytes([header[8], header[9]]);
    if version != VERSION {
        return Err(format!("it has format version {version}, this release reads {VERSION}"));
    }
    let removals = u32::from_le_bytes(header[12..16].try_into().expect("four bytes"));
    let at = Head(u64::from_le_bytes(header[16..24].try_into().expect("eight bytes")));
    let chain = Chain(header[24..56].try_into().expect("32 bytes"));
    Ok((removals, SnapshotAt { at, chain }))
}

/// Lists what is there when a store opens. Only headers are read; chunks are checked when a
/// snapshot is loaded. What cannot belong to a room of today is removed or set aside.
pub(crate) fn load<D: Disk>(disk: &D, book: &mut Book<D>) -> io::Result<Vec<String>> {
    let mut set_aside = Vec::new();
    for dir in disk.list(Path::new(SNAPSHOTS))? {
        let folder = Path::new(SNAPSHOTS).join(&dir);
        // A folder that is not named like a room is none of ours.
        let Ok(room) = RoomName::parse_stored(&dir) else { continue };
        let known = book.state.rooms.get(&room);
        let mut kept = Vec::new();
        for name in disk.list(&folder)? {
            let file = folder.join(&name);
            if name.ends_with(TEMPORARY) {
                disk.remove(&file)?;
                continue;
            }
            if !name.ends_with(SUFFIX) {
                continue;
            }
            let why = match (read_header(&disk.open(&file)?), known) {
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
                (Err(why), _) => why,
            };
            set_aside.push(format!("{}: {why}", disk.shown(&file)));
            aside(disk, &file)?;
        }
        kept.sort_by_key(|snapshot| snapshot.at);
        if !kept.is_empty() {
            book.snapshots.insert(room, kept);
        }
    }
    Ok(set_aside)
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

/// The newest snapshot that is whole. Damaged ones are set aside and named in the answer.
pub(crate) fn latest<D: Disk>(
    shared: &Shared<D>,
    room: &RoomName,
) -> Result<Option<Snapshot>, Error> {
    let mut passed_over = Vec::new();
    loop {
        let (newest, trimmed_to) = {
            let book = shared.book();
            let trimmed_to =
                book.state.rooms.get(room).map(|room| room.trimmed_to).unwrap_or_default();
            (book.newest_snapshot(room), trimmed_to)
        };
        let Some(newest) = newest else {
            if passed_over.is_empty() || trimmed_to == Head::EMPTY {
                return Ok(None);
            }
            return Err(Error::Damaged { why: passed_over.join("; ") });
        };
        if newest.at < trimmed_to {
            passed_over
                .push(format!("the log after {} was trimmed, up to {trimmed_to}", newest.at));
            return Err(Error::Damaged { why: passed_over.join("; ") });
        }
        let path = path(room, newest.at);
        let why = match read(&*shared.disk, &path, newest) {
            Ok(chunks) => {
                return Ok(Some(Snapshot {
                    at: newest.at,
                    chain: newest.chain,
                    chunks,
                    passed_over,
                }));
            }
            Err(why) => format!("{}: {why}", shared.disk.shown(&path)),
        };
        shared.alarm(format!("a snapshot is damaged and was set aside: {why}"));
        passed_over.push(why);
        let _ = aside(&*shared.disk, &path);
        if let Some(kept) = shared.book_mut().snapshots.get_mut(room) {
            kept.retain(|kept| *kept != newest);
        }
    }
}

/// Chunk by chunk, so that a large snapshot is in memory once.
pub(crate) fn read<D: Disk>(
    disk: &D,
    path: &Path,
    expected: SnapshotAt,
) -> Result<Vec<Vec<u8>>, String> {
    let file = disk.open(path).map_err(|error| error.to_string())?;
    let (_, found) = read_header(&file)?;
    if found != expected {
        return Err("it is another snapshot than its name says".into());
    }
    let file_len = file.len().map_err(|error| error.to_string())?;
    let mut chunks = Vec::new();
    let mut offset = HEADER as u64;
    let cut = |error: io::Error| format!("it ends too early: {error}");
    loop {
        let mut head = [0; 8];
        file.read_at(offset, &mut head).map_err(cut)?;
        offset += 8;
        let len = [head[0], head[1], head[2], head[3]];
        let crc = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        if len == END.to_le_bytes() {
            let mut count = [0; 8];
            file.read_at(offset, &mut count).map_err(cut)?;
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
        file.read_at(offset, &mut chunk).map_err(cut)?;
        if chunk_crc(&len, &chunk) != crc {
            return Err(format!("chunk {} has a wrong checksum", chunks.len()));
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
        let header = shared.disk.open(&path).map_err(|error| error.to_string());
        if header.and_then(|file| read_header(&file)).is_ok_and(|(found, _)| found < removals) {
            let _ = shared.disk.remove(&path);
        }
    }
}
