//! Backup while running, and restore.
//!
//! Lives here: a copy of all sealed segments and of the snapshots that belong to them, with a list
//! of checksums; and making a data folder of it again.
//! Stays out: scheduling, and taking the copy off the machine.
//!
//! Order makes it consistent: first the snapshots are listed, then the active segment is sealed.
//! So every listed snapshot is covered by the sealed log. Files are pinned until the copy is done.

use std::{fmt, io, path::Path, path::PathBuf, sync::Arc};

use sha2::{Digest, Sha256};

use crate::{
    disk::{Disk, DiskFile, RealDisk, parent_of, write_whole},
    error::Error,
    file::{
        book::{Options, Shared, SnapshotAt, snapshot_dir},
        recover::RecoveryReport,
        segment,
        store::FileStore,
    },
    name::RoomName,
    seams::Seams,
};

/// The list of files with their checksums; written last, so a folder without it is no backup.
const LIST: &str = "BACKUP";
/// Epochs left out after a restore. The time that was lost had its own; tickets of that time must
/// not be taken for tickets of now. A room would have to change hands a thousand times in the lost
/// time to reach this.
pub const EPOCHS_LEFT_OUT: u32 = 1_000;
const COPY_BYTES: usize = 1 << 20;

/// What a backup holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackupReport {
    pub files: usize,
    pub bytes: u64,
    pub rooms: usize,
}

impl fmt::Display for BackupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rooms in {} files, {} bytes", self.rooms, self.files, self.bytes)
    }
}

/// Keeps every file where it is, as long as it lives.
pub(crate) struct Pinned<D: Disk> {
    shared: Arc<Shared<D>>,
    snapshots: Vec<(RoomName, SnapshotAt)>,
}

impl<D: Disk> Pinned<D> {
    pub fn new(shared: Arc<Shared<D>>) -> Pinned<D> {
        let mut book = shared.book_mut();
        book.pins += 1;
        let kept = book.snapshots.iter();
        let mut snapshots: Vec<(RoomName, SnapshotAt)> =
            kept.flat_map(|(room, kept)| kept.iter().map(|at| (room.clone(), *at))).collect();
        drop(book);
        snapshots.sort_by(|a, b| (&a.0, a.1.at).cmp(&(&b.0, b.1.at)));
        Pinned { shared, snapshots }
    }
}

impl<D: Disk> Drop for Pinned<D> {
    fn drop(&mut self) {
        self.shared.book_mut().pins -= 1;
    }
}

pub(crate) fn copy<D: Disk>(
    shared: &Arc<Shared<D>>,
    pinned: Pinned<D>,
    sealed: Vec<u64>,
    to: &Path,
) -> Result<BackupReport, Error> {
    let refused = |doing: &str, error: io::Error| {
        Error::refused(format!("cannot {doing} {}: {error}", shared.disk.shown(to)))
    };
    let disk = &*shared.disk;
    if !disk.list(to).map_err(|error| refused("list", error))?.is_empty() {
        return Err(Error::refused(format!("{} is not empty", disk.shown(to))));
    }
    let mut files: Vec<PathBuf> = sealed.into_iter().map(segment::path).collect();
    for (room, snapshot) in &pinned.snapshots {
        files.push(snapshot_dir(room).join(format!("{:020}.snap", snapshot.at.0)));
    }
    let mut report =
        BackupReport { rooms: shared.book().state.rooms.len(), ..BackupReport::default() };
    let mut list = String::new();
    let mut folders = Vec::new();
    for path in &files {
        let target = to.join(path);
        if !folders.contains(&parent_of(&target).to_path_buf()) {
            folders.push(parent_of(&target).to_path_buf());
            disk.create_dir(parent_of(&target)).map_err(|error| refused("make", error))?;
        }
        let (sum, len) =
            copy_file(disk, path, &target).map_err(|error| refused("copy to", error))?;
        list.push_str(&format!("{sum} {len} {}\n", path.display()));
        report.files += 1;
        report.bytes += len;
    }
    for folder in &folders {
        disk.sync_dir(folder).map_err(|error| refused("sync", error))?;
    }
    write_whole(disk, &to.join(LIST), list.as_bytes()).map_err(|error| refused("finish", error))?;
    drop(pinned);
    Ok(report)
}

/// Copies and syncs a file; returns its SHA-256 in hex and its length.
fn copy_file<D: Disk>(disk: &D, from: &Path, to: &Path) -> io::Result<(String, u64)> {
    let (source, target) = (disk.open(from)?, disk.create(to)?);
    let len = source.len()?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = 0;
    while offset < len {
        let part = &mut buffer[..COPY_BYTES.min((len - offset) as usize)];
        source.read_at(offset, part)?;
        target.write_at(offset, part)?;
        hasher.update(&*part);
        offset += part.len() as u64;
    }
    target.sync_data()?;
    let sum = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((sum, len))
}

/// Makes a data folder of a backup. `to` must be new or empty. Every checksum is compared, the
/// store is opened once to prove that it reads, and all epochs are raised.
pub fn restore(from: &Path, to: &Path) -> Result<RecoveryReport, String> {
    let from = std::path::absolute(from).map_err(|error| error.to_string())?;
    let disk = RealDisk::new(to);
    let shown = disk.shown(Path::new(""));
    if !disk
        .list(Path::new(""))
        .map_err(|error| format!("cannot list {shown}: {error}"))?
        .is_empty()
    {
        return Err(format!("{shown} is not empty; give a new folder"));
    }
    let list = std::fs::read_to_string(from.join(LIST))
        .map_err(|error| format!("{} is no finished backup: {error}", from.display()))?;
    for line in list.lines() {
        let mut fields = line.splitn(3, ' ');
        let (Some(sum), Some(_len), Some(path)) = (fields.next(), fields.next(), fields.next())
        else {
            return Err(format!("the list of the backup has a bad line: {line}"));
        };
        let path = Path::new(path);
        let inside = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !inside {
            return Err(format!("the list of the backup names a file outside: {line}"));
        }
        let copied = disk
            .create_dir(parent_of(path))
            .and_then(|()| copy_file(&disk, &from.join(path), path));
        let (found, _) =
            copied.map_err(|error| format!("cannot copy {}: {error}", path.display()))?;
        if found != sum {
            return Err(format!(
                "{} in the backup is damaged: its checksum is wrong",
                path.display()
            ));
        }
        disk.sync_dir(parent_of(path)).map_err(|error| error.to_string())?;
    }
    raise(disk)
}

/// Opens a folder once, raises its epochs, closes it in good order.
pub(crate) fn raise<D: Disk>(disk: D) -> Result<RecoveryReport, String> {
    let (store, report) = FileStore::inline(disk, Options::default(), Seams::real())
        .map_err(|error| error.to_string())?;
    // An inline store's futures are ready at once.
    let mut raised = std::pin::pin!(store.raise_epochs(EPOCHS_LEFT_OUT));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match raised.as_mut().poll(&mut context) {
        std::task::Poll::Ready(raised) => raised.map_err(|error| error.to_string())?,
        std::task::Poll::Pending => unreachable!("inline futures are ready at once"),
    }
    Ok(report)
}
