//! A producer that keeps the order of each room, and is replaced when it fails.
//!
//! It is idempotent and waits for all replicas, and a message waits for the brokers as long as it
//! takes: one that timed out alone would leave a gap that later ones overtake. Should a producer
//! fail for good all the same, it is thrown away with everything in it, and whoever had something
//! there sends it again by another.
//! Lives here: that care, for whoever publishes. Stays out: what is published.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::OwnedHeaders;
use rdkafka::producer::{BaseRecord, Producer, PurgeConfig, ThreadedProducer};
use waitroom_store::RoomName;

use super::Link;
use super::refusals::Refusals;
use super::tally::Tally;
use crate::sink::Trouble;

/// A message; its key is the room.
pub(crate) struct Outgoing<'a> {
    pub topic: &'a str,
    pub payload: Vec<u8>,
    pub headers: Option<OwnedHeaders>,
    pub at_ms: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Publisher {
    link: Link,
    producers: Mutex<Producers>,
    /// Whoever hands messages to the producer. A batch goes in whole before the next one, also when
    /// the queue is full meanwhile.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Producers {
    /// The one for whoever begins.
    newest: Option<Arc<OneProducer>>,
    /// The one that each room has batches in, and how many. While there are any, the next one goes
    /// there as well, even if that fails: in a newer producer it would overtake them.
    busy: BTreeMap<RoomName, (Arc<OneProducer>, usize)>,
}

/// A batch of a room that is under way.
struct Stay<'a> {
    publisher: &'a Publisher,
    room: &'a RoomName,
    producer: Arc<OneProducer>,
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        let mut producers = self.publisher.producers();
        if let Some((_, count)) = producers.busy.get_mut(self.room) {
            *count -= 1;
            if *count == 0 {
                producers.busy.remove(self.room);
            }
        }
    }
}

/// A producer until it fails: from then on it takes nothing more.
///
/// What was in it is purged, and what would come in behind that must not overtake it.
struct OneProducer {
    producer: ThreadedProducer<Refusals>,
    refusals: Refusals,
    /// Held for reading while a message is handed over, so that none slips in behind the purge.
    over: RwLock<bool>,
}

impl std::fmt::Debug for OneProducer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Producer")
    }
}

/// Between two looks whether the producer's queue has room again.
const QUEUE_FULL_WAIT: Duration = Duration::from_millis(5);

type Record<'a> = BaseRecord<'a, str, [u8], Arc<Tally>>;

/// What becomes of a message that is handed to a producer.
enum Handed<'a> {
    OnItsWay,
    /// There is no room for it now.
    Back(Record<'a>),
    Failed(KafkaError),
}

impl OneProducer {
    fn hand_over<'a>(&self, record: Record<'a>) -> Handed<'a> {
        let over = self.over.read().unwrap_or_else(PoisonError::into_inner);
        if *over {
            return Handed::Failed(KafkaError::Canceled);
        }
        match self.producer.send(record) {
            Ok(()) => Handed::OnItsWay,
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), again)) => {
                Handed::Back(again)
            }
            Err((error, _)) => Handed::Failed(error),
        }
    }

    fn end(&self) {
        let mut over = self.over.write().unwrap_or_else(PoisonError::into_inner);
        *over = true;
        self.producer.purge(PurgeConfig::default().queue().inflight());
    }
}

impl Publisher {
    pub fn new(link: Link) -> Publisher {
        let (producers, turn) = (Mutex::default(), tokio::sync::Mutex::default());
        Publisher { link, producers, turn }
    }

    /// Publishes messages of a room in this order. `Ok` means that every in-sync replica has them.
    /// Several calls may be under way at once; of one room, they keep the order they began in.
    pub async fn publish<'a>(
        &self,
        room: &RoomName,
        messages: impl Iterator<Item = Outgoing<'a>> + Send,
    ) -> Result<(), Trouble> {
        // Before the turn: a batch that was begun behind one that fails must fail with it.
        let stay = self.enter(room)?;
        let sent = tokio::select! {
            sent = self.send_all(&stay, messages) => sent.map_err(Trouble::new),
            why = stay.producer.refusals.refused() => Err(Trouble::new(why)),
        };
        match sent {
            Ok(()) => stay.producer.refusals.welcome(),
            Err(_) => self.throw_away(&stay.producer),
        }
        sent
    }

    async fn send_all<'a>(
        &self,
        stay: &Stay<'_>,
        messages: impl Iterator<Item = Outgoing<'a>> + Send,
    ) -> Result<(), KafkaError> {
        let tally = Tally::new();
        {
            let _turn = self.turn.lock().await;
            for message in messages {
                stay.hand_over(message, &tally).await?;
            }
        }
        tally.settled().await
    }

    fn producers(&self) -> MutexGuard<'_, Producers> {
        self.producers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter<'a>(&'a self, room: &'a RoomName) -> Result<Stay<'a>, Trouble> {
        let mut producers = self.producers();
        if let Some((producer, count)) = producers.busy.get_mut(room) {
            *count += 1;
            return Ok(Stay { publisher: self, room, producer: producer.clone() });
        }
        let producer = match &producers.newest {
            Some(newest) => newest.clone(),
            None => {
                let (refusals, over) = (Refusals::default(), RwLock::new(false));
                let producer = self.link.producer(refusals.clone())?;
                producers.newest.insert(Arc::new(OneProducer { producer, refusals, over })).clone()
            }
        };
        producers.busy.insert(room.clone(), (producer.clone(), 1));
        Ok(Stay { publisher: self, room, producer })
    }

    /// Nothing of it may arrive any more once the batch is sent again by another.
    fn throw_away(&self, producer: &Arc<OneProducer>) {
        producer.end();
        let mut producers = self.producers();
        if producers.newest.as_ref().is_some_and(|it| Arc::ptr_eq(it, producer)) {
            producers.newest = None;
        }
    }
}

impl Stay<'_> {
    async fn hand_over(&self, message: Outgoing<'_>, to: &Arc<Tally>) -> Result<(), KafkaError> {
        let mut record = Record::with_opaque_to(message.topic, to.one_more())
            .key(self.room.as_str())
            .payload(&message.payload);
        record.headers = message.headers;
        record.timestamp = message.at_ms.and_then(|it| i64::try_from(it).ok());
        loop {
            match self.producer.hand_over(record) {
                Handed::OnItsWay => return Ok(()),
                Handed::Back(again) => {
                    record = again;
                    tokio::time::sleep(QUEUE_FULL_WAIT).await;
                }
                Handed::Failed(error) => return Err(error),
            }
        }
    }
}
