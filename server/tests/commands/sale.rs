//! Makes data folders with rooms in them, by the real engine on the real store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use waitroom_core::draw::Proof;
use waitroom_core::settings::{DrawSettings, Rate};
use waitroom_core::{
    Actor, Board, Command, Fresh, Hold, Join, Millis, Phase, Presented, Reply, Settings, Timestamp,
};
use waitroom_engine::{Beacon, Config, Engine, RoomHandle};
use waitroom_store::file::Options;
use waitroom_store::{FileStore, ManualClock, MasterKey, RoomName, Seams};

use crate::shell::nobody_starts;

/// How many take part in a draw; the tests count with it.
const PEOPLE: u64 = 40;

/// What the public beacon has to do with a draw.
#[derive(Clone, Copy)]
pub enum Promise {
    NoBeacon,
    Kept,
    Waived,
}

/// A room that sold by a draw; returns the proof it publishes.
pub fn drawn(data: &Path, room: &str, promise: Promise) -> Proof {
    let clock = ManualClock::at(1_000);
    on_engine(data, Seams::seeded(clock.clone(), 5), async |engine| {
        let beacon = match promise {
            Promise::NoBeacon => None,
            Promise::Kept | Promise::Waived => Some("drand:quicknet:1234567".to_owned()),
        };
        let settings = Settings {
            starts_at: Some(Timestamp(61_000)),
            draw: Some(DrawSettings { beacon }),
            rate: Some(Rate { count: 1, per: Millis(60_000) }),
            ..plain()
        };
        let handle = configured(engine, room, settings).await;
        let mut joined = 0;
        while joined < PEOPLE {
            // The doors open once the draw is committed to, which the engine does by itself.
            if let Ok(answer) = handle.send(Command::Join(Join::default())).await
                && let Reply::Joined { fresh: Fresh::New, .. } = answer.reply
            {
                joined += 1;
            }
        }
        clock.advance(70_000);
        until(&handle, |board| board.state().phase() == Phase::Drawing || is_drawn(board)).await;
        let beacon = match promise {
            Promise::NoBeacon => None,
            Promise::Kept => Some(Beacon::Value(vec![0xB7; 32])),
            Promise::Waived => Some(Beacon::Waived { by: Actor::new("ops") }),
        };
        if let Some(beacon) = beacon {
            handle.reveal_draw(beacon).await.expect("the room takes it");
        }
        let board = until(&handle, is_drawn).await;
        board.state().proof(room).expect("it was drawn")
    })
}

/// A first-come room: `people` join, the first leaves, an operator pauses.
pub fn queued(data: &Path, room: &str, people: u64) {
    on_engine(data, Seams::real(), async |engine| {
        let handle = configured(engine, room, plain()).await;
        let mut first = None;
        for _ in 0..people {
            let answer = handle.send(Command::Join(Join::default())).await.expect("they join");
            let Reply::Joined { ticket, epoch, holder, .. } = answer.reply else {
                panic!("not joined: {answer:?}")
            };
            first.get_or_insert(Presented { ticket, epoch, holder: Some(holder) });
        }
        let first = first.expect("somebody joined");
        handle.send(Command::Leave(first)).await.expect("one leaves");
        let hold = Hold::Paused { reason: "the shop is slow".into() };
        let by = Actor::new("ops");
        handle.send(Command::Hold { hold, by }).await.expect("an operator pauses");
    });
}

fn is_drawn(board: &Board) -> bool {
    board.state().phase() == Phase::Running
}

async fn until(handle: &RoomHandle, there: impl Fn(&Board) -> bool) -> Arc<Board> {
    loop {
        let nudge = Command::Resume { by: Actor::new("test") };
        let version = handle.send(nudge).await.expect("it runs").version;
        let board = handle.board_at(version).await;
        if there(&board) {
            return board;
        }
        tokio::task::yield_now().await;
    }
}

fn plain() -> Settings {
    Settings { queue_all: true, rate: None, ..Settings::default() }
}

/// Opens a store with an engine on it, and has closed both when it returns.
fn on_engine<T>(data: &Path, seams: Seams, work: impl AsyncFnOnce(&Engine<FileStore>) -> T) -> T {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let runtime = threads.worker_threads(2).enable_all().build().expect("threads are to be had");
    let (store, _) = FileStore::open(data, Options::default(), seams.clone()).expect("it opens");
    let config = Config {
        // The housekeeper stays out of the way.
        sweep_every: Duration::from_secs(3_600),
        ..Config::new("test", Arc::new(MasterKey::from_bytes([7; 32])))
    };
    let (engine, done) = runtime.block_on(async {
        let engine = Engine::new(Arc::new(store), seams, config);
        let done = work(&engine).await;
        engine.stop().await;
        (engine, done)
    });
    let _starting = nobody_starts();
    drop(engine);
    drop(runtime);
    done
}

async fn configured(engine: &Engine<FileStore>, room: &str, settings: Settings) -> RoomHandle {
    let room = RoomName::parse(room).expect("a plain name");
    let handle = engine.open(&room).await.expect("the room opens");
    let configure = Command::Configure { settings: Box::new(settings), by: Actor::new("test") };
    let answer = handle.send(configure).await.expect("the store takes it");
    assert_eq!(answer.reply, Reply::Done);
    handle
}
