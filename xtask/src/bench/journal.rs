//! `bench journal`: durable joins through the engine, beside the bare disk and the classic design.
//!
//! Every acknowledgement comes after the fdatasync that made it durable. Producers are tasks in
//! this same process, so what they cost is counted as ours; the CPU time of the clients that
//! drive redis-server is not counted as its own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use waitroom_core::{Command, Identity, Join};
use waitroom_engine::RoomHandle;

use super::Scale;
use super::classic::{Classic, Settings, scatter};
use super::cpu::{ROUNDS, process_cpu};
use super::data::DataFolder;
use super::disk::{OneSync, SyncProbe, percentile};
use super::redis::server::AppendOnly;
use super::report::{Better, Expected, Figure, Measure};
use super::rooms::{self, is_new_place};
use crate::failure::{Failure, OrFail, Outcome};

/// Each waits for its answer before it asks again, so an answer takes as long as all the others
/// need for theirs: at 500,000 a second and 4,000 producers that is 8 ms.
const PRODUCERS: u64 = 4_000;
/// With many joins in a request fewer producers do.
const BULK_PRODUCERS: u64 = 100;
const BULK_JOINS: u64 = 100;
const LONE_JOINS: usize = 200;

pub fn run(scale: Scale) -> Outcome<Vec<Figure>> {
    let round = match scale {
        Scale::Full => Duration::from_secs(2),
        Scale::Quick => Duration::from_millis(500),
    };
    let folder = DataFolder::new("journal")?;
    let disk = SyncProbe::measure(folder.path(), scale)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build();
    let runtime = runtime.or_fail(|| "start a runtime")?;
    let engine = {
        let _inside = runtime.enter();
        rooms::engine(&folder.path().join("store"))?
    };
    let bench = |name: &str, producers: Producers| -> Outcome<Reached> {
        eprintln!("{name}: {producers:?}, {ROUNDS} rounds of {round:?}");
        let room = runtime.block_on(rooms::room(&engine, name))?;
        Reached::best(&runtime, &room, producers, round)
    };
    let lone = {
        let room = runtime.block_on(rooms::room(&engine, "lone"))?;
        runtime.block_on(Lone::measure(&room, &folder.path().join("beside-lone")))?
    };
    let single = Producers { count: PRODUCERS, joins: 1, identity: false };
    let bulk = Producers { count: BULK_PRODUCERS, joins: BULK_JOINS, identity: false };
    let known = Producers { identity: true, ..single };
    let (single, known, bulk) =
        (bench("single", single)?, bench("known", known)?, bench("bulk", bulk)?);
    runtime.block_on(engine.stop());
    let again = SyncProbe::measure(folder.path(), scale)?;
    let classic = Classic::measure_joins(&Settings::new(scale, AppendOnly::EverySecond))?;

    let ms = |name: &str, time: Duration| Measure::new(name, time.as_secs_f64() * 1e3, "ms");
    let rate = |name: &str, value: f64| Measure::new(name, value, "1/s");
    let per_cpu = |name: &str, value: f64| Measure::new(name, value, "1/cpu s");
    let classic_cpu = || per_cpu("classic_joins_per_cpu_s_everysec", classic.per_cpu_second);
    Ok(vec![
        Figure::beside(
            rate("durable_joins_per_s", single.per_second),
            rate("fdatasyncs_per_s", disk.per_second),
            Better::Higher,
        )
        .expect(Expected::AtLeast(500_000.0)),
        Figure::of(ms("ack_p50_ms", single.p50)),
        Figure::beside(
            ms("ack_p99_ms", single.p99),
            ms("fdatasync_p99_ms", disk.p99),
            Better::Lower,
        )
        .expect(Expected::AtMost(10.0)),
        Figure::beside(
            per_cpu("durable_joins_per_cpu_vs_redis", single.per_cpu_second),
            classic_cpu(),
            Better::Higher,
        )
        .expect(Expected::RatioAtLeast(10.0)),
        Figure::of(rate("durable_joins_per_s_identity", known.per_second)),
        Figure::of(ms("ack_p99_ms_identity", known.p99)),
        Figure::of(rate("durable_joins_per_s_by_100", bulk.per_second)),
        Figure::of(ms("ack_p50_ms_by_100", bulk.p50)),
        Figure::of(ms("ack_p99_ms_by_100", bulk.p99)),
        Figure::beside(
            per_cpu("durable_joins_per_cpu_by_100_vs_redis", bulk.per_cpu_second),
            classic_cpu(),
            Better::Higher,
        ),
        // Two fdatasyncs at most, so at least half as quick as one.
        Figure::beside(
            ms("lone_join_ms", lone.join),
            ms("fdatasync_p50_ms_in_turns", lone.fdatasync),
            Better::Lower,
        )
        .expect(Expected::RatioAtLeast(0.5)),
        Figure::of(ms("fdatasync_p50_ms_after", again.p50)),
        Figure::of(ms("fdatasync_p99_ms_after", again.p99)),
    ])
}

