//! The envelope of NATS and webhooks.
//!
//! Lives here: its fields and the facts in it. A message of a ticket is written from where it lies:
//! no map, and no text of its own for an id or a moment.

use serde::Serialize;
use serde_json::{Map, Value};
use waitroom_core::Ending;
use waitroom_core::id::TicketId;

use super::{Moment, ReadyToken, Shown, ending_word};
use crate::message::{About, Fact, Message, MessageId};
use crate::translate::seconds;

/// The envelope with the facts in it.
pub fn envelope(message: &Message, ready: ReadyToken) -> Vec<u8> {
    match &message.about {
        Some(about) => around(message, of_a_ticket(about, &message.fact, ready)),
        None => around(message, of_a_room(&message.fact)),
    }
}

/// Room for an envelope without metadata and passes, so that it is not moved while it grows.
const BYTES: usize = 640;

#[derive(Debug, Serialize)]
struct Envelope<'a, D> {
    id: Shown<&'a MessageId>,
    version: &'static str,
    r#type: &'static str,
    timestamp: Moment,
    source: &'static str,
    /// A message belongs to the log, and a request that caused it was answered long ago.
    trace_id: Option<&'a str>,
    span_id: Option<&'a str>,
    queue_id: &'a str,
    data: D,
}

fn around<D: Serialize>(message: &Message, data: D) -> Vec<u8> {
    let envelope = Envelope {
        id: Shown(&message.id),
        version: "1.0",
        r#type: message.kind.word(),
        timestamp: Moment(message.at),
        source: "waitroom",
        trace_id: None,
        span_id: None,
        queue_id: message.id.room.as_str(),
        data,
    };
    let mut written = Vec::with_capacity(BYTES);
    serde_json::to_writer(&mut written, &envelope)
        .expect("an envelope has no key that JSON could refuse, and memory takes it");
    written
}

/// What is told of a ticket. Keys in the order of the alphabet, as they always were; a struct and
/// no map, because a million of these are written while a bus waits. A field within a field is one
/// that is there and may be null.
#[derive(Debug, Default, Serialize)]
struct OfATicket<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ending: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enqueued_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_to: Option<Shown<TicketId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<Option<u64>>,
    /// Always there.
    position_id: Option<Shown<TicketId>>,
    priority: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_length: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_length_after: Option<Option<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    seq: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<Shown<TicketId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_token: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Moment>,
    user_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_time_seconds: Option<u64>,
}

fn of_a_ticket<'a>(about: &'a About, fact: &'a Fact, ready: ReadyToken) -> OfATicket<'a> {
    let mut data = OfATicket {
        position_id: Some(Shown(about.id)),
        priority: about.lane,
        seq: about.seq,
        user_id: about.user.as_deref(),
        ..OfATicket::default()
    };
    match fact {
        Fact::Enqueued { position, waiting, joined_at, metadata } => {
            data.position = Some(*position);
            data.queue_length = Some(*waiting);
            data.enqueued_at = Some(Moment(*joined_at));
            let said = metadata.as_deref().and_then(|it| serde_json::from_slice(it).ok());
            data.metadata = Some(said.unwrap_or(Value::Null));
        }
        Fact::Admitted { waited, waiting, expires_at, pass } => {
            data.session_id = Some(Shown(about.id));
            data.wait_time_seconds = Some(seconds(*waited));
            data.queue_length_after = Some(Some(*waiting));
            data.expires_at = Some(Moment(*expires_at));
            data.session_token = Some(pass.as_deref().filter(|_| ready == ReadyToken::On));
        }
        Fact::PlaceOver { ending, waited, waiting, moved_to } => {
            data.reason = Some(place_reason(*ending));
            data.ending = Some(ending.map_or("moved", ending_word));
            data.wait_time_seconds = Some(seconds(*waited));
            data.queue_length_after = Some(*waiting);
            data.moved_to = moved_to.map(Shown);
        }
        Fact::SessionOn(session) => {
            data.session_id = Some(Shown(about.id));
            data.started_at = Some(Moment(session.issued_at));
            data.expires_at = Some(Moment(session.expires_at));
        }
        Fact::SessionOver { ending } => {
            data.session_id = Some(Shown(about.id));
            data.reason = Some(ending_word(*ending));
            data.ending = Some(ending_word(*ending));
        }
        Fact::Room { .. } | Fact::LetIn { .. } => data.session_id = Some(Shown(about.id)),
    }
    data
}

/// Seldom, and of any shape.
fn of_a_room(fact: &Fact) -> Map<String, Value> {
    let mut data = Map::new();
    match fact {
        Fact::Room { change, details } => {
            data.insert("change".to_owned(), (*change).into());
            let details = details.as_object().into_iter().flatten();
            data.extend(details.map(|(key, value)| (key.clone(), value.clone())));
        }
        Fact::LetIn { granted } => {
            data.insert("granted".to_owned(), (*granted).into());
        }
        // What happens to a ticket is about that ticket.
        Fact::Enqueued { .. }
        | Fact::Admitted { .. }
        | Fact::PlaceOver { .. }
        | Fact::SessionOn(_)
        | Fact::SessionOver { .. } => {}
    }
    data
}

/// The three words that the contract knows; `ending` beside it says it exactly.
fn place_reason(ending: Option<Ending>) -> &'static str {
    match ending {
        Some(Ending::Revoked) => "admin_revoked",
        Some(Ending::Left) | None => "cancelled",
        Some(_) => "heartbeat_timeout",
    }
}
