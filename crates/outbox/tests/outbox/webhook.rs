//! Webhooks under injected time: an hour passes in a moment, and every wait is seen.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use waitroom_core::{Event, Joined, Ticket, Timestamp, What, codec};
use waitroom_outbox::body::ReadyToken;
use waitroom_outbox::relay::{Pace, Relay};
use waitroom_outbox::webhook::{
    Answer, DeadLetters, Line, Manners, NotSentAgain, Post, RETRY_AFTER_MAX, Reach, Resolve,
    Secrets, Unheard, Wall, Webhook,
};
use waitroom_outbox::{Filter, Pending, SinkFigures};
use waitroom_store::seal::MasterKey;
use waitroom_store::{Batch, Clock, Head, LeaseName, MemoryStore, Seams, Shelf, Store};

use crate::house::{TestNames, room_name, sink_name};
use crate::parts::scratch;

const BEGIN: u64 = 1_777_629_600_000;
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// Wall time that runs with the injected clock.
struct Injected(Instant);

impl Clock for Injected {
    fn now_ms(&self) -> u64 {
        self.0.elapsed().as_millis() as u64
    }

    fn wall_ms(&self) -> u64 {
        BEGIN + self.now_ms()
    }
}

type Script = Box<dyn Fn(Duration, &str) -> Result<Answer, Unheard> + Send + Sync>;

/// An endpoint that answers by a script, and remembers who came when.
#[derive(Clone)]
struct Endpoint {
    began: Instant,
    script: Arc<Script>,
    came: Arc<Mutex<Vec<(Duration, String)>>>,
}

impl Endpoint {
    fn new(
        script: impl Fn(Duration, &str) -> Result<Answer, Unheard> + Send + Sync + 'static,
    ) -> Endpoint {
        let script: Script = Box::new(script);
        Endpoint { began: Instant::now(), script: Arc::new(script), came: Arc::default() }
    }

    fn came(&self) -> Vec<(Duration, String)> {
        self.came.lock().expect("nobody panics holding it").clone()
    }

    fn came_for(&self, id: &str) -> Vec<Duration> {
        self.came().into_iter().filter(|(_, it)| it == id).map(|(at, _)| at).collect()
    }
}

impl Post for Endpoint {
    async fn post(&self, headers: HeaderMap, _: Bytes) -> Result<Answer, Unheard> {
        let at = self.began.elapsed();
        let id = headers["webhook-id"].to_str().expect("plain").to_owned();
        let answer = (self.script)(at, &id);
        self.came.lock().expect("nobody panics holding it").push((at, id));
        answer
    }
}

fn says(status: u16) -> Result<Answer, Unheard> {
    Ok(Answer { status, retry_after: None })
}

/// A room with a log of so many joins, and a relay from it to the endpoint.
struct Stage {
    hook: Arc<Webhook<Endpoint>>,
    figures: Arc<SinkFigures>,
    running: JoinHandle<()>,
}

