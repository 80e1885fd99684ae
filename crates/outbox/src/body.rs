//! How messages are written: the envelope of NATS and webhooks, the bodies of the Kafka topics, and
//! the CloudEvents attributes that go beside both.
//!
//! Everything here is a function of the message, so a repeat is the same bytes (but for the
//! signature of a pass). The shapes are a contract with clients that exist: fields may be added,
//! none may go or change its type.

use serde::Serialize;
use serde_json::{Map, Value};
use waitroom_core::Ending;
use waitroom_core::when::utc;

use crate::message::{Fact, Kind, Message};
use crate::translate::seconds;

/// Whether passes are written into messages. Whoever reads the bus can then enter as anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyToken {
    On,
    Off,
}

/// The attributes of CloudEvents 1.0 (binary mode), and our own extension `seq`. A sink puts its
/// own prefix before the names: `ce-` on NATS and HTTP, `ce_` on Kafka.
pub fn attributes(message: &Message) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("specversion", "1.0".to_owned()),
        ("id", message.id.to_string()),
        ("source", format!("/rooms/{}", message.id.room)),
        ("type", event_type(message.kind)),
        ("time", utc(message.at.0)),
    ];
    if let Some(about) = &message.about {
        all.push(("subject", about.id.to_string()));
        all.extend(about.seq.map(|seq| ("seq", seq.to_string())));
    }
    all
}

/// `waitingroom.position.enqueued.v1`: the subject on NATS, and the type everywhere.
pub fn event_type(kind: Kind) -> String {
    format!("waitingroom.{}.v1", kind.word())
}

#[derive(Debug, Serialize)]
struct Envelope<'a> {
    id: String,
    version: &'static str,
    r#type: &'static str,
    timestamp: String,
    source: &'static str,
    /// A message belongs to the log, and a request that caused it was answered long ago.
    trace_id: Option<&'a str>,
    span_id: Option<&'a str>,
    queue_id: &'a str,
    data: Value,
}

/// The envelope with the facts in it.
pub fn envelope(message: &Message, ready: ReadyToken) -> Vec<u8> {
    let envelope = Envelope {
        id: message.id.to_string(),
        version: "1.0",
        r#type: message.kind.word(),
        timestamp: utc(message.at.0),
        source: "waitroom",
        trace_id: None,
        span_id: None,
        queue_id: message.id.room.as_str(),
        data: data(message, ready),
    };
    serde_json::to_vec(&envelope).expect("an envelope has no key that JSON could refuse")
}

fn data(message: &Message, ready: ReadyToken) -> Value {
    let mut data = Map::new();
    let mut put = |key: &str, value: Value| {
        data.insert(key.to_owned(), value);
    };
    if let Some(about) = &message.about {
        let id = about.id.to_string();
        if !matches!(message.fact, Fact::Enqueued { .. } | Fact::PlaceOver { .. }) {
            put("session_id", id.clone().into());
        }
        put("position_id", id.into());
        put("priority", about.lane.into());
        put("seq", about.seq.into());
        put("user_id", about.user.clone().into());
    }
    match &message.fact {
        Fact::Enqueued { position, waiting, joined_at, metadata } => {
            put("position", (*position).into());
            put("queue_length", (*waiting).into());
            put("enqueued_at", utc(joined_at.0).into());
            let said = metadata.as_deref().and_then(|it| serde_json::from_slice(it).ok());
            put("metadata", said.unwrap_or(Value::Null));
        }
        Fact::Admitted { waited, waiting, expires_at, pass } => {
            put("wait_time_seconds", seconds(*waited).into());
            put("queue_length_after", (*waiting).into());
            put("expires_at", utc(expires_at.0).into());
            let pass = pass.clone().filter(|_| ready == ReadyToken::On);
            put("session_token", pass.into());
        }
        Fact::PlaceOver { ending, waited, waiting, moved_to } => {
            put("reason", place_reason(*ending).into());
            put("ending", ending.map_or("moved", ending_word).into());
            put("wait_time_seconds", seconds(*waited).into());
            put("queue_length_after", (*waiting).into());
            if let Some(to) = moved_to {
                put("moved_to", to.to_string().into());
            }
        }
        Fact::SessionOn(session) => {
            put("started_at", utc(session.issued_at.0).into());
            put("expires_at", utc(session.expires_at.0).into());
        }
        Fact::SessionOver { ending } => {
            put("reason", ending_word(*ending).into());
            put("ending", ending_word(*ending).into());
        }
        Fact::Room { change, details } => {
            put("change", (*change).into());
            for (key, value) in details.as_object().into_iter().flatten() {
                put(key, value.clone());
            }
        }
        Fact::LetIn { granted } => put("granted", (*granted).into()),
    }
    Value::Object(data)
}

/// The three words that the contract knows; `ending` beside it says it exactly.
fn place_reason(ending: Option<Ending>) -> &'static str {
    match ending {
        Some(Ending::Revoked) => "admin_revoked",
        Some(Ending::Left) | None => "cancelled",
        Some(_) => "heartbeat_timeout",
    }
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
