//! How messages are written: the envelope of NATS and webhooks, the bodies of the Kafka topics, and
//! the CloudEvents attributes that go beside both.
//!
//! Everything here is a function of the message, so a repeat is the same bytes (but for the
//! signature of a pass). The shapes are a contract with clients that exist: fields may be added,
//! none may go or change its type.

mod envelope;

use std::fmt::{self, Write};

use serde::{Serialize, Serializer};
use waitroom_core::id::TicketId;
use waitroom_core::when::{YEAR_10_000_MS, utc, utc_text};
use waitroom_core::{Ending, Timestamp};

use crate::message::{Fact, Message};

pub use envelope::envelope;

/// Whether passes are written into messages. Whoever reads the bus can then enter as anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyToken {
    On,
    Off,
}

/// The attributes of CloudEvents 1.0 (binary mode), and our own extension `seq`. A sink puts its
/// own prefix before the names: `ce-` on NATS and HTTP, `ce_` on Kafka.
pub fn attributes(message: &Message) -> Vec<(&'static str, String)> {
    fold_attributes(message, Vec::with_capacity(7), |mut all, name, value| {
        all.push((name, value.to_owned()));
        all
    })
}

/// The same one after another, without a text for each: a sink may copy them anyway.
pub(crate) fn fold_attributes<T>(
    message: &Message,
    start: T,
    mut each: impl FnMut(T, &'static str, &str) -> T,
) -> T {
    let mut text = String::with_capacity(64);
    let mut with = |all, name, value: &dyn fmt::Display| {
        text.clear();
        write!(text, "{value}").expect("a text takes what is written");
        each(all, name, &text)
    };
    let mut all = with(start, "specversion", &"1.0");
    all = with(all, "id", &message.id);
    all = with(all, "source", &format_args!("/rooms/{}", message.id.room));
    all = with(all, "type", &message.kind.event_type());
    all = with(all, "time", &utc(message.at.0));
    if let Some(about) = &message.about {
        all = with(all, "subject", &about.id);
        if let Some(seq) = about.seq {
            all = with(all, "seq", &seq);
        }
    }
    all
}

pub(crate) fn ending_word(ending: Ending) -> &'static str {
    match ending {
        Ending::Completed => "completed",
        Ending::Left => "left",
        Ending::Silent => "silent",
        Ending::TooOld => "too_old",
        Ending::NoShow => "no_show",
        Ending::SessionOver => "session_over",
        Ending::CheckoutFailed => "checkout_failed",
        Ending::CheckoutExpired => "checkout_expired",
        Ending::Revoked => "revoked",
    }
}

/// The topics of the checkout's contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    Joined,
    Left,
    Ready,
}

/// What is on the topics. Keys in the order of the alphabet, as they always were; a struct and no
/// map, because a million of these are written while a bus waits.
#[derive(Debug, Serialize)]
struct QueueEvent<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    admitted_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkout_token: Option<&'a str>,
    event_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    joined_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_at: Option<Moment>,
    /// There, and null for a place that was moved from another lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    session_id: Shown<TicketId>,
    timestamp: Moment,
    user_id: &'a str,
}

/// Room for such a body without a pass, so that it is not moved while it grows.
const QUEUE_EVENT_BYTES: usize = 320;

/// Which of the three topics a message belongs on, and its body there. Sessions that the checkout
/// itself ended are not told back to it.
pub fn queue_event(message: &Message, ready: ReadyToken) -> Option<(Topic, Vec<u8>)> {
    let about = message.about.as_ref()?;
    let at = Moment(message.at);
    let mut body = QueueEvent {
        admitted_at: None,
        checkout_token: None,
        event_id: message.id.room.as_str(),
        expires_at: None,
        joined_at: None,
        left_at: None,
        position: None,
        reason: None,
        session_id: Shown(about.id),
        timestamp: at,
        user_id: about.user.as_deref().unwrap_or_default(),
    };
    let topic = match &message.fact {
        Fact::Enqueued { position, joined_at, .. } => {
            body.position = Some(*position);
            body.joined_at = Some(Moment(*joined_at));
            Topic::Joined
        }
        Fact::Admitted { expires_at, pass, .. } => {
            let pass = pass.as_deref().filter(|_| ready == ReadyToken::On);
            body.checkout_token = Some(pass.unwrap_or_default());
            body.admitted_at = Some(at);
            body.expires_at = Some(Moment(*expires_at));
            Topic::Ready
        }
        Fact::PlaceOver { ending, .. } => {
            body.reason = Some(match ending {
                Some(Ending::Left) => "user_left",
                Some(Ending::Silent | Ending::NoShow) => "timeout",
                _ => "expired",
            });
            body.left_at = Some(at);
            Topic::Left
        }
        Fact::SessionOver {
            ending: ending @ (Ending::SessionOver | Ending::Revoked | Ending::Left),
        } => {
            body.reason = Some(if *ending == Ending::Left { "user_left" } else { "expired" });
            body.left_at = Some(at);
            Topic::Left
        }
        _ => return None,
    };
    let mut written = Vec::with_capacity(QUEUE_EVENT_BYTES);
    serde_json::to_writer(&mut written, &body)
        .expect("a body has no key that JSON could refuse, and memory takes it");
    Some((topic, written))
}

/// A moment as it is written, without a text of its own.
#[derive(Clone, Copy, Debug)]
struct Moment(Timestamp);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0.0 >= YEAR_10_000_MS {
            return to.serialize_str(&utc(self.0.0));
        }
        let text = utc_text(self.0.0);
        to.serialize_str(str::from_utf8(&text).expect("digits and signs are ASCII"))
    }
}

/// Something as people read it, without a text of its own.
#[derive(Debug)]
struct Shown<T>(T);

impl<T: fmt::Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}
