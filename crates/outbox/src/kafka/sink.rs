//! Publishes to Kafka, in the order of the log.
//!
//! The producer is idempotent and waits for all replicas. A room's name is the key, so all of a
//! room is in one partition of each topic, in order. A message waits for the broker as long as it
//! takes: one that timed out alone would leave a gap that later ones overtake. Should the producer
//! fail for good all the same, it is thrown away with everything in it, and the batch comes again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord, Producer, PurgeConfig};
use waitroom_core::when::utc;

use super::Link;
use crate::body::{self, ReadyToken, Topic};
use crate::message::Message;
use crate::sink::{Sink, Trouble};

/// What the topics are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics {
    pub joined: String,
    pub left: String,
    pub ready: String,
}

#[derive(Debug)]
pub struct KafkaSink {
    link: Link,
    topics: Topics,
    ready: ReadyToken,
    producer: Mutex<Option<Arc<Shared>>>,
}

struct Shared(FutureProducer);

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Producer")
    }
}

/// Between two looks whether the producer's queue has room again.
const QUEUE_FULL_WAIT: Duration = Duration::from_millis(5);

impl KafkaSink {
    pub fn new(link: Link, topics: Topics, ready: ReadyToken) -> KafkaSink {
        KafkaSink { link, topics, ready, producer: Mutex::default() }
    }

    fn producer(&self) -> Result<Arc<Shared>, Trouble> {
        let mut kept = self.producer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(producer) = &*kept {
            return Ok(producer.clone());
        }
        let producer = Arc::new(Shared(self.link.producer().map_err(Trouble::new)?));
        *kept = Some(producer.clone());
        Ok(producer)
    }

    /// Nothing of it may arrive any more once the batch is sent again by another.
    fn throw_away(&self, producer: &Arc<Shared>) {
        producer.0.purge(PurgeConfig::default().queue().inflight());
        let mut kept = self.producer.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_some_and(|it| Arc::ptr_eq(it, producer)) {
            *kept = None;
        }
    }

    async fn send_all(
        &self,
        producer: &FutureProducer,
        batch: &[Message],
    ) -> Result<(), KafkaError> {
        let mut on_their_way = Vec::with_capacity(batch.len());
        for message in batch {
            let Some((topic, body)) = body::queue_event(message, self.ready) else { continue };
            let topic = match topic {
                Topic::Joined => &self.topics.joined,
                Topic::Left => &self.topics.left,
                Topic::Ready => &self.topics.ready,
            };
            let mut record = FutureRecord::to(topic)
                .key(message.id.room.as_str())
                .payload(&body)
                .headers(headers(message))
                .timestamp(i64::try_from(message.at.0).unwrap_or(i64::MAX));
            let sent = loop {
                match producer.send_result(record) {
                    Ok(sent) => break sent,
                    Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                        record = again;
                        tokio::time::sleep(QUEUE_FULL_WAIT).await;
                    }
                    Err((error, _)) => return Err(error),
                }
            };
            on_their_way.push(sent);
        }
        for sent in on_their_way {
            match sent.await {
                Ok(Ok(_)) => {}
                Ok(Err((error, _))) => return Err(error),
                Err(_) => return Err(KafkaError::Canceled),
            }
        }
        Ok(())
    }
}

impl Sink for KafkaSink {
    async fn deliver(&self, batch: &[Message]) -> Result<(), Trouble> {
        let producer = self.producer()?;
        self.send_all(&producer.0, batch).await.map_err(|error| {
            self.throw_away(&producer);
            Trouble::new(error)
        })
    }
}

fn headers(message: &Message) -> OwnedHeaders {
    let mut headers = OwnedHeaders::new_with_capacity(9);
    let mut put = |key: &str, value: &str| {
        let all = std::mem::take(&mut headers);
        headers = all.insert(Header { key, value: Some(value) });
    };
    put("timestamp", &utc(message.at.0));
    put("content-type", "application/json");
    for (name, value) in body::attributes(message) {
        put(&format!("ce_{name}"), &value);
    }
    headers
}
