//! Publishes to JetStream, in the order of the log.
//!
//! Order is the hard part. Messages are sent many at a time, and if one is lost on the way, or
//! refused, while a later one is taken, a plain retry would put it behind. So messages go in a
//! *run*: each says which message the stream must end with (`Nats-Expected-Last-Msg-Id`) and at
//! which sequence. When one is missing, the stream refuses all behind it. The sequence alone would
//! not do: one message of somebody else's, and the place of the one that was refused for it is
//! taken, so that the next fits again.
//! That makes an acknowledgement speak for all before it: the stream took this one, so it ended
//! with the one before. Only the last of a batch asks for one.
//!
//! A run goes on from batch to batch, of all rooms, and several are under way at once; a room never
//! has batches in two runs (`under_way.rs`). It breaks at the first trouble. The next batch begins
//! another, carefully: the stream is asked first. It knows by the message id what it holds already,
//! and answers so.
//! Not so a stream with replicas: some servers (2.10, 2.11) note an id there before they look at the
//! sequence, and from then on call the message a duplicate that they never held. Such a stream is
//! not asked but told again, one message at a time; and an id without a sequence is not believed.
//!
//! Lives here: runs, and how one begins. Stays out: what a message looks like (`written.rs`).

use std::sync::atomic::{AtomicU64, Ordering};

use async_nats::jetstream;
use async_nats::jetstream::context::{PublishAckFuture, PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::subject::Subject;
use tokio::sync::{Mutex, OnceCell, Semaphore};
use tokio::task::unconstrained;
use tokio::time::timeout;

use super::streams::{Asking, LINES, Streams, last_of, line_of};
use super::under_way::UnderWay;
use super::written::{End, headers};
use super::{ACK_WITHIN, Link, connect};
use crate::body::{self, ReadyToken};
use crate::message::{Kind, Message};
use crate::sink::{Sink, Trouble};

#[derive(Debug)]
pub struct NatsSink {
    link: Link,
    ready: ReadyToken,
    streams: Streams,
    context: OnceCell<jetstream::Context>,
    /// Held while messages are sent, so that each knows the one before it; not while their
    /// acknowledgement is awaited.
    state: Mutex<State>,
    under_way: UnderWay,
    /// Batches under way at once, of all rooms together, so that many rooms do not send more than a
    /// server buffers for a stream.
    places: Semaphore,
    /// The newest run that something went wrong in.
    broken: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// The newest run; the first is 1.
    run: u64,
    /// Whatever was sent in it was sent whole: a delivery that was dropped on its way may have
    /// sent anything.
    whole: bool,
    /// Where each stream ends when it has taken all that was sent.
    ends: [End; LINES.len()],
}

/// What clients of the single-room interface listen for; see `docs/adapters.md`.
const CAPACITY: &str = "waiting_room.capacity_increased";
const SINGLE_ROOM: &str = "default";

/// Times one message is tried again because somebody else published to the stream.
const OTHERS_MAX: u32 = 20;

/// Messages that have a stream, and which.
type Kept<'a> = [(usize, &'a Message)];

impl NatsSink {
    pub fn new(link: Link, ready: ReadyToken, streams: Streams) -> NatsSink {
        let (context, state, under_way) = (OnceCell::new(), Mutex::default(), UnderWay::default());
        let (places, broken) = (Semaphore::new(Self::AT_ONCE), AtomicU64::new(0));
        NatsSink { link, ready, streams, context, state, under_way, places, broken }
    }

    async fn deliver_kept(&self, batch: &[Message], kept: &Kept<'_>) -> Result<(), Trouble> {
        let Some(first) = batch.first() else { return Ok(()) };
        // Before the lock, so that whoever has a place can have the lock as well.
        let _place = self.places.acquire().await.expect("nobody closes it");
        let mut state = self.state.lock().await;
        let stay = self.under_way.enter(&first.id.room);
        let context = self.context.get_or_try_init(|| connect(&self.link)).await?;
        let run = state.run;
        if !state.whole || self.broken.load(Ordering::Relaxed) >= run {
            return match stay.is_alone() {
                true => self.begin_a_run(context, &mut state, kept).await,
                false => Err(not_yet()),
            };
        }
        if !stay.joins(run) {
            return Err(not_yet());
        }
        let acks = self.send_all(context, &mut state, kept).await.map_err(Trouble::new)?;
        drop(state);
        let Err(error) = all_held(acks).await else { return Ok(()) };
        self.broken.fetch_max(run, Ordering::Relaxed);
        if !is_behind(&error) {
            return Err(Trouble::new(error));
        }
        // Others of the room would have to be called back first, which is not ours to do; and one
        // that is being called back may hold the lock.
        if !stay.is_alone() {
            return Err(not_yet());
        }
        let mut state = self.state.lock().await;
        self.begin_a_run(context, &mut state, kept).await
    }

    /// Sends messages behind one another. Only the last of each stream asks for an answer, which is
    /// about all of them.
    async fn send_all(
        &self,
        context: &jetstream::Context,
        state: &mut State,
        kept: &Kept<'_>,
    ) -> Result<Vec<PublishAckFuture>, PublishError> {
        state.whole = false;
        let last = |line| kept.iter().rposition(|(of, _)| *of == line);
        let last: [Option<usize>; LINES.len()] = std::array::from_fn(last);
        let client = context.client();
        let sending = async {
            let mut acks = Vec::with_capacity(LINES.len());
            for (at, (line, message)) in kept.iter().enumerate() {
                let end = &mut state.ends[*line];
                if last[*line] == Some(at) {
                    acks.push(self.send(context, message, end).await?);
                } else {
                    self.send_unanswered(&client, message, end).await?;
                }
                end.behind(message);
            }
            Ok::<_, PublishError>(acks)
        };
        // Not in small portions: whoever sends has nothing better to do, and a batch is bounded.
        let sent = timeout(ACK_WITHIN, unconstrained(sending)).await;
        let acks = sent.map_err(|_| PublishError::new(PublishErrorKind::TimedOut))??;
        state.whole = true;
        Ok(acks)
    }

