//! What a checkout says of a session, from whichever bus it comes.
//!
//! Lives here: reading it ([`read`]), acting on it with patience ([`hear`]), and the reasons why
//! nothing came of it ([`Reason`]). Stays out: buses (`nats/source.rs`, `kafka/source.rs`) and
//! rooms, which are behind [`Checkout`].
//! Promise: a message is acknowledged after the log holds its effect, or after it is in the
//! dead-letter place with its reason. None is lost, none blocks those behind it for long, and one
//! that comes twice ends a session once.

use std::convert::Infallible;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};
use waitroom_core::id::TicketId;
use waitroom_watch::Counter;

use crate::backoff::Backoff;
use crate::names::Pending;
use crate::sink::Trouble;

/// After trouble with a bus.
pub(crate) const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Whether a bus can be heard; said once when it cannot, and once when it can again.
#[derive(Debug)]
pub(crate) struct Hearing {
    bus: &'static str,
    away: AtomicBool,
}

impl Hearing {
    pub(crate) fn on(bus: &'static str) -> Hearing {
        Hearing { bus, away: AtomicBool::new(false) }
    }

    /// Says whether this is the first word of an outage.
    pub(crate) fn lost(&self, trouble: &Trouble) -> bool {
        let first = !self.away.swap(true, Ordering::Relaxed);
        if first {
            tracing::warn!(source = self.bus, %trouble, "checkouts cannot be heard; trying again");
        }
        first
    }

    /// Says whether there was an outage, which is over.
    pub(crate) fn found(&self) -> bool {
        let was_away = self.away.swap(false, Ordering::Relaxed);
        if was_away {
            tracing::info!(source = self.bus, "checkouts are heard again");
        }
        was_away
    }

    /// Listens for ever: again after every trouble.
    pub(crate) async fn keep<L>(&self, mut listen: impl FnMut() -> L)
    where
        L: Future<Output = Result<Infallible, Trouble>>,
    {
        loop {
            let Err(trouble) = listen().await;
            self.lost(&trouble);
            sleep(AGAIN_AFTER).await;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    Failed,
    Expired,
}

/// What the three are called on a bus: topics of Kafka, subjects of NATS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcomes {
    pub completed: String,
    pub failed: String,
    pub expired: String,
}

impl Outcomes {
    pub fn names(&self) -> [&str; 3] {
        [&self.completed, &self.failed, &self.expired]
    }

    pub fn of(&self, name: &str) -> Option<Outcome> {
        let at = self.names().iter().position(|it| *it == name)?;
        Some([Outcome::Completed, Outcome::Failed, Outcome::Expired][at])
    }
}

/// One message, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub session: TicketId,
    /// The room, where the message names one.
    pub room: Option<String>,
    pub outcome: Outcome,
}

macro_rules! reasons {
    ($($reason:ident $word:literal;)*) => {
        /// Why nothing came of a message; for figures and for the dead-letter place.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reason {
            $($reason,)*
        }

        impl Reason {
            pub const ALL: &[Reason] = &[$(Reason::$reason,)*];

            pub fn word(self) -> &'static str {
                match self { $(Reason::$reason => $word,)* }
            }
        }
    };
}

reasons! {
    TooLarge "too_large";
    NotJson "not_json";
    NoSession "no_session_id";
    NotASession "not_a_session_id";
    UnknownSession "unknown_session";
    OtherRoom "other_room";
    NotInside "not_inside";
    AlreadyOver "already_over";
    Forgotten "forgotten";
    RoomUnavailable "room_unavailable";
    UnknownTopic "unknown_topic";
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Why a session was not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotEnded {
    /// And never will be by this message.
    Never(Reason),
    /// The room cannot do it now.
    Later,
}

/// Where sessions are ended: the same way that the API goes.
pub trait Checkout: Send + Sync + 'static {
    /// `Ok` once the log holds it.
    fn end<'a>(&'a self, said: &'a Said) -> Pending<'a, Result<(), NotEnded>>;
}

/// The contract's bodies have five short fields. Whatever is larger is no such body.
const BODY_BYTES_MAX: usize = 16 << 10;

/// How long a message waits for its room before it goes to the dead letters: longer than a room
/// takes to change its owner, shorter than anybody's patience with the rest of the queue.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads a body of the contract.
pub fn read(outcome: Outcome, body: &[u8]) -> Result<Said, Reason> {
    if body.len() > BODY_BYTES_MAX {
        return Err(Reason::TooLarge);
    }
    let said: Value = serde_json::from_slice(body).map_err(|_| Reason::NotJson)?;
    let text = |key: &str| said.get(key).and_then(Value::as_str);
    let session = text("session_id").ok_or(Reason::NoSession)?;
    let session = TicketId::parse(session).map_err(|_| Reason::NotASession)?;
    let room = text("event_id").filter(|room| !room.is_empty()).map(str::to_owned);
    Ok(Said { session, room, outcome })
}

