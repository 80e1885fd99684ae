//! The rest: instances, boards, and rooms that come and go.
//!
//! Lives here: the clauses under "The rest" on [`Store`].
//! Stays out: whatever has a heading of its own there.

use super::{
    Fixture, wait,
    writer::{Writer, batch, room, sink},
};
use crate::{AppendError, Appended, Head, RoomName, Store};

pub fn members_fall_silent(made: impl Fixture) {
    let (store, other) = (made.store(), made.store());
    wait(store.announce("b", b"at :2".to_vec(), 1_000)).expect("welcome");
    wait(store.announce("a", b"at :1".to_vec(), 2_000)).expect("welcome");
    let names = || {
        let members = wait(other.instances()).expect("readable");
        members.into_iter().map(|member| (member.instance, member.left_ms)).collect::<Vec<_>>()
    };
    assert_eq!(names(), [("a".into(), 2_000), ("b".into(), 1_000)]);
    made.advance(999);
    wait(store.announce("b", b"at :3".to_vec(), 5_000)).expect("welcome");
    made.advance(1_001);
    assert_eq!(names(), [("b".into(), 3_999)]);
    assert_eq!(wait(other.instances()).unwrap()[0].about, b"at :3");
}

pub fn the_newest_board_is_shown(made: impl Fixture) {
    let (store, other) = (made.store(), made.store());
    assert_eq!(wait(other.board(&room("r"))), Ok(None));
    wait(store.publish_board(&room("r"), b"one".to_vec())).expect("small");
    wait(store.publish_board(&room("r"), b"two".to_vec())).expect("small");
    assert_eq!(wait(other.board(&room("r"))), Ok(Some(b"two".to_vec())));
    assert_eq!(wait(other.board(&room("s"))), Ok(None));
}

pub fn rooms_lists_rooms_with_a_log(made: impl Fixture) {
    let store = made.store();
    Writer::of(&store, RoomName::system()).append(1, "x");
    for name in ["b", "a", "c"] {
        Writer::open(&store, name).append(1, "x");
    }
    let leased_only = Writer::open(&store, "leased-only");
    assert_eq!(wait(leased_only.store.rooms()), Ok(vec![room("a"), room("b"), room("c")]));
}

pub fn a_removed_room_is_as_if_it_never_was(made: impl Fixture) {
    let store = made.store();
    let mut writer = Writer::open(&store, "r");
    writer.append(5, "a");
    writer.snapshot("a");
    wait(store.advance(&writer.room, &sink("s"), Head(5))).expect("in the log");
    wait(store.publish_board(&writer.room, b"x".to_vec())).expect("small");
    assert_eq!(writer.trim(5), Ok(()));
    for _ in 0..2 {
        assert_eq!(wait(store.remove_room(&writer.room)), Ok(()));
    }
    assert_eq!(wait(store.tip(&writer.room)), Ok(Appended::default()));
    assert_eq!(wait(store.trimmed_to(&writer.room)), Ok(Head(0)));
    assert_eq!(wait(store.latest_snapshot(&writer.room)), Ok(None));
    assert_eq!(wait(store.cursors(&writer.room)), Ok(vec![]));
    assert_eq!(wait(store.board(&writer.room)), Ok(None));
    assert_eq!(wait(store.rooms()), Ok(vec![]));
    // Whoever still writes to it notices; whoever opens it begins anew, under a higher epoch.
    let sent = store.append(&writer.room, &writer.lease, Head(5), batch(2, 1, "ghost"));
    assert_eq!(wait(sent), Err(AppendError::Stale { head: Head(0) }));
    let mut anew = Writer::open(&store, "r");
    assert_eq!(anew.lease.epoch, writer.lease.epoch + 1);
    assert_eq!(anew.append(1, "b").head, Head(1));
    assert_eq!(anew.payloads(0), ["b"]);
}
