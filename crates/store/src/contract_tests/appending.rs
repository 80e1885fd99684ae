//! Appending: who may write, where, and what a retry is told.
//!
//! Lives here: the clauses under "Appending" on [`Store`].
//! Stays out: how leases are granted and lost (`leases`), and how the log is read back (`reading`).

use super::{
    Fixture, wait,
    writer::{Writer, batch, room},
};
use crate::{AppendError, Appended, Chain, Head, Lease, LeaseName, Link, Store};

pub fn append_counts_events(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    let first = writer.append(3, "abc");
    let second = writer.append(2, "de");
    assert_eq!((first.head, second.head), (Head(3), Head(5)));
    let Lease { epoch, nonce, .. } = writer.lease;
    let link = Link { epoch, nonce, number: 1, after: Head(0), events: 3 };
    assert_eq!(first.chain, Chain::START.next(&writer.room, &link, b"abc"));
    let link = Link { epoch, nonce, number: 2, after: Head(3), events: 2 };
    assert_eq!(second.chain, first.chain.next(&writer.room, &link, b"de"));
    assert_eq!(wait(store.tip(&writer.room)), Ok(second));
    assert_eq!(wait(store.committed_head(&writer.room)), Ok(Head(5)));
}

pub fn append_refuses_a_stale_head(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    writer.append(2, "won");
    for wrong in [0, 1, 3, u64::MAX] {
        let sent = store.append(&writer.room, &writer.lease, Head(wrong), batch(9, 1, "lost"));
        assert_eq!(wait(sent), Err(AppendError::Stale { head: Head(2) }));
    }
    assert_eq!(writer.payloads(0), ["won"]);
    writer.append(1, "goes on");
}

pub fn append_refuses_a_batch_without_events(made: impl Fixture) {
    let store = made.store();
    let writer = Writer::open(&store, "r");
    let sent = wait(store.append(&writer.room, &writer.lease, Head(0), batch(1, 0, "nothing")));
    assert!(matches!(sent, Err(AppendError::Refused { .. })), "{sent:?}");
    assert_eq!(wait(store.committed_head(&writer.room)), Ok(Head(0)));
    assert_eq!(wait(store.rooms()), Ok(vec![]));
}

pub fn append_is_fenced_without_the_current_lease(made: impl Fixture) {
    let store = made.store();
    let mut old = Writer::open(&store, "r");
    old.append(1, "old");
    made.advance(2_001);
    let other = wait(store.lease(&old.lease.name, "other", 2_000)).expect("expired");
    let elsewhere = Writer::open(&store, "elsewhere");
    let forged = Lease { nonce: other.nonce ^ 1, ..other.clone() };
    let future = Lease { epoch: other.epoch + 1, ..other.clone() };
    for wrong in [&old.lease, &forged, &future, &elsewhere.lease] {
        let sent = store.append(&old.room, wrong, Head(1), batch(2, 1, "fenced"));
        assert_eq!(wait(sent), Err(AppendError::Fenced { epoch: other.epoch }));
    }
    assert_eq!(wait(store.release(&other)), Ok(()));
    let sent = store.append(&old.room, &other, Head(1), batch(2, 1, "released"));
    assert_eq!(wait(sent), Err(AppendError::Fenced { epoch: other.epoch }));
    assert_eq!(old.payloads(0), ["old"]);
    let nobody = room("nobody");
    let lease = Lease { name: LeaseName::room(&nobody), epoch: 1, nonce: 0 };
    let sent = store.append(&nobody, &lease, Head(0), batch(1, 1, "never leased"));
    assert_eq!(wait(sent), Err(AppendError::Fenced { epoch: 0 }));
}

pub fn an_expired_lease_appends_until_granted_anew(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    made.advance(60_000);
    assert_eq!(wait(store.holder_of(&writer.lease.name)), Ok(None));
    writer.append(1, "late but alone");
    wait(store.lease(&writer.lease.name, "next", 2_000)).expect("expired");
    let sent = store.append(&writer.room, &writer.lease, writer.tip.head, batch(2, 1, "too late"));
    assert!(matches!(wait(sent), Err(AppendError::Fenced { .. })));
}

