//! `bench events`: a log through each sink, beside the plain client publishing the same bytes; and
//! what joins feel when the bus is away.
//!
//! Ours is the whole way: reading the log, translating, writing bodies, delivering, moving the
//! cursor. The plain client's messages are ready before its clock starts. Both wait for every
//! acknowledgement (JetStream's; on Kafka all in-sync replicas).

mod joins;
mod names;
#[path = "../../../../crates/outbox/tests/outbox/parts.rs"]
#[allow(dead_code, reason = "shared with the tests of the outbox, which use the rest")]
mod parts;
mod plain;

use std::sync::Arc;
use std::time::{Duration, Instant};

use waitroom_core::{Command, Epoch, Join, codec};
use waitroom_engine::{Engine, RoomHandle};
use waitroom_outbox::body::ReadyToken;
use waitroom_outbox::kafka::{self, KafkaSink, Topics};
use waitroom_outbox::nats::{self, NatsSink, Streams};
use waitroom_outbox::translate::Place;
use waitroom_outbox::{Filter, Message, Pace, Relay, Sink, SinkFigures, translate};
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

/// The one group that is not measured unless asked for: a minute without the bus.
const MINUTE: &str = "minute";

pub fn run(scale: Scale, only: &[String]) -> Outcome<Vec<Figure>> {
    let events = match scale {
        Scale::Full => 1_000_000,
        Scale::Quick => 100_000,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.or_fail(|| "start a runtime")?;
    if only.iter().any(|it| it == MINUTE) {
        return runtime.block_on(async {
            let folder = DataFolder::new("events")?;
            let engine = rooms::engine(&folder.path().join("store"))?;
            let figures = joins::measure(&engine, scale, true).await?;
            engine.stop().await;
            Ok(figures)
        });
    }
    runtime.block_on(measure(scale, events))
}

async fn measure(scale: Scale, events: u64) -> Outcome<Vec<Figure>> {
    let folder = DataFolder::new("events")?;
    let engine = rooms::engine(&folder.path().join("store"))?;
    let room = rooms::room(&engine, "sale").await?;
    eprintln!("a log of {events} joins");
    for _ in 0..events / 1_000 {
        let joins = vec![Command::Join(Join::default()); 1_000];
        room.send_many(joins).await.or_fail(|| "join")?;
    }
    let names = Arc::new(BenchNames::new(room.clone()));
    let bench = Bench { engine: &engine, room: &room, names, events };

    let nats = Nats::start();
    let link = nats::Link { servers: nats.url(), credentials: None };
    eprintln!("nats: the relay, then the plain client");
    let ours = bench.relayed("nats", NatsSink::new(link, ReadyToken::Off, streams())).await?;
    let plain = plain::nats(&bench, &nats.url()).await?;
    let mut figures = beside("nats_vs_plain", "nats_plain", ours, plain);
    drop(nats);

    let kafka = Kafka::start();
    let topic = |name: &str| name.to_owned();
    let topics = Topics { joined: topic("joined"), left: topic("left"), ready: topic("ready") };
    let link = kafka::Link { brokers: kafka.brokers() };
    eprintln!("kafka: the relay, then the plain client");
    let ours = bench.relayed("kafka", KafkaSink::new(link, topics, ReadyToken::Off)).await?;
    let plain = plain::kafka(&bench, &kafka.brokers()).await?;
    figures.extend(beside("kafka_vs_plain", "kafka_plain", ours, plain));
    drop(kafka);

    figures.extend(joins::measure(&engine, scale, false).await?);
    engine.stop().await;
    Ok(figures)
}

fn streams() -> Streams {
    let (keep, remember) = (Duration::from_secs(3_600), Duration::from_secs(120));
    Streams { replicas: 1, keep, remember }
}

fn beside(name: &str, peer: &str, ours: f64, plain: f64) -> Vec<Figure> {
    let rate = |name: &str, value: f64| Measure::new(name, value, "1/s");
    let figure = Figure::beside(rate(name, ours), rate(peer, plain), Better::Higher);
    vec![figure.expect(Expected::RatioAtLeast(0.7))]
}

struct Bench<'a> {
    engine: &'a Engine<FileStore>,
    room: &'a RoomHandle,
    names: Arc<BenchNames>,
    events: u64,
}

impl Bench<'_> {
    /// Events a second through a sink, from the first read to the last acknowledgement.
    async fn relayed<K: Sink>(&self, name: &str, sink: K) -> Outcome<f64> {
        let figures = Arc::new(SinkFigures::default());
        let relay = Relay {
            store: self.engine.store().clone(),
            room: self.room.name().clone(),
            name: SinkName::parse(name).or_fail(|| "name the sink")?,
            sink,
            names: self.names.clone(),
            filter: Filter::of_words(["position.*"]).map_err(Failure::new)?,
            pace: Pace::default(),
            figures: figures.clone(),
        };
        let began = Instant::now();
        let running = tokio::spawn(async move { relay.run().await });
        while figures.delivered.get() < self.events {
            if began.elapsed() > PATIENCE {
                let trouble = figures.trouble().unwrap_or_default();
                return Err(Failure::new(format!("{name} does not take the events: {trouble}")));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let took = began.elapsed();
        running.abort();
        let _ = running.await;
        Ok(self.events as f64 / took.as_secs_f64())
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
