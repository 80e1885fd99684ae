//! Reading: whole batches in order, never a silent gap, and all of it again after a reopening.
//!
//! Lives here: the clauses under "Reading" on [`Store`].
//! Stays out: how far a log may be trimmed (`snapshots`), and what sinks remember of their reading
//! (`cursors`).

use std::{
    pin::pin,
    task::{Context, Waker},
};

use super::{
    Fixture, wait,
    writer::{Writer, batch, room, sink},
};
use crate::{
    AppendError, Appended, Chain, Cursor, Error, Gap, Head, HeldBy, Lease, LeaseName, Store,
};

pub fn read_gives_whole_batches_in_order(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    for n in 1..=20 {
        writer.append(n, &format!("batch {n}"));
    }
    let stored = wait(store.read(&writer.room, Head(0), usize::MAX)).expect("readable");
    let mut chain = Chain::START;
    let mut head = Head(0);
    for (n, stored) in (1u64..).zip(&stored) {
        assert_eq!((stored.after, stored.number, u64::from(stored.events)), (head, n, n));
        assert_eq!((stored.epoch, stored.nonce), (writer.lease.epoch, writer.lease.nonce));
        assert_eq!(stored.payload, format!("batch {n}").as_bytes());
        chain = chain.next(&writer.room, &stored.link(), &stored.payload);
        head = stored.head;
        assert_eq!(stored.chain, chain);
    }
    assert_eq!((stored.len(), Appended { head, chain }), (20, writer.tip));
}

pub fn read_starts_with_the_batch_that_holds_the_next_event(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    writer.append(3, "one to three");
    writer.append(3, "four to six");
    assert_eq!(writer.payloads(0).len(), 2);
    assert_eq!(writer.payloads(2).len(), 2);
    assert_eq!(writer.payloads(3), ["four to six"]);
    assert_eq!(writer.payloads(5), ["four to six"]);
    assert_eq!(writer.payloads(6), Vec::<String>::new());
    assert_eq!(writer.payloads(99), Vec::<String>::new());
}

pub fn read_is_bounded_but_brings_at_least_one_batch(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    for _ in 0..5 {
        writer.append(1, "0123456789");
    }
    let read = |max| wait(store.read(&writer.room, Head(0), max)).expect("readable").len();
    assert_eq!([read(0), read(1), read(10), read(19), read(20), read(50)], [1, 1, 1, 1, 2, 5]);
}

pub fn read_below_the_trim_says_so(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    writer.append(2, "a");
    writer.append(2, "b");
    writer.append(2, "c");
    writer.snapshot("s");
    // Trimmed within a batch: the batch stays, because its later events are still wanted.
    assert_eq!(writer.trim(3), Ok(()));
    assert_eq!(wait(store.trimmed_to(&writer.room)), Ok(Head(3)));
    for from in [0, 1, 2] {
        let read = wait(store.read(&writer.room, Head(from), usize::MAX));
        assert_eq!(read, Err(Error::Trimmed { to: Head(3) }));
    }
    assert_eq!(writer.payloads(3), ["b", "c"]);
    assert_eq!(writer.trim(2), Ok(()), "trimming again, less far, is nothing");
    assert_eq!(wait(store.trimmed_to(&writer.room)), Ok(Head(3)));
    assert_eq!(writer.trim(6), Ok(()));
    assert_eq!(writer.payloads(6), Vec::<String>::new());
    writer.append(1, "d");
    assert_eq!(writer.payloads(6), ["d"]);
}

pub fn an_unknown_room_is_empty(made: impl Fixture) {
    let store = made.store();
    let nowhere = room("nowhere");
    assert_eq!(wait(store.tip(&nowhere)), Ok(Appended { head: Head(0), chain: Chain::START }));
    assert_eq!(wait(store.read(&nowhere, Head(0), 1)), Ok(vec![]));
    assert_eq!(wait(store.latest_snapshot(&nowhere)), Ok(None));
    assert_eq!(wait(store.trimmed_to(&nowhere)), Ok(Head(0)));
    assert_eq!(wait(store.trim_limit(&nowhere)), Ok(Head(0)));
    assert_eq!(wait(store.cursors(&nowhere)), Ok(vec![]));
    assert_eq!(wait(store.holder_of(&LeaseName::room(&nowhere))), Ok(None));
    assert_eq!(wait(store.rooms()), Ok(vec![]));
}

