//! How messages are written: the envelope of NATS and webhooks, the bodies of the Kafka topics, and
//! the CloudEvents attributes that go beside both.
//!
//! Everything here is a function of the message, so a repeat is the same bytes (but for the
//! signature of a pass). The shapes are a contract with clients that exist: fields may be added,
//! none may go or change its type.

mod envelope;

use serde::Serialize;
use waitroom_core::Ending;
use waitroom_core::when::utc;

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
    let mut all = Vec::with_capacity(7);
    all.extend([
        ("specversion", "1.0".to_owned()),
        ("id", message.id.to_string()),
        ("source", format!("/rooms/{}", message.id.room)),
        ("type", message.kind.event_type().to_owned()),
        ("time", utc(message.at.0)),
    ]);
    if let Some(about) = &message.about {
        all.push(("subject", about.id.to_string()));
        all.extend(about.seq.map(|seq| ("seq", seq.to_string())));
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
#[derive(Debug, Default, Serialize)]
struct QueueEvent<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    admitted_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkout_token: Option<&'a str>,
    event_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    joined_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_at: Option<&'a str>,
    /// There, and null for a place that was moved from another lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    session_id: &'a str,
    timestamp: &'a str,
    user_id: &'a str,
}

/// Which of the three topics a message belongs on, and its body there. Sessions that the checkout
/// itself ended are not told back to it.
pub fn queue_event(message: &Message, ready: ReadyToken) -> Option<(Topic, Vec<u8>)> {
    let about = message.about.as_ref()?;
    let (at, id) = (utc(message.at.0), about.id.to_string());
    let mut body = QueueEvent {
        event_id: message.id.room.as_str(),
        session_id: &id,
        timestamp: &at,
        user_id: about.user.as_deref().unwrap_or_default(),
        ..QueueEvent::default()
    };
    let topic = match &message.fact {
        Fact::Enqueued { position, joined_at, .. } => {
            body.position = Some(*position);
            body.joined_at = Some(utc(joined_at.0));
            Topic::Joined
        }
        Fact::Admitted { expires_at, pass, .. } => {
            let pass = pass.as_deref().filter(|_| ready == ReadyToken::On);
            body.checkout_token = Some(pass.unwrap_or_default());
            body.admitted_at = Some(&at);
            body.expires_at = Some(utc(expires_at.0));
            Topic::Ready
        }
        Fact::PlaceOver { ending, .. } => {
            body.reason = Some(match ending {
                Some(Ending::Left) => "user_left",
                Some(Ending::Silent | Ending::NoShow) => "timeout",
                _ => "expired",
            });
            body.left_at = Some(&at);
            Topic::Left
        }
        Fact::SessionOver {
            ending: ending @ (Ending::SessionOver | Ending::Revoked | Ending::Left),
        } => {
            body.reason = Some(if *ending == Ending::Left { "user_left" } else { "expired" });
            body.left_at = Some(&at);
            Topic::Left
        }
        _ => return None,
    };
    let body = serde_json::to_vec(&body).expect("a body has no key that JSON could refuse");
    Some((topic, body))
}
