//! Publishes to Kafka, in the order of the log.
//!
//! A room's name is the key, so all of a room is in one partition of each topic, in order
//! (`publisher.rs`). Several batches are under way at once: while the brokers write one, the next
//! is made.

use rdkafka::message::{Header, OwnedHeaders};
use waitroom_core::when::utc;

use super::Link;
use super::publisher::{Outgoing, Publisher};
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
    publisher: Publisher,
    topics: Topics,
    ready: ReadyToken,
}

impl KafkaSink {
    pub fn new(link: Link, topics: Topics, ready: ReadyToken) -> KafkaSink {
        KafkaSink { publisher: Publisher::new(link), topics, ready }
    }

    fn written(&self, message: &Message) -> Option<Outgoing<'_>> {
        let (topic, payload) = body::queue_event(message, self.ready)?;
        let topic = match topic {
            Topic::Joined => &self.topics.joined,
            Topic::Left => &self.topics.left,
            Topic::Ready => &self.topics.ready,
        };
        let (headers, at_ms) = (Some(headers(message)), Some(message.at.0));
        Some(Outgoing { topic, payload, headers, at_ms })
    }
}

impl Sink for KafkaSink {
    /// Enough that the brokers' acknowledgements come while later batches are written. The producer
    /// is idempotent: a partition takes nothing whose predecessor it has not got, and with the
    /// first failure everything in the producer is gone.
    const AT_ONCE: usize = 16;

    async fn deliver(&self, batch: &[Message]) -> Result<(), Trouble> {
        let Some(first) = batch.first() else { return Ok(()) };
        let written = batch.iter().filter_map(|message| self.written(message));
        self.publisher.publish(&first.id.room, written).await
    }
}

/// What goes beside a body. The library copies every name and value.
pub fn headers(message: &Message) -> OwnedHeaders {
    let header =
        |all: OwnedHeaders, key: &str, value: &str| all.insert(Header { key, value: Some(value) });
    let headers = OwnedHeaders::new_with_capacity(9);
    let headers = header(headers, "timestamp", &utc(message.at.0));
    let headers = header(headers, "content-type", "application/json");
    let mut key = "ce_".to_owned();
    body::fold_attributes(message, headers, |all, name, value| {
        key.truncate("ce_".len());
        key.push_str(name);
        header(all, &key, value)
    })
}
