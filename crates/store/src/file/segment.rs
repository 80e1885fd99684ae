//! Segments: the journal's files.
//!
//! Lives here: their names, their header, and how one is made so that it is either not there or
//! begins with a whole header and checkpoint.
//! Stays out: what comes after the checkpoint.
//!
//! ```text
//! magic    8   "WRJOURNL"
//! version  u16 1
//! spare    u16 0
//! crc      u32 CRC-32 of magic, version, spare, number
//! number   u64 also in the file's name; segments are numbered without a gap
//! ```
//! A segment is written under a temporary name first. So a file under its final name whose header
//! or checkpoint is broken was damaged; it is never an interrupted beginning.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{
    disk::{Disk, DiskFile, temporary_of},
    file::{record, state::State},
};

pub(crate) const DIR: &str = "journal";
pub(crate) const VERSION: u16 = 1;
pub(crate) const HEADER: usize = 24;
const MAGIC: &[u8; 8] = b"WRJOURNL";
const SUFFIX: &str = ".seg";

pub(crate) fn path(number: u64) -> PathBuf {
    Path::new(DIR).join(name(number))
}

pub(crate) fn name(number: u64) -> String {
    format!("{number:020}{SUFFIX}")
}

pub(crate) fn number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX).filter(|digits| digits.len() == 20)?;
    digits.parse().ok()
}

/// Why a header is not one of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadHeader {
    Broken(&'static str),
    Version(u16),
}

pub(crate) fn header(number: u64) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..10].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&number.to_le_bytes());
    let crc = header_crc(&header);
    header[12..16].copy_from_slice(&crc.to_le_bytes());
    header
}

fn header_crc(header: &[u8; HEADER]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&header[..12]);
    hasher.update(&header[16..]);
    hasher.finalize()
}

pub(crate) fn check_header(bytes: &[u8], number: u64) -> Result<(), BadHeader> {
    let Some(header) = bytes.first_chunk::<HEADER>() else {
        return Err(BadHeader::Broken("the file ends within its header"));
    };
    if &header[..8] != MAGIC {
        return Err(BadHeader::Broken("this is not a journal segment"));
    }
    if header_crc(header).to_le_bytes() != header[12..16] {
        return Err(BadHeader::Broken("the header's checksum is wrong"));
    }
    let version = u16::from_le_bytes([header[8], header[9]]);
    if version != VERSION {
        return Err(BadHeader::Version(version));
    }
    if header[16..24] != number.to_le_bytes() {
        return Err(BadHeader::Broken("the header names another segment than the file's name"));
    }
    Ok(())
}

/// Makes a segment that begins with `state`, durably, and returns it with its length.
pub(crate) fn create<D: Disk>(disk: &D, number: u64, state: &State) -> io::Result<(D::File, u64)> {
    let mut bytes = header(number).to_vec();
    record::write_checkpoint(&mut bytes, HEADER as u64, state);
    let file = install(disk, number, |file| file.write_at(0, &bytes))?;
    Ok((file, bytes.len() as u64))
}

/// Puts a synced copy of the first `len` bytes of a segment in its place. Afterwards nothing that
/// was beyond can come back, and everything before is on the disk for certain: a file whose sync
/// failed once cannot be trusted again, however often it is synced.
pub(crate) fn replace<D: Disk>(
    disk: &D,
    number: u64,
    from: &D::File,
    len: u64,
) -> io::Result<D::File> {
    const STEP: u64 = 1 << 20;
    install(disk, number, |file| {
        let mut buffer = vec![0; STEP.min(len) as usize];
        let mut offset = 0;
        while offset < len {
            let part = &mut buffer[..STEP.min(len - offset) as usize];
            from.read_at(offset, part)?;
            file.write_at(offset, part)?;
            offset += part.len() as u64;
        }
        Ok(())
    })
}

fn install<D: Disk>(
    disk: &D,
    number: u64,
    fill: impl FnOnce(&D::File) -> io::Result<()>,
) -> io::Result<D::File> {
    let path = path(number);
    let temporary = temporary_of(&path);
    match disk.remove(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = disk.create(&temporary)?;
    let filled = fill(&file).and_then(|()| file.sync_data());
    if let Err(error) = filled {
        // On a full disk the space is needed; if this fails too, opening cleans up.
        let _ = disk.remove(&temporary);
        return Err(error);
    }
    disk.rename(&temporary, &path)?;
    disk.sync_dir(Path::new(DIR))?;
    Ok(file)
}

/// Whether a segment cut at `at` would not even have its checkpoint.
pub(crate) fn ends_in_checkpoint<F: DiskFile>(file: &F, at: u64) -> bool {
    let Ok(bytes) = crate::disk::read_span(file, HEADER as u64, at) else { return true };
    record::frame(&bytes).is_err()
}
