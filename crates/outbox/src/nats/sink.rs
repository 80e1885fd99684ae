//! Publishes to JetStream, in the order of the log.
//!
//! Order is the hard part. Messages are sent many at a time, and if one is lost on the way while a
//! later one arrives, a plain retry would put it behind. So every message says which sequence the
//! stream must be at (`Nats-Expected-Last-Sequence`): when one is missing, the stream refuses all
//! behind it. After any trouble the stream is asked first: it knows by the message id what it holds
//! already, and answers so.
//! Not so a stream with replicas: some servers (2.10, 2.11) note an id there before they look at the
//! sequence, and from then on call the message a duplicate that they never held. Such a stream is
//! not asked but told again, one message at a time; and an id without a sequence is not believed.
//! One batch at a time is on its way: two rooms share a stream, and its sequence.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::context::{PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::{self, stream};
use tokio::sync::{Mutex, OnceCell};

use super::{Link, connect};
use crate::body::{self, ReadyToken};
use crate::message::{Kind, Message};
use crate::sink::{Sink, Trouble};

/// How streams are made where there are none yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streams {
    pub replicas: usize,
    /// How long messages are kept.
    pub keep: Duration,
    /// How long a stream remembers message ids: a repeat within this is dropped by the server.
    pub remember: Duration,
}

#[derive(Debug)]
pub struct NatsSink {
    link: Link,
    ready: ReadyToken,
    streams: Streams,
    context: OnceCell<jetstream::Context>,
    state: Mutex<State>,
}

/// What is known of the streams. Only a batch that went well leaves it settled: a delivery that
/// was dropped on its way may have sent anything.
#[derive(Debug, Default)]
struct State {
    settled: bool,
    made: bool,
    last: [u64; LINES.len()],
}

/// A stream, and the first part of its subjects.
const LINES: [(&str, &str); 3] =
    [("POSITION_EVENTS", "position"), ("SESSION_EVENTS", "session"), ("QUEUE_EVENTS", "queue")];

/// What clients of the single-room interface listen for; see `docs/adapters.md`.
const CAPACITY: &str = "waiting_room.capacity_increased";
const SINGLE_ROOM: &str = "default";

/// Times one message is tried again because somebody else published to the stream.
const OTHERS_MAX: u32 = 20;

impl NatsSink {
    pub fn new(link: Link, ready: ReadyToken, streams: Streams) -> NatsSink {
        let (context, state) = (OnceCell::new(), Mutex::default());
        NatsSink { link, ready, streams, context, state }
    }

    async fn deliver_in(&self, state: &mut State, batch: &[Message]) -> Result<(), Trouble> {
        let context = self.context.get_or_try_init(|| connect(&self.link)).await?;
        let settled = std::mem::replace(&mut state.settled, false);
        if !state.made {
            self.make_streams(context).await?;
            state.made = true;
        }
        let kept: Vec<(usize, &Message)> =
            batch.iter().filter_map(|it| Some((line_of(it.kind)?, it))).collect();
        let behind = |sent: &Result<(), PublishError>| {
            sent.as_ref().is_err_and(|it| it.kind() == PublishErrorKind::WrongLastSequence)
        };
        let mut sent = Err(PublishError::new(PublishErrorKind::WrongLastSequence));
        if settled {
            sent = self.all_at_once(context, state, &kept).await;
        }
        if behind(&sent) {
            sent = match may_be_asked(context).await {
                Ok(true) => self.what_is_missing(context, state, &kept).await,
                Ok(false) => sent,
                Err(error) => Err(error),
            };
        }
        if behind(&sent) {
            sent = self.one_by_one(context, state, &kept).await;
        }
        if let Err(error) = sent {
            // Gone, or a server that lost its memory: the next try makes them anew.
            state.made = false;
            return Err(Trouble::new(error));
        }
        state.settled = true;
        self.tell_the_single_room(context, batch).await;
        Ok(())
    }

    /// The fast way: every message names the sequence that it expects to follow.
    async fn all_at_once(
        &self,
        context: &jetstream::Context,
        state: &mut State,
        kept: &[(usize, &Message)],
    ) -> Result<(), PublishError> {
        let mut last = state.last;
        let mut acks = Vec::with_capacity(kept.len());
        for (line, message) in kept {
            acks.push(self.send(context, message, last[*line]).await?);
            last[*line] += 1;
        }
        for ack in acks {
            if held(ack.await?)?.duplicate {
                // It holds some of these already, so the count is off for those behind.
                return Err(PublishError::new(PublishErrorKind::WrongLastSequence));
            }
        }
        state.last = last;
        Ok(())
    }

    /// The careful way, after a start and after trouble: asks the streams what they hold already,
    /// and sends the rest.
    async fn what_is_missing(
        &self,
        context: &jetstream::Context,
        state: &mut State,
        kept: &[(usize, &Message)],
    ) -> Result<(), PublishError> {
        let missing = self.missing(context, kept).await?;
        for line in 0..LINES.len() {
            state.last[line] = last_of(context, line).await?;
        }
        self.all_at_once(context, state, &missing).await
    }

