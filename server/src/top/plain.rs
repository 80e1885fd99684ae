//! One picture as text for people, and as JSON for scripts.

use std::fmt::Write as _;

use serde_json::{Value, json};
use waitroom_sim::rehearsal::human::number;

use super::picture::{Picture, RoomPicture, pace, span};

pub fn text(picture: &Picture) -> String {
    let mut text = String::new();
    let ready = if picture.ready { "ready" } else { "NOT READY" };
    let up = picture.up.map_or("?".to_owned(), |up| span(up.as_secs_f64()));
    let _ = writeln!(
        text,
        "waitroom {}  {ready}  up {up}  cpu {:.0} %  memory {:.0} MB  connections {}  requests {}/s  failures {}/s",
        picture.version,
        picture.cpu * 100.0,
        picture.memory_bytes / 1e6,
        number(picture.connections as u64),
        pace(picture.requests_per_s),
        pace(picture.failures_per_s),
    );
    let width = picture.rooms.iter().map(|room| room.name.len()).max().unwrap_or(0).max(4);
    let _ = writeln!(
        text,
        "{:width$}  {:11} {:>11} {:>15} {:>7} {:>7} {:>9} {:>8} {:>8} {:>8}",
        "room",
        "status",
        "waiting",
        "inside/max",
        "in/s",
        "limit",
        "wait",
        "no-show",
        "live",
        "disk"
    );
    for room in &picture.rooms {
        let cells = Cells::of(room);
        let _ = writeln!(
            text,
            "{:width$}  {:11} {:>11} {:>15} {:>7} {:>7} {:>9} {:>8} {:>8} {:>8}",
            room.name,
            room.status,
            cells.waiting,
            cells.inside,
            cells.pace,
            cells.limit,
            cells.wait,
            cells.no_shows,
            cells.live,
            cells.disk,
        );
        for problem in &room.problems {
            let _ = writeln!(text, "{:width$}  ! {problem}", "");
        }
    }
    text
}

pub fn json(picture: &Picture) -> Value {
    let rooms: Vec<Value> = picture
        .rooms
        .iter()
        .map(|room| {
            json!({
                "room": room.name,
                "status": room.status,
                "reason": room.reason,
                "waiting": room.waiting,
                "admitted": room.admitted,
                "active": room.active,
                "slots_taken": room.slots_taken,
                "slots_max": room.slots_max,
                "admitted_per_s": room.admitted_per_s,
                "limit_per_s": room.limit_per_s,
                "joined_per_s": room.joined_per_s,
                "joined": room.joined,
                "admissions": room.admissions,
                "no_shows": room.no_shows,
                "completed": room.completed,
                "left": room.left,
                "expired": room.expired,
                "likely_wait_s": room.likely_wait_s,
                "waited_half_s": room.waited_s.map(|(half, _)| half),
                "waited_nine_of_ten_s": room.waited_s.map(|(_, most)| most),
                "estimate_coverage": room.coverage(),
                "live_connections": room.live,
                "queue": room.queue,
                "append_p99_s": room.append_s.map(|(_, slow)| slow),
                "problems": room.problems,
            })
        })
        .collect();
    json!({
        "version": picture.version,
        "ready": picture.ready,
        "up_s": picture.up.map(|up| up.as_secs()),
        "cpu": picture.cpu,
        "memory_bytes": picture.memory_bytes,
        "connections": picture.connections,
        "requests_per_s": picture.requests_per_s,
        "failures_per_s": picture.failures_per_s,
        "rooms": rooms,
    })
}

/// A room's row, as both forms write it.
#[derive(Debug)]
pub struct Cells {
    pub waiting: String,
    pub inside: String,
    pub pace: String,
    pub limit: String,
    pub wait: String,
    pub no_shows: String,
    pub live: String,
    pub disk: String,
}

impl Cells {
    pub fn of(room: &RoomPicture) -> Cells {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        Cells {
            waiting: number(room.waiting as u64),
            inside: format!(
                "{}/{}",
                number(room.slots_taken as u64),
                number(room.slots_max as u64)
            ),
            pace: pace(room.admitted_per_s),
            limit: room.limit_per_s.map_or("by hand".to_owned(), pace),
            wait: or_dash(room.likely_wait_s.map(span)),
            no_shows: or_dash(room.no_show_share().map(|share| format!("{:.1} %", share * 100.0))),
            live: number(room.live as u64),
            disk: or_dash(room.append_s.map(|(_, slow)| span(slow))),
        }
    }
}
