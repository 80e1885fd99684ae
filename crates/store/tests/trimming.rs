//! Space comes back: whole segments go when nobody needs them, to the archive if there is one, and
//! an idle room does not keep everybody's old segments.

mod common;

use std::path::{Path, PathBuf};

use common::{Owner, Rng, open_on, read_all, room, segment_path};
use waitroom_store::{
    FileStore, Head, SimDisk, SinkName, Store,
    contract_tests::wait,
    disk::{Disk, DiskFile},
    file::Options,
};

fn small() -> Options {
    Options { segment_bytes: 4_000, ..Options::default() }
}

/// Appends much to a busy room, trimming behind itself.
fn busy(owner: &mut Owner<FileStore<SimDisk>>, rounds: usize, largest: &mut u64) {
    for round in 0..rounds {
        owner.append(1, vec![round as u8; 150]).expect("the disk works");
        if round % 10 == 9 {
            owner.snapshot("busy");
            let limit = wait(owner.store.trim_limit(&owner.room)).expect("readable");
            wait(owner.store.trim(&owner.room, limit)).expect("within the limit");
        }
        *largest = (*largest).max(owner.store.journal_size().0);
    }
}

#[test]
fn an_idle_room_does_not_keep_old_segments_for_ever() {
    let disk = SimDisk::new();
    let (store, _) = open_on(&disk, small()).expect("a new store");
    let mut idle = Owner::of(store.clone(), "idle");
    for n in 0..5 {
        idle.append(2, vec![n; 30]).expect("the disk works");
    }
    let (lease, number) = (idle.lease.clone(), idle.number);
    let kept = read_all(&store, &idle.room);
    let mut largest = 0;
    busy(&mut Owner::of(store.clone(), "busy"), 600, &mut largest);
    assert!(largest < 20_000, "the journal grew to {largest} bytes");
    assert!(disk.contents(&segment_path(1)).is_none(), "the first segment is still there");
    assert_eq!(read_all(&store, &idle.room), kept, "carried forward, unchanged");
    assert_eq!(wait(store.read(&idle.room, Head(3), 1)).expect("readable")[0], kept[1]);
    drop((idle, store));
    disk.crash(1);
    // After a reopening it is all there, and a retry of long ago is still recognised.
    let (store, _) = open_on(&disk, small()).expect("opens");
    assert_eq!(read_all(&store, &room("idle")), kept);
    let again = waitroom_store::Batch { number, events: 2, payload: vec![4; 30] };
    let tip = wait(store.append(&room("idle"), &lease, Head(8), again)).expect("recognised");
    assert_eq!((tip.head, tip.chain), (Head(10), kept[4].chain));
}

#[test]
fn a_log_that_is_needed_is_not_copied_again_and_again() {
    let disk = SimDisk::new();
    let (store, _) = open_on(&disk, small()).expect("a new store");
    let mut owner = Owner::of(store.clone(), "kept");
    let mut appended = 0;
    for n in 0..300u32 {
        owner.append(1, vec![n as u8; 10]).expect("the disk works");
        appended += 10 + 130;
        // Trimming another room makes the journal look for space each time.
        if n % 20 == 0 {
            let mut other = Owner::of(store.clone(), "other");
            other.append(1, b"x".to_vec()).expect("the disk works");
            other.snapshot("x");
            wait(store.trim(&other.room, other.tip.head)).expect("behind the snapshot");
        }
    }
    let (bytes, _) = store.journal_size();
    assert!(bytes < appended * 3, "{bytes} bytes for {appended}");
    assert_eq!(read_all(&store, &owner.room).len(), 300);
}

