//! A disk in memory that forgets what was not synced, from a seed.
//!
//! Lives here: [`SimDisk`]. It keeps what programs see apart from what is on the platter. A crash
//! keeps, of each file's unsynced writes, nothing, a part torn at any byte, any set of 4 KiB pages,
//! or everything; of each folder's unsynced names, a beginning. It can run full, fail to sync, and
//! lose power at a chosen operation.
//! Stays out: time. Operations take none; the hook lets a simulator charge for them.
//!
//! A sync that failed behaves as Linux does: the pages count as clean afterwards, programs still
//! read them, a later sync says all is well, and a crash shows that they never arrived. A store
//! that tries the sync again instead of giving the file up loses data here, and only here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use crate::{
    disk::{Disk, DiskFile, Locked, parent_of},
    seams::splitmix,
};

/// What reaches the platter in one piece, more or less in any order.
const PAGE: usize = 4096;

/// The disk. Clones are the same disk.
#[derive(Clone, Default)]
pub struct SimDisk {
    platter: Arc<Mutex<Platter>>,
}

/// What an operation was, for the hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    Write { bytes: usize },
    Sync,
    Name,
}

/// How much was asked of the disk, for tests that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub writes: u64,
    pub syncs: u64,
    pub names: u64,
    /// Files that lost or tore something in crashes so far.
    pub torn: u64,
}

type Hook = Arc<dyn Fn(Did) + Send + Sync>;

#[derive(Default)]
struct Platter {
    nodes: Vec<Node>,
    /// Names as programs see them, and as they are on the platter.
    seen: BTreeMap<PathBuf, usize>,
    durable: BTreeMap<PathBuf, usize>,
    unsynced_names: Vec<NameChange>,
    dirs: BTreeSet<PathBuf>,
    locks: BTreeSet<PathBuf>,
    /// Counts crashes: a file opened before one is dead after it.
    life: u64,
    free_bytes: Option<u64>,
    failing_syncs: u32,
    failing_writes: u32,
    operations_left: Option<u64>,
    off: bool,
    chance: u64,
    counts: Counts,
    hook: Option<Hook>,
}

#[derive(Default)]
struct Node {
    seen: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Truncate(usize),
}

enum NameChange {
    Link(PathBuf, usize),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf),
}

impl SimDisk {
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    /// The power goes and comes back. What was not synced is decided by `seed`.
    /// Files and locks of before are dead.
    pub fn crash(&self, seed: u64) {
        let mut platter = self.platter();
        platter.chance = seed;
        platter.crash();
    }

    /// The process ends, the machine goes on: files and locks of before are dead, but everything
    /// that was written can still be read, synced or not.
    pub fn kill(&self) {
        let mut platter = self.platter();
        platter.locks.clear();
        platter.life += 1;
    }

    /// From the `operations`-th change on (a write, a sync, a change of names) nothing works any
    /// more, until `crash`. The one at which it happens is not done, or done in part.
    pub fn power_fails_after(&self, operations: u64) {
        self.platter().operations_left = Some(operations);
    }

    /// How many bytes files may still grow by; `None` for no limit.
    pub fn set_free_bytes(&self, free: Option<u64>) {
        self.platter().free_bytes = free;
    }

    /// The next syncs of files fail. What they should have synced may be lost without further word.
    pub fn fail_next_syncs(&self, syncs: u32) {
        self.platter().failing_syncs = syncs;
    }

    /// The next writes fail half way.
    pub fn fail_next_writes(&self, writes: u32) {
        self.platter().failing_writes = writes;
    }

    /// Called with every change, before it: a simulator makes the disk slow here.
    pub fn set_hook(&self, hook: impl Fn(Did) + Send + Sync + 'static) {
        self.platter().hook = Some(Arc::new(hook));
    }

    pub fn counts(&self) -> Counts {
        self.platter().counts
    }

