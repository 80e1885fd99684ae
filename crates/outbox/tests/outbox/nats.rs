//! A real NATS server: streams, order, message ids, outages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::{self, consumer};
use futures_util::StreamExt;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use waitroom_core::{Command, Join};
use waitroom_outbox::body::{ReadyToken, envelope};
use waitroom_outbox::duty::{Duty, Replay, Rooms};
use waitroom_outbox::nats::{Link, NatsSink, Streams, System, SystemLine};
use waitroom_outbox::{Filter, Names, Pace, SinkFigures, Told};
use waitroom_store::{Retention, RoomName};

use crate::checker::{Seen, check, expected};
use crate::house::{House, SOON, TestRoom, kills, soon};
use crate::parts::Nats;

fn sink(nats: &Nats) -> Arc<NatsSink> {
    let link = Link { servers: nats.url(), credentials: None };
    let streams = Streams {
        replicas: 1,
        keep: Duration::from_secs(3_600),
        remember: Duration::from_secs(120),
    };
    Arc::new(NatsSink::new(link, ReadyToken::On, streams))
}

/// What somebody else publishes to one of our streams.
const FOREIGN: &str = "waitingroom.position.foreign.v1";

/// A stream that hands out nothing for so long has come to its end, or to a stop.
const SILENT_FOR: Duration = Duration::from_secs(10);

/// Everything that a stream holds, as a client reads it, but for what somebody else put there.
async fn held(nats: &Nats, stream: &str) -> Vec<Seen> {
    held_at(&nats.url(), stream).await
}

async fn held_at(url: &str, stream: &str) -> Vec<Seen> {
    let client = async_nats::connect(url).await.expect("the server is up");
    let context = jetstream::new(client);
    // The first delivery makes it.
    let Ok(mut stream) = context.get_stream(stream).await else { return vec![] };
    let count = stream.info().await.expect("its length").state.messages;
    // Without acknowledgements, or the server would hold back after a thousand.
    let config = consumer::pull::Config {
        ack_policy: consumer::AckPolicy::None,
        ..consumer::pull::Config::default()
    };
    let consumer = stream.create_consumer(config).await.expect("a consumer");
    let mut messages = consumer.messages().await.expect("messages");
    let mut all = Vec::new();
    // A server that stops in between is asked again by whoever misses something.
    while all.len() < count as usize
        && let Ok(Some(Ok(message))) = tokio::time::timeout(SILENT_FOR, messages.next()).await
    {
        all.push(message);
    }
    all.into_iter()
        .filter(|message| message.subject.as_str() != FOREIGN)
        .map(|it| seen(&it))
        .collect()
}

fn seen(message: &jetstream::Message) -> Seen {
    let header = |name: &str| {
        let headers = message.headers.as_ref().expect("every message has headers");
        headers.get(name).map(|value| value.to_string())
    };
    let id = header("ce-id").expect("an id");
    assert_eq!(header("Nats-Msg-Id").as_deref(), Some(&*id), "the bus tells repeats by it");
    assert_eq!(header("ce-type").as_deref(), Some(message.subject.as_str()));
    let body: serde_json::Value = serde_json::from_slice(&message.payload).expect("JSON");
    assert_eq!(body["id"].as_str(), Some(&*id));
    let seq = header("ce-seq").map(|seq| {
        let ticket = header("ce-subject").expect("whose it is");
        (ticket, seq.parse().expect("a number"))
    });
    Seen { id, seq, body: String::from_utf8_lossy(&message.payload).into_owned() }
}

/// What should be in a stream by now: the part of the log whose kinds begin so.
async fn should(house: &House, room: &TestRoom, part: &str) -> Vec<Seen> {
    let log = house.log(room.handle.name()).await;
    let head = log.last().map_or(0, |(head, ..)| *head);
    room.handle.board_at(head).await;
    let all = expected(room.handle.name(), &log, &*room.names);
    let of_part = all.iter().filter(|it| it.kind.word().starts_with(part));
    of_part
        .map(|message| {
            let body = String::from_utf8(envelope(message, ReadyToken::On)).expect("JSON");
            Seen { body, ..Seen::of(message) }
        })
        .collect()
}

