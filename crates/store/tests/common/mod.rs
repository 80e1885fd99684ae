//! Folders for tests, beside the build, gone afterwards.

#![allow(dead_code, reason = "each test file uses its own part of this")]

pub mod requests;

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// A folder of its own for one test, on the disk the build is on: the system's folder for
/// temporary files is often memory, where a sync proves nothing.
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    pub fn new() -> TempDir {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("store-{}-{next}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("the build's folder is writable");
        TempDir(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

use waitroom_store::{
    AppendError, Appended, Batch, FileStore, Head, Lease, LeaseName, ManualClock, RoomName, Seams,
    SimDisk, Store, Stored,
    contract_tests::wait,
    disk::Disk,
    file::{OpenError, Options, RecoveryReport},
};

/// Numbers that follow from a seed.
#[derive(Debug, Clone)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn bytes(&mut self, max: u64) -> Vec<u8> {
        let len = self.below(max + 1);
        (0..len).map(|_| self.next() as u8).collect()
    }
}

pub fn room(name: &str) -> RoomName {
    RoomName::parse(name).expect("a good name")
}

pub fn seams(seed: u64) -> Seams {
    Seams::seeded(ManualClock::at(1_000), seed)
}

pub fn open_on(
    disk: &SimDisk,
    options: Options,
) -> Result<(FileStore<SimDisk>, RecoveryReport), OpenError> {
    FileStore::inline(disk.clone(), options, seams(7))
}

pub fn segment_path(number: u64) -> PathBuf {
    PathBuf::from(format!("journal/{number:020}.seg"))
}

/// Appends to rooms and remembers what was acknowledged.
pub struct Owner<S: Store> {
    pub store: S,
    pub room: RoomName,
    pub lease: Lease,
    pub tip: Appended,
    pub number: u64,
}

impl<S: Store> Owner<S> {
    pub fn of(store: S, name: &str) -> Owner<S> {
        let room = room(name);
        let lease = wait(store.lease(&LeaseName::room(&room), "owner", 60_000)).expect("free");
        let tip = wait(store.tip(&room)).expect("readable");
        Owner { store, room, lease, tip, number: 0 }
    }

    pub fn append(&mut self, events: u32, payload: Vec<u8>) -> Result<Appended, AppendError> {
        self.number += 1;
        let batch = Batch { number: self.number, events, payload };
        let done = wait(self.store.append(&self.room, &self.lease, self.tip.head, batch));
        if let Ok(tip) = done {
            self.tip = tip;
        }
        done
    }

    pub fn snapshot(&self, text: &str) {
        let chunks = vec![text.as_bytes().to_vec()].into_iter();
        wait(self.store.snapshot(&self.room, self.tip.head, self.tip.chain, chunks))
            .expect("on the chain");
    }
}

pub fn read_all<S: Store>(store: &S, room: &RoomName) -> Vec<Stored> {
    let from = wait(store.trimmed_to(room)).expect("readable");
    wait(store.read(room, from, usize::MAX)).expect("readable")
}

pub fn head_of<D: Disk>(store: &FileStore<D>, name: &str) -> Head {
    wait(store.committed_head(&room(name))).expect("readable")
}
