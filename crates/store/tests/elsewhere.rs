//! Copies of a store: backup and restore, export and import, repair; and a second process that is
//! turned away.

mod common;

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use common::{Owner, TempDir, open_on, read_all, room};
use waitroom_store::{
    AppendError, Error, FileStore, Head, LeaseName, Seams, SimDisk, SinkName, Store,
    contract_tests::wait,
    file::{OpenError, Options, cut, restore},
    verify,
};

fn small() -> Options {
    Options { segment_bytes: 20_000, ..Options::default() }
}

fn open(dir: &Path) -> FileStore {
    FileStore::open(dir, small(), Seams::real()).expect("opens").0
}

#[test]
fn a_backup_taken_while_appending_restores_to_a_beginning_of_the_log() {
    let (data, backups) = (TempDir::new(), TempDir::new());
    let store = open(data.path());
    let names = ["ana", "bo", "cy"];
    let stop = AtomicBool::new(false);
    let acknowledged_before: Vec<_> = std::thread::scope(|scope| {
        for name in names {
            let (store, stop) = (store.clone(), &stop);
            scope.spawn(move || {
                let mut owner = Owner::of(store, name);
                let mut n = 0u64;
                while !stop.load(Ordering::Relaxed) {
                    n += 1;
                    owner.append(1, format!("{name} {n}").into_bytes()).expect("the disk works");
                    if n.is_multiple_of(50) {
                        owner.snapshot(&format!("{name} at {n}"));
                        let limit = wait(owner.store.trim_limit(&owner.room)).expect("readable");
                        wait(owner.store.trim(&owner.room, limit)).expect("within the limit");
                    }
                }
            });
        }
        for name in names {
            // Everybody is well under way, with snapshots taken and trims done.
            wait(store.follow(&room(name), Head(300))).expect("appended");
        }
        let before =
            names.iter().map(|name| wait(store.tip(&room(name))).expect("readable")).collect();
        let report = wait(store.backup(&backups.path().join("one"))).expect("there is space");
        assert_eq!(report.rooms, 3);
        let again = wait(store.backup(&backups.path().join("one")));
        assert!(matches!(again, Err(Error::Refused { .. })), "never over another: {again:?}");
        stop.store(true, Ordering::Relaxed);
        before
    });
    let restored = backups.path().join("restored");
    restore(&backups.path().join("one"), &restored).expect("whole");
    let copy = open(&restored);
    for (name, before) in names.iter().zip(acknowledged_before) {
        let name = room(name);
        let tip = wait(verify::chain(&copy, &name)).expect("the chain holds");
        assert!(tip.head >= before.head, "{name}: acknowledged before the backup, not in it");
        for stored in read_all(&copy, &name) {
            assert_eq!(stored.payload, format!("{name} {}", stored.head).into_bytes());
        }
        let snapshot = wait(copy.latest_snapshot(&name)).expect("whole").expect("taken");
        assert_eq!(snapshot.chunks, [format!("{name} at {}", snapshot.at).into_bytes()]);
        // Epochs of the lost time are left out.
        let lease = wait(copy.lease(&LeaseName::room(&name), "owner", 1)).expect("free");
        assert!(lease.epoch > 1_000, "{}", lease.epoch);
    }
}

#[test]
fn a_damaged_backup_is_not_restored() {
    let (data, backups) = (TempDir::new(), TempDir::new());
    let store = open(data.path());
    let mut owner = Owner::of(store.clone(), "ana");
    owner.append(1, b"x".to_vec()).expect("the disk works");
    let backup = backups.path().join("b");
    wait(store.backup(&backup)).expect("there is space");
    let segment = backup.join("journal/00000000000000000001.seg");
    let mut bytes = std::fs::read(&segment).expect("there");
    bytes[40] ^= 1;
    std::fs::write(&segment, bytes).expect("writable");
    let refused = restore(&backup, &backups.path().join("r")).expect_err("damaged");
    assert!(refused.contains("in the backup is damaged"), "{refused}");
    let refused = restore(&backup, data.path()).expect_err("not empty");
    assert!(refused.contains("not empty"), "{refused}");
    std::fs::remove_file(backup.join("BACKUP")).expect("there");
    let refused = restore(&backup, &backups.path().join("s")).expect_err("unfinished");
    assert!(refused.contains("no finished backup"), "{refused}");
}