pub fn follow_waits_for_the_next_commit(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    let mut early = pin!(store.follow(&writer.room, Head(0)));
    let mut context = Context::from_waker(Waker::noop());
    assert!(early.as_mut().poll(&mut context).is_pending());
    writer.append(2, "a");
    assert_eq!(wait(early), Ok(Head(2)));
    assert_eq!(wait(store.follow(&writer.room, Head(1))), Ok(Head(2)));
    let mut later = pin!(store.follow(&writer.room, Head(2)));
    assert!(later.as_mut().poll(&mut context).is_pending());
    Writer::open(&store, "other").append(9, "elsewhere");
    assert!(later.as_mut().poll(&mut context).is_pending());
    // From another handle, and on another thread, as in real life.
    let other = made.store();
    std::thread::scope(|scope| {
        scope.spawn(|| writer.append(1, "b"));
        assert_eq!(wait(other.follow(&room("r"), Head(2))), Ok(Head(3)));
    });
    assert_eq!(wait(later), Ok(Head(3)));
}

pub fn acknowledged_survives_reopen(mut made: impl Fixture) {
    let store = made.store();
    let (outbox, dead) = (sink("outbox"), sink("dead"));
    let mut writer = Writer::open(&store, "r");
    for n in 1..=10 {
        writer.append(2, &format!("batch {n}"));
    }
    writer.snapshot("ten");
    writer.append(1, "eleven");
    wait(store.advance(&writer.room, &outbox, Head(7))).expect("in the log");
    wait(store.advance(&writer.room, &dead, Head(1))).expect("in the log");
    wait(store.mark_broken(&writer.room, &dead, Head(5))).expect("in the log");
    assert_eq!(writer.trim(6), Ok(()));
    wait(store.keep_from(&writer.room, Some(Head(6)))).expect("there is such a room");
    Writer::open(&store, "gone").append(1, "x");
    wait(store.remove_room(&room("gone"))).expect("nobody minds");
    let stored = wait(store.read(&writer.room, Head(6), usize::MAX)).expect("readable");
    let (lease, tip, name) = (writer.lease.clone(), writer.tip, writer.room.clone());
    drop(store);
    made.reopen();

    let store = made.store();
    assert_eq!(wait(store.tip(&name)), Ok(tip));
    assert_eq!(wait(store.read(&name, Head(6), usize::MAX)), Ok(stored));
    assert_eq!(wait(store.read(&name, Head(5), 1)), Err(Error::Trimmed { to: Head(6) }));
    let snapshot = wait(store.latest_snapshot(&name)).expect("readable").expect("there is one");
    assert_eq!((snapshot.at, snapshot.chunks), (Head(20), vec![b"ten".to_vec()]));
    assert_eq!(wait(store.cursor(&name, &outbox)).unwrap().unwrap().at, Head(7));
    let gap = Gap { after: Head(1), to: Head(5) };
    let broken = Cursor { at: Head(5), broken: true, gap: Some(gap) };
    assert_eq!(wait(store.cursor(&name, &dead)), Ok(Some(broken)));
    let held = Error::AboveFloor { floor: Head(6), held_by: HeldBy::Retention };
    assert_eq!(wait(store.trim(&name, Head(7))), Err(held));
    assert_eq!(wait(store.rooms()), Ok(vec![name.clone()]));
    // The lease is still the newest one: its owner goes on, and retries are recognised.
    let again = store.append(&name, &lease, Head(20), batch(11, 1, "eleven"));
    assert_eq!(wait(again), Ok(tip));
    let on = wait(store.append(&name, &lease, tip.head, batch(12, 1, "twelve")));
    assert_eq!(on.expect("goes on").head, Head(22));
    let forged = Lease { nonce: !lease.nonce, ..lease.clone() };
    let sent = store.append(&name, &forged, Head(22), batch(13, 1, "no"));
    assert_eq!(wait(sent), Err(AppendError::Fenced { epoch: lease.epoch }));
}
