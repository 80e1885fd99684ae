//! `bench events`: a log through each sink, beside the plain client publishing the same bytes; and
//! what joins feel when the bus is away.
//!
//! Ours is the whole way: reading the log, translating, writing bodies, delivering, moving the
//! cursor. The plain client's messages are ready before its clock starts. Both wait until the other
//! side holds everything (JetStream's acknowledgements, of which ours asks for one a batch; on
//! Kafka all in-sync replicas; a commit; a 2xx).
//! Lives here: the log, and which groups of figures there are ([`GROUPS`]). Each sink has a file.

#[path = "../../../../crates/outbox/tests/outbox/database.rs"]
#[allow(dead_code, reason = "shared with the tests of the outbox, which use the rest")]
mod database;
mod hooks;
mod joins;
mod names;
#[path = "../../../../crates/outbox/tests/outbox/parts.rs"]
#[allow(dead_code, reason = "shared with the tests of the outbox, which use the rest")]
mod parts;
mod plain;
mod tables;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use waitroom_core::{Command, Epoch, Join, codec};
use waitroom_engine::{Engine, RoomHandle};
use waitroom_outbox::body::ReadyToken;
use waitroom_outbox::carry::Errand;
use waitroom_outbox::kafka::{self, KafkaSink, Topics};
use waitroom_outbox::nats::{self, NatsSink, Streams};
use waitroom_outbox::translate::Place;
use waitroom_outbox::{Carry, Filter, Message, Pace, SinkFigures, Told, translate};
use waitroom_store::{FileStore, Head, SinkName, Store};

use self::names::BenchNames;
use self::parts::{Kafka, Nats};
use super::Scale;
use super::data::DataFolder;
use super::report::{Better, Expected, Figure, Measure};
use super::rooms;
use crate::failure::{Failure, OrFail, Outcome};

/// Nothing here takes that long; who waits longer waits for nothing.
const PATIENCE: Duration = Duration::from_secs(600);

/// What can be asked for by `--only`.
const GROUPS: [&str; 5] = ["nats", "kafka", "postgres", "webhook", "outage"];

/// The one group that is not measured unless asked for: a minute without the bus.
const MINUTE: &str = "minute";

pub fn run(scale: Scale, only: &[String]) -> Outcome<Vec<Figure>> {
    let known = |it: &str| it == MINUTE || GROUPS.contains(&it);
    if let Some(unknown) = only.iter().find(|it| !known(it)) {
        let all = GROUPS.join(", ");
        return Err(Failure::new(format!("no group {unknown}; there are {all} and {MINUTE}")));
    }
    let events = match scale {
        Scale::Full => 1_000_000,
        Scale::Quick => 50_000,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.or_fail(|| "start a runtime")?;
    let folder = DataFolder::new("events")?;
    let asked = |group: &str| only.is_empty() || only.iter().any(|it| it == group);
    runtime.block_on(async {
        let engine = rooms::engine(&folder.path().join("store"))?;
        let mut figures = Vec::new();
        if GROUPS.iter().any(|it| *it != "outage" && asked(it)) {
            figures.extend(sinks(&engine, folder.path(), events, &asked).await?);
        }
        if only.iter().any(|it| it == MINUTE) {
            figures.extend(joins::measure(&engine, scale, true).await?);
        } else if asked("outage") {
            figures.extend(joins::measure(&engine, scale, false).await?);
        }
        engine.stop().await;
        Ok(figures)
    })
}

async fn sinks(
    engine: &Engine<FileStore>,
    folder: &Path,
    events: u64,
    asked: &impl Fn(&str) -> bool,
) -> Outcome<Vec<Figure>> {
    let room = rooms::room(engine, "sale").await?;
    // The plain clients read the log once more when our sinks are done with it.
    let later = SinkName::parse("plain").or_fail(|| "name the plain client")?;
    let pinned = engine.store().advance(room.name(), &later, Head(0)).await;
    pinned.or_fail(|| "keep the log for the plain client")?;
    eprintln!("a log of {events} joins");
    for _ in 0..events / 1_000 {
        let joins = vec![Command::Join(Join::default()); 1_000];
        room.send_many(joins).await.or_fail(|| "join")?;
    }
    let names = Arc::new(BenchNames::new(room.clone()));
    let bench = Bench { engine, room: &room, names, events };
    let mut figures = Vec::new();
    if asked("nats") {
        eprintln!("nats: the relay, then the plain client, {TURNS} times");
        let mut turns = Vec::new();
        for turn in 0..TURNS {
            // A server of its own for each: one that knows the messages drops them.
            let nats = Nats::start();
            let link = nats::Link { servers: nats.url(), credentials: None };
            let sink = Told::new(NatsSink::new(link, ReadyToken::Off, streams()));
            let ours = bench.carried(&format!("nats-{turn}"), sink, Pace::default()).await?;
            turns.push((ours, plain::nats(&bench, &nats.url()).await?));
        }
        figures.extend(Carried::best("nats", &turns));
    }
    if asked("kafka") {
        let kafka = Kafka::start();
        let topic = |name: &str| name.to_owned();
        let topics = Topics { joined: topic("joined"), left: topic("left"), ready: topic("ready") };
        plain::warm_kafka(&bench, &kafka.brokers(), &["joined", "plain"]).await?;
        eprintln!("kafka: the relay, then the plain client, {TURNS} times");
        let mut turns = Vec::new();
        for turn in 0..TURNS {
            let link = kafka::Link::plain(kafka.brokers());
            let sink = Told::new(KafkaSink::new(link, topics.clone(), ReadyToken::Off));
            let ours = bench.carried(&format!("kafka-{turn}"), sink, Pace::default()).await?;
            turns.push((ours, plain::kafka(&bench, &kafka.brokers()).await?));
        }
        figures.extend(Carried::best("kafka", &turns));
    }
    if asked("postgres") {
        figures.extend(tables::measure(&bench, folder).await?);
    }
    if asked("webhook") {
        figures.extend(hooks::measure(&bench, folder).await?);
    }
    Ok(figures)
}

fn streams() -> Streams {
    let (keep, remember) = (Duration::from_secs(3_600), Duration::from_secs(120));
    Streams { replicas: 1, keep, remember }
}

/// How a sink fared.
struct Carried {
    per_s: f64,
    /// From when an event was appended until it was acknowledged, in a trickle: one at a time.
    lag: Duration,
}

/// How often the buses are measured, in turns with the plain client: what else the machine does
/// makes one measurement of ten seconds wrong by a third either way.
const TURNS: usize = 3;

impl Carried {
    /// The best of each over all turns.
    fn best(sink: &str, turns: &[(Carried, f64)]) -> [Figure; 2] {
        let ours = turns.iter().map(|(ours, _)| ours);
        let best = Carried {
            per_s: ours.clone().map(|it| it.per_s).fold(0.0, f64::max),
            lag: ours.map(|it| it.lag).min().expect("there is at least one turn"),
        };
        best.beside(sink, turns.iter().map(|(_, plain)| *plain).fold(0.0, f64::max))
    }

    fn beside(&self, sink: &str, plain: f64) -> [Figure; 2] {
        let rate = |name: &str, value: f64| Measure::new(name, value, "1/s");
        let (ours, peer) = (format!("{sink}_vs_plain"), format!("{sink}_plain"));
        let figure = Figure::beside(rate(&ours, self.per_s), rate(&peer, plain), Better::Higher);
        let lag = self.lag.as_secs_f64() * 1e3;
        [
            figure.expect(Expected::RatioAtLeast(0.7)),
            Figure::alone(&format!("{sink}_lag_ms"), lag, "ms"),
        ]
    }
}

/// Joins whose way to the other side is measured alone.
const TRICKLE: usize = 51;

struct Bench<'a> {
    engine: &'a Engine<FileStore>,
    room: &'a RoomHandle,
    names: Arc<BenchNames>,
    events: u64,
}

