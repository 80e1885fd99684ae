//! The power goes at any operation; the disk fails, runs full, comes back. Whatever was
//! acknowledged is there afterwards, whatever was refused is not, whatever was unknown is whole.

mod common;

use std::sync::Arc;

use common::{Owner, Rng, open_on, read_all, room, segment_path};
use waitroom_store::{
    AppendError, Appended, Batch, Error, FileStore, Head, Lease, LeaseName, ManualClock, RoomName,
    Seams, SimDisk, SinkName, Store,
    contract_tests::wait,
    disk::Disk,
    file::{Control, Journal, Options},
};

/// What a room's log must be: what was acknowledged, then perhaps what was unknown.
#[derive(Default, Clone)]
struct Expected {
    sure: Vec<Vec<u8>>,
    unknown: Vec<Vec<u8>>,
    trimmed_to: Head,
    cursor: Head,
    epoch: u32,
}

/// One life of the store: random requests until the power goes.
struct Life {
    store: FileStore<SimDisk>,
    clock: Arc<ManualClock>,
    leases: Vec<Option<Lease>>,
    numbers: Vec<u64>,
}

const ROOMS: [&str; 3] = ["ana", "bo", "cy"];

fn options() -> Options {
    Options { segment_bytes: 1_500, ..Options::default() }
}

fn begin(disk: &SimDisk, seed: u64) -> Life {
    let clock = ManualClock::at(5_000);
    let seams = Seams::seeded(clock.clone(), seed);
    let (store, _) =
        FileStore::inline(disk.clone(), options(), seams).expect("opens after a crash");
    Life { store, clock, leases: vec![None; 3], numbers: vec![0; 3] }
}

/// Compares a room with what it must be, and makes what was unknown certain.
fn check(store: &FileStore<SimDisk>, name: &str, expected: &mut Expected, seed: u64) {
    let name = room(name);
    let trimmed_to = wait(store.trimmed_to(&name)).expect("readable");
    assert!(trimmed_to >= expected.trimmed_to, "seed {seed}: the trim was forgotten");
    expected.trimmed_to = trimmed_to;
    let sink = SinkName::parse("sink").expect("a good name");
    let cursor = wait(store.cursor(&name, &sink)).expect("readable").unwrap_or_default().at;
    assert!(cursor >= expected.cursor, "seed {seed}: the cursor went back");
    expected.cursor = cursor;
    // One event a batch, so that heads count batches.
    let head = wait(store.committed_head(&name)).expect("readable").0 as usize;
    let all: Vec<_> = expected.sure.iter().chain(&expected.unknown).cloned().collect();
    assert!(head >= expected.sure.len(), "seed {seed}: acknowledged batches of {name} are lost");
    assert!(head <= all.len(), "seed {seed}: {name} holds something that was never appended");
    let found: Vec<_> = read_all(store, &name).into_iter().map(|stored| stored.payload).collect();
    assert_eq!(found, all[trimmed_to.0 as usize..head], "seed {seed}, room {name}");
    expected.sure = all[..head].to_vec();
    expected.unknown.clear();
}

impl Life {
    /// One random request; what it answered goes into `expected`.
    fn step(&mut self, rng: &mut Rng, expected: &mut [Expected], counts: &mut Counts) {
        let which = rng.below(3) as usize;
        let (name, expected) = (room(ROOMS[which]), &mut expected[which]);
        self.clock.advance(rng.below(400));
        match rng.below(20) {
            0 => self.take_snapshot(&name, rng),
            1 => {
                let limit = wait(self.store.trim_limit(&name)).expect("readable");
                if wait(self.store.trim(&name, limit)).is_ok() {
                    expected.trimmed_to = limit;
                }
            }
            2 => {
                let head = wait(self.store.committed_head(&name)).expect("readable");
                let sink = SinkName::parse("sink").expect("a good name");
                if wait(self.store.advance(&name, &sink, head)).is_ok() {
                    expected.cursor = head;
                }
            }
            _ => self.append(which, &name, expected, rng, counts),
        }
    }

