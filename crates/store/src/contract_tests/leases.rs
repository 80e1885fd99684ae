//! Leases: one holder at a time, and epochs that only rise.
//!
//! Lives here: the clauses under "Leases" on [`Store`].
//! Stays out: the other ways to append without the current lease (`appending`).

use super::{
    Fixture, wait,
    writer::{Writer, batch, room},
};
use crate::{AppendError, Error, Head, Lease, LeaseName, Store};

pub fn a_lease_has_one_holder(made: impl Fixture) {
    let (ana, bo) = (made.store(), made.store());
    let name = LeaseName::parse("duty").expect("a good name");
    let first = wait(ana.lease(&name, "ana", 2_000)).expect("free");
    assert_eq!(first.epoch, 1);
    made.advance(500);
    let held = Err(Error::Held { who: "ana".into(), left_ms: 1_500 });
    assert_eq!(wait(bo.lease(&name, "bo", 2_000)), held);
    let holder = wait(bo.holder_of(&name)).unwrap().expect("ana");
    assert_eq!((&*holder.who, holder.epoch, holder.left_ms), ("ana", 1, 1_500));
    made.advance(1_500);
    let second = wait(bo.lease(&name, "bo", 2_000)).expect("her time is up");
    assert_eq!(second.epoch, 2);
    assert_ne!(first.nonce, second.nonce);
    assert_eq!(wait(bo.release(&second)), Ok(()));
    assert_eq!(wait(ana.holder_of(&name)), Ok(None));
    assert_eq!(wait(ana.lease(&name, "ana", 2_000)).expect("given back").epoch, 3);
}

pub fn epochs_never_go_down(mut made: impl Fixture) {
    let mut last = 0;
    let name = room("r");
    let lease = LeaseName::room(&name);
    for step in 0..8 {
        let store = made.store();
        let mut writer = Writer::of(&store, name.clone());
        assert!(writer.lease.epoch > last, "step {step}");
        last = writer.lease.epoch;
        writer.append(1, "x");
        match step % 4 {
            0 => made.advance(2_001),
            1 => wait(store.release(&writer.lease)).expect("ours"),
            2 => wait(store.remove_room(&name)).expect("there"),
            _ => {}
        }
        drop(store);
        made.reopen();
        // Whoever held it before the reopening is gone or renews; both within one ttl.
        made.advance(2_001);
    }
    let store = made.store();
    assert_eq!(wait(store.lease(&lease, "w", 1)).expect("free").epoch, last + 1);
}

pub fn the_holder_who_asks_again_gets_a_new_epoch(made: impl Fixture) {
    let store = made.store();
    let mut before = Writer::open(&store, "r");
    before.append(1, "before the restart");
    let after = Writer::open(&store, "r");
    assert_eq!(after.lease.epoch, before.lease.epoch + 1);
    let sent = store.append(&before.room, &before.lease, Head(1), batch(2, 1, "from the dead"));
    assert_eq!(wait(sent), Err(AppendError::Fenced { epoch: after.lease.epoch }));
}

pub fn a_renewed_lease_lasts_longer(made: impl Fixture) {
    let store = made.store();
    let name = LeaseName::parse("duty").expect("a good name");
    let lease = wait(store.lease(&name, "ana", 2_000)).expect("free");
    for _ in 0..5 {
        made.advance(1_500);
        assert_eq!(wait(store.renew(&lease, 2_000)), Ok(()));
    }
    let held = Err(Error::Held { who: "ana".into(), left_ms: 2_000 });
    assert_eq!(wait(store.lease(&name, "bo", 1)), held);
    made.advance(5_000);
    assert_eq!(wait(store.renew(&lease, 2_000)), Ok(()), "nobody took it meanwhile");
    assert!(wait(store.lease(&name, "bo", 1)).is_err());
}

pub fn a_lost_lease_cannot_be_renewed(made: impl Fixture) {
    let store = made.store();
    let name = LeaseName::parse("duty").expect("a good name");
    let first = wait(store.lease(&name, "ana", 2_000)).expect("free");
    made.advance(2_000);
    let second = wait(store.lease(&name, "bo", 2_000)).expect("expired");
    assert_eq!(wait(store.renew(&first, 9_000)), Err(Error::Lost { epoch: 2 }));
    assert_eq!(wait(store.release(&first)), Err(Error::Lost { epoch: 2 }));
    let holder = wait(store.holder_of(&name)).unwrap().expect("bo");
    assert_eq!((&*holder.who, holder.left_ms), ("bo", 2_000));
    assert_eq!(wait(store.release(&second)), Ok(()));
    assert_eq!(wait(store.renew(&second, 1)), Err(Error::Lost { epoch: 2 }));
    let unknown = Lease { name: LeaseName::parse("other").unwrap(), epoch: 1, nonce: 1 };
    assert_eq!(wait(store.renew(&unknown, 1)), Err(Error::Lost { epoch: 0 }));
}
