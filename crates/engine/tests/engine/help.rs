//! What the tests of the engine share: a room, its people, and waiting for them all at once.

use std::sync::Arc;
use std::time::Duration;
use waitroom_core::{Actor, Command, Join, Presented, Reply, Settings};
use waitroom_engine::{Config, Engine, RoomHandle};
use waitroom_store::seal::MasterKey;
use waitroom_store::{RoomName, Store};

pub fn config() -> Config {
    let key = MasterKey::from_bytes([7; 32]);
    // The housekeeper stays out of the way; tests sweep when they want to.
    Config { sweep_every: Duration::from_secs(3_600), ..Config::new("test", Arc::new(key)) }
}

pub fn room() -> RoomName {
    RoomName::parse("spring-sale").expect("a plain name")
}

pub fn settings() -> Settings {
    Settings { queue_all: true, rate: None, ..Settings::default() }
}

pub async fn configured<S: Store>(engine: &Engine<S>, settings: Settings) -> RoomHandle {
    let handle = engine.open(&room()).await.expect("the room opens");
    let configure = Command::Configure { settings: Box::new(settings), by: Actor::new("test") };
    let answer = handle.send(configure).await.expect("the store takes it");
    assert_eq!(answer.reply, Reply::Done);
    handle
}

pub async fn join(handle: &RoomHandle) -> Presented {
    let answer = handle.send(Command::Join(Join::default())).await.expect("somebody joins");
    presented(&answer.reply)
}

pub fn presented(reply: &Reply) -> Presented {
    match *reply {
        Reply::Joined { ticket, epoch, holder, .. } => {
            Presented { ticket, epoch, holder: Some(holder) }
        }
        ref other => panic!("not joined: {other:?}"),
    }
}

/// Polls all of them at once, in order.
pub async fn futures_joined<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut pending: Vec<_> = futures.map(|it| (Box::pin(it), None)).collect();
    std::future::poll_fn(|context| {
        let mut all = true;
        for (future, done) in &mut pending {
            if done.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *done = Some(value),
                    std::task::Poll::Pending => all = false,
                }
            }
        }
        if all { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    pending.into_iter().filter_map(|(_, done)| done).collect()
}
