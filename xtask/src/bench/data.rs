//! Where benchmarks keep their data: `target/bench-data`, on a real filesystem.
//!
//! On tmpfs a sync costs nothing, so a journal would look a thousand times faster than it is;
//! there we refuse to measure.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::{Failure, OrFail, Outcome};
use crate::shell::root;

/// A folder of one benchmark, empty at the start and removed at the end.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
}

impl DataFolder {
    pub fn new(name: &str) -> Outcome<Self> {
        let all = root().join("target/bench-data");
        // Process id and count keep apart what runs at the same time, here and elsewhere: the
        // first to end removes its folder.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = all.join(format!("{name}-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).or_fail(|| format!("create {}", path.display()))?;
        let folder = Self { path };
        let kind = filesystem(&folder.path)?;
        if kind.forgets() {
            return Err(Failure::new(format!(
                "{} is on {}: figures of data in memory would mean nothing; \
                 put the repository on a disk",
                all.display(),
                kind.name()
            )));
        }
        eprintln!("data: target/bench-data, on {}", kind.name());
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it where it is, for somebody to look at.
    pub fn keep(self) -> PathBuf {
        let path = self.path.clone();
        std::mem::forget(self);
        path
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("note: {} could not be removed: {error}", self.path.display());
        }
    }
}

/// The kind of a filesystem, by the magic number that statfs(2) gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Filesystem(u64);

impl Filesystem {
    const TMPFS: Self = Self(0x0102_1994);
    const RAMFS: Self = Self(0x8584_58f6);

    fn forgets(self) -> bool {
        self == Self::TMPFS || self == Self::RAMFS
    }

    fn name(self) -> String {
        match self.0 {
            0xef53 => "ext4".into(),
            0x5846_5342 => "xfs".into(),
            0x9123_683e => "btrfs".into(),
            0x794c_7630 => "overlayfs".into(),
            0x2fc1_2fc1 => "zfs".into(),
            0x0102_1994 => "tmpfs".into(),
            0x8584_58f6 => "ramfs".into(),
            other => format!("a filesystem with magic number {other:#x}"),
        }
    }
}

fn filesystem(path: &Path) -> Outcome<Filesystem> {
    let facts = rustix::fs::statfs(path).or_fail(|| format!("statfs {}", path.display()))?;
    // Signed on some architectures; the magic number is its low 32 bits.
    Ok(Filesystem(facts.f_type as u64 & 0xffff_ffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_remembers_and_memory_does_not() {
        assert!(!Filesystem(0xef53).forgets());
        assert!(Filesystem::TMPFS.forgets() && Filesystem::RAMFS.forgets());
    }

    #[test]
    fn folders_are_apart_and_each_removes_only_itself() {
        let first = DataFolder::new("test").expect("target/ is on a disk");
        let second = DataFolder::new("test").expect("target/ is on a disk");
        let gone = first.path().to_owned();
        drop(first);
        assert!(!gone.exists() && second.path().is_dir());
    }

    #[test]
    fn the_kernels_own_tmpfs_is_recognised() {
        assert_eq!(filesystem(Path::new("/dev/shm")).map(Filesystem::forgets), Ok(true));
    }
}