#[test]
fn an_exported_room_is_the_same_room_elsewhere() {
    for trimmed in [false, true] {
        let (disk, other_disk) = (SimDisk::new(), SimDisk::new());
        let (store, _) = open_on(&disk, small()).expect("a new store");
        let mut owner = Owner::of(store.clone(), "ana");
        for n in 1..=40u32 {
            owner.append(2, format!("batch {n}").into_bytes()).expect("the disk works");
            if n == 30 {
                owner.snapshot("thirty");
            }
        }
        if trimmed {
            wait(store.trim(&owner.room, Head(51))).expect("behind the snapshot");
        }
        let tip =
            wait(store.export(&owner.room, Path::new("out/ana.wrroom"))).expect("there is space");
        assert_eq!(tip, owner.tip);

        let bytes = disk.contents(Path::new("out/ana.wrroom")).expect("written");
        put(&other_disk, "ana.wrroom", &bytes);
        let (other, _) = open_on(&other_disk, small()).expect("a new store");
        let import = wait(other.import(Path::new("ana.wrroom"))).expect("whole");
        assert_eq!((&import.room, import.tip), (&owner.room, owner.tip));
        assert_eq!(wait(other.tip(&owner.room)), Ok(owner.tip));
        let expected = read_all(&store, &owner.room);
        assert_eq!(read_all(&other, &owner.room), expected);
        let snapshot = wait(other.latest_snapshot(&owner.room)).expect("readable");
        assert_eq!(snapshot.map(|s| s.at), trimmed.then_some(Head(60)));
        let again = wait(other.import(Path::new("ana.wrroom")));
        assert!(matches!(again, Err(Error::Refused { .. })), "there already: {again:?}");
        // It survives, and its next owner has a higher epoch than any before.
        other_disk.crash(3);
        drop(other);
        let (other, _) = open_on(&other_disk, small()).expect("opens");
        assert_eq!(read_all(&other, &owner.room), expected);
        let mut next = Owner::of(other, "ana");
        assert!(next.lease.epoch > owner.lease.epoch);
        next.append(1, b"goes on".to_vec()).expect("the disk works");
    }
}

fn put(disk: &SimDisk, name: &str, bytes: &[u8]) {
    use waitroom_store::disk::{Disk, DiskFile};
    let file = disk.create(Path::new(name)).expect("new");
    file.write_at(0, bytes).expect("there is space");
    file.sync_data().expect("works");
    disk.sync_dir(Path::new("")).expect("works");
}

#[test]
fn an_altered_export_is_refused_and_leaves_no_room() {
    let disk = SimDisk::new();
    let (store, _) = open_on(&disk, small()).expect("a new store");
    let mut owner = Owner::of(store.clone(), "ana");
    for n in 0..6u8 {
        owner.append(2, vec![n; 20]).expect("the disk works");
    }
    owner.snapshot("s");
    wait(store.trim(&owner.room, Head(4))).expect("behind the snapshot");
    wait(store.export(&owner.room, Path::new("out/ana"))).expect("there is space");
    let bytes = disk.contents(Path::new("out/ana")).expect("written");
    let target = SimDisk::new();
    let (other, _) = open_on(&target, small()).expect("a new store");
    put(&target, "in", &bytes);
    for at in 0..bytes.len() {
        target.damage(Path::new("in"), |file| {
            file.clear();
            file.extend_from_slice(&bytes);
            file[at] ^= 0x20;
        });
        assert!(
            matches!(wait(other.import(Path::new("in"))), Err(Error::Damaged { .. })),
            "byte {at}"
        );
        target.damage(Path::new("in"), |file| {
            file.clear();
            file.extend_from_slice(&bytes[..at]);
        });
        assert!(
            matches!(wait(other.import(Path::new("in"))), Err(Error::Damaged { .. })),
            "cut at {at}"
        );
    }
    assert_eq!(wait(other.rooms()), Ok(vec![]));
    target.damage(Path::new("in"), |file| {
        file.clear();
        file.extend_from_slice(&bytes);
    });
    wait(other.import(Path::new("in"))).expect("unaltered it is welcome");
}