pub fn a_retry_returns_its_own_head(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    let tips: Vec<Appended> = (1..=200).map(|n| writer.append(2, &format!("batch {n}"))).collect();
    for number in [200u64, 199, 100, 2, 1] {
        let again = batch(number, 2, &format!("batch {number}"));
        let expected = Head((number - 1) * 2);
        let sent = store.append(&writer.room, &writer.lease, expected, again);
        assert_eq!(wait(sent), Ok(tips[number as usize - 1]), "batch {number}");
    }
    assert_eq!(writer.payloads(0).len(), 200);
    assert_eq!(wait(store.tip(&writer.room)), Ok(writer.tip));
}

pub fn a_retry_must_be_the_same_batch(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    writer.append(2, "this");
    for other in [batch(1, 2, "that"), batch(1, 3, "this")] {
        let sent = wait(store.append(&writer.room, &writer.lease, Head(0), other));
        assert!(matches!(sent, Err(AppendError::Refused { .. })), "{sent:?}");
    }
    assert_eq!(writer.payloads(0), ["this"]);
}

pub fn batch_numbers_go_up(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    writer.number = 4;
    writer.append(1, "five");
    let sent = wait(store.append(&writer.room, &writer.lease, Head(1), batch(4, 1, "four")));
    assert!(matches!(sent, Err(AppendError::Refused { .. })), "{sent:?}");
    writer.snapshot("five");
    assert_eq!(writer.trim(1), Ok(()));
    let sent = wait(store.append(&writer.room, &writer.lease, Head(0), batch(5, 1, "five")));
    assert!(matches!(sent, Err(AppendError::Refused { .. })), "trimmed: {sent:?}");
    // A new epoch counts from the beginning.
    let mut next = Writer::open(&store, "r");
    next.append(1, "one");
    assert_eq!(next.payloads(1), ["one"]);
}

pub fn appends_in_flight_keep_call_order(made: impl Fixture) {
    let store = made.store();
    let writer = Writer::open(&store, "r");
    let sent: Vec<_> = (1..=50u64)
        .map(|n| {
            store.append(&writer.room, &writer.lease, Head(n - 1), batch(n, 1, &n.to_string()))
        })
        .collect();
    // Awaited last first: the order of the calls counts, not of the polls.
    let heads: Vec<_> =
        sent.into_iter().rev().map(|sent| wait(sent).expect("in order").head).collect();
    assert_eq!(heads, (1..=50).rev().map(Head).collect::<Vec<_>>());
    assert_eq!(writer.payloads(0), (1..=50).map(|n: u64| n.to_string()).collect::<Vec<_>>());
}

pub fn a_failed_append_fails_those_behind_it(made: impl Fixture) {
    let store = made.store();
    let writer = Writer::open(&store, "r");
    let empty = store.append(&writer.room, &writer.lease, Head(0), batch(1, 0, "refused"));
    let behind = store.append(&writer.room, &writer.lease, Head(1), batch(2, 1, "behind"));
    assert!(matches!(wait(empty), Err(AppendError::Refused { .. })));
    assert_eq!(wait(behind), Err(AppendError::Stale { head: Head(0) }));
    assert_eq!(writer.payloads(0), Vec::<String>::new());
}

pub fn rooms_do_not_touch_each_other(made: impl Fixture) {
    let store = made.store();
    let mut a = Writer::open(&store, "a");
    let mut b = Writer::open(&store, "b");
    a.append(1, "a1");
    b.append(2, "b1");
    a.append(1, "a2");
    b.append(2, "b2");
    a.snapshot("a");
    assert_eq!(a.trim(2), Ok(()));
    assert_eq!(b.payloads(0), ["b1", "b2"]);
    assert_eq!(wait(store.trimmed_to(&b.room)), Ok(Head(0)));
    assert_eq!(wait(store.latest_snapshot(&b.room)), Ok(None));
    assert_eq!(wait(store.release(&a.lease)), Ok(()));
    b.append(1, "b3");
    assert_eq!((a.tip.head, b.tip.head), (Head(2), Head(5)));
}
