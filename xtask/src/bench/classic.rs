//! The peer: a waiting room as it is usually built on Redis, run on a real redis-server.
//!
//! A counter gives numbers, a sorted set holds the queue, one hash of six fields holds each
//! session. A join is one script (INCR, ZADD, HSET, EXPIRE), so is a heartbeat (HSET, EXPIRE,
//! ZRANK); a position is a ZRANK; admitting is ZPOPMIN of 1,000. The scripts lie beside this
//! file. The peer gets what it needs to look well: pipelines of 100 over several connections,
//! a core of its own, no snapshots meanwhile, and the best of five rounds.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Scale;
use super::cpu::{self, Cores, ROUNDS};
use super::redis::resp::{Connection, Pipeline, Reply};
use super::redis::server::{AppendOnly, Server};
use super::report::Figure;
use crate::failure::{Failure, OrFail, Outcome};

const JOIN: &str = include_str!("classic/join.lua");
const HEARTBEAT: &str = include_str!("classic/heartbeat.lua");

const COUNTER: &str = "counter:spring-sale";
const QUEUE: &str = "queue:spring-sale";
/// Longer than any run, so that nothing expires while we measure.
const SESSION_LIFE_S: &str = "7200";
const NOW_MS: &str = "1767225600000";
const PIPELINE_DEPTH: u64 = 100;
const ADMIT: u64 = 1_000;
/// Questions per round: about a second of the server's time.
const QUESTIONS_MAX: u64 = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub members: u64,
    pub connections: usize,
    pub append_only: AppendOnly,
}

impl Settings {
    pub fn new(scale: Scale, append_only: AppendOnly) -> Self {
        let members = match scale {
            Scale::Full => 1_000_000,
            Scale::Quick => 100_000,
        };
        Self { members, connections: 4, append_only }
    }
}

/// What the peer reached, each in its best round.
#[derive(Debug, Clone, PartialEq)]
pub struct Classic {
    pub joins: Rate,
    pub positions: Rate,
    pub heartbeats: Rate,
    pub admit_1000: Duration,
    /// What Redis says it allocated: sorted set, hash and expiry of a member.
    pub bytes_per_member: f64,
    /// The same as the kernel sees it, fragmentation included.
    pub resident_per_member: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    pub per_second: f64,
    /// Per second of CPU time of the whole redis-server.
    pub per_cpu_second: f64,
}

pub fn run(scale: Scale) -> Outcome<Vec<Figure>> {
    let memory = Classic::measure(&Settings::new(scale, AppendOnly::No))?;
    let mut figures = vec![
        Figure::alone("classic_joins_per_s", memory.joins.per_second, "1/s"),
        Figure::alone("classic_joins_per_cpu_s", memory.joins.per_cpu_second, "1/cpu s"),
        Figure::alone("classic_positions_per_s", memory.positions.per_second, "1/s"),
        Figure::alone("classic_positions_per_cpu_s", memory.positions.per_cpu_second, "1/cpu s"),
        Figure::alone("classic_heartbeats_per_s", memory.heartbeats.per_second, "1/s"),
        Figure::alone("classic_heartbeats_per_cpu_s", memory.heartbeats.per_cpu_second, "1/cpu s"),
        Figure::alone("classic_admit_1000_us", memory.admit_1000.as_secs_f64() * 1e6, "us"),
        Figure::alone("classic_bytes_per_member", memory.bytes_per_member, "bytes"),
        Figure::alone("classic_resident_bytes_per_member", memory.resident_per_member, "bytes"),
    ];
    for (append_only, name) in
        [(AppendOnly::EverySecond, "everysec"), (AppendOnly::Always, "always")]
    {
        let durable = Classic::measure_joins(&Settings::new(scale, append_only))?;
        let figure = format!("classic_joins_per_s_{name}");
        figures.push(Figure::alone(&figure, durable.per_second, "1/s"));
        let figure = format!("classic_joins_per_cpu_s_{name}");
        figures.push(Figure::alone(&figure, durable.per_cpu_second, "1/cpu s"));
    }
    Ok(figures)
}

impl Classic {
    /// Fills a fresh server and asks it everything.
    pub fn measure(settings: &Settings) -> Outcome<Self> {
        let peer = Peer::start(settings)?;
        let (used_before, resident_before) = (peer.server.used_memory()?, peer.server.resident()?);
        let joins = peer.fill()?;
        let (used_after, resident_after) = (peer.server.used_memory()?, peer.server.resident()?);
        let per_member =
            |before: u64, after: u64| after.saturating_sub(before) as f64 / settings.members as f64;
        Ok(Self {
            joins,
            positions: peer.ask(|visitor, pipeline| pipeline.push(&["ZRANK", QUEUE, visitor]))?,
            heartbeats: peer.ask(|visitor, pipeline| peer.heartbeat(visitor, pipeline))?,
            admit_1000: peer.admit()?,
            bytes_per_member: per_member(used_before, used_after),
            resident_per_member: per_member(resident_before, resident_after),
        })
    }