/// The counts of a ticket run through two streams, so one stream alone is judged without them.
fn without_seq(seen: Vec<Seen>) -> Vec<Seen> {
    seen.into_iter().map(|seen| Seen { seq: None, ..seen }).collect()
}

async fn judge(house: &House, room: &TestRoom, nats: &Nats) {
    judge_at(house, room, &nats.url()).await;
}

/// Waits until the streams hold everything of a room, and only that, in order.
pub async fn judge_at(house: &House, room: &TestRoom, url: &str) {
    let until = std::time::Instant::now() + SOON;
    loop {
        let mut wrong = Vec::new();
        for (stream, part) in [
            ("POSITION_EVENTS", "position"),
            ("SESSION_EVENTS", "session"),
            ("QUEUE_EVENTS", "queue"),
        ] {
            let should = without_seq(should(house, room, part).await);
            let came = without_seq(held_at(url, stream).await);
            wrong.extend(check(&should, &came).into_iter().map(|it| format!("{stream}: {it}")));
        }
        // What has not come yet may come; anything else is wrong for good.
        if wrong.iter().all(|it| it.contains("never came")) && std::time::Instant::now() < until {
            if wrong.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        }
        panic!("{wrong:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_is_in_its_stream_in_order_with_its_id() {
    let nats = Nats::start();
    let house = House::new();
    let room = house.room("spring-sale").await;
    let relay = house.relay(&room, "nats", sink(&nats));
    let figures = relay.figures.clone();
    let running = tokio::spawn(async move { relay.run().await });
    let (ana, bo) = (room.join().await, room.join().await);
    room.join_many(1_000).await;
    room.leave(bo).await;
    room.admit(300).await;
    room.complete(ana).await;
    room.join_many(1_000).await;
    judge(&house, &room, &nats).await;
    assert_eq!(figures.failures.get(), 0);
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bus_that_dies_and_comes_back_misses_nothing() {
    let mut nats = Nats::start();
    let house = House::new();
    let room = house.room("spring-sale").await;
    let mut relay = house.relay(&room, "nats", sink(&nats));
    relay.pace.batch = 64;
    let figures = relay.figures.clone();
    let running = tokio::spawn(async move { relay.run().await });
    for round in 0..3 {
        for _ in 0..10 {
            room.join_many(100).await;
            room.admit(20).await;
        }
        if round < 2 {
            nats.kill();
            room.join_many(500).await;
            nats.start_again();
        }
    }
    judge(&house, &room, &nats).await;
    assert!(figures.delivered.get() > 3_000);
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_killed_at_any_point_neither_loses_nor_reorders() {
    let nats = Nats::start();
    let house = House::new();
    let room = house.room("spring-sale").await;
    for kill in 0..kills(25) {
        // Each time as after a restart of the whole process: a new connection too.
        let mut relay = house.relay(&room, "nats", sink(&nats));
        relay.pace.batch = 16;
        relay.pace.advance_every = Duration::from_millis(kill % 4 * 5);
        let running = tokio::spawn(async move { relay.run().await });
        room.join_many(40).await;
        room.admit(10).await;
        tokio::time::sleep(Duration::from_micros(kill * 2_711 % 40_000)).await;
        running.abort();
        let _ = running.await;
    }
    let relay = house.relay(&room, "nats", sink(&nats));
    let running = tokio::spawn(async move { relay.run().await });
    judge(&house, &room, &nats).await;
    running.abort();
    house.stop().await;
}

/// One room, known to a duty.
struct One(TestRoom);

impl Rooms for One {
    fn rooms(&self) -> Vec<(RoomName, Arc<dyn Names>)> {
        vec![(self.0.handle.name().clone(), self.0.names.clone())]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bus_that_forgot_what_it_acknowledged_is_told_again() {
    let nats = Nats::start();
    let house = House::new();
    let one = Arc::new(One(house.room("spring-sale").await));
    let room = &one.0;
    room.join_many(500).await;
    room.admit(100).await;
    let (asks, replays) = mpsc::channel(1);
    let duty = Duty {
        store: house.store.clone(),
        instance: "test".into(),
        name: crate::house::sink_name("nats"),
        sink: Arc::new(Told::new(sink(&nats))),
        filter: Filter::everything(),
        pace: Pace::default(),
        keep: Retention { keep_bytes: 1 << 30, keep_age_ms: u64::MAX },
        figures: Arc::new(SinkFigures::default()),
        replays,
    };
    let running = tokio::spawn(duty.run(one.clone()));
    judge(&house, room, &nats).await;
    let context = jetstream::new(async_nats::connect(nats.url()).await.expect("up"));
    for stream in ["POSITION_EVENTS", "SESSION_EVENTS", "QUEUE_EVENTS"] {
        context.delete_stream(stream).await.expect("it was there");
    }
    let (done, answer) = oneshot::channel();
    let replay = Replay { room: room.handle.name().clone(), from: 1, done };
    asks.send(replay).await.expect("it runs");
    assert_eq!(tokio::time::timeout(SOON, answer).await.expect("in time"), Ok(Ok(())));
    room.join_many(50).await;
    judge(&house, room, &nats).await;
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_rooms_share_the_streams_and_each_keeps_its_order() {
    let nats = Nats::start();
    let house = House::new();
    let rooms = [house.room("one").await, house.room("other").await];
    let shared = sink(&nats);
    let running: Vec<_> = rooms
        .iter()
        .map(|room| {
            let relay = house.relay(room, "nats", shared.clone());
            tokio::spawn(async move { relay.run().await })
        })
        .collect();
    for _ in 0..10 {
        for room in &rooms {
            room.join_many(100).await;
        }
    }
    let until = std::time::Instant::now() + SOON;
    loop {
        let all = without_seq(held(&nats, "POSITION_EVENTS").await);
        if all.len() == 2_000 {
            for room in &rooms {
                let own = format!("{}:", room.handle.name());
                let came: Vec<_> =
                    all.iter().filter(|it| it.id.starts_with(&own)).cloned().collect();
                let should = without_seq(should(&house, room, "position").await);
                assert_eq!(check(&should, &came), Vec::<String>::new());
            }
            break;
        }
        assert!(std::time::Instant::now() < until, "only {} came", all.len());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    running.iter().for_each(|it| it.abort());
    house.stop().await;
}

/// Waits until the stream of positions holds so many messages.
async fn positions(nats: &Nats, count: usize) {
    let until = std::time::Instant::now() + SOON;
    while held(nats, "POSITION_EVENTS").await.len() < count {
        assert!(std::time::Instant::now() < until, "they do not come");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_refused_lets_none_behind_it_through() {
    let nats = Nats::start();
    let house = House::new();
    let room = house.room("spring-sale").await;
    let mut relay = house.relay(&room, "nats", sink(&nats));
    // Several batches are under way when the one in the middle is refused.
    relay.pace.batch = 16;
    let figures = relay.figures.clone();
    let running = tokio::spawn(async move { relay.run().await });
    room.join_many(10).await;
    positions(&nats, 10).await;
    let context = jetstream::new(async_nats::connect(nats.url()).await.expect("up"));
    let mut stream = context.get_stream("POSITION_EVENTS").await.expect("it is there");
    let mut config = stream.info().await.expect("its settings").config.clone();
    config.max_message_size = 1_400;
    context.update_stream(&config).await.expect("a limit");
    let large = format!(r#"{{"seats":"{}"}}"#, "9".repeat(1_000)).into_bytes();
    let mut joins = vec![Command::Join(Join::default()); 100];
    joins[40] = Command::Join(Join { metadata: Some(large.into()), ..Join::default() });
    room.handle.send_many(joins).await.expect("they join");
    soon("the refusal is told", || figures.trouble().filter(|it| it.contains("size"))).await;
    let failures = figures.failures.get();
    soon("it is tried again", || (figures.failures.get() > failures + 1).then_some(())).await;
    let came = without_seq(held(&nats, "POSITION_EVENTS").await);
    let all = without_seq(should(&house, &room, "position").await);
    assert_eq!(came, all[..50], "what was before it and nothing else");
    config.max_message_size = -1;
    context.update_stream(&config).await.expect("no limit");
    judge(&house, &room, &nats).await;
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_else_in_the_stream_neither_breaks_the_order_nor_counts_as_a_failure() {
    let nats = Nats::start();
    let house = House::new();
    let room = house.room("spring-sale").await;
    let mut relay = house.relay(&room, "nats", sink(&nats));
    relay.pace.batch = 16;
    let figures = relay.figures.clone();
    let running = tokio::spawn(async move { relay.run().await });
    let context = jetstream::new(async_nats::connect(nats.url()).await.expect("up"));
    room.join_many(10).await;
    for round in 1..=10 {
        positions(&nats, 10 + (round - 1) * 100).await;
        // The relay is at rest, and believes the stream to end where it no longer does. One message
        // makes room for exactly one of ours to be refused, and for the next one to fit.
        let sent = context.publish(FOREIGN, "something".into()).await.expect("sent");
        sent.await.expect("the stream takes it");
        room.join_many(100).await;
    }
    judge(&house, &room, &nats).await;
    assert_eq!(figures.failures.get(), 0);
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn letting_people_in_tells_clients_of_the_single_room() {
    let nats = Nats::start();
    let client = async_nats::connect(nats.url()).await.expect("the server is up");
    let mut heard = client.subscribe("waiting_room.capacity_increased").await.expect("an ear");
    client.flush().await.expect("the server knows of it");
    let house = House::new();
    let room = house.room("default").await;
    let relay = house.relay(&room, "nats", sink(&nats));
    let running = tokio::spawn(async move { relay.run().await });
    room.join_many(5).await;
    room.admit(2).await;
    let message = tokio::time::timeout(SOON, heard.next()).await.expect("in time");
    let said = String::from_utf8(message.expect("a message").payload.to_vec()).expect("text");
    let nanoseconds: u128 = said.parse().expect("a decimal number");
    assert_eq!(nanoseconds % 1_000_000, 0);
    assert!(nanoseconds > 1_700_000_000_000_000_000);
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_instance_says_of_itself_is_said_as_it_is_now_or_not_at_all() {
    let mut nats = Nats::start();
    let link = Link { servers: nats.url(), credentials: None };
    nats.kill();
    let line = SystemLine::new(link, "one", 1, Duration::from_secs(3_600));
    for at in 0..5 {
        line.say(System::Health, at, None, json!({})).await.expect_err("nobody is there");
    }
    nats.start_again();
    let until = Instant::now() + SOON;
    while let Err(trouble) = line.say(System::Error, 1_000, Some("sale"), json!({})).await {
        assert!(Instant::now() < until, "{trouble}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let client = async_nats::connect(nats.url()).await.expect("the server is up");
    let context = jetstream::new(client);
    let stream = context.get_stream("SYSTEM_EVENTS").await.expect("it was made");
    assert_eq!(stream.cached_info().state.messages, 1, "nothing of before");
    let message = stream.get_raw_message(1).await.expect("the one");
    assert_eq!(message.subject.as_str(), "waitingroom.system.error.v1");
    // A stream that somebody deletes is made again.
    context.delete_stream("SYSTEM_EVENTS").await.expect("it is there");
    line.say(System::Health, 2_000, None, json!({})).await.expect_err("there is no stream");
    line.say(System::Health, 3_000, None, json!({})).await.expect("there is one again");
}
