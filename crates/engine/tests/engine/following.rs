//! Two engines on one store: one owns the room, the other follows it and sends requests on.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::watch;
use waitroom_core::{Actor, Command, Join, Timestamp};
use waitroom_engine::{Answering, Commands, Config, Engine, Peers, RoomHandle, Stance, Unanswered};
use waitroom_store::{LeaseName, MemoryStore, RoomName, Seams, Store};

use crate::help::{config, configured, futures_joined, join, presented, room, settings};

/// The other one, as a test has it.
pub struct Other {
    stance: Mutex<Stance>,
    changes: watch::Sender<u64>,
    owner: Mutex<Option<RoomHandle>>,
    pub parted_at: Mutex<Option<u64>>,
    /// How often it heard that the room cannot be opened.
    pub failed: Mutex<u32>,
    /// As which it is told that it is listed.
    pub listed: Mutex<Option<u64>>,
}

impl Other {
    pub fn new(stance: Stance) -> Arc<Other> {
        let (changes, _) = watch::channel(0);
        Arc::new(Other {
            stance: Mutex::new(stance),
            changes,
            owner: Mutex::default(),
            parted_at: Mutex::default(),
            failed: Mutex::default(),
            listed: Mutex::new(Some(0)),
        })
    }

    pub fn become_now(&self, stance: Stance) {
        *self.stance.lock().unwrap() = stance;
        self.changes.send_modify(|count| *count += 1);
    }

    pub fn owned_by(&self, owner: Option<RoomHandle>) {
        *self.owner.lock().unwrap() = owner;
        self.changes.send_modify(|count| *count += 1);
    }
}

impl Peers for Other {
    fn stance(&self, _: &RoomName) -> Stance {
        *self.stance.lock().unwrap()
    }
    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
    fn owned(&self, _: &RoomName, _: u32) {}
    fn parted(&self, _: &RoomName, head: Option<u64>) {
        *self.parted_at.lock().unwrap() = head;
    }
    fn failed(&self, _: &RoomName) {
        *self.failed.lock().unwrap() += 1;
    }
    fn owner(&self, _: &RoomName) -> Option<(String, u32)> {
        let epoch = self.owner.lock().unwrap().as_ref()?.board_guard().state().epoch().0;
        Some(("other".into(), epoch))
    }
    fn listed(&self) -> Option<u64> {
        *self.listed.lock().unwrap()
    }
    fn has_owner(&self, _: &RoomName) -> bool {
        self.owner.lock().unwrap().is_some()
    }
    fn carry(&self, _: &RoomName, commands: Commands, hops: u8, answer: Answering) {
        let owner = self.owner.lock().unwrap().clone().expect("it was asked for");
        tokio::spawn(async move { answer.give(owner.take_in(commands, hops).await) });
    }
    fn hears_all(&self, _: &RoomName) -> bool {
        true
    }
    fn shown(&self, _: &RoomName) -> u64 {
        u64::MAX
    }
}

type Shared = Arc<MemoryStore>;

fn engine(store: &Shared, name: &str, other: &Arc<Other>) -> Engine<MemoryStore> {
    let lease = Some(Duration::from_secs(2));
    let peers: Option<Arc<dyn Peers>> = Some(other.clone());
    let config = Config { instance: name.to_owned(), lease, peers, ..config() };
    Engine::new(store.clone(), Seams::real(), config)
}

/// An owner and a follower that know each other.
pub async fn pair() -> (Engine<MemoryStore>, Engine<MemoryStore>, Arc<Other>, Arc<Other>) {
    let store = Arc::new(MemoryStore::new(Seams::real()));
    let (a, b) = (Other::new(Stance::Own), Other::new(Stance::Follow));
    let (owner, follower) = (engine(&store, "a", &a), engine(&store, "b", &b));
    let handle = configured(&owner, settings()).await;
    follower.open(&room()).await.expect("it is followed");
    b.owned_by(Some(handle));
    (owner, follower, a, b)
}