    /// What the streams do not hold, or no longer know of. Every message is sent as one that must
    /// follow a sequence that there never is: a stream looks for its id first, and so says of each
    /// whether it is there, and takes none.
    async fn missing<'a>(
        &self,
        context: &jetstream::Context,
        kept: &[(usize, &'a Message)],
    ) -> Result<Vec<(usize, &'a Message)>, PublishError> {
        let mut acks = Vec::with_capacity(kept.len());
        for (_, message) in kept {
            acks.push(self.send(context, message, u64::MAX).await?);
        }
        let mut missing = Vec::new();
        for (ack, kept) in acks.into_iter().zip(kept) {
            match ack.await {
                Ok(ack) => {
                    held(ack)?;
                }
                Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => {
                    missing.push(*kept);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(missing)
    }

    /// The slow way, when somebody else publishes to a stream as well, or it has replicas.
    async fn one_by_one(
        &self,
        context: &jetstream::Context,
        state: &mut State,
        kept: &[(usize, &Message)],
    ) -> Result<(), PublishError> {
        for line in 0..LINES.len() {
            state.last[line] = last_of(context, line).await?;
        }
        for (line, message) in kept {
            let mut others = 0;
            let ack = loop {
                match self.send(context, message, state.last[*line]).await?.await {
                    Err(error)
                        if error.kind() == PublishErrorKind::WrongLastSequence
                            && others < OTHERS_MAX =>
                    {
                        others += 1;
                        state.last[*line] = last_of(context, *line).await?;
                    }
                    ack => break held(ack?)?,
                }
            };
            state.last[*line] = state.last[*line].max(ack.sequence);
        }
        Ok(())
    }

    async fn send(
        &self,
        context: &jetstream::Context,
        message: &Message,
        last: u64,
    ) -> Result<PublishAckFuture, PublishError> {
        let mut headers = HeaderMap::new();
        for (name, value) in body::attributes(message) {
            headers.insert(format!("ce-{name}").as_str(), value.as_str());
        }
        headers.insert("content-type", "application/json");
        let publish = PublishMessage::build()
            .headers(headers)
            .message_id(message.id.to_string())
            .expected_last_sequence(last)
            .payload(body::envelope(message, self.ready).into());
        context.send_publish(body::event_type(message.kind), publish).await
    }

    async fn make_streams(&self, context: &jetstream::Context) -> Result<(), Trouble> {
        for (name, part) in LINES {
            let config = stream::Config {
                name: name.to_owned(),
                subjects: vec![format!("waitingroom.{part}.>")],
                num_replicas: self.streams.replicas,
                max_age: self.streams.keep,
                duplicate_window: self.streams.remember,
                ..stream::Config::default()
            };
            context.get_or_create_stream(config).await.map_err(Trouble::new)?;
        }
        Ok(())
    }

    /// Best effort, as it always was: a plain message to whoever listens now.
    async fn tell_the_single_room(&self, context: &jetstream::Context, batch: &[Message]) {
        let room = |it: &&Message| it.id.room.as_str() == SINGLE_ROOM && it.kind == Kind::Capacity;
        for message in batch.iter().filter(room) {
            let nanoseconds = u128::from(message.at.0) * 1_000_000;
            let said = context.client().publish(CAPACITY, nanoseconds.to_string().into()).await;
            if let Err(error) = said {
                tracing::debug!(%error, "nobody heard of more capacity");
            }
        }
    }
}

impl Sink for NatsSink {
    async fn deliver(&self, batch: &[Message]) -> Result<(), Trouble> {
        let mut state = self.state.lock().await;
        self.deliver_in(&mut state, batch).await
    }
}

fn line_of(kind: Kind) -> Option<usize> {
    let (part, _) = kind.word().split_once('.').expect("kinds are of two words");
    LINES.iter().position(|(_, of)| *of == part)
}

/// An acknowledgement, if it is one. A duplicate without a sequence is an id that the stream noted
/// and no message: it may be on its way to the replicas, or it was refused. The stream forgets the
/// id with its window, or knows the sequence by then; until then it is not held.
fn held(ack: PublishAck) -> Result<PublishAck, PublishError> {
    if ack.duplicate && ack.sequence == 0 {
        let why = format!("{} knows the id of a message that it does not hold (yet)", ack.stream);
        return Err(PublishError::with_source(PublishErrorKind::Other, why));
    }
    Ok(ack)
}

/// Whether asking leaves no trace: only where no stream has replicas, as it is now and not as it
/// was configured, since an operator may have scaled it.
async fn may_be_asked(context: &jetstream::Context) -> Result<bool, PublishError> {
    for line in 0..LINES.len() {
        if info_of(context, line).await?.config.num_replicas > 1 {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn last_of(context: &jetstream::Context, line: usize) -> Result<u64, PublishError> {
    Ok(info_of(context, line).await?.state.last_sequence)
}

async fn info_of(context: &jetstream::Context, line: usize) -> Result<stream::Info, PublishError> {
    let gone = |error| PublishError::with_source(PublishErrorKind::StreamNotFound, error);
    let stream = context.get_stream(LINES[line].0).await.map_err(gone)?;
    Ok(stream.cached_info().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_without_a_sequence_is_not_held() {
        let ack = |text| serde_json::from_str::<PublishAck>(text).expect("an acknowledgement");
        assert!(held(ack(r#"{"stream":"S","seq":7}"#)).is_ok());
        assert!(held(ack(r#"{"stream":"S","seq":7,"duplicate":true}"#)).is_ok());
        let why = held(ack(r#"{"stream":"S","seq":0,"duplicate":true}"#)).expect_err("not held");
        assert_eq!(why.kind(), PublishErrorKind::Other);
    }

    #[test]
    fn every_kind_but_the_single_rooms_own_has_its_stream() {
        for kind in Kind::ALL {
            assert_eq!(line_of(*kind).is_none(), *kind == Kind::Capacity, "{kind:?}");
        }
    }
}