impl Bench<'_> {
    /// Events a second through a sink, from the first read to the last acknowledgement; then how
    /// long a join takes to it.
    async fn carried<K: Carry>(&self, name: &str, to: K, pace: Pace) -> Outcome<Carried> {
        let figures = Arc::new(SinkFigures::default());
        let errand = Errand {
            store: self.engine.store().clone(),
            room: self.room.name().clone(),
            name: SinkName::parse(name).or_fail(|| "name the sink")?,
            names: self.names.clone(),
            filter: Filter::of_words(["position.*"]).map_err(Failure::new)?,
            pace,
            figures: figures.clone(),
        };
        let before = self.room.committed();
        let began = Instant::now();
        let running = tokio::spawn(Arc::new(to).carry(errand));
        self.acknowledged(name, &figures, before).await?;
        let per_s = before as f64 / began.elapsed().as_secs_f64();
        let mut lags = Vec::with_capacity(TRICKLE);
        for _ in 0..TRICKLE {
            self.room.send(Command::Join(Join::default())).await.or_fail(|| "join")?;
            let joined = Instant::now();
            self.acknowledged(name, &figures, self.room.committed()).await?;
            lags.push(joined.elapsed());
        }
        running.abort();
        let _ = running.await;
        lags.sort_unstable();
        Ok(Carried { per_s, lag: lags[TRICKLE / 2] })
    }

    async fn acknowledged(&self, name: &str, figures: &SinkFigures, head: u64) -> Outcome {
        let began = Instant::now();
        while figures.lags(0).iter().all(|lag| lag.at < head) {
            if began.elapsed() > PATIENCE {
                let trouble = figures.trouble().unwrap_or_default();
                return Err(Failure::new(format!("{name} does not take the events: {trouble}")));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// The log's messages, a stretch at a time: a million at once would not fit small machines.
    async fn messages(&self, after: Head) -> Outcome<(Head, Vec<Message>)> {
        let store = self.engine.store();
        let name = self.room.name();
        let stored = store.read(name, after, 1 << 20).await.or_fail(|| "read the log")?;
        let mut messages = Vec::new();
        for batch in &stored {
            let mut events = Vec::new();
            codec::decode(&batch.payload, |event| events.push(event))
                .map_err(|damaged| Failure::new(damaged.0))?;
            for (head, event) in (batch.after.0 + 1..).zip(&events) {
                let place = Place { room: name, head, epoch: Epoch(batch.epoch) };
                translate(place, event, &*self.names, &mut messages)
                    .map_err(|_| Failure::new("a join names nobody else"))?;
            }
        }
        messages.retain(|message| message.about.is_some());
        Ok((stored.last().map_or(after, |it| it.head), messages))
    }
}