impl Stage {
    async fn set(joins: u64, endpoint: &Endpoint) -> Stage {
        let store = Arc::new(MemoryStore::new(Seams::real()));
        let room = room_name("sale");
        let lease = store.lease(&LeaseName::room(&room), "test", 1_000_000).await.expect("a lease");
        let events: Vec<Event> = (0..joins)
            .map(|number| {
                let ticket = Ticket::new(0, number);
                What::Joined(Joined { ticket, ..Joined::default() }).at(Timestamp(BEGIN))
            })
            .collect();
        let mut payload = Vec::new();
        codec::encode(&events, &mut payload);
        let batch = Batch { number: 1, events: joins as u32, payload };
        store.append(&room, &lease, Head::EMPTY, batch).await.expect("a log");
        let secret = scratch("hook").join("secret");
        std::fs::write(&secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a file");
        let hook = Arc::new(Webhook {
            post: endpoint.clone(),
            secrets: Secrets::load(&secret).expect("a secret"),
            ready: ReadyToken::Off,
            patience: HOUR,
            dead: Arc::new(DeadLetters::on(Shelf::in_memory(MasterKey::from_bytes([1; 32])))),
            clock: Wall(Arc::new(Injected(endpoint.began))),
            stuck: Mutex::default(),
        });
        let figures = Arc::new(SinkFigures::default());
        let relay = Relay {
            store,
            room,
            name: sink_name("webhook"),
            sink: hook.clone(),
            names: Arc::new(TestNames(None)),
            filter: Filter::everything(),
            pace: Pace {
                batch: 64,
                retry_first: Duration::from_secs(1),
                retry_most: 5 * MINUTE,
                ..Pace::default()
            },
            figures: figures.clone(),
        };
        let running = tokio::spawn(async move { relay.run().await });
        Stage { hook, figures, running }
    }

    fn dead(&self) -> Vec<u64> {
        self.hook.dead.names().iter().map(|it| it.head).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// Time passes only while everybody waits, so what is due by then has happened.
async fn after(span: Duration, endpoint: &Endpoint) {
    sleep(span.saturating_sub(endpoint.began.elapsed())).await;
    sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn five_hundred_for_an_hour_costs_one_letter_and_nothing_else_and_the_letter_can_be_sent_again()
 {
    let endpoint =
        Endpoint::new(|at, _| if at < HOUR + 10 * MINUTE { says(500) } else { says(204) });
    let stage = Stage::set(5, &endpoint).await;
    after(30 * MINUTE, &endpoint).await;
    assert_eq!(stage.dead(), [0u64; 0], "patience is an hour");
    assert_eq!(stage.figures.trouble().as_deref(), Some("the endpoint answers 500"));
    after(3 * HOUR, &endpoint).await;
    // The first was tried for an hour: waits double up to the longest, drawn from their upper half.
    let tries = endpoint.came_for("sale:1:0");
    let waits: Vec<Duration> = tries.windows(2).map(|it| it[1] - it[0]).collect();
    for (tried, wait) in waits.iter().enumerate() {
        let whole = Duration::from_secs(1 << tried.min(20)).min(5 * MINUTE);
        let slack = Duration::from_millis(5);
        assert!(
            *wait + slack >= whole / 2 && *wait <= whole + slack,
            "{tried}: {wait:?} of {whole:?}"
        );
    }
    assert!(*tries.last().expect("tried") >= HOUR && tries.len() < 40, "{tries:?}");
    assert_eq!(stage.dead(), [1], "and laid aside");
    // The second met the rest of the outage, and from then on all came once, in order.
    let came = endpoint.came();
    let taken: Vec<&str> = came
        .iter()
        .filter(|(at, _)| *at >= HOUR + 10 * MINUTE)
        .map(|(_, id)| id.as_str())
        .collect();
    assert_eq!(taken, ["sale:2:0", "sale:3:0", "sale:4:0", "sale:5:0"]);
    assert_eq!(stage.figures.trouble(), None);
    // The letter says what happened, and goes when it is taken.
    let name = stage.hook.dead.names().remove(0);
    let letter = stage.hook.dead.get(&name).await.expect("readable").expect("there");
    assert_eq!((letter.tries as usize, &*letter.why), (tries.len(), "the endpoint answers 500"));
    assert!(letter.dead_at_ms - letter.first_tried_at_ms >= 3_600_000);
    assert_eq!(stage.hook.send_again(&name).await, Ok(()));
    assert_eq!(endpoint.came().last().map(|it| it.1.clone()).as_deref(), Some("sale:1:0"));
    assert_eq!(stage.dead(), [0u64; 0]);
    assert_eq!(stage.hook.send_again(&name).await, Err(NotSentAgain::NoSuchLetter));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_refused_for_what_it_is_does_not_hold_up_the_others() {
    let endpoint = Endpoint::new(|_, id| says(if id == "sale:2:0" { 422 } else { 200 }));
    let stage = Stage::set(4, &endpoint).await;
    after(Duration::from_secs(1), &endpoint).await;
    let ids: Vec<String> = endpoint.came().into_iter().map(|(_, id)| id).collect();
    assert_eq!(ids, ["sale:1:0", "sale:2:0", "sale:3:0", "sale:4:0"], "each once, in order");
    assert_eq!(stage.dead(), [2]);
    // Still refused: it stays.
    let name = stage.hook.dead.names().remove(0);
    let again = stage.hook.send_again(&name).await;
    assert!(matches!(again, Err(NotSentAgain::NotTaken(why)) if why.contains("422")));
    assert_eq!(stage.dead(), [2]);
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_nobody_reaches_is_waited_for_and_loses_nothing() {
    let endpoint = Endpoint::new(|at, _| {
        if at < 30 * HOUR { Err(Unheard::Away("no such host".into())) } else { says(200) }
    });
    let stage = Stage::set(3, &endpoint).await;
    after(29 * HOUR, &endpoint).await;
    assert_eq!(stage.figures.trouble().as_deref(), Some("no such host"));
    after(31 * HOUR, &endpoint).await;
    assert_eq!(stage.dead(), [0u64; 0]);
    let ids: Vec<String> = endpoint.came().into_iter().rev().take(3).map(|(_, id)| id).collect();
    assert_eq!(ids, ["sale:3:0", "sale:2:0", "sale:1:0"]);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_kept_to_within_bounds() {
    let asked: BTreeMap<&str, u64> =
        [("sale:1:0", 120), ("sale:2:0", 86_400 * 365), ("sale:3:0", 0)].into();
    let seen: Mutex<BTreeMap<String, u32>> = Mutex::default();
    let endpoint = Endpoint::new(move |_, id| {
        let mut seen = seen.lock().expect("nobody panics holding it");
        let tries = seen.entry(id.to_owned()).or_default();
        *tries += 1;
        let wait = asked.get(id).filter(|_| *tries == 1).map(|it| Duration::from_secs(*it));
        Ok(Answer { status: if wait.is_some() { 429 } else { 200 }, retry_after: wait })
    });
    let _stage = Stage::set(4, &endpoint).await;
    after(2 * HOUR, &endpoint).await;
    let wait = |id: &str| {
        let at = endpoint.came_for(id);
        assert_eq!(at.len(), 2, "{id}: {at:?}");
        at[1] - at[0]
    };
    let near = |it: Duration, to: Duration| it >= to && it < to + Duration::from_millis(10);
    assert!(near(wait("sale:1:0"), Duration::from_secs(120)));
    assert!(near(wait("sale:2:0"), RETRY_AFTER_MAX), "a year is not honoured");
    assert!(wait("sale:3:0") >= Duration::from_millis(500), "nor is at once");
}

#[tokio::test(start_paused = true)]
async fn when_there_is_no_room_for_letters_the_sink_waits_and_loses_nothing() {
    let endpoint = Endpoint::new(|at, _| says(if at < HOUR { 400 } else { 200 }));
    let stage = Stage::set(1_003, &endpoint).await;
    after(30 * MINUTE, &endpoint).await;
    assert_eq!(stage.hook.dead.count(), 1_000);
    let why = stage.figures.trouble().expect("it says so");
    assert!(why.contains("1000 dead letters"), "{why}");
    after(2 * HOUR, &endpoint).await;
    assert_eq!(stage.hook.dead.count(), 1_000);
    assert_eq!(endpoint.came().last().map(|it| it.1.clone()).as_deref(), Some("sale:1003:0"));
}

/// Names that stand for whatever the test says, and who asked.
struct Zone(Vec<SocketAddr>, Mutex<Vec<String>>);

impl Resolve for Zone {
    fn resolve<'a>(
        &'a self,
        host: &'a str,
        _: u16,
    ) -> Pending<'a, std::io::Result<Vec<SocketAddr>>> {
        self.1.lock().expect("nobody panics holding it").push(host.to_owned());
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

fn line(reach: Reach, zone: &Arc<Zone>) -> Line {
    let url = match reach {
        Reach::Public => "https://hook.example/in",
        Reach::Anywhere => "http://hook.example/in",
    };
    let manners = Manners { reach, within: Duration::from_secs(30), ca: None };
    Line::to(&url.parse().expect("a URL"), manners, zone.clone()).expect("usable")
}

#[tokio::test]
async fn a_name_that_also_stands_for_a_private_address_is_never_connected_to() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let here = listener.local_addr().expect("its address");
    let mapped = SocketAddr::new("::ffff:127.0.0.1".parse().expect("an address"), here.port());
    // Nobody answers at the second, and that must not matter: it is not even tried.
    let public: SocketAddr = "8.8.8.8:9".parse().expect("an address");
    for zone in [vec![here], vec![mapped], vec![public, here], vec![here, public], vec![]] {
        let zone = Arc::new(Zone(zone, Mutex::default()));
        let posted = line(Reach::Public, &zone).post(HeaderMap::new(), Bytes::new()).await;
        assert!(matches!(&posted, Err(Unheard::Away(_))), "{:?}: {posted:?}", zone.0);
    }
    let nobody = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(nobody.is_err(), "somebody connected");
}

#[tokio::test]
async fn the_address_that_was_looked_at_is_the_one_connected_to_and_a_connection_is_used_again() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let zone = vec![listener.local_addr().expect("its address")];
    let zone = Arc::new(Zone(zone, Mutex::default()));
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut all = Vec::new();
        for _ in 0..2 {
            let mut read = [0; 4_096];
            while !all.ends_with(b"hello") {
                let got = stream.read(&mut read).await.expect("a request");
                assert!(got > 0, "it ended early");
                all.extend_from_slice(&read[..got]);
            }
            all.push(b'\n');
            stream
                .write_all(b"HTTP/1.1 202 Fine\r\ncontent-length: 0\r\n\r\n")
                .await
                .expect("sent");
        }
        String::from_utf8(all).expect("text")
    });
    let line = line(Reach::Anywhere, &zone);
    for _ in 0..2 {
        let posted = line.post(HeaderMap::new(), Bytes::from_static(b"hello")).await;
        assert_eq!(posted.map(|it| it.status), Ok(202));
    }
    let asked = served.await.expect("served");
    assert_eq!(asked.matches("POST /in HTTP/1.1").count(), 2, "{asked}");
    assert!(asked.contains("host: hook.example"), "{asked}");
    assert_eq!(*zone.1.lock().expect("nobody panics"), ["hook.example"], "asked for once");
}
