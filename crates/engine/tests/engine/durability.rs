//! The engine with real stores: what it tells is durable, what it cannot do it says at once.

use crate::help::{config, configured, futures_joined, join, presented, room, settings};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use waitroom_core::settings::{DrawSettings, Rate};
use waitroom_core::{
    Actor, Command, Fresh, Join, JoinKey, Millis, Phase, Reply, Settings, Status, Ticket, Timestamp,
};
use waitroom_engine::{Config, Engine, RoomHandle, Unanswered, sweep};
use waitroom_store::file::Options;
use waitroom_store::{Clock, FileStore, ManualClock, MemoryStore, Seams, SimDisk};

/// A folder of its own on the disk of the build, gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("engine-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_is_there_after_a_restart() {
    let folder = Folder::new();
    let open = || FileStore::open(&folder.0, Options::default(), Seams::real()).expect("opens").0;
    let engine = Engine::new(Arc::new(open()), Seams::real(), config());
    let handle = configured(&engine, settings()).await;
    let mut people = Vec::new();
    for chunk in 0..20 {
        let joins = (0..50).map(|_| join(&handle));
        let joined = futures_joined(joins).await;
        assert_eq!(joined.len(), 50, "chunk {chunk}");
        people.extend(joined);
    }
    let version = handle.send(Command::Leave(people[0])).await.expect("one leaves").version;
    let before = handle.board_at(version).await;
    let positions: Vec<_> = people.iter().map(|it| before.state().position(it.ticket)).collect();
    engine.stop().await;
    drop(engine);

    let engine = Engine::new(Arc::new(open()), Seams::real(), config());
    let handle = engine.open(&room()).await.expect("the room comes back");
    let after = handle.board();
    for (it, position) in people.iter().zip(positions) {
        assert_eq!(after.state().position(it.ticket), position);
    }
    assert_eq!(after.state().counts().joined, 1_000);
    assert!(after.state().epoch() > before.state().epoch(), "a new tenure has a new epoch");
    engine.stop().await;
}