#[test]
fn an_export_altered_with_care_breaks_the_chain() {
    let disk = SimDisk::new();
    let (store, _) = open_on(&disk, small()).expect("a new store");
    let mut owner = Owner::of(store.clone(), "ana");
    for n in 0..6u8 {
        owner.append(2, vec![n; 20]).expect("the disk works");
    }
    wait(store.export(&owner.room, Path::new("out/ana"))).expect("there is space");
    let bytes = disk.contents(Path::new("out/ana")).expect("written");
    // Alter the last byte of each batch, and put the checksum right as a forger would.
    let (mut at, mut altered) = (8, 0);
    while at < bytes.len() {
        let len = u32::from_le_bytes(bytes[at + 1..at + 5].try_into().expect("four")) as usize;
        let end = at + 9 + len;
        if bytes[at] == b'B' {
            let mut forged = bytes.clone();
            forged[end - 1] ^= 1;
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(&forged[at..at + 5]);
            hasher.update(&forged[at + 9..end]);
            forged[at + 5..at + 9].copy_from_slice(&hasher.finalize().to_le_bytes());
            let target = SimDisk::new();
            put(&target, "in", &forged);
            let (other, _) = open_on(&target, small()).expect("a new store");
            let refused = wait(other.import(Path::new("in"))).expect_err("forged").to_string();
            assert!(refused.contains("something was altered"), "{refused}");
            assert_eq!(wait(other.rooms()), Ok(vec![]));
            altered += 1;
        }
        at = end;
    }
    assert_eq!(altered, 6);
}

#[test]
fn an_import_that_was_interrupted_is_undone() {
    let disk = SimDisk::new();
    let (store, _) = open_on(&disk, small()).expect("a new store");
    let mut owner = Owner::of(store.clone(), "ana");
    for n in 0..10u8 {
        owner.append(1, vec![n; 20]).expect("the disk works");
    }
    wait(store.export(&owner.room, Path::new("ana"))).expect("there is space");
    let bytes = disk.contents(Path::new("ana")).expect("written");
    let (mut undone, mut whole) = (0, 0);
    for operations in 0..40 {
        let target = SimDisk::new();
        put(&target, "in", &bytes);
        let (other, _) = open_on(&target, small()).expect("a new store");
        target.power_fails_after(operations);
        let done = wait(other.import(Path::new("in"))).is_ok();
        target.crash(operations);
        drop(other);
        let (other, report) = open_on(&target, small()).expect("opens");
        match wait(other.committed_head(&owner.room)).expect("readable") {
            Head(0) => {
                assert!(!done, "an import that was acknowledged is lost");
                assert_eq!(wait(other.rooms()), Ok(vec![]));
                undone += report.half_imports.len();
                wait(other.import(Path::new("in"))).expect("it can be imported again");
            }
            head => {
                assert_eq!(head, Head(10), "half an import");
                whole += 1;
            }
        }
        assert_eq!(read_all(&other, &owner.room), read_all(&store, &owner.room));
    }
    assert!(undone > 5 && whole > 0, "{undone} undone, {whole} whole");
}

