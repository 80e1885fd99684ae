//! A room leaves Redis as a portable file and comes back as it was: log, chain, snapshot, trimmed
//! beginning; under epochs that nobody had, and never half.

#[path = "common/servers.rs"]
mod servers;

use std::path::PathBuf;
use std::time::Duration;

use servers::{DURABLE, Server};
use tokio::runtime::Builder;
use waitroom_redis::{Level, Options, RedisStore, Where};
use waitroom_store::{
    Appended, Batch, Error, FileStore, Head, Lease, LeaseName, RoomName, Seams, Store,
    contract_tests::wait,
    file::{EPOCHS_LEFT_OUT, export_of},
};

struct House {
    runtime: tokio::runtime::Runtime,
    server: Server,
    folder: PathBuf,
}

impl House {
    fn new(name: &str) -> House {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let folder = format!("copies-{}-{name}", std::process::id());
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the build's folder is writable");
        House { runtime: runtime.expect("one thread"), server: Server::redis(&DURABLE), folder }
    }

    /// Rooms of their own on the same server.
    fn store(&self, prefix: &str) -> RedisStore {
        let servers = Where::Single { url: self.server.url() };
        let mut options = Options::new(servers, Level::Sync { replicas_required: 0 });
        options.prefix = prefix.into();
        // A busy machine is not a broken one.
        options.connect_timeout = Duration::from_secs(20);
        options.answer_timeout = Duration::from_secs(20);
        options.replicas_timeout = Duration::from_secs(20);
        self.runtime.block_on(RedisStore::open(options, Seams::real())).expect("it is fit").0
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn room() -> RoomName {
    RoomName::parse("spring-sale").expect("a name")
}

fn owner(store: &RedisStore) -> Lease {
    wait(store.lease(&LeaseName::room(&room()), "owner", 60_000)).expect("free")
}

/// Appends batches of two events each.
fn write(store: &RedisStore, lease: &Lease, numbers: std::ops::Range<u64>) -> Vec<Appended> {
    let mut tips = Vec::new();
    for number in numbers {
        let head = wait(store.committed_head(&room())).expect("readable");
        let payload = number.to_le_bytes().to_vec();
        let batch = Batch { number, events: 2, payload };
        tips.push(wait(store.append(&room(), lease, head, batch)).expect("written"));
    }
    tips
}

fn same(one: &impl Store, other: &impl Store) {
    let all = |store: &RedisLike| (store.tip, store.trimmed, store.snapshot.clone());
    let (one, other) = (RedisLike::of(one), RedisLike::of(other));
    assert_eq!(all(&one), all(&other));
    assert_eq!(one.log, other.log);
}

/// All that readers see of a room.
struct RedisLike {
    tip: Appended,
    trimmed: Head,
    snapshot: Option<(Head, Vec<Vec<u8>>)>,
    log: Vec<(Head, Vec<u8>, waitroom_store::Chain)>,
}

impl RedisLike {
    fn of(store: &impl Store) -> RedisLike {
        let trimmed = wait(store.trimmed_to(&room())).expect("readable");
        let log = wait(store.read(&room(), trimmed, usize::MAX)).expect("readable");
        let snapshot = wait(store.latest_snapshot(&room())).expect("readable");
        RedisLike {
            tip: wait(store.tip(&room())).expect("readable"),
            trimmed,
            snapshot: snapshot.map(|it| (it.at, it.chunks)),
            log: log.into_iter().map(|it| (it.head, it.payload, it.chain)).collect(),
        }
    }
}

#[test]
fn a_room_comes_back_as_it_was_under_epochs_that_nobody_had() {
    let house = House::new("whole");
    let first = house.store("first");
    let lease = owner(&first);
    write(&first, &lease, 0..150);
    let file = house.folder.join("whole.wrroom");
    let tip = wait(export_of(&first, &room(), &file)).expect("written");
    assert_eq!(tip.head, Head(300));

    let second = house.store("second");
    assert_eq!(wait(second.import(&file)).expect("taken in").tip, tip);
    same(&first, &second);
    assert_eq!(wait(second.rooms()), Ok(vec![room()]));
    let next = owner(&second);
    assert!(next.epoch > lease.epoch + EPOCHS_LEFT_OUT, "{} after {}", next.epoch, lease.epoch);
    write(&second, &next, 0..3);
    // A data folder takes it as well: it is the same format.
    let folder = house.folder.join("data");
    let (files, _) = FileStore::open(&folder, Default::default(), Seams::real()).expect("new");
    wait(files.import(&file)).expect("taken in");
    same(&first, &files);
}

#[test]
fn a_room_that_was_trimmed_comes_back_with_its_snapshot() {
    let house = House::new("trimmed");
    let first = house.store("first");
    let lease = owner(&first);
    let tips = write(&first, &lease, 0..10);
    let Appended { head, chain } = tips[6];
    let chunks = vec![vec![1; 100], vec![2; 200]].into_iter();
    wait(first.snapshot(&room(), head, chain, chunks)).expect("kept");
    wait(first.trim(&room(), head)).expect("trimmed");
    let file = house.folder.join("trimmed.wrroom");
    wait(export_of(&first, &room(), &file)).expect("written");
    let second = house.store("second");
    wait(second.import(&file)).expect("taken in");
    same(&first, &second);
    let next = owner(&second);
    write(&second, &next, 0..3);
    let read = wait(second.read(&room(), Head::EMPTY, usize::MAX));
    assert_eq!(read, Err(Error::Trimmed { to: head }));
}

#[test]
fn what_is_there_is_not_written_over_and_a_damaged_copy_leaves_no_trace() {
    let house = House::new("refused");
    let first = house.store("first");
    let lease = owner(&first);
    write(&first, &lease, 0..10);
    let file = house.folder.join("room.wrroom");
    wait(export_of(&first, &room(), &file)).expect("written");
    let told = wait(first.import(&file));
    assert!(matches!(told, Err(Error::Refused { .. })), "{told:?}");

    let mut bytes = std::fs::read(&file).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let damaged = house.folder.join("damaged.wrroom");
    std::fs::write(&damaged, bytes).expect("written");
    let second = house.store("second");
    let told = wait(second.import(&damaged));
    assert!(matches!(told, Err(Error::Damaged { .. })), "{told:?}");
    assert_eq!(wait(second.rooms()), Ok(vec![]));
    assert_eq!(wait(second.committed_head(&room())), Ok(Head::EMPTY));
    // And it can be taken in from a good one.
    wait(second.import(&file)).expect("taken in");
    same(&first, &second);
}