#[test]
fn a_crash_while_carrying_loses_nothing() {
    for seed in 0..150 {
        let mut rng = Rng(seed);
        let disk = SimDisk::new();
        let (store, _) = open_on(&disk, small()).expect("a new store");
        let mut idle = Owner::of(store.clone(), "idle");
        for n in 0..8 {
            idle.append(1, vec![n; 200]).expect("the disk works");
        }
        let kept = read_all(&store, &idle.room);
        let mut owner = Owner::of(store.clone(), "busy");
        disk.power_fails_after(40 + rng.below(200));
        for round in 0..100u8 {
            if owner.append(1, vec![round; 150]).is_err() {
                break;
            }
            if round % 10 == 9 {
                let (name, tip) = (owner.room.clone(), owner.tip);
                let _ = wait(store.snapshot(&name, tip.head, tip.chain, std::iter::empty()));
                let limit = wait(store.trim_limit(&name)).expect("readable");
                let _ = wait(store.trim(&name, limit));
            }
        }
        let tip = owner.tip;
        disk.crash(rng.next());
        drop((idle, owner, store));
        let (store, _) = open_on(&disk, small()).expect("opens");
        assert_eq!(read_all(&store, &room("idle")), kept, "seed {seed}");
        assert!(wait(store.tip(&room("busy"))).expect("readable").head >= tip.head, "seed {seed}");
    }
}

#[test]
fn trimmed_segments_and_removed_rooms_go_to_the_archive() {
    let disk = SimDisk::new();
    let options = || Options { archive: Some("archive".into()), ..small() };
    let (store, _) = open_on(&disk, options()).expect("a new store");
    let mut owner = Owner::of(store.clone(), "busy");
    busy(&mut owner, 100, &mut 0);
    let archived = disk.list(Path::new("archive")).expect("there");
    assert!(archived.contains(&"00000000000000000001.seg".to_string()), "{archived:?}");
    let tip = owner.tip;
    wait(store.remove_room(&room("busy"))).expect("archived first");
    let archived = disk.list(Path::new("archive")).expect("there");
    let exported = archived.iter().find(|name| name.starts_with("busy-100-")).expect("exported");
    let import = wait(store.import(&Path::new("archive").join(exported))).expect("whole");
    assert_eq!((import.room, import.tip), (room("busy"), tip));
    // If the archive cannot be written, the room stays.
    disk.set_free_bytes(Some(0));
    assert!(wait(store.remove_room(&room("busy"))).is_err());
    assert_eq!(wait(store.tip(&room("busy"))), Ok(tip));
}

/// A store that was closed, whose room `ana` begins with the older of two snapshots.
fn leave_two_snapshots(disk: &SimDisk) {
    let (store, _) = open_on(disk, Options::default()).expect("a new store");
    let mut owner = Owner::of(store.clone(), "ana");
    for text in ["one", "two", "three"] {
        owner.append(1, text.into()).expect("the disk works");
        owner.snapshot(text);
    }
    let limit = wait(store.trim_limit(&owner.room)).expect("readable");
    wait(store.trim(&owner.room, limit)).expect("within the limit");
}

#[test]
fn a_damaged_newest_snapshot_falls_back_to_the_one_before() {
    let disk = SimDisk::new();
    leave_two_snapshots(&disk);
    let path = Path::new("snapshots/ana/00000000000000000003.snap");
    assert!(
        disk.contents(Path::new("snapshots/ana/00000000000000000001.snap")).is_none(),
        "two are kept"
    );
    let len = disk.contents(path).expect("there").len();
    for at in 0..len {
        let damaged = disk.fork();
        damaged.damage(path, |bytes| bytes[at] ^= 0x10);
        let (store, report) = open_on(&damaged, Options::default()).expect("opens");
        let found = wait(store.latest_snapshot(&room("ana"))).expect("readable").expect("one");
        assert_eq!((found.at, &found.chunks[..]), (Head(2), &[b"two".to_vec()][..]), "byte {at}");
        let told = report.set_aside.len() + found.passed_over.len();
        assert_eq!(told, 1, "byte {at}: somebody must hear of it");
        // The tail is still there, because trimming left the snapshot before the newest.
        assert_eq!(wait(store.read(&room("ana"), found.at, 1)).expect("readable").len(), 1);
    }
    for cut in 0..len {
        let damaged = disk.fork();
        damaged.damage(path, |bytes| bytes.truncate(cut));
        let (store, _) = open_on(&damaged, Options::default()).expect("opens");
        let found = wait(store.latest_snapshot(&room("ana"))).expect("readable").expect("one");
        assert_eq!(found.at, Head(2), "cut at {cut}");
    }
    // With no snapshot left and the log trimmed, it says so; it does not pretend to be empty.
    let damaged = disk.fork();
    for head in [2, 3] {
        let path = format!("snapshots/ana/{head:020}.snap");
        damaged.damage(Path::new(&path), |bytes| *bytes.last_mut().expect("some") ^= 1);
    }
    let (store, _) = open_on(&damaged, Options::default()).expect("opens");
    let found = wait(store.latest_snapshot(&room("ana")));
    assert!(matches!(found, Err(waitroom_store::Error::Damaged { .. })), "{found:?}");
}