#[test]
fn a_cut_journal_opens_with_what_was_before_the_damage() {
    let data = TempDir::new();
    let store = open(data.path());
    let mut owner = Owner::of(store.clone(), "ana");
    let mut lens = vec![];
    let segment = data.path().join("journal/00000000000000000001.seg");
    for n in 1..=20u8 {
        owner.append(1, vec![n; 50]).expect("the disk works");
        lens.push(std::fs::metadata(&segment).expect("there").len());
    }
    owner.snapshot("twenty");
    drop((owner, store));
    let mut bytes = std::fs::read(&segment).expect("there");
    let at = lens[9] as usize;
    bytes[at + 20] ^= 4;
    std::fs::write(&segment, &bytes).expect("writable");
    let refused = FileStore::open(data.path(), small(), Seams::real()).map(|_| ());
    let Err(OpenError::Damaged { at: told, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(told as usize, at);
    let report = cut(data.path(), 1, told).expect("possible");
    assert_eq!(report.moved.len(), 1);
    assert_eq!(report.opened.set_aside.len(), 1, "the snapshot is ahead of the log now");
    assert_eq!(
        std::fs::read(data.path().join("damaged/00000000000000000001.seg")).expect("moved"),
        bytes
    );
    let store = open(data.path());
    assert_eq!(wait(verify::chain(&store, &room("ana"))).expect("holds").head, Head(10));
    assert!(Owner::of(store, "ana").lease.epoch > 1_000);
    assert!(cut(data.path(), 7, 0).is_err());
}

/// The child of the next test: opens the folder it is given and says how that went.
#[test]
fn child_opens_a_folder() {
    let Some(dir) = std::env::var_os("STORE_TEST_CHILD_DIR") else { return };
    match FileStore::open(PathBuf::from(dir), Options::default(), Seams::real()) {
        Ok(_) => println!("child: opened"),
        Err(error) => println!("child: {error}"),
    }
}

#[test]
fn a_second_process_is_turned_away_and_told_who_is_there() {
    let data = TempDir::new();
    let child = || {
        let output = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "child_opens_a_folder", "--nocapture"])
            .env("STORE_TEST_CHILD_DIR", data.path())
            .output()
            .expect("runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let store = open(data.path());
    let told = child();
    let pid = std::process::id();
    assert!(told.contains(&format!("is in use by process {pid}")), "{told}");
    assert!(told.contains("stop it first"), "{told}");
    drop(store);
    assert!(child().contains("child: opened"));
}

#[test]
fn many_writers_share_syncs_and_every_answer_is_true() {
    let data = TempDir::new();
    let store = open(data.path());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = store.clone();
            scope.spawn(move || {
                let name = format!("room-{thread}");
                let owner = Owner::of(store.clone(), &name);
                // All on the way at once, answered in order.
                let sent: Vec<_> = (0..500u64)
                    .map(|n| {
                        let payload = format!("{thread}:{n}").into_bytes();
                        let batch = waitroom_store::Batch { number: n + 1, events: 1, payload };
                        store.append(&owner.room, &owner.lease, Head(n), batch)
                    })
                    .collect();
                for (n, sent) in (1..).zip(sent) {
                    assert_eq!(wait(sent).expect("the disk works").head, Head(n));
                }
                let sink = SinkName::parse("s").expect("a good name");
                wait(store.advance(&owner.room, &sink, Head(500))).expect("in the log");
            });
        }
    });
    drop(store);
    let (store, report) = FileStore::open(data.path(), small(), Seams::real()).expect("opens");
    assert!(report.clean);
    assert_eq!((report.rooms, report.batches), (8, 4_000));
    for thread in 0..8 {
        let log = read_all(&store, &room(&format!("room-{thread}")));
        assert!((0..500).zip(&log).all(|(n, s)| s.payload == format!("{thread}:{n}").into_bytes()));
    }
}

#[test]
fn a_full_queue_refuses_at_once() {
    let data = TempDir::new();
    let options = Options { queue_max: 4, ..Options::default() };
    let (store, _) = FileStore::open(data.path(), options, Seams::real()).expect("opens");
    let owner = Owner::of(store.clone(), "ana");
    let sent: Vec<_> = (0..2_000u64)
        .map(|n| {
            let batch = waitroom_store::Batch { number: n + 1, events: 1, payload: vec![0; 10] };
            store.append(&owner.room, &owner.lease, Head(n), batch)
        })
        .collect();
    let answers: Vec<_> = sent.into_iter().map(wait).collect();
    let taken = answers.iter().take_while(|answer| answer.is_ok()).count();
    assert!(taken > 0 && taken < 2_000, "{taken} were taken");
    assert!(matches!(answers[taken], Err(AppendError::Refused { .. })), "{:?}", answers[taken]);
    // Those behind a refused one were decided on a head that never came.
    let later_ok = answers[taken..].iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(later_ok, 0);
    assert_eq!(wait(store.committed_head(&owner.room)), Ok(Head(taken as u64)));
}

#[test]
fn a_store_opens_in_a_new_folder_named_relatively() {
    let name = format!("target-relative-{}", std::process::id());
    let opened = FileStore::open(name.as_str(), Options::default(), Seams::real());
    let opened = opened.map(|(store, _)| drop(store));
    std::fs::remove_dir_all(&name).expect("the folder was made");
    opened.expect("a relative folder is a folder");
}