    fn append(
        &mut self,
        which: usize,
        name: &RoomName,
        expected: &mut Expected,
        rng: &mut Rng,
        counts: &mut Counts,
    ) {
        if self.leases[which].is_none() {
            let Ok(lease) = wait(self.store.lease(&LeaseName::room(name), "me", 1_000)) else {
                return;
            };
            assert!(lease.epoch > expected.epoch, "an epoch was given twice");
            expected.epoch = lease.epoch;
            self.leases[which] = Some(lease);
            self.numbers[which] = 0;
        }
        let lease = self.leases[which].clone().expect("just taken");
        let payload = rng.bytes(80);
        let head = Head(expected.sure.len() as u64);
        self.numbers[which] += 1;
        let batch = Batch { number: self.numbers[which], events: 1, payload: payload.clone() };
        match wait(self.store.append(name, &lease, head, batch)) {
            Ok(Appended { head: now, .. }) => {
                assert_eq!(now.0, head.0 + 1);
                // This settles what was unknown before it: it is not there.
                expected.unknown.clear();
                expected.sure.push(payload);
                counts.acknowledged += 1;
            }
            Err(AppendError::Refused { .. }) => counts.refused += 1,
            Err(AppendError::Unknown { .. }) => {
                // To be tried at all, the journal had to heal, which settled an earlier unknown one.
                expected.unknown = vec![payload];
                counts.unknown += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn take_snapshot(&mut self, name: &RoomName, rng: &mut Rng) {
        let tip = wait(self.store.tip(name)).expect("readable");
        let chunks: Vec<Vec<u8>> = (0..rng.below(4)).map(|_| rng.bytes(6_000)).collect();
        let _ = wait(self.store.snapshot(name, tip.head, tip.chain, chunks.into_iter()));
    }
}

#[derive(Debug, Default)]
struct Counts {
    acknowledged: u64,
    refused: u64,
    unknown: u64,
}

#[test]
fn what_was_acknowledged_survives_any_crash() {
    let (mut counts, mut torn) = (Counts::default(), 0);
    for seed in 0..400 {
        let mut rng = Rng(seed);
        let disk = SimDisk::new();
        let mut expected = vec![Expected::default(); 3];
        for life_number in 0..6 {
            let mut life = begin(&disk, rng.next());
            for (name, expected) in ROOMS.iter().zip(&mut expected) {
                check(&life.store, name, expected, seed);
                let snapshot =
                    wait(life.store.latest_snapshot(&room(name))).expect("never damaged");
                assert!(snapshot.is_none_or(|s| s.at.0 as usize <= expected.sure.len()));
            }
            // In the first life the power stays on; then it goes after any number of operations.
            if life_number > 0 {
                disk.power_fails_after(rng.below(120));
            }
            for _ in 0..60 {
                match rng.below(60) {
                    0 => disk.fail_next_syncs(1 + rng.below(3) as u32),
                    1 => disk.fail_next_writes(1 + rng.below(2) as u32),
                    2 => disk.set_free_bytes(Some(rng.below(3_000))),
                    3..8 => disk.set_free_bytes(None),
                    _ => life.step(&mut rng, &mut expected, &mut counts),
                }
            }
            disk.set_free_bytes(None);
            disk.crash(rng.next());
        }
        torn += disk.counts().torn;
    }
    println!("{counts:?}, {torn} files torn");
    assert!(
        counts.acknowledged > 10_000 && counts.refused > 500 && counts.unknown > 300,
        "{counts:?}"
    );
    assert!(torn > 300, "{torn}");
}

#[test]
fn a_group_that_was_torn_leaves_a_beginning_of_itself() {
    let mut beginnings = std::collections::BTreeSet::new();
    for seed in 0..300 {
        let disk = SimDisk::new();
        let name = room("ana");
        let lease = {
            let (store, _) = open_on(&disk, Options::default()).expect("a new store");
            Owner::of(store, "ana").lease
        };
        let (mut journal, _) =
            Journal::open(disk.clone(), Options::default(), common::seams(1)).expect("opens");
        for n in 1..=20u64 {
            let batch = Batch { number: n, events: 1, payload: vec![n as u8; 900] };
            journal.stage_append(&name, &lease, Head(n - 1), &batch).expect("staged");
        }
        disk.power_fails_after(1); // the write is done, the sync is not
        let failure = journal.commit().expect_err("no power");
        assert!(!failure.gone);
        disk.crash(seed);
        drop(journal);
        let (store, _) = open_on(&disk, Options::default()).expect("a torn tail is ordinary");
        let found = read_all(&store, &name);
        for (n, stored) in (1u64..).zip(&found) {
            assert_eq!((stored.number, &stored.payload), (n, &vec![n as u8; 900]));
        }
        beginnings.insert(found.len());
    }
    assert!(beginnings.len() > 8, "{beginnings:?}");
    assert!(beginnings.contains(&0) && beginnings.contains(&20), "{beginnings:?}");
}

#[test]
fn a_lone_append_costs_one_write_and_one_sync_and_so_does_a_crowd() {
    let disk = SimDisk::new();
    let (store, _) = open_on(&disk, Options::default()).expect("a new store");
    let mut owner = Owner::of(store, "ana");
    let before = disk.counts();
    owner.append(1, b"alone".to_vec()).expect("the disk works");
    let after = disk.counts();
    assert_eq!((after.writes - before.writes, after.syncs - before.syncs), (1, 1));
    let (lease, name, head) = (owner.lease.clone(), owner.room.clone(), owner.tip.head);
    // Renewing costs nothing at all: a thousand idle rooms do it twice a second.
    wait(owner.store.renew(&lease, 2_000)).expect("ours");
    assert_eq!(disk.counts(), after);
    drop(owner);
    let (mut journal, _) =
        Journal::open(disk.clone(), Options::default(), common::seams(1)).expect("opens");
    let before = disk.counts();
    for n in 0..10_000u64 {
        let batch = Batch { number: n + 2, events: 1, payload: b"one of many".to_vec() };
        journal.stage_append(&name, &lease, Head(head.0 + n), &batch).expect("staged");
    }
    journal.commit().expect("the disk works");
    let after = disk.counts();
    assert_eq!((after.writes - before.writes, after.syncs - before.syncs), (1, 1));
}

#[test]
fn a_full_disk_refuses_and_keeps_nothing_then_goes_on() {
    for free in 0..400 {
        let disk = SimDisk::new();
        let (store, _) = open_on(&disk, Options::default()).expect("a new store");
        let mut owner = Owner::of(store.clone(), "ana");
        owner.append(1, b"before".to_vec()).expect("there is space");
        let len = disk.contents(&segment_path(1)).expect("there").len();
        disk.set_free_bytes(Some(free));
        let full = owner.append(1, vec![7; 400]);
        assert!(
            matches!(&full, Err(AppendError::Refused { why }) if why.contains("no space")),
            "{full:?}"
        );
        assert_eq!(disk.contents(&segment_path(1)).expect("there").len(), len, "with {free} bytes");
        let held = wait(store.lease(&LeaseName::parse("x").unwrap(), &"w".repeat(200), 1));
        if free < 240 {
            assert!(matches!(held, Err(Error::Refused { .. })), "{held:?}");
        }
        // Space again: the same owner goes on as if nothing had been.
        disk.set_free_bytes(None);
        owner.append(1, b"after".to_vec()).expect("there is space");
        disk.crash(free);
        drop((owner, store));
        let (store, _) = open_on(&disk, Options::default()).expect("opens");
        let found: Vec<_> = read_all(&store, &room("ana")).into_iter().map(|s| s.payload).collect();
        assert_eq!(found, [b"before".to_vec(), b"after".to_vec()]);
    }
}

#[test]
fn after_a_failed_sync_the_file_is_replaced_and_the_batch_is_certainly_gone() {
    for seed in 0..50 {
        let disk = SimDisk::new();
        let (store, _) = open_on(&disk, Options::default()).expect("a new store");
        let mut owner = Owner::of(store.clone(), "ana");
        owner.append(1, b"before".to_vec()).expect("the disk works");
        disk.fail_next_syncs(1);
        let failed = owner.append(1, b"failed".to_vec());
        assert!(matches!(failed, Err(AppendError::Refused { .. })), "{failed:?}");
        assert_eq!(store.alarms().len(), 1);
        owner.append(1, b"after".to_vec()).expect("the disk works again");
        disk.crash(seed);
        drop((owner, store));
        let (store, _) = open_on(&disk, Options::default()).expect("opens");
        let found: Vec<_> = read_all(&store, &room("ana")).into_iter().map(|s| s.payload).collect();
        assert_eq!(found, [b"before".to_vec(), b"after".to_vec()], "seed {seed}");
    }
}

#[test]
fn while_the_disk_fails_the_outcome_is_unknown_and_later_appends_are_refused_at_once() {
    for seed in 0..50 {
        let disk = SimDisk::new();
        let clock = ManualClock::at(1_000);
        let seams = Seams::seeded(clock.clone(), 1);
        let (store, _) = FileStore::inline(disk.clone(), Options::default(), seams).expect("new");
        let mut owner = Owner::of(store.clone(), "ana");
        owner.append(1, b"before".to_vec()).expect("the disk works");
        disk.fail_next_syncs(2); // the group's, and that of the copy
        let failed = owner.append(1, b"unknown".to_vec());
        assert!(matches!(failed, Err(AppendError::Unknown { .. })), "{failed:?}");
        assert_eq!(wait(store.committed_head(&owner.room)), Ok(Head(1)), "nobody sees it");
        let syncs = disk.counts().syncs;
        assert!(matches!(owner.append(1, b"no".to_vec()), Err(AppendError::Refused { .. })));
        assert_eq!(disk.counts().syncs, syncs, "the disk is left in peace for a second");
        clock.advance(1_000);
        if seed % 2 == 0 {
            owner.append(1, b"after".to_vec()).expect("the disk works again");
        }
        disk.crash(seed);
        drop((owner, store));
        let (store, _) = open_on(&disk, Options::default()).expect("opens");
        let found: Vec<_> = read_all(&store, &room("ana")).into_iter().map(|s| s.payload).collect();
        if seed % 2 == 0 {
            assert_eq!(found, [b"before".to_vec(), b"after".to_vec()], "seed {seed}");
        } else {
            // It may be there or not, but whole; and from now on it is settled.
            assert!(
                found == [b"before".to_vec()] || found == [b"before".to_vec(), b"unknown".to_vec()]
            );
            disk.crash(seed + 1);
            drop(store);
            let (store, _) = open_on(&disk, Options::default()).expect("opens");
            let again: Vec<_> =
                read_all(&store, &room("ana")).into_iter().map(|s| s.payload).collect();
            assert_eq!(again, found, "seed {seed}");
        }
    }
}

#[test]
fn a_retry_after_unknown_is_recognised_or_appended_but_never_twice() {
    let mut outcomes = [0, 0];
    for seed in 0..60 {
        let disk = SimDisk::new();
        let (store, _) = open_on(&disk, Options::default()).expect("a new store");
        let mut owner = Owner::of(store.clone(), "ana");
        owner.append(1, b"before".to_vec()).expect("the disk works");
        disk.power_fails_after(1);
        assert!(matches!(owner.append(1, b"perhaps".to_vec()), Err(AppendError::Unknown { .. })));
        let (lease, name) = (owner.lease.clone(), owner.room.clone());
        disk.crash(seed);
        drop((owner, store));
        let (store, _) = open_on(&disk, Options::default()).expect("opens");
        let there = wait(store.committed_head(&name)).expect("readable") == Head(2);
        let again = Batch { number: 2, events: 1, payload: b"perhaps".to_vec() };
        let tip = wait(store.append(&name, &lease, Head(1), again)).expect("either way");
        assert_eq!(tip.head, Head(2));
        assert_eq!(read_all(&store, &name).len(), 2);
        outcomes[usize::from(there)] += 1;
    }
    assert!(outcomes[0] > 5 && outcomes[1] > 5, "{outcomes:?}");
}

#[test]
fn what_a_dead_process_left_in_memory_is_on_the_disk_before_it_counts() {
    let mut found_it = 0;
    for seed in 0..60 {
        let disk = SimDisk::new();
        disk.crash(seed); // what a failed sync keeps follows from this
        let (store, _) = open_on(&disk, Options::default()).expect("a new store");
        Owner::of(store.clone(), "ana").append(1, b"before".to_vec()).expect("the disk works");
        drop(store); // closed in good order, which must not count for what comes after
        let (store, _) = open_on(&disk, Options::default()).expect("opens");
        let mut owner = Owner::of(store.clone(), "ana");
        disk.fail_next_syncs(2);
        assert!(matches!(owner.append(1, b"perhaps".to_vec()), Err(AppendError::Unknown { .. })));
        disk.kill();
        drop((owner, store));
        // The machine still shows every byte, whether it reached the disk or not.
        let (store, report) = open_on(&disk, Options::default()).expect("opens");
        assert!(!report.clean);
        let shown = read_all(&store, &room("ana"));
        found_it += usize::from(shown.len() == 2);
        disk.crash(seed + 1);
        drop(store);
        let (store, _) = open_on(&disk, Options::default()).expect("opens");
        assert_eq!(read_all(&store, &room("ana")), shown, "seed {seed}: shown, then lost");
    }
    assert!(found_it > 30, "{found_it}");
}

#[test]
fn controls_and_appends_of_one_group_share_its_fate() {
    let disk = SimDisk::new();
    let (mut journal, _) =
        Journal::open(disk.clone(), Options::default(), common::seams(1)).expect("opens");
    let lease = LeaseName::room(&room("ana"));
    let ask = |who: &str| Control::Lease { name: lease.clone(), who: who.into(), ttl_ms: 1_000 };
    journal.stage(ask("ana")).expect("free");
    let second = journal.stage(ask("bo"));
    assert!(matches!(second, Err(Error::Held { .. })), "granted a moment ago: {second:?}");
    disk.fail_next_syncs(1);
    assert!(journal.commit().expect_err("the sync failed").gone);
    journal.stage(ask("bo")).expect("the first grant never was");
    journal.commit().expect("the disk works");
}

#[test]
fn a_store_in_use_is_not_opened_twice() {
    let disk = SimDisk::new();
    let (store, _) = open_on(&disk, Options::default()).expect("a new store");
    let error = open_on(&disk, Options::default()).expect_err("in use").to_string();
    assert!(error.contains("is in use by another process"), "{error}");
    drop(store);
    open_on(&disk, Options::default()).expect("free again");
    assert!(disk.list(std::path::Path::new("journal")).expect("there").len() == 1);
}
