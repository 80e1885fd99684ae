//! The store on Redis keeps the contract: on one server that is killed at every reopening, with
//! Sentinel, on a Cluster, and at the level that waits for nobody.

#[path = "common/servers.rs"]
mod servers;

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use servers::{Cluster, DURABLE, Sentinels, Server};
use tokio::runtime::{Builder, Runtime};
use waitroom_redis::{Level, Options, RedisStore, Time, Where};
use waitroom_store::{ManualClock, Seams, contract_tests::Fixture, store_contract};

/// One runtime for all tests of the program; stores outlive none of them.
fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads")
    })
}

struct Redis {
    options: Options,
    seams: Seams,
    clock: Arc<ManualClock>,
    /// A server of its own, which may be killed.
    own: Option<Server>,
}

impl Redis {
    fn at(servers: Where, level: Level, own: Option<Server>) -> Redis {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let clock = ManualClock::at(1_000_000);
        let mut options = Options::new(servers, level);
        options.time = Time::Given;
        // A busy machine is not a broken one.
        options.answer_timeout = Duration::from_secs(20);
        options.connect_timeout = Duration::from_secs(20);
        options.replicas_timeout = Duration::from_secs(20);
        options.prefix = format!("test{}", NEXT.fetch_add(1, Ordering::Relaxed));
        Redis { options, seams: Seams::seeded(clock.clone(), 1), clock, own }
    }
}

impl Fixture for Redis {
    type Store = RedisStore;

    /// Each handle has connections of its own, as another instance has.
    fn store(&self) -> RedisStore {
        let opened = RedisStore::open(self.options.clone(), self.seams.clone());
        runtime().block_on(opened).unwrap_or_else(|error| panic!("{error}")).0
    }

    fn advance(&self, ms: u64) {
        self.clock.advance(ms);
    }

    fn reopen(&mut self) {
        if let Some(server) = &mut self.own {
            server.kill();
            server.restart();
        }
    }
}

const ALONE: Level = Level::Sync { replicas_required: 0 };
const WITH_ONE: Level = Level::Sync { replicas_required: 1 };

fn single(level: Level) -> Redis {
    let server = Server::redis(&DURABLE);
    Redis::at(Where::Single { url: server.url() }, level, Some(server))
}

fn sentinel() -> Redis {
    static SENTINELS: OnceLock<Sentinels> = OnceLock::new();
    let all = SENTINELS.get_or_init(|| Sentinels::start(&DURABLE));
    let (sentinels, name) = (all.urls(), Sentinels::NAME.to_owned());
    Redis::at(Where::Sentinel { sentinels, name }, WITH_ONE, None)
}

fn cluster() -> Redis {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    let seeds = CLUSTER.get_or_init(|| Cluster::start(&DURABLE)).urls();
    Redis::at(Where::Cluster { seeds }, WITH_ONE, None)
}

store_contract!(on_one_server_that_is_killed, single(ALONE));
store_contract!(on_one_server_without_waiting, single(Level::Async));
store_contract!(with_sentinel, sentinel());
store_contract!(on_a_cluster, cluster());
