//! Snapshots, and how far they let the log be trimmed.
//!
//! Lives here: the clauses under "Snapshots and trimming" on [`Store`].
//! Stays out: what a reader is told of the trimmed part (`reading`), and how a cursor stops holding
//! a trim up (`cursors`).

use super::{
    Fixture, wait,
    writer::{Writer, room, sink},
};
use crate::{Chain, Error, Head, HeldBy, RoomName, Store};

pub fn the_latest_snapshot_comes_back_as_given(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    writer.append(1, "a");
    writer.snapshot("old");
    let tip = writer.append(1, "b");
    let chunks: Vec<Vec<u8>> = vec![b"one".to_vec(), vec![], vec![7; 300_000]];
    let taken = store.snapshot(&writer.room, tip.head, tip.chain, chunks.clone().into_iter());
    assert_eq!(wait(taken), Ok(()));
    let snapshot = wait(store.latest_snapshot(&writer.room)).unwrap().expect("there is one");
    assert_eq!((snapshot.at, snapshot.chain, &snapshot.chunks), (tip.head, tip.chain, &chunks));
    assert_eq!(snapshot.passed_over, Vec::<String>::new());
    // Taken again at the same head, it replaces the one before.
    writer.snapshot("again");
    let snapshot = wait(store.latest_snapshot(&writer.room)).unwrap().expect("there is one");
    assert_eq!((snapshot.at, snapshot.chunks), (tip.head, vec![b"again".to_vec()]));
}

pub fn a_snapshot_must_lie_on_the_chain(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    let first = writer.append(2, "a");
    let second = writer.append(2, "b");
    let wrong = [
        (Head(0), Chain::START),
        (Head(1), first.chain),
        (Head(2), second.chain),
        (Head(4), first.chain),
        (Head(5), second.chain),
    ];
    for (at, chain) in wrong {
        let taken = wait(store.snapshot(&writer.room, at, chain, vec![].into_iter()));
        assert!(matches!(taken, Err(Error::Refused { .. })), "{at}: {taken:?}");
    }
    let taken = wait(store.snapshot(&room("nowhere"), Head(1), first.chain, vec![].into_iter()));
    assert!(matches!(taken, Err(Error::Refused { .. })), "{taken:?}");
    assert_eq!(wait(store.latest_snapshot(&writer.room)), Ok(None));
    // One taken while the log went on is welcome.
    let taken = store.snapshot(&writer.room, first.head, first.chain, vec![].into_iter());
    assert_eq!(wait(taken), Ok(()));
}

pub fn snapshots_never_go_back(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    let first = writer.append(1, "a");
    writer.append(1, "b");
    writer.snapshot("b");
    let taken = store.snapshot(&writer.room, first.head, first.chain, vec![].into_iter());
    assert!(matches!(wait(taken), Err(Error::Refused { .. })));
    assert_eq!(wait(store.latest_snapshot(&writer.room)).unwrap().unwrap().at, Head(2));
}

pub fn trim_stops_at_the_latest_snapshot(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    writer.append(2, "a");
    let above = |floor| Err(Error::AboveFloor { floor: Head(floor), held_by: HeldBy::Snapshot });
    assert_eq!(writer.trim(1), above(0));
    writer.snapshot("a");
    writer.append(2, "b");
    assert_eq!(writer.trim(3), above(2));
    assert_eq!(writer.trim(2), Ok(()));
    assert_eq!(writer.payloads(2), ["b"]);
}

pub fn trim_stops_at_the_lowest_cursor(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    writer.append(9, "a");
    writer.snapshot("a");
    wait(store.advance(&writer.room, &sink("fast"), Head(8))).expect("in the log");
    wait(store.advance(&writer.room, &sink("slow"), Head(3))).expect("in the log");
    let held_by = HeldBy::Cursor(sink("slow"));
    assert_eq!(writer.trim(4), Err(Error::AboveFloor { floor: Head(3), held_by }));
    assert_eq!(writer.trim(3), Ok(()));
    wait(store.advance(&writer.room, &sink("slow"), Head(9))).expect("in the log");
    let held_by = HeldBy::Cursor(sink("fast"));
    assert_eq!(writer.trim(9), Err(Error::AboveFloor { floor: Head(8), held_by }));
}

pub fn trim_stops_at_keep_from(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    writer.append(9, "a");
    writer.snapshot("a");
    assert_eq!(wait(store.keep_from(&writer.room, Some(Head(4)))), Ok(()));
    let held_by = HeldBy::Retention;
    assert_eq!(writer.trim(5), Err(Error::AboveFloor { floor: Head(4), held_by }));
    assert_eq!(writer.trim(4), Ok(()));
    assert_eq!(wait(store.keep_from(&writer.room, None)), Ok(()));
    assert_eq!(writer.trim(9), Ok(()));
}

pub fn the_system_log_is_never_trimmed(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::of(&store, RoomName::system());
    writer.append(5, "audit");
    writer.snapshot("s");
    writer.append(5, "audit");
    writer.snapshot("s");
    let held_by = HeldBy::Retention;
    assert_eq!(writer.trim(1), Err(Error::AboveFloor { floor: Head(0), held_by }));
    assert_eq!(wait(store.trim_limit(&writer.room)), Ok(Head(0)));
    assert_eq!(wait(store.rooms()), Ok(vec![]));
    assert!(matches!(wait(store.remove_room(&writer.room)), Err(Error::Refused { .. })));
    assert_eq!(writer.payloads(0).len(), 2);
}

pub fn trim_limit_leaves_the_snapshot_before_the_newest(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    let limit = || wait(store.trim_limit(&room("r"))).expect("readable");
    writer.append(2, "a");
    writer.snapshot("a");
    assert_eq!(limit(), Head(0));
    writer.append(2, "b");
    writer.snapshot("b");
    assert_eq!(limit(), Head(2));
    writer.append(2, "c");
    writer.snapshot("c");
    assert_eq!(limit(), Head(4));
    wait(store.advance(&writer.room, &sink("slow"), Head(3))).expect("in the log");
    assert_eq!(limit(), Head(3));
    assert_eq!(writer.trim(3), Ok(()));
    wait(store.keep_from(&writer.room, Some(Head(1)))).expect("there is such a room");
    assert_eq!(limit(), Head(3), "what is gone is gone");
}
