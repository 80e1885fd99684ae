//! A real Kafka broker: topics, keys, headers, order, outages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message as _};
use waitroom_outbox::body::{ReadyToken, Topic, queue_event};
use waitroom_outbox::kafka::{KafkaSink, Link, Topics};

use crate::checker::{Seen, check, expected};
use crate::house::{House, SOON, TestRoom, kills};
use crate::parts::Kafka;

/// Topics of one test's own, so that tests can share a broker.
pub fn topics(test: &str) -> Topics {
    let named = |topic: &str| format!("{test}.{topic}");
    Topics { joined: named("QUEUE_JOINED"), left: named("QUEUE_LEFT"), ready: named("QUEUE_READY") }
}

fn sink(kafka: &Kafka, topics: &Topics) -> Arc<KafkaSink> {
    let link = Link::plain(kafka.brokers());
    Arc::new(KafkaSink::new(link, topics.clone(), ReadyToken::On))
}

/// Reads topics from their beginnings, as a client of the contract does.
pub struct Reader {
    consumer: BaseConsumer,
    came: BTreeMap<String, Vec<Seen>>,
}

impl Reader {
    pub fn of(kafka: &Kafka, topics: &Topics, group: &str) -> Reader {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", kafka.brokers())
            .set("group.id", group)
            .set("auto.offset.reset", "earliest")
            .set("enable.auto.commit", "false")
            .set("allow.auto.create.topics", "true")
            .set("topic.metadata.refresh.interval.ms", "500")
            .create()
            .expect("a consumer");
        let names = [&*topics.joined, &*topics.left, &*topics.ready];
        consumer.subscribe(&names).expect("subscribed");
        Reader { consumer, came: BTreeMap::new() }
    }

    /// Reads one message, and says whether there was one.
    fn read_one(&mut self) -> bool {
        let Some(Ok(message)) = self.consumer.poll(Duration::from_millis(100)) else {
            return false;
        };
        let headers = message.headers().expect("every message has headers");
        let header = |name: &str| {
            let found = headers.iter().find(|it| it.key == name)?.value?;
            Some(String::from_utf8(found.to_vec()).expect("text"))
        };
        let body: serde_json::Value =
            serde_json::from_slice(message.payload().expect("a body")).expect("JSON");
        assert_eq!(message.key(), body["event_id"].as_str().map(str::as_bytes), "the key");
        assert_eq!(header("timestamp").as_deref(), body["timestamp"].as_str());
        assert_eq!(header("ce_subject").as_deref(), body["session_id"].as_str());
        let seen = Seen { id: header("ce_id").expect("an id"), seq: None, body: body.to_string() };
        self.came.entry(message.topic().to_owned()).or_default().push(seen);
        true
    }
}

async fn should(house: &House, room: &TestRoom, wanted: Topic) -> Vec<Seen> {
    let log = house.log(room.handle.name()).await;
    let head = log.last().map_or(0, |(head, ..)| *head);
    room.handle.board_at(head).await;
    let all = expected(room.handle.name(), &log, &*room.names);
    let all = all.iter().filter_map(|it| Some((it, queue_event(it, ReadyToken::On)?)));
    let wanted = all.filter(|(_, (topic, _))| *topic == wanted);
    wanted
        .map(|(message, (_, body))| {
            let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
            Seen { id: message.id.to_string(), seq: None, body: body.to_string() }
        })
        .collect()
}

pub async fn judge(house: &House, room: &TestRoom, topics: &Topics, mut reader: Reader) {
    let until = Instant::now() + SOON;
    let mut wanted = Vec::new();
    for (name, topic) in [
        (&topics.joined, Topic::Joined),
        (&topics.left, Topic::Left),
        (&topics.ready, Topic::Ready),
    ] {
        wanted.push((name.clone(), should(house, room, topic).await));
    }
    let reading = tokio::task::spawn_blocking(move || {
        loop {
            // The judgement costs more than the reading, and kills make many repeats.
            while reader.read_one() && Instant::now() < until {}
            let wrong: Vec<String> = wanted
                .iter()
                .flat_map(|(name, should)| {
                    let came = reader.came.get(name).map_or(&[][..], Vec::as_slice);
                    check(should, came).into_iter().map(move |it| format!("{name}: {it}"))
                })
                .collect();
            if wrong.is_empty() {
                return;
            }
            let only_late = wrong.iter().all(|it| it.contains("never came"));
            assert!(only_late && Instant::now() < until, "{wrong:?}");
        }
    });
    reading.await.expect("everything came as it should");
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_departures_and_admissions_are_on_their_topics_in_order() {
    let kafka = Kafka::shared();
    let topics = topics("order");
    let house = House::new();
    let room = house.room("spring-sale").await;
    let relay = house.relay(&room, "kafka", sink(kafka, &topics));
    let figures = relay.figures.clone();
    let running = tokio::spawn(async move { relay.run().await });
    let (ana, bo) = (room.join().await, room.join().await);
    room.join_many(1_000).await;
    room.leave(bo).await;
    room.admit(300).await;
    room.complete(ana).await;
    room.join_many(1_000).await;
    judge(&house, &room, &topics, Reader::of(kafka, &topics, "order")).await;
    assert_eq!(figures.trouble(), None);
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_killed_at_any_point_loses_nothing_on_kafka() {
    let kafka = Kafka::shared();
    let topics = topics("killed");
    let house = House::new();
    let room = house.room("spring-sale").await;
    for kill in 0..kills(10) {
        let mut relay = house.relay(&room, "kafka", sink(kafka, &topics));
        relay.pace.batch = 16;
        relay.pace.advance_every = Duration::from_millis(kill % 4 * 5);
        let running = tokio::spawn(async move { relay.run().await });
        room.join_many(40).await;
        room.admit(10).await;
        tokio::time::sleep(Duration::from_millis(kill * 53 % 200)).await;
        running.abort();
        let _ = running.await;
    }
    let relay = house.relay(&room, "kafka", sink(kafka, &topics));
    let running = tokio::spawn(async move { relay.run().await });
    judge(&house, &room, &topics, Reader::of(kafka, &topics, "killed")).await;
    running.abort();
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_dies_and_comes_back_misses_nothing() {
    let mut kafka = tokio::task::spawn_blocking(Kafka::start).await.expect("a broker");
    let topics = topics("outage");
    let house = House::new();
    let room = house.room("spring-sale").await;
    let relay = house.relay(&room, "kafka", sink(&kafka, &topics));
    let figures = relay.figures.clone();
    let running = tokio::spawn(async move { relay.run().await });
    room.join_many(500).await;
    crate::house::soon("the first messages", || (figures.delivered.get() > 0).then_some(())).await;
    room.join_many(500).await;
    kafka.kill();
    for _ in 0..10 {
        room.join_many(100).await;
        room.admit(20).await;
    }
    kafka.start_again();
    judge(&house, &room, &topics, Reader::of(&kafka, &topics, "outage")).await;
    running.abort();
    house.stop().await;
}
