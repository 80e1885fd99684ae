//! The file store keeps the contract: on a real disk with its threads, on a real disk inline, and
//! on the simulated disk, with the power failing at every reopening.

mod common;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use common::TempDir;
use waitroom_store::{
    FileStore, ManualClock, Seams, SimDisk,
    contract_tests::Fixture,
    disk::{Disk, RealDisk},
    file::Options,
    store_contract,
};

/// Segments so small that every clause crosses a few of them.
fn small() -> Options {
    Options { segment_bytes: 600, ..Options::default() }
}

struct File<D: Disk> {
    clock: Arc<ManualClock>,
    open: Box<dyn Fn(Arc<ManualClock>, u64) -> FileStore<D>>,
    store: Option<FileStore<D>>,
    before_reopening: Box<dyn Fn()>,
    _dir: Option<TempDir>,
}

impl<D: Disk> Fixture for File<D> {
    type Store = FileStore<D>;

    fn store(&self) -> FileStore<D> {
        self.store.clone().expect("open")
    }

    fn advance(&self, ms: u64) {
        self.clock.advance(ms);
    }

    fn reopen(&mut self) {
        (self.before_reopening)();
        self.store = None;
        self.store = Some((self.open)(self.clock.clone(), 2));
    }
}

fn fixture<D: Disk>(
    open: impl Fn(Arc<ManualClock>, u64) -> FileStore<D> + 'static,
    before_reopening: impl Fn() + 'static,
    dir: Option<TempDir>,
) -> File<D> {
    let clock = ManualClock::at(1_000_000);
    let store = Some(open(clock.clone(), 1));
    let (open, before_reopening) = (Box::new(open), Box::new(before_reopening));
    File { clock, open, store, before_reopening, _dir: dir }
}

fn threaded() -> File<RealDisk> {
    let dir = TempDir::new();
    let path = dir.path().to_path_buf();
    let open = move |clock: Arc<ManualClock>, seed| {
        FileStore::open(&path, small(), Seams::seeded(clock, seed)).expect("opens").0
    };
    fixture(open, || {}, Some(dir))
}

fn inline() -> File<RealDisk> {
    let dir = TempDir::new();
    let path = dir.path().to_path_buf();
    let open = move |clock: Arc<ManualClock>, seed| {
        let disk = RealDisk::new(&path);
        FileStore::inline(disk, small(), Seams::seeded(clock, seed)).expect("opens").0
    };
    fixture(open, || {}, Some(dir))
}

fn crashing() -> File<SimDisk> {
    static SEED: AtomicU64 = AtomicU64::new(0);
    let disk = SimDisk::new();
    let power = disk.clone();
    let open = move |clock: Arc<ManualClock>, seed| {
        FileStore::inline(disk.clone(), small(), Seams::seeded(clock, seed)).expect("opens").0
    };
    fixture(open, move || power.crash(SEED.fetch_add(1, Ordering::Relaxed)), None)
}

store_contract!(on_disk_with_threads, threaded());
store_contract!(on_disk_inline, inline());
store_contract!(on_a_disk_that_loses_power, crashing());
