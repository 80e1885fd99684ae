//! Followers and owners on a bad day: the store is away for a moment or lost the end of a log, a
//! room cannot be read here, another should have the room in the middle of a draw.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use waitroom_core::settings::DrawSettings;
use waitroom_core::{Actor, Command, Join, Phase, Reply, Settings, Timestamp};
use waitroom_engine::{Config, Engine, Peers, Stance};
use waitroom_store::{Batch, Head, LeaseName, ManualClock, MemoryStore, Seams, Store};

use crate::following::{Other, pair};
use crate::help::{config, configured, join, room, settings};
use crate::shy::Shy;

/// Far more than any of these takes.
const LIMIT: Duration = Duration::from_secs(20);

fn among<S: Store>(store: Arc<S>, seams: Seams, name: &str, other: &Arc<Other>) -> Engine<S> {
    let peers: Option<Arc<dyn Peers>> = Some(other.clone());
    let lease = Some(Duration::from_secs(2));
    let config = Config { instance: name.to_owned(), lease, peers, ..config() };
    Engine::new(store, seams, config)
}

/// Waits until something is so.
async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let waited = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(LIMIT, waited).await.unwrap_or_else(|_| panic!("never {what}"));
}

#[tokio::test]
async fn a_look_that_was_asked_for_while_the_store_was_away_is_taken_when_it_is_back() {
    let store = Arc::new(MemoryStore::new(Seams::real()));
    let shy = Shy::new(store.clone());
    let (a, b) = (Other::new(Stance::Own), Other::new(Stance::Follow));
    let owner = among(store, Seams::real(), "a", &a);
    let handle = configured(&owner, settings()).await;
    let follower = among(Arc::new(shy.clone()), Seams::real(), "b", &b);
    let followed = follower.open(&room()).await.expect("it is followed");
    b.owned_by(Some(handle.clone()));
    let newest = followed.newest_board().await.version();
    assert_eq!(newest, handle.committed());
    // Nothing is appended from here on, so nothing but the asking makes it look.
    shy.go_away(true);
    let asked = tokio::spawn({
        let followed = followed.clone();
        async move { followed.newest_board().await.version() }
    });
    until("seen that it is away", || followed.figures().trouble().is_some()).await;
    shy.go_away(false);
    let seen = tokio::time::timeout(LIMIT, asked).await.expect("it looks again by itself");
    assert_eq!(seen.expect("no panic"), newest);
}

#[tokio::test]
async fn a_follower_notices_that_the_log_lost_its_end_before_it_grows_past() {
    let (owner, follower, a, b) = pair().await;
    let store = owner.store().clone();
    let (first, followed) =
        (owner.room(&room()).expect("open"), follower.room(&room()).expect("followed"));
    for _ in 0..20 {
        join(&first).await;
    }
    let before = followed.newest_board().await;
    assert_eq!(before.state().counts().joined, 20);
    owner.stop().await;
    b.owned_by(None);
    // What an asynchronous failover does, to the extreme: all of it is gone but the epochs.
    store.remove_room(&room()).await.expect("it is removed");
    let next = among(store, Seams::real(), "c", &a);
    let second = configured(&next, settings()).await;
    let kept = join(&second).await;
    assert!(second.committed() < before.version(), "it has not grown past");
    b.owned_by(Some(second.clone()));
    until("the log that there is", || followed.board().state().counts().joined == 1).await;
    let board = tokio::time::timeout(LIMIT, followed.newest_board()).await.expect("it is shown");
    assert_eq!(board.version(), second.committed());
    assert!(board.look(Timestamp(u64::MAX / 2), &kept).is_ok());
    assert_eq!(followed.committed(), second.committed(), "nobody waits for what is gone");
}

#[tokio::test]
async fn an_instance_that_cannot_read_a_room_says_so_to_the_others() {
    let (owner, follower, _, b) = pair().await;
    let followed = follower.room(&room()).expect("followed");
    join(&owner.room(&room()).expect("open")).await;
    followed.newest_board().await;
    assert_eq!(*b.failed.lock().unwrap(), 0);
    owner.stop().await;
    // What a later release might write.
    let store = owner.store();
    let lease = store.lease(&LeaseName::room(&room()), "later", 60_000).await.expect("free");
    let tip = store.tip(&room()).await.expect("readable").head;
    let batch = Batch { number: 1, events: 1, payload: b"not of this release".to_vec() };
    store.append(&room(), &lease, tip, batch).await.expect("taken");
    until("told the others", || *b.failed.lock().unwrap() > 0).await;
    assert_eq!(followed.board().state().counts().joined, 1, "what it knows is shown");
    let refused = followed.send(Command::Join(Join::default())).await;
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(store.committed_head(&room()).await, Ok(Head(tip.0 + 1)));
}

#[tokio::test]
async fn whoever_cannot_open_a_room_does_not_keep_it_from_the_next() {
    let store = Arc::new(MemoryStore::new(Seams::real()));
    let name = LeaseName::room(&room());
    let lease = store.lease(&name, "later", 60_000).await.expect("free");
    let batch = Batch { number: 1, events: 1, payload: b"not of this release".to_vec() };
    store.append(&room(), &lease, Head::EMPTY, batch).await.expect("taken");
    store.release(&lease).await.expect("given back");
    let engine = among(store.clone(), Seams::real(), "a", &Other::new(Stance::Own));
    engine.open(&room()).await.expect_err("it cannot be read");
    assert!(store.holder_of(&name).await.expect("readable").is_none());
}

#[test]
fn a_room_that_another_should_have_is_given_when_its_draw_is_made() {
    // One thread for everything that blocks, so that the test can hold the draw.
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).max_blocking_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let clock = ManualClock::at(1_000);
        let seams = Seams::seeded(clock.clone(), 5);
        let store = Arc::new(MemoryStore::new(seams.clone()));
        let other = Other::new(Stance::Own);
        let engine = among(store, seams, "a", &other);
        let (starts_at, draw) = (Some(Timestamp(2_500)), Some(DrawSettings { beacon: None }));
        let handle = configured(&engine, Settings { starts_at, draw, ..settings() }).await;
        let joined = async || {
            let answer = handle.send(Command::Join(Join::default())).await;
            matches!(answer.expect("it is taken").reply, Reply::Joined { .. })
        };
        // The doors open once the draw is committed to.
        while !joined().await {}
        let (let_go, hold) = mpsc::channel::<()>();
        let held = tokio::task::spawn_blocking(move || hold.recv());
        clock.advance(1_600);
        let phase = async || {
            let nudge = Command::Resume { by: Actor::new("test") };
            let answer = handle.send(nudge).await;
            let version = answer.map_or(0, |it| it.version);
            handle.board_at(version).await.state().phase()
        };
        while phase().await != Phase::Drawing {}
        // One more round, in which the draw begins to be worked out, if it has not.
        phase().await;
        other.become_now(Stance::Follow);
        for _ in 0..20 {
            phase().await;
        }
        assert_eq!(*other.parted_at.lock().unwrap(), None, "not in the middle of it");
        let_go.send(()).expect("it is held");
        held.await.expect("no panic").expect("it was let go");
        until("handed over", || other.parted_at.lock().unwrap().is_some()).await;
        assert_eq!(handle.board().state().phase(), Phase::Running, "the draw is made");
    });
}