#[tokio::test]
async fn a_full_queue_is_refused_at_once_and_costs_nothing() {
    let store = Arc::new(MemoryStore::new(Seams::real()));
    let engine = Engine::new(store, Seams::real(), Config { inbox: 4, ..config() });
    let handle = configured(&engine, settings()).await;
    // On one thread the room's task cannot run between these: the fifth finds the queue full.
    let joins = (0..6).map(|_| handle.send(Command::Join(Join::default())));
    let answers = futures_joined(joins).await;
    let refused = answers.iter().filter(|it| **it == Err(Unanswered::Overloaded)).count();
    assert_eq!(refused, 2);
    assert_eq!(answers.iter().filter(|it| it.is_ok()).count(), 4);
    let after = handle.send(Command::Join(Join::default())).await.expect("there is room again");
    assert_eq!(presented(&after.reply).ticket, Ticket::new(0, 4), "the refused took no number");
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_append_ends_the_tenure_and_the_room_comes_back_from_the_store() {
    let disk = SimDisk::new();
    let store =
        FileStore::threaded(disk.clone(), Options::default(), Seams::real()).expect("opens");
    let engine = Engine::new(Arc::new(store.0), Seams::real(), config());
    let handle = configured(&engine, settings()).await;
    let first = join(&handle).await;
    disk.fail_next_syncs(1);
    let key = Some(JoinKey { key: [3; 12], body: [1; 4] });
    let second = Command::Join(Join { key, ..Join::default() });
    let failed = handle.send(second.clone()).await.expect_err("the disk did not take it");
    let known =
        matches!(failed, Unanswered::OutcomeUnknown { .. } | Unanswered::Unavailable { .. });
    assert!(known, "{failed:?}");
    // The same key finds its own join or makes it, once the room is back.
    let again = retried(&handle, &second).await;
    let third = retried(&handle, &Command::Join(Join::default())).await;
    assert_eq!(presented(&again).ticket, Ticket::new(0, 1));
    assert_eq!(presented(&third).ticket, Ticket::new(0, 2));
    let board = handle.board();
    assert!(board.state().position(first.ticket).is_some(), "who was acknowledged is still there");
    engine.stop().await;
}

/// A clock that breaks whoever asks it next, as a mistake of ours in a room's task would.
#[derive(Debug)]
struct Trap {
    clock: Arc<ManualClock>,
    set: AtomicBool,
}

impl Clock for Trap {
    fn now_ms(&self) -> u64 {
        assert!(!self.set.swap(false, Ordering::SeqCst), "the trap was set");
        self.clock.now_ms()
    }

    fn wall_ms(&self) -> u64 {
        self.clock.wall_ms()
    }
}

#[tokio::test]
async fn a_panic_in_a_rooms_task_costs_a_tenure_and_not_the_room() {
    let trap = Arc::new(Trap { clock: ManualClock::at(1_000), set: AtomicBool::new(false) });
    let store = Arc::new(MemoryStore::new(Seams::seeded(trap.clock.clone(), 1)));
    let engine = Engine::new(store, Seams::seeded(trap.clone(), 1), config());
    let handle = configured(&engine, settings()).await;
    let first = join(&handle).await;
    for place in 1..4 {
        let epoch = handle.board().state().epoch();
        trap.set.store(true, Ordering::SeqCst);
        let key = Some(JoinKey { key: [place; 12], body: [1; 4] });
        let command = Command::Join(Join { key, ..Join::default() });
        let failed = handle.send(command.clone()).await.expect_err("its task broke");
        assert!(matches!(failed, Unanswered::OutcomeUnknown { .. }), "{failed:?}");
        let again = retried(&handle, &command).await;
        assert_eq!(presented(&again).ticket, Ticket::new(0, u64::from(place)));
        assert!(handle.board().state().epoch() > epoch, "the room was opened anew");
    }
    assert_eq!(handle.board().state().position(first.ticket), Some(1));
    engine.stop().await;
}

#[tokio::test]
async fn who_is_silent_lapses_and_who_is_heard_of_stays() {
    let clock = ManualClock::at(0);
    let seams = Seams::seeded(clock.clone(), 1);
    let store = Arc::new(MemoryStore::new(seams.clone()));
    let engine = Engine::new(store, seams, config());
    let handle = configured(&engine, settings()).await;
    let (ana, bo) = (join(&handle).await, join(&handle).await);
    clock.advance(100_000);
    handle.beat(bo.ticket);
    clock.advance(30_000);
    let version =
        handle.send(Command::Resume { by: Actor::new("test") }).await.expect("ok").version;
    handle.board_at(version).await;
    assert_eq!(sweep(handle.clone()).await, 1);
    let version =
        handle.send(Command::Resume { by: Actor::new("test") }).await.expect("ok").version;
    let board = handle.board_at(version).await;
    assert_eq!(board.state().status(ana.ticket), Some(Status::Expired));
    assert_eq!(board.state().status(bo.ticket), Some(Status::Waiting));
    engine.stop().await;
}

#[tokio::test]
async fn an_owner_whose_lease_went_to_another_answers_nothing() {
    let clock = ManualClock::at(0);
    let seams = Seams::seeded(clock.clone(), 1);
    let store = MemoryStore::new(seams.clone());
    let lease = Some(Duration::from_secs(2));
    let engines = ["one", "two"].map(|name| {
        let config = Config { instance: name.into(), lease, ..config() };
        Engine::new(Arc::new(store.clone()), seams.clone(), config)
    });
    let old = configured(&engines[0], settings()).await;
    let ana = join(&old).await;
    // No time passes for the first owner's renewals; the store's clock runs on.
    clock.advance(2_001);
    let new = engines[1].open(&room()).await.expect("the lease has run out");
    let refused = old.send(Command::Join(Join::default())).await;
    assert!(matches!(refused, Err(Unanswered::NotOwner { .. })), "{refused:?}");
    assert_eq!(new.board().state().position(ana.ticket), Some(1));
    let bo = join(&new).await;
    assert_eq!(bo.ticket, Ticket::new(0, 1), "no number is given twice");
    for engine in &engines {
        engine.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draw_is_committed_drawn_and_can_be_verified() {
    let clock = ManualClock::at(1_000);
    let seams = Seams::seeded(clock.clone(), 5);
    let store = Arc::new(MemoryStore::new(seams.clone()));
    let engine = Engine::new(store, seams, config());
    let starts_at = Some(Timestamp(61_000));
    let draw = Some(DrawSettings { beacon: None });
    let rate = Some(Rate { count: 1, per: Millis(60_000) });
    let handle = configured(&engine, Settings { starts_at, draw, rate, ..settings() }).await;
    let mut people = Vec::new();
    while people.len() < 40 {
        // The doors open once the draw is committed to, which the engine does by itself.
        if let Ok(answer) = handle.send(Command::Join(Join::default())).await
            && let Reply::Joined { fresh: Fresh::New, .. } = answer.reply
        {
            people.push(presented(&answer.reply));
        }
    }
    clock.advance(70_000);
    let board = loop {
        let nudge = Command::Resume { by: Actor::new("test") };
        let version = handle.send(nudge).await.expect("it runs").version;
        let board = handle.board_at(version).await;
        if board.state().phase() == Phase::Running {
            break board;
        }
        tokio::task::yield_now().await;
    };
    let proof = board.state().proof("spring-sale").expect("it was drawn");
    let verified = proof.check().expect("and can be checked by anybody");
    let mut shuffled = false;
    for it in &people {
        let order = verified.order_of(0, it.ticket.number.0).expect("everybody took part");
        let view = board.look(board.published_at(), it).expect("known");
        shuffled |= order != it.ticket.number.0;
        if let Some(told) = view.order {
            assert_eq!(told.0, order);
        }
    }
    assert!(shuffled, "forty people in the order of arrival is no draw");
    engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_taken_while_people_join_and_a_restart_begins_there() {
    let folder = Folder::new();
    let open = || FileStore::open(&folder.0, Options::default(), Seams::real()).expect("opens").0;
    let small = || Config { snapshot_every: 500, ..config() };
    let engine = Engine::new(Arc::new(open()), Seams::real(), small());
    let handle = configured(&engine, settings()).await;
    for _ in 0..40 {
        futures_joined((0..50).map(|_| join(&handle))).await;
    }
    engine.stop().await;
    drop(engine);
    let store = open();
    let recovered = waitroom_engine::recover::recover(&store, &room()).await.expect("reads back");
    assert!(recovered.from_snapshot > 0, "there is a snapshot");
    assert_eq!(recovered.room.state().counts().joined, 2_000);
}

/// Sends until the room is there again.
async fn retried(handle: &RoomHandle, command: &Command) -> Reply {
    for _ in 0..1_000 {
        match handle.send(command.clone()).await {
            Ok(answer) => return answer.reply,
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
    panic!("the room did not come back");
}
