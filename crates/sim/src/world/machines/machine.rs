//! One whole instance: a runtime of its own, with a clock that is moved from outside.
//!
//! Lives here: the clocks, being up, frozen or down, and the tasks that an instance runs. The
//! engine in it is the one of the product. A frozen instance is not run; when it goes on, its clock
//! has jumped, as the clock of a process does that was stopped by its operating system.

use super::super::{GlassVault, START};
use super::bus::{self, Bus};
use super::neighbours::Neighbours;
use super::wire::{Line, Wire};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use waitroom_engine::{Config, Engine};
use waitroom_outbox::Replay;
use waitroom_store::{Clock, RoomName, Seams};

/// Turns that everybody has in one step: enough for a request to come back from a quick store.
const TURNS: usize = 8;

/// A snapshot is made a few times in a run, and the log behind it goes.
const SNAPSHOT_EVERY: u64 = 700;

pub(super) struct Machine {
    runtime: Option<Runtime>,
    pub(super) peers: Arc<Neighbours>,
    pub(super) clock: Arc<LocalClock>,
    pub(super) line: Arc<Line>,
    /// How much faster its clock runs than the store's, in millionths.
    pub(super) drift_ppm: i64,
    /// Time of its own that has passed and that it has not seen, in millionths of a millisecond.
    unseen: i64,
    pub(super) down_until: u64,
    pub(super) frozen_until: u64,
    pub(super) cut_off_until: u64,
    /// No letters come or go.
    pub(super) alone_until: u64,
    pub(super) drains_until: Option<u64>,
    pub(super) lives: u64,
    /// Asks its outbox to tell things again.
    pub(super) replays: Option<mpsc::Sender<Replay>>,
}

/// The monotonic clock of one machine, and its wall clock that somebody may set.
#[derive(Debug, Default)]
pub(super) struct LocalClock {
    now_ms: AtomicU64,
    pub(super) wall_offset_ms: AtomicI64,
}

impl Clock for LocalClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    fn wall_ms(&self) -> u64 {
        let wall = (START.0 + self.now_ms()) as i64;
        (wall + self.wall_offset_ms.load(Ordering::Relaxed)).max(0) as u64
    }
}

impl Machine {
    pub(super) fn new(peers: Arc<Neighbours>, clock: Arc<LocalClock>, line: Arc<Line>) -> Machine {
        Machine {
            runtime: None,
            peers,
            clock,
            line,
            drift_ppm: 0,
            unseen: 0,
            down_until: 0,
            frozen_until: 0,
            cut_off_until: 0,
            alone_until: 0,
            drains_until: None,
            lives: 0,
            replays: None,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.runtime.is_some()
    }

    /// Begins to live, as far as it was made known.
    pub(super) fn start(&mut self, wire: Wire, room: &RoomName, seams: Seams, bus: Arc<Bus>) {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without sockets needs nothing");
        runtime.spawn(live(self.peers.clone(), wire.clone(), room.clone(), seams));
        let (replays, asked) = mpsc::channel(waitroom_outbox::duty::REPLAYS_MAX);
        self.replays = Some(replays);
        runtime.spawn(bus::tell(self.peers.clone(), wire.of_outbox(), bus, asked));
        self.lives += 1;
        self.runtime = Some(runtime);
    }

    /// Everything in memory is gone.
    pub(super) fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Does something with the instance's runtime at hand.
    pub(super) fn within<T>(&self, work: impl FnOnce(&Arc<Neighbours>) -> T) -> Option<T> {
        let _entered = self.runtime.as_ref()?.enter();
        Some(work(&self.peers))
    }

    /// So much of the store's time passes; the instance sees it if it is awake.
    pub(super) fn pass(&mut self, step: u64, awake: bool) {
        self.unseen += step as i64 * (1_000_000 + self.drift_ppm);
        let Some(runtime) = self.runtime.as_ref().filter(|_| awake) else { return };
        let passed = self.unseen.div_euclid(1_000_000) as u64;
        self.unseen = self.unseen.rem_euclid(1_000_000);
        self.clock.now_ms.fetch_add(passed, Ordering::Relaxed);
        runtime.block_on(async {
            tokio::time::advance(Duration::from_millis(passed)).await;
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
        });
    }
}

async fn live(peers: Arc<Neighbours>, wire: Wire, room: RoomName, seams: Seams) {
    let mut config = Config::new(&peers.name, Arc::new(GlassVault));
    config.lease = Some(Duration::from_millis(super::super::LEASE_MS));
    config.peers = Some(peers.clone());
    config.snapshot_every = SNAPSHOT_EVERY;
    // The world sweeps: the housekeeper asks another thread.
    config.sweep_every = Duration::from_secs(1 << 30);
    let engine = Engine::new(Arc::new(wire.clone()), seams, config);
    loop {
        // Who else is there comes before the rooms, so that nobody asks for what others own.
        if peers.look(&wire).await.is_ok()
            && let Ok(handle) = engine.open(&room).await
        {
            peers.serves(handle);
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (reporter, sweeper) = (peers.clone(), peers.clone());
    let second = Duration::from_secs(1);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(second).await;
            reporter.report();
        }
    });
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(second).await;
            sweeper.sweep().await;
        }
    });
    peers.look_on(&wire).await;
}