/// Reads a message and does what it says, trying again while the room is away.
pub async fn hear(
    checkout: &dyn Checkout,
    outcome: Option<Outcome>,
    body: &[u8],
) -> Result<(), Reason> {
    let said = read(outcome.ok_or(Reason::UnknownTopic)?, body)?;
    let seed = u128::from_be_bytes(said.session.to_bytes()) as u64;
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2), seed);
    let until = Instant::now() + PATIENCE;
    loop {
        match checkout.end(&said).await {
            Ok(()) => return Ok(()),
            Err(NotEnded::Never(reason)) => return Err(reason),
            Err(NotEnded::Later) if Instant::now() >= until => return Err(Reason::RoomUnavailable),
            Err(NotEnded::Later) => sleep(backoff.wait()).await,
        }
    }
}

/// What came in, counted.
#[derive(Debug)]
pub struct SourceFigures {
    /// Sessions ended.
    pub ended: Counter,
    refused: [Counter; Reason::ALL.len()],
}

impl Default for SourceFigures {
    fn default() -> SourceFigures {
        let refused = std::array::from_fn(|_| Counter::default());
        SourceFigures { ended: Counter::default(), refused }
    }
}

impl SourceFigures {
    pub(crate) fn note(&self, heard: &Result<(), Reason>) {
        match heard {
            Ok(()) => self.ended.one(),
            Err(reason) => self.refused[*reason as usize].one(),
        }
    }

    /// Messages of which nothing came, by the reason.
    pub fn refused(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::ALL.iter().map(|reason| (*reason, self.refused[*reason as usize].get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outage_is_said_once_and_its_end_too() {
        let hearing = Hearing::on("test");
        let trouble = Trouble::new("away");
        assert!(!hearing.found(), "nothing was wrong");
        for _ in 0..2 {
            assert_eq!([hearing.lost(&trouble), hearing.lost(&trouble)], [true, false]);
            assert_eq!([hearing.found(), hearing.found()], [true, false]);
        }
    }

    const SESSION: &str = "00112233-4455-6677-8899-aabbccddeeff";

    #[test]
    fn a_body_of_the_contract_is_read_and_others_say_why_not() {
        let good = format!(r#"{{"session_id":"{SESSION}","user_id":"u","event_id":"spring"}}"#);
        let said = read(Outcome::Completed, good.as_bytes()).expect("it is good");
        assert_eq!(said.session.to_string(), SESSION);
        assert_eq!(said.room.as_deref(), Some("spring"));
        let without_room = format!(r#"{{"session_id":"{SESSION}","event_id":""}}"#);
        assert_eq!(read(Outcome::Failed, without_room.as_bytes()).expect("good").room, None);
        let large = format!(r#"{{"session_id":"{SESSION}","x":"{}"}}"#, "x".repeat(20_000));
        for (body, reason) in [
            ("", Reason::NotJson),
            ("{", Reason::NotJson),
            ("[]", Reason::NoSession),
            ("{\"session_id\":7}", Reason::NoSession),
            ("{\"session_id\":\"seven\"}", Reason::NotASession),
            (&large, Reason::TooLarge),
        ] {
            assert_eq!(read(Outcome::Expired, body.as_bytes()), Err(reason), "{body}");
        }
    }

    #[test]
    fn names_on_the_bus_have_one_meaning_each() {
        let named = |it: &str| it.to_owned();
        let outcomes = Outcomes { completed: named("c"), failed: named("f"), expired: named("e") };
        assert_eq!(outcomes.of("f"), Some(Outcome::Failed));
        assert_eq!(outcomes.of("e"), Some(Outcome::Expired));
        assert_eq!(outcomes.of("x"), None);
    }

    /// A room that is away for a while, or for good.
    struct Away(std::sync::atomic::AtomicU32);

    impl Checkout for Away {
        fn end<'a>(&'a self, _: &'a Said) -> Pending<'a, Result<(), NotEnded>> {
            use std::sync::atomic::Ordering::Relaxed;
            let left = self.0.load(Relaxed);
            self.0.store(left.saturating_sub(1), Relaxed);
            let ended = if left == 0 { Ok(()) } else { Err(NotEnded::Later) };
            Box::pin(std::future::ready(ended))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_room_that_is_away_is_waited_for_but_not_for_ever() {
        let body = format!(r#"{{"session_id":"{SESSION}"}}"#);
        let hear = async |away: u32| {
            super::hear(&Away(away.into()), Some(Outcome::Completed), body.as_bytes()).await
        };
        assert_eq!(hear(0).await, Ok(()));
        assert_eq!(hear(5).await, Ok(()));
        let began = Instant::now();
        assert_eq!(hear(u32::MAX).await, Err(Reason::RoomUnavailable));
        assert!(began.elapsed() < PATIENCE + Duration::from_secs(3));
    }
}