    /// Changes a file behind everybody's back, on the platter too: bit rot.
    pub fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
        let mut platter = self.platter();
        let node = *platter.seen.get(path).expect("damage an existing file");
        let node = &mut platter.nodes[node];
        change(&mut node.seen);
        node.durable = node.seen.clone();
        node.unsynced.clear();
    }

    /// The bytes of a file as programs see them.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        let platter = self.platter();
        platter.seen.get(path).map(|node| platter.nodes[*node].seen.clone())
    }

    /// Every file there is, as programs see it.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.platter().seen.keys().cloned().collect()
    }

    /// A disk of its own with the same files, all synced. For trying many crashes from one point.
    pub fn fork(&self) -> SimDisk {
        let platter = self.platter();
        let mut copy = Platter { dirs: platter.dirs.clone(), ..Platter::default() };
        for (path, node) in &platter.seen {
            let bytes = platter.nodes[*node].seen.clone();
            copy.seen.insert(path.clone(), copy.nodes.len());
            copy.nodes.push(Node { seen: bytes.clone(), durable: bytes, unsynced: Vec::new() });
        }
        copy.durable = copy.seen.clone();
        SimDisk { platter: Arc::new(Mutex::new(copy)) }
    }

    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.platter.lock().expect("the disk never panics while changing itself")
    }

    /// Begins a change: charges for it.
    fn begin(&self, did: Did) -> MutexGuard<'_, Platter> {
        let hook = self.platter().hook.clone();
        if let Some(hook) = hook {
            hook(did);
        }
        let mut platter = self.platter();
        match did {
            Did::Write { .. } => platter.counts.writes += 1,
            Did::Sync => platter.counts.syncs += 1,
            Did::Name => platter.counts.names += 1,
        }
        platter
    }

    fn change_name(&self, change: NameChange) -> io::Result<()> {
        let mut platter = self.begin(Did::Name);
        platter.spend()?;
        apply_name(&mut platter.seen, &change);
        platter.unsynced_names.push(change);
        Ok(())
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let platter = self.platter();
        write!(f, "SimDisk with {} files after {} crashes", platter.seen.len(), platter.life)
    }
}

fn power_is_off() -> io::Error {
    io::Error::other("the power is off")
}