    /// After a start and after trouble: nobody knows what the streams hold of these.
    async fn begin_a_run(
        &self,
        context: &jetstream::Context,
        state: &mut State,
        kept: &Kept<'_>,
    ) -> Result<(), Trouble> {
        state.whole = false;
        let asking = self.streams.make(context).await?;
        let mut sent = Err(behind());
        if asking == Asking::LeavesNoTrace {
            sent = self.what_is_missing(context, state, kept).await;
        }
        if sent.as_ref().is_err_and(is_behind) {
            sent = self.one_by_one(context, state, kept).await;
        }
        sent.map_err(Trouble::new)?;
        state.run += 1;
        state.whole = true;
        Ok(())
    }

    /// Asks the streams what they hold already, and sends the rest.
    async fn what_is_missing(
        &self,
        context: &jetstream::Context,
        state: &mut State,
        kept: &Kept<'_>,
    ) -> Result<(), PublishError> {
        let missing = self.missing(context, kept).await?;
        self.find_ends(context, state).await?;
        all_held(self.send_all(context, state, &missing).await?).await
    }

    /// What the streams do not hold, or no longer know of. Every message is sent as one that must
    /// follow a sequence that there never is: a stream looks for its id first, and so says of each
    /// whether it is there, and takes none.
    async fn missing<'a>(
        &self,
        context: &jetstream::Context,
        kept: &Kept<'a>,
    ) -> Result<Vec<(usize, &'a Message)>, PublishError> {
        let mut acks = Vec::with_capacity(kept.len());
        for (_, message) in kept {
            acks.push(self.send(context, message, &End::nowhere()).await?);
        }
        let mut missing = Vec::new();
        for (ack, kept) in acks.into_iter().zip(kept) {
            match ack.await {
                Ok(ack) => {
                    held(ack)?;
                }
                Err(error) if is_behind(&error) => missing.push(*kept),
                Err(error) => return Err(error),
            }
        }
        Ok(missing)
    }

    /// The slow way, when somebody else publishes to a stream as well, when it has replicas, and
    /// when it refuses a message, to learn which and why.
    async fn one_by_one(
        &self,
        context: &jetstream::Context,
        state: &mut State,
        kept: &Kept<'_>,
    ) -> Result<(), PublishError> {
        self.find_ends(context, state).await?;
        for (line, message) in kept {
            let mut others = 0;
            let ack = loop {
                match self.send(context, message, &state.ends[*line]).await?.await {
                    Err(error) if is_behind(&error) && others < OTHERS_MAX => {
                        others += 1;
                        state.ends[*line] = End::at(last_of(context, *line).await?);
                    }
                    ack => break held(ack?)?,
                }
            };
            let end = &mut state.ends[*line];
            *end = End::at(end.sequence.max(ack.sequence));
        }
        Ok(())
    }

    async fn find_ends(
        &self,
        context: &jetstream::Context,
        state: &mut State,
    ) -> Result<(), PublishError> {
        for (line, end) in state.ends.iter_mut().enumerate() {
            *end = End::at(last_of(context, line).await?);
        }
        Ok(())
    }

    async fn send(
        &self,
        context: &jetstream::Context,
        message: &Message,
        end: &End,
    ) -> Result<PublishAckFuture, PublishError> {
        let publish = PublishMessage::build()
            .headers(headers(message, end))
            .payload(body::envelope(message, self.ready).into());
        context.send_publish(subject(message), publish).await
    }

    async fn send_unanswered(
        &self,
        client: &async_nats::Client,
        message: &Message,
        end: &End,
    ) -> Result<(), PublishError> {
        let (headers, body) = (headers(message, end), body::envelope(message, self.ready));
        let sent = client.publish_with_headers(subject(message), headers, body.into());
        sent.await.map_err(|error| PublishError::with_source(PublishErrorKind::Other, error))
    }

    /// Best effort, as it always was: a plain message to whoever listens now.
    async fn tell_the_single_room(&self, batch: &[Message]) {
        let Some(context) = self.context.get() else { return };
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
    /// As many messages as a plain client would have under way. What was begun later is in the same
    /// run, behind what was begun earlier.
    const AT_ONCE: usize = 4;

    async fn deliver(&self, batch: &[Message]) -> Result<(), Trouble> {
        let kept: Vec<(usize, &Message)> =
            batch.iter().filter_map(|it| Some((line_of(it.kind)?, it))).collect();
        self.deliver_kept(batch, &kept).await?;
        self.tell_the_single_room(batch).await;
        Ok(())
    }
}

fn subject(message: &Message) -> Subject {
    Subject::from_static(message.kind.event_type())
}

fn is_behind(error: &PublishError) -> bool {
    use PublishErrorKind::{WrongLastMessageId, WrongLastSequence};
    matches!(error.kind(), WrongLastMessageId | WrongLastSequence)
}

fn behind() -> PublishError {
    PublishError::new(PublishErrorKind::WrongLastSequence)
}

fn not_yet() -> Trouble {
    Trouble::at_once("what the room has under way to the streams has to begin again")
}

/// Whether the streams took these, and with them all that they were sent behind.
async fn all_held(acks: Vec<PublishAckFuture>) -> Result<(), PublishError> {
    for ack in acks {
        if held(ack.await?)?.duplicate {
            // It holds some of these already, so nobody knows where it ends.
            return Err(behind());
        }
    }
    Ok(())
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
}
