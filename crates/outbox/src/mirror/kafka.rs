//! A mirror in a Kafka topic: one partition, the room as the key, kept for good.
//!
//! Nobody can ask Kafka for the newest message of a key, so the cursor in the store says where to
//! go on. After a crash some batches come again; whoever reads passes over them.

use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::{Message as _, Offset, TopicPartitionList};
use tokio::sync::OnceCell;
use waitroom_store::{Chain, Head, RoomName, Stored};

use super::{Known, Pieces, Terms, cannot_skip, never_forgets};
use crate::kafka::Link;
use crate::kafka::publisher::{Outgoing, Publisher};
use crate::kafka::refusals::Refusals;
use crate::keeper::{Keeper, Standing};
use crate::names::Names;
use crate::sink::Trouble;

pub struct KafkaMirror {
    link: Link,
    topic: String,
    terms: Terms,
    made: OnceCell<()>,
    publisher: Publisher,
    /// Where each room stands, since it was first kept here.
    known: Known,
}

impl std::fmt::Debug for KafkaMirror {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KafkaMirror").field("topic", &self.topic).finish_non_exhaustive()
    }
}

/// How long brokers may take for what is no message.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long they are asked at a time: a refusal is only heard of in between.
const LOOK: Duration = Duration::from_secs(1);
/// A topic that says nothing for so long has nothing more.
const SILENT_FOR: Duration = Duration::from_secs(15);

impl KafkaMirror {
    pub fn new(link: Link, topic: &str, terms: Terms) -> KafkaMirror {
        let topic = topic.to_owned();
        let (publisher, known) = (Publisher::new(link.clone()), Known::default());
        KafkaMirror { link, topic, terms, made: OnceCell::new(), publisher, known }
    }

    /// The topic, made if it is not there, with nothing ever thrown away.
    async fn make(&self) -> Result<(), Trouble> {
        let (link, topic) = (self.link.clone(), self.topic.clone());
        let looked = tokio::task::spawn_blocking(move || partitions(&link.reader()?, &topic));
        if !looked.await.map_err(Trouble::new)??.is_empty() {
            return Ok(());
        }
        let admin: AdminClient<DefaultClientContext> =
            self.link.config()?.create().map_err(Trouble::new)?;
        // -1: as many replicas as the brokers give by themselves.
        let topic = NewTopic::new(&self.topic, 1, TopicReplication::Fixed(-1))
            .set("retention.ms", "-1")
            .set("retention.bytes", "-1")
            .set("cleanup.policy", "delete");
        let options = AdminOptions::new().request_timeout(Some(ANSWER_WITHIN));
        let made = admin.create_topics([&topic], &options).await.map_err(Trouble::new)?;
        match made.into_iter().next() {
            Some(Err((_, code))) if code != RDKafkaErrorCode::TopicAlreadyExists => {
                Err(Trouble::new(format!("topic {} cannot be made: {code}", self.topic)))
            }
            _ => Ok(()),
        }
    }

    async fn publish(&self, room: &RoomName, pieces: Pieces) -> Result<(), Trouble> {
        self.made.get_or_try_init(|| self.make()).await?;
        let outgoing =
            |(_, payload)| Outgoing { topic: &self.topic, payload, headers: None, at_ms: None };
        self.publisher.publish(room, pieces.into_iter().map(outgoing)).await
    }
}

impl Keeper for KafkaMirror {
    async fn stands(&self, room: &RoomName) -> Result<Option<Standing>, Trouble> {
        self.known.set(room, None);
        Ok(None)
    }

    async fn keep(
        &self,
        room: &RoomName,
        _: &dyn Names,
        batches: &[Stored],
    ) -> Result<(), Trouble> {
        let Some(first) = batches.first() else { return Ok(()) };
        // Behind the cursor nothing is known of the chain; the store vouches for the first.
        let from_start = first.after == Head::EMPTY;
        let start = if from_start { Some(Chain::START) } else { None };
        let at = self.known.get(room).unwrap_or(Standing { head: first.after, chain: start });
        let (at, pieces) = self.terms.pieces(room, at, batches)?;
        self.publish(room, pieces).await?;
        self.known.set(room, Some(at));
        Ok(())
    }

    async fn rest(&self, room: &RoomName, names: &dyn Names) -> Result<(), Trouble> {
        let Some(held) = self.known.get(room) else { return Ok(()) };
        match self.terms.mark(room, held, names).await {
            none if none.is_empty() => Ok(()),
            mark => self.publish(room, mark).await,
        }
    }

    async fn skip(&self, room: &RoomName, to: Head) -> Result<(), Trouble> {
        Err(cannot_skip(room, to))
    }

    async fn forget(&self, room: &RoomName) -> Result<(), Trouble> {
        Err(never_forgets(room))
    }
}

/// Reads the whole topic up to where it ends now. Blocks its thread: nothing else waits for it.
pub(super) async fn read<E>(
    link: &Link,
    topic: &str,
    room: &RoomName,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<Result<(), E>, Trouble> {
    let consumer = link.reader()?;
    let partitions = partitions(&consumer, topic)?;
    if partitions.is_empty() {
        return Err(Trouble::new(format!("there is no topic {topic}")));
    }
    // A room is in one partition, whichever that is; so one after another is in order.
    for partition in partitions {
        let (low, high) =
            consumer.fetch_watermarks(topic, partition, ANSWER_WITHIN).map_err(Trouble::new)?;
        if high <= low {
            continue;
        }
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Beginning).map_err(Trouble::new)?;
        consumer.assign(&list).map_err(Trouble::new)?;
        loop {
            let Some(message) = consumer.poll(SILENT_FOR) else {
                return Err(Trouble::new("the topic went silent before its end"));
            };
            let message = message.map_err(Trouble::new)?;
            if message.key() == Some(room.as_str().as_bytes())
                && let Err(enough) = take(message.payload().unwrap_or(&[]))
            {
                return Ok(Err(enough));
            }
            if message.offset() + 1 >= high {
                break;
            }
        }
    }
    Ok(Ok(()))
}

/// The partitions of a topic; none where there is no such topic. Brokers that refuse us are told as
/// that: to the library they are brokers that never come.
fn partitions(consumer: &BaseConsumer<Refusals>, topic: &str) -> Result<Vec<i32>, Trouble> {
    let until = Instant::now() + ANSWER_WITHIN;
    loop {
        let error = match consumer.fetch_metadata(Some(topic), LOOK) {
            Ok(known) => {
                let partitions = known.topics().iter().flat_map(|it| it.partitions());
                return Ok(partitions.map(|it| it.id()).collect());
            }
            Err(error) => error,
        };
        // Nothing is assigned, so nothing but troubles can come.
        while consumer.poll(Duration::ZERO).is_some() {}
        if let Some(why) = consumer.context().heard() {
            return Err(Trouble::new(why));
        }
        if Instant::now() >= until {
            return Err(Trouble::new(error));
        }
    }
}