impl Platter {
    /// Takes one operation off the budget, or reports that the power is off.
    fn spend(&mut self) -> io::Result<()> {
        match &mut self.operations_left {
            Some(0) => {
                self.off = true;
                Err(power_is_off())
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn crash(&mut self) {
        let mut chance = self.chance;
        for node in &mut self.nodes {
            let unsynced = std::mem::take(&mut node.unsynced);
            self.counts.torn += u64::from(!unsynced.is_empty());
            node.keep_some(unsynced, &mut chance);
            node.seen = node.durable.clone();
        }
        // Names reach the platter in order within a folder, and independently between folders.
        let mut kept: BTreeMap<PathBuf, u64> = BTreeMap::new();
        for change in std::mem::take(&mut self.unsynced_names) {
            let left =
                kept.entry(change.dir().to_path_buf()).or_insert_with(|| splitmix(&mut chance) % 4);
            if *left > 0 {
                *left -= 1;
                apply_name(&mut self.durable, &change);
            }
        }
        self.seen = self.durable.clone();
        self.chance = chance;
        self.locks.clear();
        self.life += 1;
        self.operations_left = None;
        self.off = false;
        self.failing_syncs = 0;
        self.failing_writes = 0;
    }
}

impl Node {
    /// What a crash leaves of writes that were not synced.
    fn keep_some(&mut self, unsynced: Vec<Change>, chance: &mut u64) {
        let total: usize = unsynced.iter().map(Change::len).sum();
        match splitmix(chance) % 4 {
            0 => {}
            1 => {
                let mut left = splitmix(chance) as usize % (total + 1);
                for change in &unsynced {
                    let part = left.min(change.len());
                    left -= part;
                    change.apply_part(&mut self.durable, 0, part);
                    if part < change.len() {
                        break;
                    }
                }
            }
            2 => {
                for change in &unsynced {
                    for page in (0..change.len()).step_by(PAGE) {
                        let end = (page + PAGE).min(change.len());
                        match splitmix(chance) % 4 {
                            0 => change.apply_part(&mut self.durable, page, end),
                            1 => {
                                let torn = page + splitmix(chance) as usize % (end - page);
                                change.apply_part(&mut self.durable, page, torn);
                            }
                            _ => {}
                        }
                    }
                }
            }
            _ => unsynced.iter().for_each(|change| change.apply(&mut self.durable)),
        }
    }
}

impl Change {
    fn len(&self) -> usize {
        match self {
            Change::Write { bytes, .. } => bytes.len(),
            Change::Truncate(_) => 1,
        }
    }

    fn apply(&self, to: &mut Vec<u8>) {
        self.apply_part(to, 0, self.len());
    }

    fn apply_part(&self, to: &mut Vec<u8>, start: usize, end: usize) {
        match self {
            _ if start >= end => {}
            Change::Write { offset, bytes } => {
                if to.len() < offset + end {
                    to.resize(offset + end, 0);
                }
                to[offset + start..offset + end].copy_from_slice(&bytes[start..end]);
            }
            Change::Truncate(len) => to.resize(*len, 0),
        }
    }
}

impl NameChange {
    fn dir(&self) -> &Path {
        match self {
            NameChange::Link(path, _) | NameChange::Unlink(path) | NameChange::Rename(_, path) => {
                parent_of(path)
            }
        }
    }
}

fn apply_name(names: &mut BTreeMap<PathBuf, usize>, change: &NameChange) {
    match change {
        NameChange::Link(path, node) => {
            names.insert(path.clone(), *node);
        }
        NameChange::Unlink(path) => {
            names.remove(path);
        }
        NameChange::Rename(from, to) => {
            if let Some(node) = names.remove(from) {
                names.insert(to.clone(), node);
            }
        }
    }
}

fn not_found(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no {}", path.display()))
}

impl Disk for SimDisk {
    type File = SimFile;
    type Lock = SimLock;

    fn create(&self, path: &Path) -> io::Result<SimFile> {
        let (node, life) = {
            let mut platter = self.platter();
            if platter.seen.contains_key(path) {
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the name is taken"));
            }
            platter.nodes.push(Node::default());
            (platter.nodes.len() - 1, platter.life)
        };
        self.change_name(NameChange::Link(path.to_path_buf(), node))?;
        Ok(SimFile { disk: self.clone(), node, life })
    }

    fn open(&self, path: &Path) -> io::Result<SimFile> {
        let platter = self.platter();
        let node = *platter.seen.get(path).ok_or_else(|| not_found(path))?;
        let life = platter.life;
        drop(platter);
        Ok(SimFile { disk: self.clone(), node, life })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if !self.platter().seen.contains_key(from) {
            return Err(not_found(from));
        }
        self.change_name(NameChange::Rename(from.to_path_buf(), to.to_path_buf()))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if self.platter().dirs.remove(path) {
            return Ok(());
        }
        if !self.platter().seen.contains_key(path) {
            return Err(not_found(path));
        }
        self.change_name(NameChange::Unlink(path.to_path_buf()))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let platter = self.platter();
        let paths = platter.seen.keys().chain(&platter.dirs);
        let here = paths.filter(|path| !path.as_os_str().is_empty() && parent_of(path) == dir);
        let mut names: Vec<String> = here
            .filter_map(|path| path.file_name().and_then(|name| name.to_str()).map(String::from))
            .collect();
        names.sort();
        Ok(names)
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut platter = self.begin(Did::Name);
        platter.spend()?;
        platter.dirs.extend(dir.ancestors().map(Path::to_path_buf));
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut platter = self.begin(Did::Sync);
        platter.spend()?;
        let changes = std::mem::take(&mut platter.unsynced_names);
        for change in changes {
            if change.dir() == dir {
                apply_name(&mut platter.durable, &change);
            } else {
                platter.unsynced_names.push(change);
            }
        }
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<SimLock, Locked> {
        let mut platter = self.platter();
        if !platter.locks.insert(path.to_path_buf()) {
            return Err(Locked::By(None));
        }
        let life = platter.life;
        drop(platter);
        Ok(SimLock { disk: self.clone(), path: path.to_path_buf(), life })
    }

    fn shown(&self, path: &Path) -> String {
        path.display().to_string()
    }
}

/// An open file of the simulated disk.
#[derive(Debug)]
pub struct SimFile {
    disk: SimDisk,
    node: usize,
    life: u64,
}

impl SimFile {
    fn alive(&self, platter: &Platter) -> io::Result<()> {
        if platter.life == self.life { Ok(()) } else { Err(power_is_off()) }
    }
}

impl DiskFile for SimFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut platter = self.disk.begin(Did::Write { bytes: bytes.len() });
        self.alive(&platter)?;
        let offset = offset as usize;
        let mut room = bytes.len();
        let mut failure = None;
        let was_off = platter.off;
        if let Err(error) = platter.spend() {
            // The write during which the power failed may reach the platter in part; later ones not.
            room = if was_off { 0 } else { bytes.len() };
            failure = Some(error);
        } else if platter.failing_writes > 0 {
            platter.failing_writes -= 1;
            room = bytes.len() / 2;
            failure = Some(io::Error::other("input/output error (simulated)"));
        } else if let Some(free) = platter.free_bytes {
            let grows = (offset + bytes.len()).saturating_sub(platter.nodes[self.node].seen.len());
            if grows as u64 > free {
                room = bytes.len() - (grows - free as usize);
                failure =
                    Some(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
            }
            platter.free_bytes = Some(free - (grows as u64).min(free));
        }
        let change = Change::Write { offset, bytes: bytes[..room].to_vec() };
        let node = &mut platter.nodes[self.node];
        change.apply(&mut node.seen);
        node.unsynced.push(change);
        failure.map_or(Ok(()), Err)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let platter = self.disk.platter();
        self.alive(&platter)?;
        let seen = &platter.nodes[self.node].seen;
        let offset = offset as usize;
        let Some(bytes) = seen.get(offset..offset + into.len()) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        into.copy_from_slice(bytes);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut platter = self.disk.begin(Did::Sync);
        self.alive(&platter)?;
        platter.spend()?;
        let fails = platter.failing_syncs > 0;
        let mut chance = platter.chance;
        let node = &mut platter.nodes[self.node];
        let unsynced = std::mem::take(&mut node.unsynced);
        if fails {
            node.keep_some(unsynced, &mut chance);
            platter.chance = chance;
            platter.failing_syncs -= 1;
            return Err(io::Error::other("input/output error (simulated)"));
        }
        unsynced.iter().for_each(|change| change.apply(&mut node.durable));
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut platter = self.disk.begin(Did::Write { bytes: 0 });
        self.alive(&platter)?;
        platter.spend()?;
        let freed = platter.nodes[self.node].seen.len().saturating_sub(len as usize) as u64;
        platter.free_bytes = platter.free_bytes.map(|free| free + freed);
        let change = Change::Truncate(len as usize);
        let node = &mut platter.nodes[self.node];
        change.apply(&mut node.seen);
        node.unsynced.push(change);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let platter = self.disk.platter();
        self.alive(&platter)?;
        Ok(platter.nodes[self.node].seen.len() as u64)
    }
}

/// The simulated lock: gone when dropped, or when the power went.
#[derive(Debug)]
pub struct SimLock {
    disk: SimDisk,
    path: PathBuf,
    life: u64,
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut platter = self.disk.platter();
        if platter.life == self.life {
            platter.locks.remove(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> &Path {
        Path::new(name)
    }

    #[test]
    fn what_was_synced_survives_and_what_was_not_may_be_lost_or_torn() {
        let (mut lost, mut torn, mut kept) = (0, 0, 0);
        for seed in 0..200 {
            let disk = SimDisk::new();
            let file = disk.create(path("f")).unwrap();
            file.write_at(0, b"synced").unwrap();
            file.sync_data().unwrap();
            disk.sync_dir(path("")).unwrap();
            file.write_at(6, &[7; 10_000]).unwrap();
            disk.crash(seed);
            assert!(file.read_at(0, &mut [0]).is_err(), "the old handle is dead");
            let bytes = disk.contents(path("f")).expect("its name was synced");
            assert_eq!(&bytes[..6], b"synced");
            match bytes.len() {
                6 => lost += 1,
                10_006 if bytes[6..].iter().all(|byte| *byte == 7) => kept += 1,
                _ => torn += 1,
            }
        }
        assert!(lost > 20 && torn > 20 && kept > 20, "{lost} {torn} {kept}");
    }

    #[test]
    fn a_name_is_only_safe_after_its_folder_was_synced() {
        let lost = (0..100).filter(|seed| {
            let disk = SimDisk::new();
            let file = disk.create(path("d/a")).unwrap();
            file.write_at(0, b"x").unwrap();
            file.sync_data().unwrap();
            disk.crash(*seed);
            disk.contents(path("d/a")).is_none()
        });
        let lost = lost.count();
        assert!(lost > 5 && lost < 95, "{lost}");
    }

    #[test]
    fn a_failed_sync_is_not_made_good_by_another() {
        let lost = (0..100).filter(|seed| {
            let disk = SimDisk::new();
            let file = disk.create(path("a")).unwrap();
            disk.sync_dir(path("")).unwrap();
            disk.crash(*seed);
            let file = {
                drop(file);
                disk.open(path("a")).unwrap()
            };
            file.write_at(0, b"x").unwrap();
            disk.fail_next_syncs(1);
            assert!(file.sync_data().is_err());
            assert!(file.sync_data().is_ok(), "it says all is well");
            assert_eq!(disk.contents(path("a")).unwrap(), b"x", "it reads as if all were well");
            disk.crash(*seed);
            disk.contents(path("a")).unwrap() != b"x"
        });
        assert!(lost.count() > 10);
    }

    #[test]
    fn a_full_disk_takes_what_fits_and_says_so() {
        let disk = SimDisk::new();
        let file = disk.create(path("a")).unwrap();
        disk.set_free_bytes(Some(3));
        assert_eq!(file.write_at(0, b"hello").unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.len().unwrap(), 3);
        file.truncate(0).unwrap();
        file.write_at(0, b"abc").unwrap();
    }

    #[test]
    fn after_the_power_fails_nothing_works_until_it_is_back() {
        let disk = SimDisk::new();
        let file = disk.create(path("a")).unwrap();
        disk.power_fails_after(1);
        file.write_at(0, b"x").unwrap();
        assert!(file.sync_data().is_err());
        assert!(disk.rename(path("a"), path("b")).is_err());
        disk.crash(1);
        assert!(disk.create(path("c")).is_ok());
    }
}
