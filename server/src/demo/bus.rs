//! The demo's bus: the shop says on it how each checkout ended, and the room hears it there.
//!
//! Lives here: which bus (`--bus`), a NATS server of the demo's own, and what a shop would have to
//! write to publish its checkouts. Stays out: how the room hears them (`outbox`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::producer::{FutureProducer, FutureRecord, Producer};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use waitroom_core::when::utc;
use waitroom_shop::{Checkout, Hears};

use super::house::Eyes;
use super::story::ROOM;
use crate::failure::{Exit, Failure};

/// What `--bus` says: `nats`, `nats=nats://10.0.0.5:4222`, `kafka=10.0.0.6:9092`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// One of our own, ended with the demo.
    OwnNats,
    Nats(String),
    Kafka(String),
}

/// Where a broker listens that was started by its own instructions.
const USUAL_BROKER: &str = "127.0.0.1:9092";
/// A server of this machine is up within a moment.
const UP_WITHIN: Duration = Duration::from_secs(20);
/// A broker that is up answers at once.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// What was said last is heard within this.
const HEARD_WITHIN: Duration = Duration::from_secs(20);
/// Checkouts on their way to the bus. The demo has fewer people.
const QUEUE_MAX: usize = 100_000;

pub fn wanted(text: &str) -> Result<Wanted, String> {
    match text.split_once('=').map_or((text, None), |(kind, at)| (kind, Some(at.to_owned()))) {
        ("nats", None) => Ok(Wanted::OwnNats),
        ("nats", Some(at)) if !at.is_empty() => Ok(Wanted::Nats(at)),
        ("kafka", None) => Ok(Wanted::Kafka(USUAL_BROKER.to_owned())),
        ("kafka", Some(at)) if !at.is_empty() => Ok(Wanted::Kafka(at)),
        _ => Err("write nats, nats=nats://HOST:PORT, kafka or kafka=HOST:PORT".to_owned()),
    }
}

/// The bus, and the shop's voice on it.
#[derive(Debug)]
pub struct Bus {
    kind: Kind,
    address: String,
    said: Arc<Said>,
    speaking: JoinHandle<()>,
    voice: mpsc::Sender<Checkout>,
    /// Ended when this is.
    _own: Option<OwnNats>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nats,
    Kafka,
}

#[derive(Debug, Default)]
struct Said {
    /// Checkouts that ended, and those of them that the bus has acknowledged.
    ended: AtomicU64,
    published: AtomicU64,
}

/// How it went, for the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    pub name: &'static str,
    pub ended: u64,
    pub published: u64,
    /// Messages that ended a session, and those that found it over already: its time was up, or the
    /// visitor had left.
    pub ended_sessions: u64,
    pub too_late: u64,
    /// Of which nothing should have come.
    pub strange: u64,
    /// Events of the room that the bus was told.
    pub events: u64,
}

