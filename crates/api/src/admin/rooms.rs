//! Rooms: made and changed as whole documents, held, resumed, let in by hand.

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use waitroom_core::{Command, FinishCause, Hold, Reply, Settings};
use waitroom_store::RoomName;

use super::{Act, internal};
use crate::answer::room_status;
use crate::desk::RoomDesk;
use crate::document;
use crate::problem::{Code, FieldProblem, Problem};
use crate::request::bad_field;

pub async fn list(act: Act) -> Result<(StatusCode, Value), Problem> {
    let rooms: Vec<Value> = act.desk.rooms().iter().map(|room| picture(room)).collect();
    Ok((StatusCode::OK, json!({ "rooms": rooms })))
}

pub async fn show(act: Act) -> Result<(StatusCode, Value), Problem> {
    Ok((StatusCode::OK, picture(&*act.room()?)))
}

/// The whole document in place of the old one; the same document twice changes nothing.
pub async fn put(act: Act) -> Result<(StatusCode, Value), Problem> {
    let name = RoomName::parse(act.room.as_deref().unwrap_or_default())
        .map_err(|bad| bad_field("room", &bad.to_string()))?;
    let document: Value = crate::request::json(&act.headers, &act.body)?
        .ok_or_else(|| Problem::new(Code::BadJson, "the body is the room's document"))?;
    let settings = document::from_json(&document, &Settings::default()).map_err(|mistakes| {
        let fields = mistakes
            .into_iter()
            .map(|it| FieldProblem { field: it.field, problem: it.problem })
            .collect();
        let detail = "see the errors; nothing was changed";
        Problem::new(Code::SettingsInvalid, detail).with_fields(fields).in_room(&name)
    })?;
    let known = act.desk.room(name.as_str()).is_ok();
    let room = act.desk.open(&name, &act.caller.id).await?;
    let fresh = room.settings().is_none();
    room.send(Command::Configure { settings: Box::new(settings), by: act.actor() }).await?;
    settle(&room).await;
    let status = if known && !fresh { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, picture(&room)))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reason {
    #[serde(default)]
    reason: String,
}

pub async fn pause(act: Act) -> Result<(StatusCode, Value), Problem> {
    let Reason { reason } = act.said()?;
    if reason.trim().is_empty() {
        return Err(bad_field("reason", "visitors are told why; say it in a sentence"));
    }
    done(&act, Command::Hold { hold: Hold::Paused { reason }, by: act.actor() }).await
}

pub async fn maintenance(act: Act) -> Result<(StatusCode, Value), Problem> {
    let Reason { reason } = act.said()?;
    done(&act, Command::Hold { hold: Hold::Maintenance { reason }, by: act.actor() }).await
}

pub async fn resume(act: Act) -> Result<(StatusCode, Value), Problem> {
    act.said::<super::Nothing>()?;
    done(&act, Command::Resume { by: act.actor() }).await
}

pub async fn finish(act: Act) -> Result<(StatusCode, Value), Problem> {
    let Reason { reason } = act.said()?;
    done(&act, Command::Finish { cause: FinishCause::SoldOut, reason, by: act.actor() }).await
}

pub async fn reopen(act: Act) -> Result<(StatusCode, Value), Problem> {
    act.said::<super::Nothing>()?;
    done(&act, Command::Reopen { by: act.actor() }).await
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Count {
    count: Option<u64>,
}

pub async fn admit(act: Act) -> Result<(StatusCode, Value), Problem> {
    let Count { count } = act.said()?;
    let most = waitroom_core::ADMIT_NOW_MAX;
    let count = count
        .filter(|count| (1..=most).contains(count))
        .ok_or_else(|| bad_field("count", &format!("a number from 1 to {most}")))?;
    let room = act.room()?;
    let admitted = admit_now(&room, count, act.actor()).await?;
    Ok((StatusCode::OK, json!({ "asked": count, "admitted": admitted, "room": picture(&room) })))
}

/// Lets the next `count` in now. The earlier interfaces admit through here as well.
pub async fn admit_now(
    room: &RoomDesk,
    count: u64,
    by: waitroom_core::Actor,
) -> Result<u64, Problem> {
    let entropy = waitroom_store::Entropy::next_u128(&waitroom_store::OsEntropy).to_be_bytes();
    let answer = room.send(Command::AdmitNow { count, entropy, by }).await?;
    let Reply::Admitted { count } = answer.reply else { return Err(internal("an admit")) };
    settle(room).await;
    Ok(count)
}

async fn done(act: &Act, command: Command) -> Result<(StatusCode, Value), Problem> {
    let room = act.room()?;
    room.send(command).await?;
    settle(&room).await;
    Ok((StatusCode::OK, picture(&room)))
}

/// An operator sees what was just done: the next board, not the last one.
async fn settle(room: &RoomDesk) {
    room.board_since(room.handle().committed()).await;
}

/// A room for operators: settings as a document, and how it stands.
pub fn picture(room: &RoomDesk) -> Value {
    let board = room.handle().board_guard();
    let state = board.state();
    let (status, reason) = room_status(state);
    let counts = state.counts();
    let lanes: Vec<Value> = state
        .lane_ids()
        .map(|lane| {
            let counts = state.lane_counts(lane);
            json!({ "lane": lane.0, "waiting": counts.waiting, "joined": state.issued(lane) })
        })
        .collect();
    json!({
        "room": room.name().as_str(),
        "status": status,
        "reason": reason,
        "version": board.version(),
        "waiting": counts.waiting,
        "admitted": counts.admitted,
        "active": counts.active,
        "completed": counts.completed,
        "expired": counts.expired,
        "left": counts.left,
        "revoked": counts.revoked,
        "slots_taken": state.slots_taken(),
        "connected": room.hub.connected(),
        "lanes": lanes,
        "settings": state.settings().map(|settings| document::to_json(settings)),
    })
}
