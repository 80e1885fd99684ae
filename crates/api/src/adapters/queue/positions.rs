//! A place in line: taken, looked at, kept alive, given up.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use waitroom_core::id::TicketId;
use waitroom_core::{Command, Fresh, LaneId, Settings, Status, when};
use waitroom_pass::Form;

use super::refused::Refused;
use super::{Call, told};
use crate::adapters::stands::{self, Held, Stands};
use crate::answer::Sight;
use crate::body::Body;
use crate::caller::{ApiCaller, Role};
use crate::desk::{Desk, RoomDesk};
use crate::limits::Route;
use crate::problem::{Code, Problem};
use crate::request::bad_field;
use crate::visitor::join::{Joiner, USER_BYTES_MAX, place};

/// How a position stands. What does not apply is left out.
#[derive(Debug, Default, Serialize)]
struct Position<'a> {
    position_id: Option<TicketId>,
    queue_id: &'a str,
    position: u64,
    queue_length: u64,
    estimated_wait_seconds: u64,
    status: &'static str,
    admitted: bool,
    token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    heartbeat_interval_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    heartbeat_timeout_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_heartbeat_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_expires_at: Option<String>,
}

/// What may come with an enqueue; clients may send nothing at all.
#[derive(Debug, Default, Deserialize)]
struct Wanted {
    priority: Option<u8>,
    user_id: Option<String>,
    metadata: Option<Map<String, Value>>,
}

const PRIORITY_MAX: u8 = 3;

pub async fn enqueue(call: &mut Call, room: &Arc<RoomDesk>) -> Result<Response<Body>, Refused> {
    let service = call.service()?;
    if service.is_none() {
        let network = call.ask.desk.manners.limits.network(call.ask.client);
        call.meter(Route::Join, network)?;
    }
    let wanted: Wanted = call.said().await?;
    let desk = call.ask.desk.clone();
    desk.earlier.follow(&desk, room);
    let settings = room.settings();
    let mut joiner = who_joins(settings.as_deref(), service.as_ref(), wanted)?;
    // Whoever comes back with a token has a place already, be it one that ran out in a pocket;
    // a token that means nothing here is no reason to be turned away.
    let held = call.bearer().and_then(|text| Held::read(&desk, room, Form::Queue, text).ok());
    joiner.holding = held.map(|held| held.presented);
    let (sight, fresh) = place(room, settings.as_deref(), joiner).await?;
    let status = if fresh == Fresh::New { StatusCode::CREATED } else { StatusCode::OK };
    let token = stands::token(&desk, room, Form::Queue, &sight);
    let position = position(call, &desk, room, &sight, token).await?;
    Ok(told(status, &position))
}

/// What a caller says of somebody counts if the caller holds a key; from anybody else it is read
/// and ignored.
fn who_joins(
    settings: Option<&Settings>,
    service: Option<&ApiCaller>,
    wanted: Wanted,
) -> Result<Joiner, Problem> {
    let priority = wanted.priority.unwrap_or(0);
    if priority > PRIORITY_MAX {
        return Err(bad_field("priority", "a number from 0 to 3"));
    }
    if wanted.user_id.as_ref().is_some_and(|it| it.is_empty() || it.len() > USER_BYTES_MAX) {
        return Err(bad_field("user_id", "1 to 256 bytes"));
    }
    if service.is_none_or(|service| service.role < Role::Operator) {
        return Ok(Joiner::default());
    }
    // A priority is the lane of that number; a room with fewer lanes has no finer difference.
    let lanes = settings.map_or(1, |settings| settings.lanes.len());
    let last = u8::try_from(lanes.saturating_sub(1)).unwrap_or(u8::MAX);
    Ok(Joiner {
        lane: LaneId(priority.min(last)),
        user: wanted.user_id,
        metadata: wanted.metadata.map(|it| Value::from(it).to_string().into_bytes()),
        ..Joiner::default()
    })
}

pub async fn status(call: &mut Call, room: &Arc<RoomDesk>) -> Result<Response<Body>, Refused> {
    let (held, shown) = holder(call, room)?;
    let held = held.fresh(room)?;
    call.meter(Route::Status, held.who())?;
    room.handle().beat(held.presented.ticket);
    let (_, sight) = stands::look(room, &held.presented).await?;
    let desk = call.ask.desk.clone();
    Ok(told(StatusCode::OK, &position(call, &desk, room, &sight, shown).await?))
}

