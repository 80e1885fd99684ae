//! What is acknowledged has the replicas that were asked for, and what they do not have is neither
//! acknowledged nor shown.

#[path = "common/servers.rs"]
mod servers;

use std::time::Duration;

use servers::{DURABLE, Server, until};
use tokio::runtime::Builder;
use waitroom_redis::{Level, Options, RedisStore, Where};
use waitroom_store::{
    AppendError, Batch, Head, LeaseName, RoomName, Seams, Store, contract_tests::wait,
};

#[test]
fn without_its_replica_nothing_is_acknowledged_or_shown() {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("one");
    let primary = Server::redis(&DURABLE);
    let port = primary.port.to_string();
    let replica = Server::redis(&[&DURABLE[..], &["--replicaof", "127.0.0.1", &port]].concat());
    until("a replica is online", || primary.say("INFO replication").contains("state=online"));
    let open = || {
        let servers = Where::Single { url: primary.url() };
        let mut options = Options::new(servers, Level::Sync { replicas_required: 1 });
        options.replicas_timeout = Duration::from_secs(10);
        options.connect_timeout = Duration::from_secs(20);
        runtime.block_on(RedisStore::open(options, Seams::real())).expect("it is fit").0
    };
    let (owner, reader) = (open(), open());
    let room = RoomName::parse("r").expect("a name");
    let lease = wait(owner.lease(&LeaseName::room(&room), "owner", 60_000)).expect("free");
    let append = |number: u64| {
        let batch = Batch { number, events: 1, payload: vec![number as u8] };
        wait(owner.append(&room, &lease, Head(number), batch))
    };
    assert_eq!(append(0).expect("the replica is there").head, Head(1));
    assert_eq!(wait(reader.follow(&room, Head(0))), Ok(Head(1)));

    replica.signal("STOP");
    let told = append(1);
    assert!(matches!(told, Err(AppendError::Unknown { .. })), "{told:?}");
    assert_eq!(wait(reader.committed_head(&room)), Ok(Head(1)), "nobody sees it");
    assert_eq!(wait(owner.committed_head(&room)), Ok(Head(1)), "nor does its owner");
    let read = wait(reader.read(&room, Head(1), usize::MAX));
    assert_eq!(read, Ok(vec![]));

    // The same batch again is recognised, and counts once the replica has it.
    replica.signal("CONT");
    until("the replica is back", || append(1).is_ok_and(|tip| tip.head == Head(2)));
    assert_eq!(wait(reader.follow(&room, Head(1))), Ok(Head(2)));
    assert_eq!(append(2).expect("and on").head, Head(3));
}

/// Valkey, because Debian's Redis cannot say what is on disks.
#[test]
fn with_disks_asked_for_what_is_not_on_the_replicas_disk_is_not_acknowledged() {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("one");
    let primary = Server::start("valkey-server", &DURABLE);
    let port = primary.port.to_string();
    let follows = ["--replicaof", "127.0.0.1", &port];
    let replica = Server::start("valkey-server", &[&DURABLE[..], &follows].concat());
    until("a replica is online", || primary.is_followed());
    let servers = Where::Single { url: primary.url() };
    let mut options = Options::new(servers, Level::Sync { replicas_required: 1 });
    options.on_disks = true;
    options.replicas_timeout = Duration::from_secs(3);
    options.connect_timeout = Duration::from_secs(20);
    let store = runtime.block_on(RedisStore::open(options, Seams::real())).expect("it is fit").0;
    let room = RoomName::parse("r").expect("a name");
    let lease = wait(store.lease(&LeaseName::room(&room), "owner", 60_000)).expect("free");
    let append = |number: u64| {
        let batch = Batch { number, events: 1, payload: vec![number as u8] };
        wait(store.append(&room, &lease, Head(number), batch))
    };
    assert_eq!(append(0).expect("both disks have it").head, Head(1));
    // The replica goes on in memory only: it hears of everything and keeps nothing.
    assert!(replica.say("CONFIG SET appendonly no").contains("OK"));
    let told = append(1);
    assert!(matches!(told, Err(AppendError::Unknown { .. })), "{told:?}");
    assert_eq!(wait(store.committed_head(&room)), Ok(Head(1)), "nobody sees it");
    assert!(replica.say("CONFIG SET appendonly yes").contains("OK"));
    until("the replica keeps it again", || append(1).is_ok_and(|tip| tip.head == Head(2)));
}