#[tokio::test]
async fn a_follower_shows_what_the_owner_wrote_and_sends_on_what_it_is_asked() {
    let (owner, follower, ..) = pair().await;
    let (owner, follower) =
        (owner.room(&room()).expect("open"), follower.room(&room()).expect("followed"));
    assert!(follower.follows() && !owner.follows());
    let first = join(&owner).await;
    let answer = follower.send(Command::Join(Join::default())).await.expect("it is sent on");
    let second = presented(&answer.reply);
    assert!(second.ticket > first.ticket);
    // What it was told of, it can show; and what nobody told it of, once it looks.
    assert_eq!(follower.board_at(answer.version).await.version(), answer.version);
    let third = join(&owner).await;
    let board = follower.newest_board().await;
    for (presented, position) in [(first, 1), (second, 2), (third, 3)] {
        let seen = board.look(Timestamp(u64::MAX / 2), &presented).expect("it is known");
        assert_eq!(seen.position, Some(position));
    }
}

#[tokio::test]
async fn a_handover_takes_whoever_waits_along_and_needs_no_reading() {
    let (owner, follower, a, b) = pair().await;
    let (first, second) =
        (owner.room(&room()).expect("open"), follower.room(&room()).expect("followed"));
    let before = join(&first).await;
    a.become_now(Stance::Follow);
    // These come while nobody owns the room.
    let asked = futures_joined((0..50).map(|_| first.send(Command::Join(Join::default()))));
    let change = async {
        while a.parted_at.lock().unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        b.owned_by(None);
        b.become_now(Stance::Own);
        while second.follows() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        a.owned_by(Some(second.clone()));
    };
    let (answers, ()) = tokio::join!(asked, change);
    let mut numbers: Vec<u64> = answers
        .into_iter()
        .map(|answer| presented(&answer.expect("nobody is refused").reply).ticket.number.0)
        .collect();
    numbers.sort_unstable();
    let first_number = before.ticket.number.0 + 1;
    assert_eq!(numbers, (first_number..first_number + 50).collect::<Vec<_>>());
    assert!(first.follows() && !second.follows());
}

#[tokio::test]
async fn whoever_is_listed_again_is_certain_when_it_shows_what_was_decided_meanwhile() {
    let (owner, follower, a, b) = pair().await;
    let (owner, follower) =
        (owner.room(&room()).expect("open"), follower.room(&room()).expect("followed"));
    follower.newest_board().await;
    assert!(follower.is_listed() && owner.is_listed());
    for peers in [&a, &b] {
        *peers.listed.lock().unwrap() = None;
    }
    assert!(!follower.is_listed() && !owner.is_listed());
    for peers in [&a, &b] {
        *peers.listed.lock().unwrap() = Some(1);
    }
    assert!(!follower.is_listed() && !owner.is_listed(), "who knows what was decided?");
    follower.newest_board().await;
    assert!(follower.is_listed());
    // An owner knows when it is told that it still is one.
    let renewed = async {
        while !owner.is_listed() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), renewed).await.expect("it renews its lease");
}

#[tokio::test(start_paused = true)]
async fn a_room_that_nobody_owns_says_so_after_a_moment() {
    let (_owner, follower, _, b) = pair().await;
    b.owned_by(None);
    let handle = follower.room(&room()).expect("followed");
    let refused = handle.send(Command::Join(Join::default())).await;
    assert!(matches!(refused, Err(Unanswered::NotOwner { .. })), "{refused:?}");
}

#[tokio::test]
async fn an_owner_that_was_frozen_for_longer_than_its_lease_hands_out_nothing() {
    let store = Arc::new(MemoryStore::new(Seams::real()));
    let config = Config { lease: Some(Duration::from_secs(3)), ..config() };
    let engine = Engine::new(store.clone(), Seams::real(), config);
    let handle = configured(&engine, settings()).await;
    let visitor = join(&handle).await;
    let admit = Command::AdmitNow { count: 1, entropy: [0; 16], by: Actor::new("test") };
    handle.send(admit).await.expect("one is admitted");
    handle.send(Command::Claim(visitor)).await.expect("it is claimed");
    // A repeat needs no append, so the store has no say in it.
    let repeat = handle.send(Command::Claim(visitor)).await.expect("the same again");
    assert!(!repeat.changed);
    // Everything stands still, the owner's task included, and another takes the room.
    std::thread::sleep(Duration::from_millis(3_200));
    let taken = store.lease(&LeaseName::room(&room()), "another", 60_000).await;
    taken.expect("the lease ran out");
    let again = handle.send(Command::Claim(visitor)).await;
    assert!(again.is_err(), "{again:?}");
}