impl Bus {
    pub async fn start(wanted: &Wanted, folder: &Path) -> Result<Bus, Failure> {
        let (kind, address, own) = match wanted {
            Wanted::OwnNats => {
                let own = OwnNats::start(&folder.join("nats"))?;
                (Kind::Nats, own.url.clone(), Some(own))
            }
            Wanted::Nats(url) => (Kind::Nats, url.clone(), None),
            Wanted::Kafka(brokers) => (Kind::Kafka, brokers.clone(), None),
        };
        let said = Arc::new(Said::default());
        let (voice, words) = mpsc::channel(QUEUE_MAX);
        let failed = |why: String| {
            Failure::new(Exit::Unavailable, format!("the bus at {address}: {why}"))
                .means("nothing was started")
        };
        let speaking = match kind {
            Kind::Nats => {
                let client = async_nats::connect(&address).await;
                let client = client.map_err(|error| failed(error.to_string()))?;
                let context = async_nats::jetstream::new(client);
                tokio::spawn(on_nats(context, words, said.clone()))
            }
            Kind::Kafka => {
                let producer = ClientConfig::new()
                    .set("bootstrap.servers", &address)
                    .set("enable.idempotence", "true")
                    .create();
                let producer: FutureProducer =
                    producer.map_err(|error| failed(error.to_string()))?;
                // A producer waits for its brokers for ever; a demo without one shows nothing.
                let asked = producer.clone();
                let answer = tokio::task::spawn_blocking(move || {
                    asked.client().fetch_metadata(None, ANSWER_WITHIN).map(|_| ())
                });
                let answer = answer.await.map_err(|error| failed(error.to_string()))?;
                answer.map_err(|error| {
                    failed(format!("no broker answers: {error}"))
                        .advise("start one there, or name another: --bus kafka=HOST:PORT")
                })?;
                tokio::spawn(on_kafka(producer, words, said.clone()))
            }
        };
        Ok(Bus { kind, address, said, speaking, voice, _own: own })
    }

    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Nats => "NATS",
            Kind::Kafka => "Kafka",
        }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// What the room's configuration says of it.
    pub fn configuration(&self) -> String {
        match self.kind {
            Kind::Nats => format!("\n[events.nats]\nservers = {:?}\n", self.address),
            Kind::Kafka => format!("\n[events.kafka]\nbrokers = {:?}\n", self.address),
        }
    }

    /// The shop's voice.
    pub fn voice(&self) -> Arc<dyn Hears> {
        Arc::new(Voice { said: self.said.clone(), queue: self.voice.clone() })
    }

    /// Waits until the room has heard everything that was said, or should have.
    pub async fn heard(&self, room: &Eyes) -> Heard {
        let until = Instant::now() + HEARD_WITHIN;
        loop {
            let heard = self.look(room).await;
            let all = heard.published == heard.ended
                && heard.ended_sessions + heard.too_late + heard.strange >= heard.published;
            if all || Instant::now() >= until {
                return heard;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn look(&self, room: &Eyes) -> Heard {
        let page = room.metrics().await.unwrap_or_default();
        let bus = if self.kind == Kind::Nats { "nats" } else { "kafka" };
        let of = |line: &str, name: &str| -> Option<(String, u64)> {
            let (labels, value) = line.strip_prefix(name)?.rsplit_once(' ')?;
            labels
                .contains(&format!("=\"{bus}\""))
                .then(|| (labels.to_owned(), value.parse().ok()))
                .and_then(|(labels, value)| Some((labels, value?)))
        };
        let mut heard = Heard {
            name: self.name(),
            ended: self.said.ended.load(Relaxed),
            published: self.said.published.load(Relaxed),
            ..Heard::default()
        };
        for line in page.lines() {
            if let Some((labels, count)) = of(line, "waitroom_checkouts_total") {
                match () {
                    () if labels.contains("\"ended\"") => heard.ended_sessions += count,
                    () if labels.contains("\"already_over\"") => heard.too_late += count,
                    () => heard.strange += count,
                }
            }
            heard.events += of(line, "waitroom_events_sent_total").map_or(0, |(_, count)| count);
        }
        heard
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.speaking.abort();
    }
}

#[derive(Debug)]
struct Voice {
    said: Arc<Said>,
    queue: mpsc::Sender<Checkout>,
}

impl Hears for Voice {
    fn ended(&self, checkout: &Checkout) {
        self.said.ended.fetch_add(1, Relaxed);
        // Full means that the bus is away for good; the report will say that not all was published.
        let _ = self.queue.try_send(checkout.clone());
    }
}

/// The topic, and the body of the contract.
fn written(checkout: &Checkout) -> (&'static str, String) {
    let at = utc(checkout.at_ms);
    let body = json!({
        "session_id": checkout.session,
        "user_id": "",
        "event_id": ROOM,
        "timestamp": at,
        "expired_at": at,
    });
    (checkout.ended.name(), body.to_string())
}

/// Until the bus has it: the room may not have made its stream yet.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

async fn on_nats(
    context: async_nats::jetstream::Context,
    mut words: mpsc::Receiver<Checkout>,
    said: Arc<Said>,
) {
    while let Some(checkout) = words.recv().await {
        let (topic, body) = written(&checkout);
        loop {
            let acknowledged = match context.publish(topic, body.clone().into()).await {
                Ok(on_its_way) => on_its_way.await.is_ok(),
                Err(_) => false,
            };
            if acknowledged {
                break;
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        said.published.fetch_add(1, Relaxed);
    }
}

async fn on_kafka(producer: FutureProducer, mut words: mpsc::Receiver<Checkout>, said: Arc<Said>) {
    while let Some(checkout) = words.recv().await {
        let (topic, body) = written(&checkout);
        loop {
            let record = FutureRecord::to(topic).key(ROOM).payload(&body);
            if producer.send(record, UP_WITHIN).await.is_ok() {
                break;
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        said.published.fetch_add(1, Relaxed);
    }
}

/// A NATS server of the demo's own. A shell ends it when our end of a pipe closes, however that
/// comes about.
#[derive(Debug)]
struct OwnNats {
    watcher: Child,
    url: String,
}

impl OwnNats {
    fn start(folder: &Path) -> Result<OwnNats, Failure> {
        let failed = |why: String| {
            Failure::new(Exit::Unavailable, format!("no NATS server: {why}"))
                .means("nothing was started")
                .advise("install nats-server, or name one that runs: --bus nats=nats://HOST:PORT")
        };
        let io = |error: std::io::Error| failed(error.to_string());
        fs::create_dir_all(folder).map_err(io)?;
        let log = fs::File::create(folder.join("log")).map_err(io)?;
        let script = "nats-server -a 127.0.0.1 -p -1 -js -sd . --ports_file_dir . & part=$!; \
                      read -r line; kill $part; wait $part";
        let watcher = Command::new("sh")
            .args(["-c", script])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().map_err(io)?)
            .stderr(log)
            .spawn()
            .map_err(io)?;
        let mut own = OwnNats { watcher, url: String::new() };
        let until = Instant::now() + UP_WITHIN;
        while Instant::now() < until {
            if let Some(url) = ports(folder) {
                own.url = url;
                return Ok(own);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let said = fs::read_to_string(folder.join("log")).unwrap_or_default();
        Err(failed(said.lines().last().unwrap_or("it does not start").to_owned()))
    }
}

/// The server writes where it listens into a file.
fn ports(folder: &Path) -> Option<String> {
    let files = fs::read_dir(folder).ok()?.flatten().map(|it| it.path());
    let file: PathBuf =
        files.into_iter().find(|it| it.extension().is_some_and(|it| it == "ports"))?;
    let said: serde_json::Value = serde_json::from_str(&fs::read_to_string(file).ok()?).ok()?;
    said["nats"][0].as_str().map(str::to_owned)
}

impl Drop for OwnNats {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bus_is_named_with_or_without_its_address() {
        assert_eq!(wanted("nats"), Ok(Wanted::OwnNats));
        assert_eq!(wanted("nats=nats://b:4222"), Ok(Wanted::Nats("nats://b:4222".into())));
        assert_eq!(wanted("kafka"), Ok(Wanted::Kafka(USUAL_BROKER.into())));
        assert_eq!(wanted("kafka=b:9092"), Ok(Wanted::Kafka("b:9092".into())));
        for wrong in ["", "nats=", "rabbit", "kafka="] {
            assert!(wanted(wrong).is_err(), "{wrong}");
        }
    }
}
