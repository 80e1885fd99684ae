//! Whether this instance lives, and whether visitors may be sent to it.
//!
//! Alive means that it answers. Ready is the balancer's question: no while it drains, or while a
//! room has lost its store; before its rooms are open it answers nobody. The answer says why; on the public listener it
//! names no room, because which rooms there are is nobody's business.

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
    found
}

pub fn live() -> Answering {
    Answering::Now(visitor::json(StatusCode::OK, br#"{"status":"live"}"#.to_vec()))
}

pub fn ready(desk: &Desk, reader: Reader) -> Answering {
    let obstacles = obstacles(desk);
    if obstacles.is_empty() {
        return Answering::Now(visitor::json(StatusCode::OK, br#"{"status":"ready"}"#.to_vec()));
    }
    let mut because: Vec<String> = obstacles.iter().map(|it| it.told(reader)).collect();
    because.dedup();
    let document = json!({ "status": "not_ready", "because": because });
    let body = document.to_string().into_bytes();
    Answering::Now(visitor::json(StatusCode::SERVICE_UNAVAILABLE, body))
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
        }
    }
}
