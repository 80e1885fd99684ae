//! A mirror in a NATS stream: one subject for each log, kept for good.
//!
//! Every message says which sequence the stream must be at, so that none is stored without all
//! before it; where a room stands is read from the newest message of its subject.

use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::consumer::{self, DeliverPolicy};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{self, LastRawMessageErrorKind, Stream};
use futures_util::StreamExt;
use tokio::sync::{Mutex, OnceCell};
use waitroom_store::{Head, RoomName, Stored};

use super::{Known, Pieces, Terms, cannot_skip, never_forgets};
use crate::keeper::{Keeper, Standing};
use crate::names::Names;
use crate::nats::{Link, connect};
use crate::sink::Trouble;

#[derive(Debug)]
pub struct NatsMirror {
    link: Link,
    stream: String,
    replicas: usize,
    terms: Terms,
    known: Known,
    context: OnceCell<jetstream::Context>,
    /// The sequence that the stream is at, while that is certain. One batch at a time is on its
    /// way: all rooms share the stream, and its sequence.
    last: Mutex<Option<u64>>,
}

/// A stream that says nothing for so long has nothing more.
const SILENT_FOR: Duration = Duration::from_secs(10);

fn subject(stream: &str, room: &RoomName) -> String {
    format!("{}.{room}", stream.to_lowercase())
}

impl NatsMirror {
    pub fn new(link: Link, stream: &str, replicas: usize, terms: Terms) -> NatsMirror {
        let stream = stream.to_owned();
        NatsMirror {
            link,
            stream,
            replicas,
            terms,
            known: Known::default(),
            context: OnceCell::new(),
            last: Mutex::default(),
        }
    }

    async fn context(&self) -> Result<&jetstream::Context, Trouble> {
        self.context.get_or_try_init(|| connect(&self.link)).await
    }

    /// The stream, made if it is not there.
    async fn stream(&self) -> Result<Stream, Trouble> {
        let config = stream::Config {
            name: self.stream.clone(),
            subjects: vec![format!("{}.>", self.stream.to_lowercase())],
            num_replicas: self.replicas,
            ..stream::Config::default()
        };
        self.context().await?.get_or_create_stream(config).await.map_err(Trouble::new)
    }

    async fn standing(&self, room: &RoomName) -> Result<Standing, Trouble> {
        let stream = self.stream().await?;
        let newest = stream.get_last_raw_message_by_subject(&subject(&self.stream, room)).await;
        let newest = match newest {
            Ok(newest) => newest,
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                return Ok(Standing::NOWHERE);
            }
            Err(error) => return Err(Trouble::new(error)),
        };
        self.terms.standing(room, &newest.payload)
    }

    async fn publish(&self, room: &RoomName, pieces: Pieces) -> Result<(), Trouble> {
        let context = self.context().await?;
        // Unknown again until all of it went well; a future that is dropped leaves it so.
        let mut kept = self.last.lock().await;
        let mut last = match kept.take() {
            Some(last) => last,
            None => self.stream().await?.cached_info().state.last_sequence,
        };
        let subject = subject(&self.stream, room);
        let mut acks = Vec::with_capacity(pieces.len());
        for (_, piece) in pieces {
            let publish =
                PublishMessage::build().expected_last_sequence(last).payload(piece.into());
            acks.push(context.send_publish(subject.clone(), publish).await.map_err(Trouble::new)?);
            last += 1;
        }
        for ack in acks {
            ack.await.map_err(Trouble::new)?;
        }
        *kept = Some(last);
        Ok(())
    }
}

impl Keeper for NatsMirror {
    async fn stands(&self, room: &RoomName) -> Result<Option<Standing>, Trouble> {
        let at = self.standing(room).await?;
        self.known.set(room, Some(at));
        Ok(Some(at))
    }

    async fn keep(
        &self,
        room: &RoomName,
        _: &dyn Names,
        batches: &[Stored],
    ) -> Result<(), Trouble> {
        let at = match self.known.get(room) {
            Some(at) => at,
            None => self.standing(room).await?,
        };
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

pub(super) async fn read<E>(
    link: &Link,
    name: &str,
    room: &RoomName,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<Result<(), E>, Trouble> {
    let context = connect(link).await?;
    let stream = context.get_stream(name).await.map_err(Trouble::new)?;
    let subject = subject(name, room);
    let newest = match stream.get_last_raw_message_by_subject(&subject).await {
        Ok(newest) => newest.sequence,
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(Ok(())),
        Err(error) => return Err(Trouble::new(error)),
    };
    let config = consumer::pull::OrderedConfig {
        deliver_policy: DeliverPolicy::All,
        filter_subject: subject,
        ..consumer::pull::OrderedConfig::default()
    };
    let consumer = stream.create_consumer(config).await.map_err(Trouble::new)?;
    let mut messages = consumer.messages().await.map_err(Trouble::new)?;
    loop {
        let next = tokio::time::timeout(SILENT_FOR, messages.next()).await;
        let Ok(Some(message)) = next else {
            return Err(Trouble::new("the stream went silent before its end"));
        };
        let message = message.map_err(Trouble::new)?;
        if let Err(enough) = take(&message.payload) {
            return Ok(Err(enough));
        }
        let info = message.info().map_err(|error| Trouble::new(error.to_string()))?;
        if info.stream_sequence >= newest {
            return Ok(Ok(()));
        }
    }
}
