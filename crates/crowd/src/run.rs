//! Carrying a plan out: people come when they come, somebody keeps count, and it ends.
//!
//! One task per visitor, made when they arrive: nearly all of a visit is a sleeping timer, and the
//! runtime keeps those in a wheel. Measured: 10,000 visitors with a history took 6 s of CPU in a
//! run of 48 s, and 100 MB.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use waitroom_core::when;

use crate::arrivals::arrivals;
use crate::clock::Start;
use crate::history::{Header, Recorder, Unwritten, Writing};
use crate::operator::{self, Desk};
use crate::outcome::{Moment, Outcome};
use crate::plan::{Channel, Plan};
use crate::tally::Tally;
use crate::visitor::{Visitor, poll};
use crate::wire::{Pool, Rpc, Sources, Target};
use crate::world::{Stop, World};

/// How often progress is told, and how long a second of the report is.
const SECOND: Duration = Duration::from_secs(1);
const GLANCE: Duration = Duration::from_millis(100);

/// How the run stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    pub at_ms: u64,
    pub visitors: u64,
    pub arrived: u64,
    pub joined: u64,
    pub waiting: u64,
    pub inside: u64,
    pub done: u64,
    pub calls: u64,
    pub lost: u64,
    pub surprises: u64,
    /// Of the last second, in microseconds.
    pub p50_us: u64,
    pub p99_us: u64,
}

/// Why a run could not begin or is not whole.
#[derive(Debug)]
pub enum Failed {
    /// A target cannot be found or reached.
    Target(String),
    History(Unwritten),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Target(why) => f.write_str(why),
            Failed::History(unwritten) => unwritten.fmt(f),
        }
    }
}

impl std::error::Error for Failed {}

/// Runs the crowd. The plan was checked before.
pub async fn run(plan: Plan, progress: impl FnMut(&Progress)) -> Result<Outcome, Failed> {
    run_until(plan, std::future::pending(), progress).await
}

/// The same, until somebody ends it before its time.
pub async fn run_until(
    plan: Plan,
    end: impl Future<Output = ()>,
    mut progress: impl FnMut(&Progress),
) -> Result<Outcome, Failed> {
    let start = Start::now();
    let (world, writing) = prepare(plan, start).await?;
    let (stopper, stop) = watch::channel(false);
    let stop = Stop(stop);
    let operator = Desk::new(&world, stop.clone()).map(|desk| tokio::spawn(desk.run()));
    let finished = Arc::new(AtomicU64::new(0));
    let coming = tokio::spawn(arrive(world.clone(), stop, finished.clone()));
    let moments = watch_over(&world, &writing, &finished, end, &mut progress).await;
    // Nobody comes any more; those who are there look once more and go.
    let _ = stopper.send(true);
    if let Some(operator) = operator {
        let _ = operator.await;
    }
    let mut visitors = coming.await.expect("arriving does not panic");
    while let Some(visited) = visitors.join_next().await {
        if let Err(panicked) = visited {
            world.tally.surprise(format!("a visitor of ours broke: {panicked}"));
        }
    }
    let outcome = Outcome::of(&world, start.ns() / 1_000_000, moments);
    drop(world);
    let history_lines = writing.finish().map_err(Failed::History)?;
    Ok(Outcome { history_lines, ..outcome })
}

async fn prepare(plan: Plan, start: Start) -> Result<(Arc<World>, Writing), Failed> {
    let timeout = Duration::from_millis(plan.timeout_ms);
    let pool = pool(&plan.public, &plan, plan.connections, timeout, start).await?;
    let long = (plan.visitors as f64 * plan.mix.share(Channel::Long)).ceil() as usize;
    let long = pool.beside(long.clamp(1, 10_000), poll::long_timeout(timeout));
    let admin = match &plan.admin {
        Some(target) => Some(self::pool(target, &plan, 4, timeout, start).await?),
        None => None,
    };
    let rpc = match (&plan.grpc, &plan.key) {
        (Some(target), Some(key)) => {
            let rpc = Rpc::new(&target.to_string(), &key.0, 4, timeout);
            Some(rpc.map_err(|why| Failed::Target(format!("{target}: {why}")))?)
        }
        _ => None,
    };
    let mut rooms = BTreeMap::new();
    if let (Some(admin), Some(key)) = (&admin, &plan.key) {
        let facts = operator::look_up(admin, &key.0, &plan.room).await;
        let facts = facts.map_err(|why| {
            Failed::Target(format!("room \"{}\" cannot be looked up: {why}", plan.room))
        })?;
        rooms.insert(plan.room.clone(), facts);
    }
    let header = Header {
        history: 1,
        by: format!("waitroom crowd {}", env!("CARGO_PKG_VERSION")),
        started: when::utc(start.wall_ms),
        started_ms: start.wall_ms,
        seed: plan.seed,
        rooms,
    };
    let recording = match &plan.history {
        Some(path) => Recorder::file(path, &header).map_err(Failed::History)?,
        None => Recorder::nothing(),
    };
    let (recorder, writing) = recording;
    let tally = Tally::default();
    Ok((Arc::new(World { plan, start, pool, long, admin, rpc, recorder, tally }), writing))
}

