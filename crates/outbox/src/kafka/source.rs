//! Hears checkouts on Kafka: a consumer group, offsets committed after their effect is in the log.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use rdkafka::Message as _;
use rdkafka::TopicPartitionList;
use rdkafka::consumer::{CommitMode, Consumer, StreamConsumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::topic_partition_list::Offset;
use tokio::time::sleep;

use super::Link;
use super::refusals::is_refusal;
use crate::sink::Trouble;
use crate::source::{AGAIN_AFTER, Checkout, Hearing, Outcomes, Reason, SourceFigures, hear};

/// Messages that are heard together: their effects share one write to the disk.
const TOGETHER: usize = 256;
/// How long a dead letter may take before the whole batch is heard again.
const DEAD_WITHIN: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct KafkaSource {
    pub link: Link,
    pub group: String,
    pub outcomes: Outcomes,
    /// The topic for messages of which nothing came.
    pub dead_letter: String,
    pub figures: Arc<SourceFigures>,
}

impl KafkaSource {
    /// Runs until it is dropped.
    pub async fn run(self, checkout: Arc<dyn Checkout>) {
        let hearing = Hearing::on("kafka");
        hearing.keep(|| self.listen(&*checkout, &hearing)).await;
    }

    async fn listen(
        &self,
        checkout: &dyn Checkout,
        hearing: &Hearing,
    ) -> Result<Infallible, Trouble> {
        let consumer: StreamConsumer = self
            .link
            .config()?
            .set("group.id", &self.group)
            .set("enable.auto.commit", "false")
            // A shop may have sold before this was started for the first time.
            .set("auto.offset.reset", "earliest")
            .set("allow.auto.create.topics", "true")
            // Topics that are made later are found within this.
            .set("topic.metadata.refresh.interval.ms", "5000")
            .create()
            .map_err(Trouble::new)?;
        let dead: FutureProducer =
            self.link.config()?.set("enable.idempotence", "true").create().map_err(Trouble::new)?;
        consumer.subscribe(&self.outcomes.names()).map_err(Trouble::new)?;
        let mut together = consumer.stream().ready_chunks(TOGETHER);
        while let Some(chunk) = together.next().await {
            let mut fine = Vec::with_capacity(chunk.len());
            let mut trouble = None;
            for message in chunk {
                match message {
                    Ok(message) => fine.push(message),
                    Err(error) => trouble = Some(error),
                }
            }
            // Asked in the order of each partition; answered when all are in the log.
            let heard = join_all(fine.iter().map(|message| {
                hear(checkout, self.outcomes.of(message.topic()), message.payload().unwrap_or(&[]))
            }));
            let done = join_all(fine.iter().zip(heard.await).map(async |(message, heard)| {
                self.figures.note(&heard);
                match heard {
                    Ok(()) => Ok(()),
                    Err(reason) => self.bury(&dead, message, reason).await,
                }
            }));
            done.await.into_iter().collect::<Result<(), Trouble>>()?;
            commit(&consumer, &fine).map_err(Trouble::new)?;
            if !fine.is_empty() {
                hearing.found();
            }
            if let Some(error) = trouble {
                // Others, such as a topic that nobody has made yet, are no outage.
                if let KafkaError::MessageConsumption(code) = error
                    && (is_away(code) || is_refusal(code))
                {
                    hearing.lost(&Trouble::new(&error));
                }
                tracing::debug!(source = "kafka", %error, "nothing to hear for a moment");
                sleep(AGAIN_AFTER).await;
            }
        }
        Err(Trouble::new("the stream of messages ended"))
    }

    /// Keeps a message of which nothing came, as it was, with the reason.
    async fn bury(
        &self,
        dead: &FutureProducer,
        message: &BorrowedMessage<'_>,
        reason: Reason,
    ) -> Result<(), Trouble> {
        let header = |key, value| Header { key, value: Some(value) };
        let headers = OwnedHeaders::new()
            .insert(header("waitroom-reason", reason.word()))
            .insert(header("waitroom-topic", message.topic()));
        let record = FutureRecord::to(&self.dead_letter)
            .key(message.key().unwrap_or(&[]))
            .payload(message.payload().unwrap_or(&[]))
            .headers(headers);
        let sent = dead.send(record, DEAD_WITHIN).await;
        sent.map(|_| ()).map_err(|(error, _)| Trouble::new(error))
    }
}

fn is_away(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode::{AllBrokersDown, BrokerTransportFailure};
    matches!(code, AllBrokersDown | BrokerTransportFailure)
}

/// Everything up to these is done. Should the commit be lost, they are heard again, and nothing
/// comes of that but a letter.
fn commit(consumer: &StreamConsumer, done: &[BorrowedMessage<'_>]) -> Result<(), KafkaError> {
    let mut upto: BTreeMap<(&str, i32), i64> = BTreeMap::new();
    for message in done {
        let at = upto.entry((message.topic(), message.partition())).or_default();
        *at = (*at).max(message.offset() + 1);
    }
    if upto.is_empty() {
        return Ok(());
    }
    let mut list = TopicPartitionList::new();
    for ((topic, partition), offset) in upto {
        list.add_partition_offset(topic, partition, Offset::Offset(offset))?;
    }
    consumer.commit(&list, CommitMode::Async)
}