/// What comes with a heartbeat is for the client's own logs; it has to be JSON all the same.
#[derive(Debug, Default, Deserialize)]
struct Beat {
    #[serde(rename = "timestamp")]
    _timestamp: Option<f64>,
    #[serde(rename = "client_id")]
    _client_id: Option<String>,
}

/// A sign of life. A genuine token that has run out is good enough for it: the phone slept, and
/// the place is still there.
pub async fn heartbeat(call: &mut Call, room: &Arc<RoomDesk>) -> Result<Response<Body>, Refused> {
    let (held, _) = holder(call, room)?;
    call.meter(Route::Heartbeat, held.who())?;
    let Beat { .. } = call.said().await?;
    room.handle().beat(held.presented.ticket);
    let (_, sight) = stands::look(room, &held.presented).await?;
    let desk = call.ask.desk.clone();
    let token = stands::token(&desk, room, Form::Queue, &sight);
    let mut position = position(call, &desk, room, &sight, token).await?;
    position.next_heartbeat_seconds = position.heartbeat_interval_seconds;
    Ok(told(StatusCode::OK, &position))
}

/// The visitor goes. A repeat says the same again.
pub async fn cancel(call: &mut Call, room: &Arc<RoomDesk>) -> Result<Response<Body>, Refused> {
    let (held, _) = holder(call, room)?;
    let held = held.fresh(room)?;
    call.meter(Route::Session, held.who())?;
    let leave = Command::Leave(held.presented);
    let (sight, _) = room.act(held.presented, leave).await?;
    if let (Status::Expired | Status::Revoked | Status::Closed, Stands::Over(over)) =
        (sight.view.status, Stands::of(room, &room.handle().board(), &sight))
    {
        return Err(Refused::over(over));
    }
    // Whoever asks next sees it gone.
    room.board_since(sight.version).await;
    let cancelled_at = sight.view.ended_at.unwrap_or_else(|| room.now());
    Ok(told(
        StatusCode::OK,
        &json!({
            "position_id": sight.id,
            "queue_id": room.name().as_str(),
            "status": "cancelled",
            "cancelled_at": when::utc(cancelled_at.0),
        }),
    ))
}

/// Who holds the token of this call, and the token as it came.
fn holder(call: &Call, room: &RoomDesk) -> Result<(Held, String), Problem> {
    let Some(shown) = call.bearer() else {
        let detail = "send the token as Authorization: Bearer, or enqueue first";
        return Err(Problem::new(Code::TokenMissing, detail));
    };
    let held = Held::read(&call.ask.desk, room, Form::Queue, shown)?;
    Ok((held, shown.to_owned()))
}

async fn position<'a>(
    call: &Call,
    desk: &Desk,
    room: &'a RoomDesk,
    sight: &Sight,
    token: String,
) -> Result<Position<'a>, Refused> {
    let board = room.handle().board();
    let position = Position {
        position_id: Some(sight.id),
        queue_id: room.name().as_str(),
        token,
        ..Position::default()
    };
    match Stands::of(room, &board, sight) {
        Stands::Waiting(waiting) => Ok(Position {
            position: waiting.position,
            queue_length: waiting.queue_length,
            estimated_wait_seconds: waiting.wait_s,
            status: "waiting",
            heartbeat_interval_seconds: Some(waiting.heartbeat_interval_s),
            heartbeat_timeout_seconds: Some(waiting.heartbeat_timeout_s),
            expires_at: Some(when::utc(waiting.expires_at.0)),
            ..position
        }),
        Stands::Inside => {
            let entry = stands::enter(desk, room, sight).await?;
            let (now_ms, traces) = (desk.clock.wall_ms(), call.traces(room));
            desk.earlier.visits().note(sight.id, now_ms, 0, traces);
            Ok(Position {
                queue_length: board.state().waiting(),
                status: "admitted",
                admitted: true,
                expires_at: Some(when::utc(entry.expires_at.0)),
                session_token: Some(entry.pass),
                redirect_url: entry.url,
                session_expires_at: Some(when::utc(entry.expires_at.0)),
                ..position
            })
        }
        Stands::Over(over) => Err(Refused::over(over)),
    }
}
