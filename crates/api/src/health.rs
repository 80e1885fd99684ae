//! Whether this instance lives, and whether visitors may be sent to it.
//!
//! Alive means that it answers. Ready is the balancer's question: no while it drains, or while a
//! room has lost its store; before its rooms are open it answers nobody. A room that cannot be opened
//! is no reason to send the visitors of all others away: it is told, and the instance is ready, as long
//! as any room is open. The answer says why; on the public listener it names no room, because which
//! rooms there are is nobody's business.

use http::StatusCode;
use serde_json::json;

use crate::desk::Desk;
use crate::visitor::{self, Answering};

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    Anybody,
    Operator,
}

/// Something that stands in the way of visitors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    Draining,
    /// A room that cannot write now, and why.
    RoomLost {
        room: String,
        why: String,
    },
    /// There are rooms, and none of them can be opened.
    NoneOpen,
}

/// All that stands in the way; nothing when the instance is ready.
pub fn obstacles(desk: &Desk) -> Vec<Obstacle> {
    let mut found = Vec::new();
    if *desk.draining.borrow() {
        found.push(Obstacle::Draining);
    }
    found.extend(desk.rooms().iter().filter_map(|room| {
        let why = room.handle().figures().trouble()?;
        Some(Obstacle::RoomLost { room: room.name().to_string(), why })
    }));
    if desk.rooms().is_empty() && !desk.unopened.is_empty() {
        found.push(Obstacle::NoneOpen);
    }
    found
}

pub fn live() -> Answering {
    Answering::Now(visitor::json(StatusCode::OK, br#"{"status":"live"}"#.to_vec()))
}

pub fn ready(desk: &Desk, reader: Reader) -> Answering {
    let mut because: Vec<String> = obstacles(desk).iter().map(|it| it.told(reader)).collect();
    because.dedup();
    let (status, mut document) = match because.is_empty() {
        true => (StatusCode::OK, json!({ "status": "ready" })),
        false => {
            let document = json!({ "status": "not_ready", "because": because });
            (StatusCode::SERVICE_UNAVAILABLE, document)
        }
    };
    let except = unopened(desk, reader);
    if !except.is_empty() {
        document["except"] = except.into();
    }
    Answering::Now(visitor::json(status, document.to_string().into_bytes()))
}

fn unopened(desk: &Desk, reader: Reader) -> Vec<String> {
    let rooms = desk.unopened.rooms();
    match reader {
        Reader::Anybody if rooms.is_empty() => Vec::new(),
        Reader::Anybody => vec!["a room cannot be opened; it is tried again by itself".into()],
        Reader::Operator => rooms
            .iter()
            .map(|(room, why)| format!("room \"{room}\" cannot be opened (WR-2105): {why}"))
            .collect(),
    }
}

impl Obstacle {
    pub fn told(&self, reader: Reader) -> String {
        match (self, reader) {
            (Obstacle::Draining, _) => "this instance drains; send visitors elsewhere".into(),
            (Obstacle::RoomLost { .. }, Reader::Anybody) => {
                "a room cannot write to its store; it tries again by itself".into()
            }
            (Obstacle::RoomLost { room, why }, Reader::Operator) => {
                format!("room {room:?} cannot write to its store: {why}")
            }
            (Obstacle::NoneOpen, _) => "no room can be opened; it is tried again by itself".into(),
        }
    }
}
