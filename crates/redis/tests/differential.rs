//! The same random requests to the model and to Redis must be answered alike, also when the server
//! is killed in between, and when connections are cut while an append is on its way.

#[path = "../../store/tests/common/mod.rs"]
mod common;
#[path = "common/cutter.rs"]
mod cutter;
#[path = "common/servers.rs"]
mod servers;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use common::{
    Rng,
    requests::{Memory, Request, ask, picture, remember, request},
};
use cutter::Cutter;
use servers::{DURABLE, Server};
use tokio::runtime::{Builder, Runtime};
use waitroom_redis::{Level, Options, RedisStore, Time, Where};
use waitroom_store::{Clock, Entropy, ManualClock, MemoryStore, Seams};

/// The same chance for both stores at each step, however often either asks.
#[derive(Debug)]
struct OfTheStep {
    seed: u64,
    step: AtomicU64,
}

impl Entropy for OfTheStep {
    fn next_u128(&self) -> u128 {
        let step = self.step.load(Ordering::SeqCst);
        u128::from(Rng(self.seed).next()) << 64 | u128::from(Rng(step).next())
    }
}

fn seams(clock: &Arc<ManualClock>, seed: u64) -> (Seams, Arc<OfTheStep>) {
    let entropy = Arc::new(OfTheStep { seed, step: AtomicU64::new(0) });
    let clock: Arc<dyn Clock> = clock.clone();
    (Seams { clock, entropy: entropy.clone() }, entropy)
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads")
}

fn open(runtime: &Runtime, url: String, prefix: &str, level: Level, seams: &Seams) -> RedisStore {
    let mut options = Options::new(Where::Single { url }, level);
    options.time = Time::Given;
    // A busy machine is not a broken one.
    options.answer_timeout = Duration::from_secs(20);
    options.connect_timeout = Duration::from_secs(20);
    options.prefix = prefix.to_owned();
    let opened = runtime.block_on(RedisStore::open(options, seams.clone()));
    opened.unwrap_or_else(|error| panic!("{error}")).0
}

const ALONE: Level = Level::Sync { replicas_required: 0 };

#[test]
fn redis_answers_as_the_model_does() {
    let runtime = runtime();
    let mut server = Server::redis(&DURABLE);
    let mut appended = 0;
    for seed in 0..12 {
        let mut rng = Rng(seed);
        let clock = ManualClock::at(1_000_000);
        let (seams, chance) = seams(&clock, seed);
        let model = MemoryStore::new(seams.clone());
        let level = if seed % 2 == 0 { ALONE } else { Level::Async };
        let prefix = format!("seed{seed}");
        let mut store = open(&runtime, server.url(), &prefix, level, &seams);
        let mut memory = Memory::default();
        for step in 0..300 {
            clock.advance(rng.below(100));
            chance.step.store(step, Ordering::SeqCst);
            let request = request(&mut rng, &model, &mut memory);
            let expected = ask(&model, request.clone());
            let found = ask(&store, request.clone());
            assert_eq!(found, expected, "seed {seed}, step {step}: {request:?}");
            remember(&model, &request, &expected, &mut memory);
            appended += u64::from(expected.starts_with("Ok(Appended"));
            if rng.below(60) == 0 {
                assert_eq!(picture(&store), picture(&model), "seed {seed}, step {step}");
                if rng.below(2) == 0 {
                    server.kill();
                    server.restart();
                }
                store = open(&runtime, server.url(), &prefix, level, &seams);
                assert_eq!(picture(&store), picture(&model), "seed {seed}, step {step}");
            }
        }
    }
    assert!(appended > 800, "{appended}");
}

/// An append that was cut off is sent again until it is told how it ended; the model is asked once.
#[test]
fn cut_connections_change_no_answer_but_unknown() {
    let runtime = runtime();
    let server = Server::redis(&DURABLE);
    let (mut unknown, mut appended) = (0, 0);
    for seed in 100..106 {
        let cutter = Cutter::to(server.port);
        let mut rng = Rng(seed);
        let clock = ManualClock::at(1_000_000);
        let (seams, chance) = seams(&clock, seed);
        let model = MemoryStore::new(seams.clone());
        let prefix = format!("cut{seed}");
        let store = open(&runtime, cutter.url(), &prefix, ALONE, &seams);
        let mut memory = Memory::default();
        for step in 0..250 {
            clock.advance(rng.below(100));
            chance.step.store(step, Ordering::SeqCst);
            let request = request(&mut rng, &model, &mut memory);
            let expected = ask(&model, request.clone());
            // Only what may be asked again: a second lease is another lease.
            if matches!(request, Request::Append { .. } | Request::Read { .. }) {
                match rng.below(6) {
                    0 => cutter.cut(),
                    1 => cutter.cut_after(0),
                    2 => cutter.cut_after(1),
                    _ => {}
                }
            }
            let mut found = ask(&store, request.clone());
            while found.contains("Unknown") || found.contains("Unavailable") {
                unknown += 1;
                assert!(unknown < 5_000, "seed {seed}, step {step}: it never ends: {found}");
                found = ask(&store, request.clone());
            }
            cutter.open();
            assert_eq!(found, expected, "seed {seed}, step {step}: {request:?}");
            remember(&model, &request, &expected, &mut memory);
            appended += u64::from(expected.starts_with("Ok(Appended"));
        }
        assert_eq!(picture(&store), picture(&model), "seed {seed}");
    }
    assert!(appended > 250 && unknown > 50, "{appended} appended, {unknown} unknown");
}
