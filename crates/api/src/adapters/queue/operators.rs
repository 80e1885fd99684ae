//! What operators do here, with `X-Admin-Key`: make and change queues, look at figures, end
//! sessions. Each takes the role that our own operator routes ask for.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use waitroom_core::{Actor, Board, Command, EndHow, Hold, Status, when};
use waitroom_store::RoomName;

use super::refused::Refused;
use super::rooms::{Fields, document, fresh};
use super::{Call, Inside, sessions, told};
use crate::adapters::{stands, today};
use crate::admin::acting::Deed;
use crate::body::Body;
use crate::caller::{ApiCaller, Role};
use crate::desk::{Desk, RoomDesk};
use crate::problem::{Code, Problem};
use crate::request::bad_field;

pub async fn make(call: &mut Call) -> Result<Response<Body>, Refused> {
    let caller = require(call, Role::Owner)?;
    let fields: Fields = call.said().await?;
    let id = fields.id.as_deref().ok_or_else(|| bad_field("id", "the queue's name is missing"))?;
    let name = RoomName::parse(id).map_err(|bad| bad_field("id", &bad.to_string()))?;
    // Before the room is made: a mistake must not leave an empty one behind.
    let settings = fields.over(fresh())?;
    let desk = call.ask.desk.clone();
    let _alone = desk.earlier.making.lock().await;
    if desk.room(name.as_str()).is_ok_and(|room| room.settings().is_some()) {
        let problem = Problem::new(Code::RoomExists, format!("there is a queue {name} already"));
        return Err(problem.into());
    }
    let room = desk.open(&name, &caller.id).await?;
    let by = Actor::new(&caller.id);
    let command = Command::Configure { settings: Box::new(settings), by: by.clone() };
    desk.operate(&room, &caller.id, Deed::Configure, command).await?;
    hold(&desk, &room, &fields, &by).await?;
    desk.earlier.follow(&desk, &room);
    let mut made = shown(&room).await;
    made["created_at"] = made["updated_at"].clone();
    Ok(told(StatusCode::CREATED, &made))
}

pub async fn change(call: &mut Call, room: &Arc<RoomDesk>) -> Result<Response<Body>, Refused> {
    let caller = require(call, Role::Owner)?;
    let fields: Fields = call.said().await?;
    if fields.id.as_deref().is_some_and(|id| id != room.name().as_str()) {
        return Err(bad_field("id", "a queue keeps its name").into());
    }
    let by = Actor::new(&caller.id);
    let desk = &call.ask.desk;
    let changed = |board: &Board| {
        let before = board.state().settings().map(|it| (**it).clone()).unwrap_or_else(fresh);
        let settings = Box::new(fields.over(before)?);
        Ok(Command::Configure { settings, by: by.clone() })
    };
    desk.operate_on(room, &caller.id, Deed::Configure, changed).await?;
    hold(desk, room, &fields, &by).await?;
    Ok(told(StatusCode::OK, &shown(room).await))
}

/// Pauses, closes for maintenance or resumes, if the fields say so.
async fn hold(desk: &Desk, room: &RoomDesk, fields: &Fields, by: &Actor) -> Result<(), Problem> {
    let Some(hold) = fields.hold() else { return Ok(()) };
    let (deed, command) = match hold {
        Some(hold @ Hold::Paused { .. }) => (Deed::Pause, Command::Hold { hold, by: by.clone() }),
        Some(hold) => (Deed::Maintenance, Command::Hold { hold, by: by.clone() }),
        None => (Deed::Resume, Command::Resume { by: by.clone() }),
    };
    desk.operate(room, &by.0, deed, command).await.map(|_| ())
}

/// The queue as it is after what was just done.
async fn shown(room: &RoomDesk) -> Value {
    let (board, _) = room.newest_board().await;
    let mut shown = document(room, board.state());
    shown["updated_at"] = Value::from(when::utc(room.now().0));
    shown
}

pub async fn stats(call: &mut Call, room: &Arc<RoomDesk>) -> Result<Response<Body>, Refused> {
    require(call, Role::Viewer)?;
    room.newest_board().await;
    let day = call.ask.desk.earlier.follow(&call.ask.desk, room);
    let figures = today::see(room, &day);
    let counts = room.handle().board_guard().state().counts();
    Ok(told(
        StatusCode::OK,
        &json!({
            "queue_id": room.name().as_str(),
            "current_waiting": counts.waiting,
            "current_active": counts.admitted + counts.active,
            "total_enqueued_today": figures.enqueued,
            "total_admitted_today": figures.admitted,
            "total_expired_today": figures.expired,
            "avg_wait_time_seconds": to_thousandth(figures.avg_wait_s),
            "peak_queue_size": figures.peak,
            "admission_rate_actual": to_thousandth(figures.admitted_per_s),
            "counted_since": when::utc(figures.since.0),
        }),
    ))
}

fn to_thousandth(figure: f64) -> f64 {
    (figure * 1_000.0).round() / 1_000.0
}

#[derive(Debug, Default, Deserialize)]
struct Why {
    reason: Option<String>,
}

/// Ends a session. Ending it again says the same again; what ended otherwise stays as it ended.
pub async fn end_session(call: &mut Call, inside: &Inside) -> Result<Response<Body>, Refused> {
    let caller = require(call, Role::Operator)?;
    let Why { reason } = call.said().await?;
    let room = &inside.room;
    room.newest_board().await;
    let (board, sight) = stands::look(room, &inside.named).await?;
    if sight.view.status != Status::Revoked {
        sessions::is_inside(inside, &board, &sight)?;
    }
    let by = Actor::new(&caller.id);
    let command = Command::End { ticket: inside.named, how: EndHow::Revoked, by };
    let deed = Deed::Revoke { ticket: inside.named, reason: reason.as_deref() };
    let answer = call.ask.desk.operate(room, &caller.id, deed, command).await?;
    let (board, _) = room.board_since(answer.version).await;
    let sight = room.look(&board, &inside.named)?;
    let ended_at = sight.view.ended_at.unwrap_or_else(|| room.now());
    Ok(told(
        StatusCode::OK,
        &json!({
            "session_id": sight.id,
            "queue_id": room.name().as_str(),
            "status": "terminated",
            "reason": reason,
            "terminated_at": when::utc(ended_at.0),
        }),
    ))
}

fn require(call: &Call, role: Role) -> Result<ApiCaller, Problem> {
    call.ask.desk.require(&call.ask.head.headers, role)
}