#[test]
fn a_removed_room_leaves_no_snapshot_for_its_successor_even_if_removing_was_interrupted() {
    for operations in 0..12 {
        let disk = SimDisk::new();
        let (store, _) = open_on(&disk, Options::default()).expect("a new store");
        let mut owner = Owner::of(store.clone(), "ana");
        owner.append(1, b"old".to_vec()).expect("the disk works");
        owner.snapshot("old");
        disk.power_fails_after(operations);
        let _ = wait(store.remove_room(&owner.room));
        disk.crash(operations);
        drop((owner, store));
        let (store, _) = open_on(&disk, Options::default()).expect("opens");
        let mut owner = Owner::of(store.clone(), "ana");
        if owner.tip.head == Head(0) {
            owner.append(1, b"new".to_vec()).expect("the disk works");
            assert_eq!(wait(store.latest_snapshot(&owner.room)), Ok(None), "{operations}");
            drop((owner, store));
            let (store, _) = open_on(&disk, Options::default()).expect("opens");
            assert_eq!(wait(store.latest_snapshot(&room("ana"))), Ok(None), "{operations}");
        }
    }
}

#[test]
fn a_dead_sink_holds_the_log_until_its_cap_then_trimming_goes_on() {
    let (store, _) = open_on(&SimDisk::new(), small()).expect("a new store");
    let mut owner = Owner::of(store.clone(), "ana");
    let dead = SinkName::parse("dead").expect("a good name");
    owner.append(1, vec![0; 500]).expect("the disk works");
    wait(store.advance(&owner.room, &dead, Head(1))).expect("in the log");
    for _ in 0..50 {
        owner.append(1, vec![0; 500]).expect("the disk works");
    }
    owner.snapshot("s");
    assert!(wait(store.trim(&owner.room, owner.tip.head)).is_err());
    let keep = waitroom_store::Retention { keep_bytes: 10_000, keep_age_ms: u64::MAX };
    let gaps = wait(store.retire(&owner.room, keep)).expect("readable");
    assert_eq!(gaps, [(dead, waitroom_store::Gap { after: Head(1), to: Head(51) })]);
    wait(store.trim(&owner.room, owner.tip.head)).expect("nothing holds it");
    let (bytes, segments) = store.journal_size();
    assert!(segments <= 2, "{bytes} bytes in {segments} segments");
}

#[test]
fn a_snapshot_that_was_put_back_is_found_without_opening_the_store_again() {
    let disk = SimDisk::new();
    leave_two_snapshots(&disk);
    let paths = [2, 3].map(|head| PathBuf::from(format!("snapshots/ana/{head:020}.snap")));
    let good = disk.contents(&paths[1]).expect("there");
    // One is damaged in its body, which is noticed when it is needed, one in its header.
    disk.damage(&paths[0], |bytes| *bytes.last_mut().expect("some") ^= 1);
    disk.damage(&paths[1], |bytes| bytes[0] ^= 1);
    let (store, _) = open_on(&disk, Options::default()).expect("opens");
    for _ in 0..2 {
        let why = wait(store.latest_snapshot(&room("ana"))).expect_err("none is left").to_string();
        assert!(why.contains("the log up to event 2 was trimmed"), "{why}");
        assert!(why.contains("snapshots/ana"), "it says where to look: {why}");
    }
    let file = disk.create(&paths[1]).expect("it was set aside under another name");
    file.write_at(0, &good).expect("there is space");
    let found = wait(store.latest_snapshot(&room("ana"))).expect("readable").expect("one");
    assert_eq!((found.at, &found.chunks[..]), (Head(3), &[b"three".to_vec()][..]));
}
