//! Webhooks: events posted to an address, signed, one after another, until they are taken.
//!
//! A room's messages go one at a time and in the order of its log: the next one leaves when the one
//! before was taken or laid aside. Rooms do not wait for each other.
//!
//! What an answer means:
//! - 2xx: taken.
//! - 400, 413, 415, 422: read, and refused for what it is. It is laid aside at once as a dead letter
//!   (`dead.rs`), and the next one goes.
//! - anything else, redirects included, or no answer in time: tried again with growing waits, not
//!   before `Retry-After` (within [`RETRY_AFTER_MAX`]), for `patience`; then it is a dead letter.
//!   So an endpoint that refuses everything costs one letter per patience and room, and the rest
//!   waits in the log.
//! - nobody there (no name, no connection, an address that we may not reach): it waits. A message
//!   that nobody saw is not to blame.
//!
//! Lives here: those rules. Stays out: sockets (`line.rs`), which addresses may be reached
//! (`reach.rs`), signatures (`sign.rs`), and the waits themselves, which are the relay's.

mod dead;
mod line;
mod reach;
mod sign;

pub use dead::{DeadLetter, DeadLetters, LetterName};
pub use line::{Line, Manners, Resolve, SystemResolver, Unusable};
pub use reach::{Reach, is_public};
pub use sign::{Secrets, SecretsError};

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;
use waitroom_store::{Clock, RoomName};

use crate::body::{self, ReadyToken};
use crate::message::{Kind, Message, MessageId};
use crate::sink::{Sink, Trouble};

/// The longest that an endpoint may ask us to stay away. Longer is an outage, and we look again.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(15 * 60);

/// Carries one request to the endpoint and says what came back.
pub trait Post: Send + Sync + 'static {
    fn post(
        &self,
        headers: HeaderMap,
        body: Bytes,
    ) -> impl Future<Output = Result<Answer, Unheard>> + Send;
}

impl<P: Post> Post for Arc<P> {
    fn post(
        &self,
        headers: HeaderMap,
        body: Bytes,
    ) -> impl Future<Output = Result<Answer, Unheard>> + Send {
        P::post(self, headers, body)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub retry_after: Option<Duration>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unheard {
    /// Nobody can have seen the message.
    Away(String),
    /// It may have been seen, but no answer came, or not in time.
    Silent(String),
}

/// What an attempt comes to.
#[derive(Debug)]
enum Verdict {
    Taken,
    Refused(String),
    Failing { why: String, wait: Duration },
    Away(String),
}

#[derive(Debug)]
pub struct Webhook<P: Post> {
    pub post: P,
    pub secrets: Secrets,
    pub ready: ReadyToken,
    /// How long one message is tried before it is laid aside.
    pub patience: Duration,
    pub dead: Arc<DeadLetters>,
    pub clock: Wall,
    /// The message that each room is stuck with. Lost with the process: then patience begins anew.
    pub stuck: Mutex<BTreeMap<RoomName, Stuck>>,
}

/// Wall time, for signatures and for people.
#[derive(Clone)]
pub struct Wall(pub Arc<dyn Clock>);

impl std::fmt::Debug for Wall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wall")
    }
}

#[derive(Debug)]
pub struct Stuck {
    id: MessageId,
    since: Instant,
    since_ms: u64,
    tries: u32,
}

