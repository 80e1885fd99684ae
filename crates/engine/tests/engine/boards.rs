//! Boards come to whoever waits for them; none that is newer is missed.

use crate::help::{config, configured, futures_joined, join, settings};
use std::sync::Arc;
use std::time::Duration;
use waitroom_core::{Actor, Command, Join};
use waitroom_engine::{Config, Engine};
use waitroom_store::{MemoryStore, Seams};

/// Far more than any of these takes; a lost wake-up would never come.
const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_follows_the_boards_sees_the_last_one() {
    let seams = Seams::real();
    let store = Arc::new(MemoryStore::new(seams.clone()));
    let board_every = Duration::from_millis(1);
    let engine = Engine::new(store, seams, Config { board_every, ..config() });
    let handle = configured(&engine, settings()).await;
    const PEOPLE: u64 = 2_000;
    let followers: Vec<_> = (0..3)
        .map(|_| {
            let handle = handle.clone();
            tokio::spawn(async move {
                let (mut version, mut boards) = (0, 0u64);
                loop {
                    let board = handle.next_board(version).await;
                    assert!(board.version() > version, "a board is newer than the last");
                    (version, boards) = (board.version(), boards + 1);
                    if board.state().counts().joined == PEOPLE {
                        return boards;
                    }
                }
            })
        })
        .collect();
    for _ in 0..PEOPLE / 20 {
        futures_joined((0..20).map(|_| join(&handle))).await;
    }
    for follower in followers {
        let boards = tokio::time::timeout(LIMIT, follower).await.expect("no wake-up is lost");
        assert!(boards.expect("it follows to the end") > 1);
    }
    engine.stop().await;
}

#[tokio::test]
async fn a_newer_board_is_there_at_once_and_an_equal_one_is_waited_for() {
    let seams = Seams::real();
    let store = Arc::new(MemoryStore::new(seams.clone()));
    let engine = Engine::new(store, seams, config());
    let handle = configured(&engine, settings()).await;
    let version = handle.send(Command::Join(Join::default())).await.expect("joins").version;
    let board = handle.board_at(version).await;
    assert_eq!(handle.next_board(version - 1).await.version(), board.version());
    assert_eq!(handle.board_guard().version(), board.version());

    let mut next = Box::pin(handle.next_board(board.version()));
    // Nothing happens: an operator's repeat makes no event, and so no board.
    let idle = handle.send(Command::Resume { by: Actor::new("test") });
    tokio::select! {
        biased;
        board = &mut next => panic!("nothing has happened, yet here is {}", board.version()),
        answer = idle => assert_eq!(answer.expect("answered").version, version),
    }
    join(&handle).await;
    let next = tokio::time::timeout(LIMIT, next).await.expect("it comes by itself");
    assert_eq!(next.state().counts().joined, 2);
    engine.stop().await;
}
