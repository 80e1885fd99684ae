//! The peers: the buses' own clients, publishing messages that are ready in memory.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{self, stream};
use rdkafka::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::OwnedHeaders;
use rdkafka::producer::{FutureProducer, FutureRecord};
use waitroom_outbox::Message;
use waitroom_outbox::body::{self, ReadyToken};
use waitroom_outbox::kafka as sink;
use waitroom_store::Head;

use super::Bench;
use crate::failure::{Failure, OrFail, Outcome};

/// Messages on their way at once: four times what the relay sends together, and without its pauses
/// between two batches.
const ON_THEIR_WAY: usize = 4_096;

const WARM_UP: u64 = 30_000;

/// Messages a second, JetStream's acknowledgements awaited.
pub(super) async fn nats(bench: &Bench<'_>, url: &str) -> Outcome<f64> {
    let client = async_nats::connect(url).await.or_fail(|| "connect to NATS")?;
    let context = jetstream::new(client);
    let config = stream::Config {
        name: "PLAIN".into(),
        subjects: vec!["plain.>".into()],
        max_age: Duration::from_secs(3_600),
        duplicate_window: Duration::from_secs(120),
        ..stream::Config::default()
    };
    context.get_or_create_stream(config).await.or_fail(|| "make a stream")?;
    let (mut took, mut sent, mut at) = (Duration::ZERO, 0u64, Head::EMPTY);
    loop {
        let (next, messages) = bench.messages(at).await?;
        if next == at {
            return Ok(sent as f64 / took.as_secs_f64());
        }
        at = next;
        let ready: Vec<_> = messages.iter().map(nats_message).collect();
        let began = Instant::now();
        let mut acks = VecDeque::with_capacity(ON_THEIR_WAY);
        for publish in ready {
            if acks.len() == ON_THEIR_WAY {
                let oldest: jetstream::context::PublishAckFuture =
                    acks.pop_front().expect("it is full");
                oldest.await.or_fail(|| "publish")?;
            }
            let subject = "plain.position.enqueued";
            acks.push_back(context.send_publish(subject, publish).await.or_fail(|| "publish")?);
            sent += 1;
        }
        for ack in acks {
            ack.await.or_fail(|| "publish")?;
        }
        took += began.elapsed();
    }
}

fn nats_message(message: &Message) -> PublishMessage {
    let mut headers = HeaderMap::new();
    for (name, value) in body::attributes(message) {
        headers.insert(format!("ce-{name}").as_str(), value.as_str());
    }
    headers.insert("content-type", "application/json");
    PublishMessage::build()
        .headers(headers)
        .message_id(message.id.to_string())
        .payload(body::envelope(message, ReadyToken::Off).into())
}

/// A broker that has just started is slow whoever comes first; so some go ahead on every topic.
pub(super) async fn warm_kafka(bench: &Bench<'_>, brokers: &str, topics: &[&str]) -> Outcome {
    for topic in topics {
        to_topic(bench, brokers, topic, WARM_UP).await?;
    }
    Ok(())
}

/// Messages a second, all in-sync replicas awaited.
pub(super) async fn kafka(bench: &Bench<'_>, brokers: &str) -> Outcome<f64> {
    to_topic(bench, brokers, "plain", u64::MAX).await
}

async fn to_topic(bench: &Bench<'_>, brokers: &str, topic: &str, most: u64) -> Outcome<f64> {
    let producer: FutureProducer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("linger.ms", "5")
        .create()
        .or_fail(|| "make a producer")?;
    let (mut took, mut sent, mut at) = (Duration::ZERO, 0u64, Head::EMPTY);
    loop {
        let (next, messages) = bench.messages(at).await?;
        if next == at || sent >= most {
            return Ok(sent as f64 / took.as_secs_f64());
        }
        at = next;
        let ready: Vec<_> = messages.iter().filter_map(kafka_message).collect();
        let began = Instant::now();
        let mut on_their_way = Vec::with_capacity(ready.len());
        for (room, body, headers) in &ready {
            let mut record =
                FutureRecord::to(topic).key(room).payload(body).headers(headers.clone());
            let sent = loop {
                match producer.send_result(record) {
                    Ok(sent) => break sent,
                    Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                        record = again;
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    Err((error, _)) => return Err(Failure::new(error.to_string())),
                }
            };
            on_their_way.push(sent);
        }
        for delivered in on_their_way {
            match delivered.await {
                Ok(Ok(_)) => sent += 1,
                Ok(Err((error, _))) => return Err(Failure::new(error.to_string())),
                Err(_) => return Err(Failure::new("the producer went away")),
            }
        }
        took += began.elapsed();
    }
}

fn kafka_message(message: &Message) -> Option<(String, Vec<u8>, OwnedHeaders)> {
    let (_, body) = body::queue_event(message, ReadyToken::Off)?;
    Some((message.id.room.to_string(), body, sink::headers(message)))
}