impl<P: Post> Webhook<P> {
    async fn attempt(&self, id: &str, about: &[(String, String)], body: Bytes) -> Verdict {
        let at_s = self.clock.0.wall_ms() / 1_000;
        let signature = match self.secrets.sign(id, at_s, &body) {
            Ok(signature) => signature,
            Err(error) => return Verdict::Away(error.to_string()),
        };
        let mut headers = HeaderMap::new();
        let mut put = |name: &str, value: &str| {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
                headers.insert(name, value);
            }
        };
        put("content-type", "application/json");
        put("user-agent", concat!("waitroom/", env!("CARGO_PKG_VERSION")));
        put("webhook-id", id);
        put("webhook-timestamp", &at_s.to_string());
        put("webhook-signature", &signature);
        for (name, value) in about {
            put(&format!("ce-{name}"), value);
        }
        judge(self.post.post(headers, body).await)
    }

    /// Tells one message, or lays it aside when its time is up.
    async fn tell(&self, message: &Message) -> Result<(), Trouble> {
        let (id, about, body) = written(message, self.ready);
        let verdict = self.attempt(&id, &about, Bytes::from(body.clone())).await;
        let (why, wait, give_up) = match verdict {
            Verdict::Taken => {
                self.unstick(&message.id.room);
                // It was a letter once, and was told again from the log.
                self.dead.take_away(&LetterName::of(&message.id)).await.map_err(Trouble::new)?;
                return Ok(());
            }
            Verdict::Refused(why) => (why, Duration::ZERO, true),
            Verdict::Failing { why, wait } => (why, wait, self.is_out_of_patience(&message.id)),
            Verdict::Away(why) => (why, Duration::ZERO, false),
        };
        if !give_up {
            return Err(Trouble { wait, ..Trouble::new(why) });
        }
        let dead_at_ms = self.clock.0.wall_ms();
        let stuck = self.unstick(&message.id.room).filter(|it| it.id == message.id);
        let letter = DeadLetter {
            room: message.id.room.to_string(),
            head: message.id.head,
            index: message.id.index,
            kind: message.kind.word().to_owned(),
            about,
            body: String::from_utf8(body).expect("an envelope is JSON"),
            why,
            tries: stuck.as_ref().map_or(1, |it| it.tries),
            first_tried_at_ms: stuck.map_or(dead_at_ms, |it| it.since_ms),
            dead_at_ms,
        };
        let (room, why) = (&message.id.room, letter.why.clone());
        self.dead.bury(letter).await.map_err(Trouble::new)?;
        tracing::error!(%room, %id, %why, "a webhook did not take a message; it is a dead letter");
        Ok(())
    }

    /// Counts a failed try, and says whether it was the last.
    fn is_out_of_patience(&self, id: &MessageId) -> bool {
        let mut stuck = self.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Stuck {
            id: id.clone(),
            since: Instant::now(),
            since_ms: self.clock.0.wall_ms(),
            tries: 0,
        };
        let of_room = stuck.entry(id.room.clone()).or_insert_with(fresh);
        if of_room.id != *id {
            *of_room = fresh();
        }
        of_room.tries += 1;
        of_room.since.elapsed() >= self.patience
    }

    fn unstick(&self, room: &RoomName) -> Option<Stuck> {
        self.stuck.lock().unwrap_or_else(PoisonError::into_inner).remove(room)
    }

    /// Sends a dead letter once more, with its old id; it goes when it is taken. Outside the order
    /// of its room: what came after it was told long ago.
    pub async fn send_again(&self, name: &LetterName) -> Result<(), NotSentAgain> {
        let found = self.dead.get(name).await.map_err(NotSentAgain::Shelf)?;
        let letter = found.ok_or(NotSentAgain::NoSuchLetter)?;
        let id = format!("{}:{}:{}", letter.room, letter.head, letter.index);
        match self.attempt(&id, &letter.about, Bytes::from(letter.body)).await {
            Verdict::Taken => {
                self.dead.take_away(name).await.map_err(NotSentAgain::Shelf)?;
                Ok(())
            }
            Verdict::Refused(why) | Verdict::Failing { why, .. } | Verdict::Away(why) => {
                Err(NotSentAgain::NotTaken(why))
            }
        }
    }
}

/// Why a letter is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotSentAgain {
    NoSuchLetter,
    NotTaken(String),
    Shelf(String),
}

impl<P: Post> Sink for Webhook<P> {
    async fn deliver(&self, batch: &[Message]) -> Result<(), Trouble> {
        for (done, message) in batch.iter().enumerate() {
            // For clients of the single-room interface on NATS, and for nobody else.
            if message.kind != Kind::Capacity {
                self.tell(message).await.map_err(|trouble| trouble.after(done))?;
            }
        }
        Ok(())
    }
}

fn written(message: &Message, ready: ReadyToken) -> (String, Vec<(String, String)>, Vec<u8>) {
    let about = body::attributes(message).into_iter().map(|(name, value)| (name.to_owned(), value));
    (message.id.to_string(), about.collect(), body::envelope(message, ready))
}

fn judge(heard: Result<Answer, Unheard>) -> Verdict {
    match heard {
        Ok(Answer { status: 200..=299, .. }) => Verdict::Taken,
        Ok(Answer { status: status @ (400 | 413 | 415 | 422), .. }) => {
            Verdict::Refused(format!("the endpoint refused it with {status}"))
        }
        Ok(Answer { status, retry_after }) => {
            let why = match status {
                300..=399 => format!("the endpoint answers {status}; redirects are not followed"),
                _ => format!("the endpoint answers {status}"),
            };
            let wait = retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
            Verdict::Failing { why, wait }
        }
        Err(Unheard::Silent(why)) => Verdict::Failing { why, wait: Duration::ZERO },
        Err(Unheard::Away(why)) => Verdict::Away(why),
    }
}