async fn pool(
    target: &Target,
    plan: &Plan,
    connections: usize,
    timeout: Duration,
    start: Start,
) -> Result<Pool, Failed> {
    let address = target.resolve().await;
    let address = address.map_err(|error| Failed::Target(format!("{target}: {error}")))?;
    let sources = Sources::new(address, plan.sources);
    let host = format!("{}:{}", target.host, target.port);
    Ok(Pool::new(sources, &host, connections, timeout, start))
}

/// Lets everyone come at their moment; ends early with the run.
async fn arrive(world: Arc<World>, mut stop: Stop, finished: Arc<AtomicU64>) -> JoinSet<()> {
    let plan = &world.plan;
    let mut visitors = JoinSet::new();
    let moments = arrivals(plan.visitors, plan.over_ms, plan.shape, plan.seed);
    for (who, at_ms) in (0..).zip(moments) {
        let early_ms = at_ms.saturating_sub(world.start.ns() / 1_000_000);
        if stop.is_now() || early_ms > 0 && !stop.sleep(early_ms).await {
            break;
        }
        world.tally.arrived.fetch_add(1, Ordering::Relaxed);
        let mut visitor = Visitor::new(world.clone(), who, stop.clone());
        let (mut stop, finished) = (stop.clone(), finished.clone());
        visitors.spawn(async move {
            visitor.visit().await;
            finished.fetch_add(1, Ordering::Relaxed);
            stop.wait().await;
            visitor.last_look().await;
        });
    }
    visitors
}

/// Keeps count until the time is up, somebody ends it, everybody is through, or the history cannot
/// be written.
async fn watch_over(
    world: &World,
    writing: &Writing,
    finished: &AtomicU64,
    end: impl Future<Output = ()>,
    progress: &mut impl FnMut(&Progress),
) -> Vec<Moment> {
    let mut end = std::pin::pin!(end);
    let mut moments: Vec<Moment> = Vec::new();
    let mut latency = (0, 0);
    let (mut calls, mut lost) = (0, 0);
    let mut glances = tokio::time::interval(GLANCE);
    let mut second = world.start.instant() + SECOND;
    loop {
        let ended = tokio::select! {
            _ = glances.tick() => false,
            () = &mut end => true,
        };
        if second.elapsed() > Duration::ZERO {
            second += SECOND;
            latency = world.tally.end_second().unwrap_or((0, 0));
            let now = glance(world, finished, latency);
            moments.push(Moment {
                at_s: now.at_ms / 1_000,
                waiting: now.waiting,
                inside: now.inside,
                calls: now.calls - calls,
                lost: now.lost - lost,
                p50_us: latency.0,
                p99_us: latency.1,
            });
            (calls, lost) = (now.calls, now.lost);
        }
        let now = glance(world, finished, latency);
        progress(&now);
        let over = now.at_ms >= world.plan.duration_ms || now.done >= now.visitors;
        if ended || over || writing.failed() {
            return moments;
        }
    }
}

fn glance(world: &World, finished: &AtomicU64, (p50_us, p99_us): (u64, u64)) -> Progress {
    let tally = &world.tally;
    let count = |it: &AtomicU64| it.load(Ordering::Relaxed);
    Progress {
        at_ms: world.start.ns() / 1_000_000,
        visitors: world.plan.visitors,
        arrived: count(&tally.arrived),
        joined: count(&tally.joined),
        waiting: tally.waiting.load(Ordering::Relaxed).max(0) as u64,
        inside: tally.inside.load(Ordering::Relaxed).max(0) as u64,
        done: count(finished),
        calls: count(&tally.calls),
        lost: count(&tally.lost) + count(&tally.unreachable),
        surprises: tally.surprises().count,
        p50_us,
        p99_us,
    }
}
