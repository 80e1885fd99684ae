//! One instance: an engine on the store on Redis, in a process of its own.
//!
//! Reads orders from stdin and answers each with a number: `round MS` lets producers join for so
//! long and says how many did, `join N` lets so many join as quickly as can be, `take` waits for
//! the room of somebody who died and says how long opening it took. It ends with its orders.

use std::io::BufRead;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use waitroom_core::{Command, Identity, Join};
use waitroom_engine::{Config, Engine, Peers, RoomHandle};
use waitroom_redis::{Level, Options, RedisStore, Where};
use waitroom_store::{LeaseName, RoomName, Seams, Store};

use super::super::classic::scatter;
use super::super::rooms::{self, NoVault, is_new_place};
use super::member::Member;
use crate::failure::{Failure, OrFail, Outcome};

/// As the server has it.
const LEASE: Duration = Duration::from_secs(2);
/// Joins in one request where only the number counts, and so in one batch of the log: few enough
/// that what a batch costs by itself is seen in the bytes of a join.
const BULK: u64 = 500;
/// How long somebody who died may keep others waiting.
const TAKE_LIMIT: Duration = Duration::from_secs(30);

pub fn part(words: &str) -> Outcome {
    let words: Vec<&str> = words.split(' ').collect();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build();
    let runtime = runtime.or_fail(|| "start a runtime")?;
    match words[..] {
        ["instance", address, room, producers, who] => {
            let producers = producers.parse().or_fail(|| "read the number of producers")?;
            let engine = runtime.block_on(engine(address))?;
            let room = runtime.block_on(rooms::room(&engine, room))?;
            Instance { runtime, room, producers, known: who == "known", next: 0 }.serve()?;
            Ok(())
        }
        ["member", address, room, producers] => {
            let producers = producers.parse().or_fail(|| "read the number of producers")?;
            Member::start(runtime, address, room, producers)?.serve()
        }
        ["next", address, room, people] => {
            let people = people.parse().or_fail(|| "read the number of people")?;
            let engine = runtime.block_on(engine(address))?;
            each_order(|_| runtime.block_on(take(&engine, room, people)))
        }
        _ => Err(Failure::new(format!("bench cluster has no part {words:?}"))),
    }
}

async fn engine(address: &str) -> Outcome<Engine<RedisStore>> {
    engine_among(address, None).await
}

/// The same among other instances.
pub async fn engine_among(
    address: &str,
    peers: Option<Arc<dyn Peers>>,
) -> Outcome<Engine<RedisStore>> {
    let servers = Where::Single { url: format!("redis://{address}") };
    let options = Options::new(servers, Level::Sync { replicas_required: 0 });
    let seams = Seams::real();
    let opened = RedisStore::open(options, seams.clone()).await;
    let (store, _) = opened.or_fail(|| format!("open a store at {address}"))?;
    let name = format!("bench-{}", std::process::id());
    let config = Config { lease: Some(LEASE), peers, ..Config::new(&name, Arc::new(NoVault)) };
    Ok(Engine::new(Arc::new(store), seams, config))
}

pub fn each_order(mut obey: impl FnMut(&str) -> Outcome<f64>) -> Outcome {
    println!("ready");
    for order in std::io::stdin().lock().lines() {
        println!("{}", obey(&order.or_fail(|| "read an order")?)?);
    }
    Ok(())
}

struct Instance {
    runtime: Runtime,
    room: RoomHandle,
    producers: u64,
    known: bool,
    /// The next visitor who was not there yet.
    next: u64,
}

impl Instance {
    fn serve(mut self) -> Outcome {
        each_order(|order| match order.split_once(' ') {
            Some(("round", ms)) => {
                let ms = ms.parse().or_fail(|| "read the length of a round")?;
                self.round(Duration::from_millis(ms))
            }
            Some(("join", people)) => {
                self.join(people.parse().or_fail(|| "read the number of people")?)
            }
            _ => Err(Failure::new(format!("an instance cannot {order:?}"))),
        })
    }

    fn join(&mut self, people: u64) -> Outcome<f64> {
        let these = self.next..self.next + people;
        self.next = these.end;
        self.runtime.block_on(join_all(&self.room, these, self.known))?;
        Ok(people as f64)
    }

    fn round(&mut self, length: Duration) -> Outcome<f64> {
        let stop = Arc::new(AtomicBool::new(false));
        let first = self.next;
        // No two producers of any round are the same people.
        self.next += self.producers << 32;
        self.runtime.block_on(async {
            let produce = |id: u64| {
                let (room, stop, known) = (self.room.clone(), stop.clone(), self.known);
                tokio::spawn(produce(room, first + (id << 32), known, stop))
            };
            let producers: Vec<_> = (0..self.producers).map(produce).collect();
            tokio::time::sleep(length).await;
            stop.store(true, Ordering::Relaxed);
            let mut joins = 0;
            for producer in producers {
                joins += producer.await.or_fail(|| "wait for a producer")??;
            }
            Ok(joins as f64)
        })
    }
}

/// As many at once as go into one request.
pub async fn join_all(room: &RoomHandle, mut these: Range<u64>, known: bool) -> Outcome {
    while !these.is_empty() {
        let until = these.end.min(these.start + BULK);
        let joins = (these.start..until).map(|n| join(n, known)).collect();
        let answers = room.send_many(joins).await.or_fail(|| "join")?;
        if !answers.iter().all(|answer| is_new_place(&answer.reply)) {
            return Err(Failure::new("a join got no new place"));
        }
        these.start = until;
    }
    Ok(())
}

/// Asks, waits for the durable answer, asks again. How often.
async fn produce(room: RoomHandle, first: u64, known: bool, stop: Arc<AtomicBool>) -> Outcome<u64> {
    let mut joins = 0;
    while !stop.load(Ordering::Relaxed) {
        let answer = room.send(join(first + joins, known)).await.or_fail(|| "join")?;
        if !is_new_place(&answer.reply) {
            return Err(Failure::new("a join got no new place"));
        }
        joins += 1;
    }
    Ok(joins)
}

fn join(n: u64, known: bool) -> Command {
    let hash = || u128::from(scatter(2 * n)) << 64 | u128::from(scatter(2 * n + 1));
    let identity = known.then(|| Identity(hash().to_be_bytes()));
    Command::Join(Join { identity, ..Join::default() })
}

/// Takes the room when nobody holds it any more, and lets somebody join it. The milliseconds since
/// it was free.
async fn take(engine: &Engine<RedisStore>, room: &str, people: u64) -> Outcome<f64> {
    let room = RoomName::parse(room).or_fail(|| "name the room")?;
    let name = LeaseName::room(&room);
    let began = Instant::now();
    while engine.store().holder_of(&name).await.or_fail(|| "ask who holds the room")?.is_some() {
        if began.elapsed() > TAKE_LIMIT {
            return Err(Failure::new("whoever was killed still holds the room"));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let began = Instant::now();
    let room = engine.open(&room).await.or_fail(|| "take the room")?;
    let answer = room.send(join(u64::MAX / 4, true)).await.or_fail(|| "join")?;
    let took = began.elapsed().as_secs_f64() * 1e3;
    if !is_new_place(&answer.reply) || room.committed() < people {
        return Err(Failure::new(format!("not the same room: {:?}", answer.reply)));
    }
    Ok(took)
}
