//! Files of format version 1, kept for good: every later release must read them as this one does.
//!
//! `fixtures/v1/good` is a data folder with every kind of record; `fixtures/v1/damaged` is the same
//! with one bit of its journal flipped; `fixtures/v1/ana.wrroom` is an exported room. They were
//! written by this test, run once with `WRITE_FIXTURES=1`; it also proves that the format has not
//! moved by accident, because the same requests must still give the same bytes.

mod common;

use std::path::{Path, PathBuf};

use common::{Owner, open_on, read_all, room};
use waitroom_store::{
    Head, LeaseName, RoomName, SimDisk, SinkName, Store,
    contract_tests::wait,
    disk::{Disk, DiskFile},
    file::{OpenError, Options},
    verify,
};

/// The chain of room `ana` in the fixture, written down when it was made.
const TIP_OF_ANA: (u64, &str) =
    (60, "7b1155bd98000b9fed4a8e4d3e1da0ef5a7b77ced595451cccc6f166293b1a1f");

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/v1").join(name)
}

fn options() -> Options {
    Options { segment_bytes: 3_000, ..Options::default() }
}

/// Every kind of record, several segments, a carried batch, snapshots, an export.
fn write_all() -> SimDisk {
    let disk = SimDisk::new();
    let (store, _) = open_on(&disk, options()).expect("a new store");
    let mut idle = Owner::of(store.clone(), "idle");
    idle.append(3, b"carried forward one day".to_vec()).expect("the disk works");
    let mut ana = Owner::of(store.clone(), "ana");
    let (bus, dead) = (SinkName::parse("bus").unwrap(), SinkName::parse("dead").unwrap());
    for n in 1..=30u8 {
        ana.append(2, vec![n; 100]).expect("the disk works");
        if n == 10 {
            wait(store.advance(&ana.room, &dead, Head(3))).expect("in the log");
            wait(store.mark_broken(&ana.room, &dead, Head(9))).expect("in the log");
        }
        if n % 10 == 0 {
            ana.snapshot(&format!("at {n}"));
            wait(store.advance(&ana.room, &bus, ana.tip.head)).expect("in the log");
            let limit = wait(store.trim_limit(&ana.room)).expect("readable");
            wait(store.trim(&ana.room, limit)).expect("within the limit");
        }
    }
    wait(store.keep_from(&ana.room, Some(Head(45)))).expect("there is such a room");
    wait(store.export(&ana.room, Path::new("ana.wrroom"))).expect("there is space");
    let mut gone = Owner::of(store.clone(), "gone");
    gone.append(1, b"x".to_vec()).expect("the disk works");
    wait(store.advance(&gone.room, &bus, Head(1))).expect("in the log");
    wait(store.drop_cursor(&gone.room, &bus)).expect("in the log");
    wait(store.remove_room(&gone.room)).expect("nobody minds");
    wait(store.release(&gone.lease)).expect("ours");
    let mut system = Owner { room: RoomName::system(), ..Owner::of(store.clone(), "idle") };
    system.lease = wait(store.lease(&LeaseName::room(&system.room), "owner", 1)).expect("free");
    (system.tip, system.number) = (Default::default(), 0);
    system.append(1, b"[]".to_vec()).expect("the disk works");
    drop((idle, ana, gone, system, store));
    disk
}

fn load(from: &Path) -> SimDisk {
    let disk = SimDisk::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inside) = folders.pop() {
        for entry in std::fs::read_dir(from.join(&inside)).expect("the fixtures are here") {
            let path = inside.join(entry.expect("readable").file_name());
            if from.join(&path).is_dir() {
                disk.create_dir(&path).expect("works");
                folders.push(path);
            } else {
                let file = disk.create(&path).expect("new");
                file.write_at(0, &std::fs::read(from.join(&path)).expect("readable"))
                    .expect("works");
            }
        }
    }
    disk.fork()
}

fn save(disk: &SimDisk, to: &Path) {
    for path in disk.paths() {
        let target = to.join(&path);
        std::fs::create_dir_all(target.parent().expect("inside")).expect("writable");
        std::fs::write(target, disk.contents(&path).expect("listed")).expect("writable");
    }
}

#[test]
fn the_same_requests_still_give_the_same_bytes() {
    let disk = write_all();
    if std::env::var_os("WRITE_FIXTURES").is_some() {
        save(&disk, &folder("good"));
        let path = Path::new("ana.wrroom");
        std::fs::rename(folder("good").join(path), folder("ana.wrroom")).expect("writable");
        let newest = newest_segment(&disk);
        disk.damage(&newest, |bytes| bytes[500] ^= 2);
        disk.remove(path).expect("there");
        save(&disk, &folder("damaged"));
        return;
    }
    let good = load(&folder("good"));
    for path in good.paths() {
        assert!(disk.contents(&path) == good.contents(&path), "{} changed", path.display());
    }
    let exported = std::fs::read(folder("ana.wrroom")).expect("the fixtures are here");
    assert!(disk.contents(Path::new("ana.wrroom")) == Some(exported), "the export changed");
    assert_eq!(disk.paths().len(), good.paths().len() + 1);
}

fn newest_segment(disk: &SimDisk) -> PathBuf {
    let segments = disk.paths().into_iter().filter(|path| path.starts_with("journal"));
    segments.max().expect("there is one")
}

#[test]
fn a_good_folder_of_version_1_opens_as_it_was_left() {
    let disk = load(&folder("good"));
    let (store, report) = open_on(&disk, options()).expect("opens");
    assert!(report.clean && report.cut.is_none() && report.set_aside.is_empty(), "{report}");
    let ana = room("ana");
    let tip = wait(verify::chain(&store, &ana)).expect("the chain holds");
    assert_eq!((tip.head.0, &*tip.chain.to_string()), TIP_OF_ANA);
    assert_eq!(wait(store.trimmed_to(&ana)), Ok(Head(40)));
    assert_eq!(read_all(&store, &ana).len(), 10);
    assert_eq!(read_all(&store, &room("idle"))[0].payload, b"carried forward one day");
    assert_eq!(wait(store.rooms()), Ok(vec![ana.clone(), room("idle")]));
    assert_eq!(read_all(&store, &RoomName::system()).len(), 1);
    let snapshot = wait(store.latest_snapshot(&ana)).expect("readable").expect("there");
    assert_eq!((snapshot.at, snapshot.chunks), (Head(60), vec![b"at 30".to_vec()]));
    let cursors = wait(store.cursors(&ana)).expect("readable");
    assert_eq!(cursors.len(), 2);
    assert!(cursors[1].1.broken && cursors[1].1.gap.is_some());
    let next = wait(store.lease(&LeaseName::room(&room("gone")), "owner", 1)).expect("free");
    assert_eq!(next.epoch, 2);
}

#[test]
fn a_damaged_folder_of_version_1_is_refused() {
    let disk = load(&folder("damaged"));
    let refused = open_on(&disk, options()).map(|_| ());
    assert!(matches!(refused, Err(OpenError::Damaged { .. })), "{refused:?}");
}

#[test]
fn an_export_of_version_1_is_taken_in() {
    let disk = SimDisk::new();
    let file = disk.create(Path::new("in")).expect("new");
    file.write_at(0, &std::fs::read(folder("ana.wrroom")).expect("the fixtures are here"))
        .expect("works");
    let (store, _) = open_on(&disk, options()).expect("a new store");
    let import = wait(store.import(Path::new("in"))).expect("whole");
    assert_eq!((import.tip.head.0, &*import.tip.chain.to_string()), TIP_OF_ANA);
    assert_eq!(import.snapshot, Some(Head(60)));
}