/// A join that nobody else shares its sync with, and a bare write with its sync, in turns: the
/// disk changes its mood within seconds, and this way both meet the same. Medians.
#[derive(Debug, Clone, Copy)]
struct Lone {
    join: Duration,
    fdatasync: Duration,
}

impl Lone {
    async fn measure(room: &RoomHandle, beside: &Path) -> Outcome<Self> {
        let mut probe = OneSync::create(beside)?;
        let (mut joins, mut syncs) = (vec![], vec![]);
        for _ in 0..LONE_JOINS {
            let began = Instant::now();
            let answer = room.send(Command::Join(Join::default())).await;
            joins.push(began.elapsed());
            let answer = answer.or_fail(|| "join alone")?;
            if !is_new_place(&answer.reply) {
                return Err(Failure::new(format!("a join was answered {:?}", answer.reply)));
            }
            syncs.push(probe.time()?);
        }
        joins.sort_unstable();
        syncs.sort_unstable();
        Ok(Self { join: percentile(&joins, 50), fdatasync: percentile(&syncs, 50) })
    }
}

/// Who sends, and how much at once.
#[derive(Debug, Clone, Copy)]
struct Producers {
    count: u64,
    joins: u64,
    identity: bool,
}

/// The best of five rounds, by each measure.
#[derive(Debug, Clone, Copy)]
struct Reached {
    per_second: f64,
    per_cpu_second: f64,
    p50: Duration,
    p99: Duration,
}

impl Reached {
    fn best(
        runtime: &Runtime,
        room: &RoomHandle,
        producers: Producers,
        round: Duration,
    ) -> Outcome<Self> {
        let mut best: Option<Self> = None;
        for number in 0..ROUNDS as u64 {
            let this = runtime.block_on(producers.round(room, number, round))?;
            best = Some(best.map_or(this, |best| best.or(this)));
        }
        Ok(best.expect("there is at least one round"))
    }

    fn or(self, other: Self) -> Self {
        Self {
            per_second: self.per_second.max(other.per_second),
            per_cpu_second: self.per_cpu_second.max(other.per_cpu_second),
            p50: self.p50.min(other.p50),
            p99: self.p99.min(other.p99),
        }
    }
}

impl Producers {
    async fn round(self, room: &RoomHandle, number: u64, round: Duration) -> Outcome<Reached> {
        let stop = Arc::new(AtomicBool::new(false));
        let (cpu, began) = (process_cpu(), Instant::now());
        let tasks: Vec<_> = (0..self.count)
            .map(|id| {
                let (room, stop) = (room.clone(), stop.clone());
                // No two producers of any round are the same people.
                let first = (number * self.count + id) << 32;
                tokio::spawn(async move { self.produce(&room, first, &stop).await })
            })
            .collect();
        tokio::time::sleep(round).await;
        stop.store(true, Ordering::Relaxed);
        let mut all = vec![];
        for task in tasks {
            all.push(task.await.or_fail(|| "wait for a producer")??);
        }
        // What is done with the times afterwards is nobody's join.
        let (wall, cpu) = (began.elapsed(), process_cpu() - cpu);
        let mut times = all.concat();
        let joins = times.len() as f64 * self.joins as f64;
        times.sort_unstable();
        let percentile = |percent| Duration::from_micros(percentile(&times, percent).into());
        Ok(Reached {
            per_second: joins / wall.as_secs_f64(),
            per_cpu_second: joins / cpu.as_secs_f64(),
            p50: percentile(50),
            p99: percentile(99),
        })
    }

    /// One producer: asks, waits for the durable answer, asks again. The times of its requests in
    /// microseconds; an answer's end is the next one's beginning, so the clock is read once each.
    async fn produce(self, room: &RoomHandle, first: u64, stop: &AtomicBool) -> Outcome<Vec<u32>> {
        let mut times = vec![];
        let mut visitors = first..;
        let mut began = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            let mut commands = visitors.by_ref().map(|n| self.join(n)).take(self.joins as usize);
            let all_new = if self.joins == 1 {
                let answer = room.send(commands.next().expect("visitors never end")).await;
                is_new_place(&answer.or_fail(|| "join")?.reply)
            } else {
                let answers = room.send_many(commands.collect()).await.or_fail(|| "join")?;
                answers.iter().all(|answer| is_new_place(&answer.reply))
            };
            let now = Instant::now();
            times.push((now - began).as_micros().try_into().unwrap_or(u32::MAX));
            began = now;
            if !all_new {
                return Err(Failure::new("a join got no new place"));
            }
        }
        Ok(times)
    }

    fn join(self, n: u64) -> Command {
        let hash = || u128::from(scatter(2 * n)) << 64 | u128::from(scatter(2 * n + 1));
        let identity = self.identity.then(|| Identity(hash().to_be_bytes()));
        Command::Join(Join { identity, ..Join::default() })
    }
}
