//! A room as operators and dashboards see it.

use serde_json::{Value, json};
use waitroom_core::{LaneId, State};

use super::acting::lane_name;
use crate::answer::{Wait, room_status};
use crate::desk::{Desk, RoomDesk};
use crate::document;

/// How the room stands, and its settings as a document.
pub fn picture(desk: &Desk, room: &RoomDesk) -> Value {
    let board = room.handle().board_guard();
    let state = board.state();
    let (status, reason) = room_status(state);
    let counts = state.counts();
    let settings = state.settings();
    let max_active = settings.map(|it| it.max_active);
    let document = settings.map(|it| document::to_json(it));
    let (wait, unknown) = last_in_line(room, state);
    let gate = desk.gate.get().and_then(std::sync::Weak::upgrade);
    let origin = gate.and_then(|gate| gate.origin(room.name().as_str()));
    json!({
        "room": room.name().as_str(),
        "status": status,
        "reason": reason,
        "message": state.message(),
        "version": board.version(),
        "waiting": counts.waiting,
        "admitted": counts.admitted,
        "active": counts.active,
        "joined": counts.joined,
        "admissions": counts.admissions,
        "completed": counts.completed,
        "expired": counts.expired,
        "left": counts.left,
        "revoked": counts.revoked,
        "moved": counts.moved,
        "closed": counts.closed,
        "no_shows": counts.no_shows,
        "slots_taken": state.slots_taken(),
        "slots_free": max_active.map(|most| most.saturating_sub(state.slots_taken())),
        "max_active": max_active,
        "rate": document.as_ref().map(|it| it["rate"].clone()),
        "connected": room.hub.connected(),
        "wait_of_last": wait,
        "wait_unknown_because": unknown,
        "store_latency_ms": room.pulse.mean_ms(),
        "store_trouble": room.pulse.trouble(),
        "origin": origin,
        "lanes": lanes(state),
        "settings": document,
    })
}

fn lanes(state: &State) -> Vec<Value> {
    let lane = |lane: LaneId| {
        let counts = state.lane_counts(lane);
        let weight = state.settings().and_then(|it| Some(it.lanes.get(lane.0 as usize)?.weight));
        json!({
            "lane": lane.0,
            "name": lane_name(state, lane),
            "weight": weight,
            "waiting": counts.waiting,
            "joined": state.issued(lane),
            "admissions": counts.admissions,
        })
    };
    state.lane_ids().map(lane).collect()
}

/// What the last of the longest lane would be told.
fn last_in_line(room: &RoomDesk, state: &State) -> (Option<Wait>, Option<&'static str>) {
    let longest = state.lane_ids().max_by_key(|lane| state.lane_counts(*lane).waiting);
    let Some(lane) = longest else { return (None, Some("not_started")) };
    let ahead = state.lane_counts(lane).waiting.saturating_sub(1);
    match room.estimate(ahead, lane) {
        Ok(it) => (Some(Wait::of(&it)), None),
        Err(unknown) => (None, Some(unknown.code())),
    }
}
