//! The seam to the disk: everything the file store asks of a filesystem.
//!
//! Lives here: the traits [`Disk`] and [`DiskFile`], and [`RealDisk`], which is `std::fs`.
//! Stays out: what is written. [`crate::sim_disk`] is the other disk, which forgets what was not
//! synced; the file store must not be able to tell them apart before the power goes.
//!
//! The rules the file store relies on, and no others: bytes are durable after `sync_data`, names
//! after `sync_dir` of their folder; until then they may be there, in part, or not at all.

use std::{
    fmt,
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// A filesystem. Paths are relative to the disk's root; an absolute path stands for itself.
pub trait Disk: Send + Sync + 'static {
    type File: DiskFile;
    /// Held as long as the store is open; dropping it unlocks.
    type Lock: Send + Sync + 'static;

    /// A new, empty file; an error if the name is taken.
    fn create(&self, path: &Path) -> io::Result<Self::File>;
    fn open(&self, path: &Path) -> io::Result<Self::File>;
    /// Gives a file another name, over whatever had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Names in a folder, sorted; a folder that is not there has none.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Makes a folder and those above it, durably.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Takes the lock, or tells who has it.
    fn lock(&self, path: &Path) -> Result<Self::Lock, Locked>;
    /// The path as an operator should read it.
    fn shown(&self, path: &Path) -> String;
}

/// An open file. Shared by readers and one writer, so offsets are explicit.
pub trait DiskFile: Send + Sync + 'static {
    /// All of it, or an error after which any part may be there.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Exactly as many bytes as asked for, or an error.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
    fn sync_data(&self) -> io::Result<()>;
    fn truncate(&self, len: u64) -> io::Result<()>;
    fn len(&self) -> io::Result<u64>;
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// Why a lock could not be had.
#[derive(Debug)]
pub enum Locked {
    /// Another process has it; its id, when the lock file tells.
    By(Option<u32>),
    Io(io::Error),
}

/// Reads a file whole.
pub(crate) fn read_all<F: DiskFile>(file: &F) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; file.len()? as usize];
    file.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// Reads a span of a file.
pub(crate) fn read_span<F: DiskFile>(file: &F, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; (end - start) as usize];
    file.read_at(start, &mut bytes)?;
    Ok(bytes)
}

/// Writes a whole small file so that it is there after a crash, under its name or not at all:
/// under a temporary name first, synced, then renamed, then the folder synced.
pub(crate) fn write_whole<D: Disk>(disk: &D, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary_of(path);
    let _ = disk.remove(&temporary);
    let file = disk.create(&temporary)?;
    file.write_at(0, bytes)?;
    file.sync_data()?;
    disk.rename(&temporary, path)?;
    disk.sync_dir(parent_of(path))
}

/// The name a file has while it is being written. Opening a store removes left-over ones.
pub(crate) fn temporary_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(TEMPORARY);
    name.into()
}

pub(crate) const TEMPORARY: &str = ".tmp";

pub(crate) fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// A folder of the real filesystem.
#[derive(Debug, Clone)]
pub struct RealDisk {
    root: PathBuf,
}

impl RealDisk {
    pub fn new(root: impl Into<PathBuf>) -> RealDisk {
        RealDisk { root: root.into() }
    }

    fn at(&self, path: &Path) -> PathBuf {
        self.root.join(path)
    }
}

impl Disk for RealDisk {
    type File = RealFile;
    type Lock = RealLock;

    fn create(&self, path: &Path) -> io::Result<RealFile> {
        OpenOptions::new().read(true).write(true).create_new(true).open(self.at(path)).map(RealFile)
    }

    fn open(&self, path: &Path) -> io::Result<RealFile> {
        OpenOptions::new().read(true).write(true).open(self.at(path)).map(RealFile)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let path = self.at(path);
        if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.at(dir)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            // A name that is not UTF-8 is none of ours.
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = self.at(dir);
        let ancestors = dir.ancestors().filter(|above| !above.as_os_str().is_empty());
        let mut missing: Vec<&Path> = ancestors.take_while(|above| !above.exists()).collect();
        while let Some(next) = missing.pop() {
            match fs::create_dir(next) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made?,
            }
            if let Some(above) = next.parent().filter(|above| !above.as_os_str().is_empty()) {
                File::open(above)?.sync_all()?;
            }
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(self.at(dir))?.sync_all()
    }

    fn lock(&self, path: &Path) -> Result<RealLock, Locked> {
        let path = self.at(path);
        let open =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = open.map_err(Locked::Io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).ok();
                return Err(Locked::By(holder.and_then(|text| text.trim().parse().ok())));
            }
            Err(TryLockError::Error(error)) => return Err(Locked::Io(error)),
        }
        // Only a help for whoever is turned away; the lock itself is the kernel's.
        let pid = format!("{}\n", std::process::id());
        file.set_len(0).and_then(|()| file.write_all_at(pid.as_bytes(), 0)).map_err(Locked::Io)?;
        Ok(RealLock { _file: file })
    }

    fn shown(&self, path: &Path) -> String {
        self.at(path).display().to_string()
    }
}

/// An open file of the real filesystem.
#[derive(Debug)]
pub struct RealFile(File);

impl DiskFile for RealFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(into, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

/// The kernel lets go of the lock when the process ends, however it ends.
pub struct RealLock {
    _file: File,
}

impl fmt::Debug for RealLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RealLock")
    }
}