    /// Only fills a fresh server: what a durable join costs it.
    pub fn measure_joins(settings: &Settings) -> Outcome<Rate> {
        Peer::start(settings)?.fill()
    }
}

/// The server with its scripts loaded.
struct Peer {
    server: Server,
    settings: Settings,
    cores: Cores,
    join: JoinScript,
    heartbeat: String,
}

/// The classic join as a command for whoever runs it.
#[derive(Debug, Clone)]
pub struct JoinScript {
    name: String,
}

impl JoinScript {
    pub fn load(connection: &mut Connection) -> Outcome<Self> {
        Ok(Self { name: load(connection, JOIN)? })
    }

    /// Visitor `n` joins.
    pub fn push(&self, n: u64, pipeline: &mut Pipeline) {
        let visitor = visitor(n);
        let session = session(&visitor);
        let keys = ["3", COUNTER, QUEUE, &session];
        let args = [visitor.as_str(), &format!("u{n}"), NOW_MS, SESSION_LIFE_S];
        pipeline.push(&[&["EVALSHA", &self.name], &keys[..], &args].concat());
    }
}

impl Peer {
    fn start(settings: &Settings) -> Outcome<Self> {
        let cores = Cores::split()?;
        let server = Server::start(settings.append_only, cores.server)?;
        eprintln!(
            "peer: {}, {} members, {} connections, pipelines of {PIPELINE_DEPTH}, \
             server on core {}, clients on core {}",
            server.line(),
            settings.members,
            settings.connections,
            cores.server,
            cores.client
        );
        let mut connection = server.connect()?;
        let join = JoinScript::load(&mut connection)?;
        let heartbeat = load(&mut connection, HEARTBEAT)?;
        Ok(Self { server, settings: *settings, cores, join, heartbeat })
    }

    /// Everybody joins, in five parts; the best part counts, and nobody may be missing after.
    fn fill(&self) -> Outcome<Rate> {
        let members = self.settings.members;
        let mut best = Rate::NONE;
        for round in 0..ROUNDS as u64 {
            let part = members * round / ROUNDS as u64..members * (round + 1) / ROUNDS as u64;
            best = best.or(self.drive(part, |n, pipeline| self.join.push(n, pipeline))?);
        }
        let queued =
            self.server.connect()?.call(&["ZCARD", QUEUE]).or_fail(|| "count the queue")?;
        if queued != Reply::Number(members.cast_signed()) {
            return Err(Failure::new(format!("{members} people joined, redis has {queued:?}")));
        }
        Ok(best)
    }

    /// Five rounds of questions about people picked from the whole queue.
    fn ask(&self, question: impl Fn(&str, &mut Pipeline) + Sync) -> Outcome<Rate> {
        let members = self.settings.members;
        let questions = members.min(QUESTIONS_MAX);
        let mut best = Rate::NONE;
        for round in 0..ROUNDS as u64 {
            let range = round * questions..(round + 1) * questions;
            best = best.or(self.drive(range, |n, pipeline| {
                question(&visitor(scatter(n) % members), pipeline);
            })?);
        }
        Ok(best)
    }

    fn heartbeat(&self, visitor: &str, pipeline: &mut Pipeline) {
        let session = session(visitor);
        let keys = ["2", QUEUE, &session];
        let args = [visitor, NOW_MS, SESSION_LIFE_S];
        pipeline.push(&[&["EVALSHA", &self.heartbeat], &keys[..], &args].concat());
    }

    /// The shortest of five times that 1,000 people were let in.
    fn admit(&self) -> Outcome<Duration> {
        let mut connection = self.server.connect()?;
        let mut best = Duration::MAX;
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let popped = connection
                .call(&["ZPOPMIN", QUEUE, &ADMIT.to_string()])
                .or_fail(|| "admit people from redis")?;
            best = best.min(began.elapsed());
            // Members and scores alternate.
            if !matches!(&popped, Reply::List(list) if list.len() as u64 == 2 * ADMIT) {
                return Err(Failure::new("redis did not let 1,000 people in"));
            }
        }
        Ok(best)
    }

    /// Sends the command of every number in `range`, in pipelines over all connections, each
    /// of which takes the next hundred when it is free. Every reply must be a number.
    fn drive(
        &self,
        range: Range<u64>,
        command: impl Fn(u64, &mut Pipeline) + Sync,
    ) -> Outcome<Rate> {
        let next = AtomicU64::new(range.start);
        let worker = |mut connection: Connection| -> Outcome {
            cpu::pin(None, self.cores.client)?;
            let mut pipeline = Pipeline::default();
            loop {
                let from = next.fetch_add(PIPELINE_DEPTH, Ordering::Relaxed);
                if from >= range.end {
                    return Ok(());
                }
                for n in from..range.end.min(from + PIPELINE_DEPTH) {
                    command(n, &mut pipeline);
                }
                let mut odd = None;
                let note = |reply: &Reply| {
                    if !matches!(reply, Reply::Number(_)) {
                        odd = Some(reply.clone());
                    }
                };
                connection.send(&mut pipeline, note).or_fail(|| "talk to redis")?;
                if let Some(reply) = odd {
                    return Err(Failure::new(format!("redis answered {reply:?}, not a number")));
                }
            }
        };
        let connections: Vec<Connection> = (0..self.settings.connections)
            .map(|_| self.server.connect())
            .collect::<Outcome<_>>()?;
        let cpu_before = self.server.cpu()?;
        let began = Instant::now();
        std::thread::scope(|scope| {
            let workers: Vec<_> = connections
                .into_iter()
                .map(|connection| scope.spawn(|| worker(connection)))
                .collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("a worker never panics"))
        })?;
        let wall = began.elapsed();
        let cpu = self.server.cpu()?.checked_sub(cpu_before).ok_or_else(|| {
            Failure::new("a thread of redis-server ended, and its CPU time went with it")
        })?;
        Ok(Rate::of(range.end - range.start, wall, cpu))
    }
}

