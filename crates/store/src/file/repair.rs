//! Repair: going on without what is damaged, when a person decided so.
//!
//! Lives here: [`cut`], which ends the journal before a damaged place.
//! Stays out: deciding. Nothing here runs by itself; it loses what was acknowledged.

use std::{fmt, path::Path};

use crate::{
    disk::{Disk, RealDisk, parent_of},
    file::{backup::raise, recover::RecoveryReport, segment},
};

/// Where the damaged files go, inside the data folder.
const ASIDE: &str = "damaged";

/// What a cut did.
#[derive(Debug)]
pub struct CutReport {
    /// Segments that were moved aside whole, in order; the first is also kept up to the cut.
    pub moved: Vec<String>,
    /// How the store opened afterwards.
    pub opened: RecoveryReport,
}

impl fmt::Display for CutReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "moved aside: {}\nopened: {}", self.moved.join(", "), self.opened)
    }
}

/// Ends the journal in `dir` at byte `at` of segment `number`. The damaged segment and all after it
/// are moved to `damaged/`; what was good of it stays. Epochs are raised as after a restore, because
/// the events behind the cut are lost as if they had never been.
pub fn cut(dir: &Path, number: u64, at: u64) -> Result<CutReport, String> {
    let disk = RealDisk::new(dir);
    let failed = |what: &str, error: std::io::Error| format!("cannot {what}: {error}");
    let _lock = disk
        .lock(Path::new(crate::file::book::LOCK))
        .map_err(|locked| format!("the data folder is in use: {locked:?}"))?;
    let journal = Path::new(segment::DIR);
    let names = disk.list(journal).map_err(|error| failed("list the journal", error))?;
    let after: Vec<u64> =
        names.iter().filter_map(|name| segment::number(name)).filter(|n| *n >= number).collect();
    if after.first() != Some(&number) {
        return Err(format!("there is no segment {number}"));
    }
    disk.create_dir(Path::new(ASIDE)).map_err(|error| failed("make damaged/", error))?;
    let mut moved = Vec::new();
    // Newest first: if this is interrupted, the journal still has no gap.
    for n in after.iter().rev() {
        let aside = Path::new(ASIDE).join(segment::name(*n));
        let path = segment::path(*n);
        disk.rename(&path, &aside).map_err(|error| failed("move a segment aside", error))?;
        disk.sync_dir(Path::new(ASIDE))
            .and_then(|()| disk.sync_dir(journal))
            .map_err(|e| failed("sync", e))?;
        moved.insert(0, disk.shown(&aside));
    }
    let damaged = disk
        .open(&Path::new(ASIDE).join(segment::name(number)))
        .map_err(|error| failed("open the damaged segment", error))?;
    if at > segment::HEADER as u64 && !segment::ends_in_checkpoint(&damaged, at) {
        segment::replace(&disk, number, &damaged, at)
            .map_err(|error| failed("keep its good part", error))?;
        disk.sync_dir(parent_of(&segment::path(number))).map_err(|error| failed("sync", error))?;
    }
    drop(_lock);
    let opened = raise(disk)?;
    Ok(CutReport { moved, opened })
}