impl Rate {
    const NONE: Self = Self { per_second: 0.0, per_cpu_second: 0.0 };

    fn of(operations: u64, wall: Duration, cpu: Duration) -> Self {
        let operations = operations as f64;
        Self {
            per_second: operations / wall.as_secs_f64(),
            per_cpu_second: operations / cpu.as_secs_f64(),
        }
    }

    /// The better of both, by each measure.
    fn or(self, other: Self) -> Self {
        Self {
            per_second: self.per_second.max(other.per_second),
            per_cpu_second: self.per_cpu_second.max(other.per_cpu_second),
        }
    }
}

fn load(connection: &mut Connection, script: &str) -> Outcome<String> {
    match connection.call(&["SCRIPT", "LOAD", script]).or_fail(|| "load a script into redis")? {
        Reply::Bulk(sha) => String::from_utf8(sha).or_fail(|| "read the name of a script"),
        other => Err(Failure::new(format!("SCRIPT LOAD was answered with {other:?}"))),
    }
}

/// Visitor `n` as such systems name people: 36 characters in the form of a UUID.
fn visitor(n: u64) -> String {
    let (a, b) = (scatter(2 * n), scatter(2 * n + 1));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xfff,
        0x8000 | (b >> 48) & 0x3fff,
        b & 0xffff_ffff_ffff
    )
}

fn session(visitor: &str) -> String {
    format!("session:{visitor}")
}

/// SplitMix64: neighbours come out far apart, and every run sees the same people.
pub(super) fn scatter(n: u64) -> u64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn visitors_have_the_form_of_a_uuid_and_are_all_different() {
        let visitors: BTreeSet<String> = (0..10_000).map(visitor).collect();
        assert_eq!(visitors.len(), 10_000);
        for visitor in visitors {
            assert_eq!(visitor.len(), 36);
            let dashes: Vec<usize> = visitor.match_indices('-').map(|(at, _)| at).collect();
            assert_eq!(dashes, [8, 13, 18, 23]);
        }
    }

    #[test]
    fn a_small_crowd_goes_through_a_real_server_and_the_server_is_gone_after() {
        let settings =
            Settings { members: 10_000, connections: 2, append_only: AppendOnly::EverySecond };
        let peer = Peer::start(&settings).expect("redis-server starts");
        let pid = peer.server.id();
        peer.fill().expect("all join, each once");
        peer.ask(|visitor, pipeline| peer.heartbeat(visitor, pipeline)).expect("all are known");
        peer.admit().expect("a thousand are let in, five times");
        let left = peer.server.connect().expect("it listens").call(&["ZCARD", QUEUE]);
        assert_eq!(left.expect("it answers"), Reply::Number(10_000 - 5 * 1_000));
        // Those who were let in have no position any more; a round that asks for them fails.
        let asked = peer.ask(|visitor, pipeline| pipeline.push(&["ZRANK", QUEUE, visitor]));
        assert!(asked.expect_err("half are gone").to_string().contains("Nothing"));
        drop(peer);
        assert!(super::super::process::cpu_of(pid).is_err(), "redis-server {pid} lives on");
    }

    #[test]
    fn a_member_costs_what_a_sorted_set_and_a_hash_cost() {
        let settings = Settings { members: 20_000, connections: 1, append_only: AppendOnly::No };
        let classic = Classic::measure(&settings).expect("redis-server runs");
        // Sorted set and hash of six fields: 367 to 388 bytes were measured on Redis 7.0. Far
        // below, the hash would be missing; far above, something else would be counted.
        assert!((300.0..600.0).contains(&classic.bytes_per_member), "{classic:?}");
        assert!(classic.joins.per_cpu_second > 0.0, "{classic:?}");
    }

    #[test]
    fn the_better_round_wins_by_each_measure() {
        let wall = Rate { per_second: 9.0, per_cpu_second: 1.0 };
        let cpu = Rate { per_second: 2.0, per_cpu_second: 3.0 };
        assert_eq!(wall.or(cpu), Rate { per_second: 9.0, per_cpu_second: 3.0 });
    }
}
