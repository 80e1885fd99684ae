//! Rooms: made and changed as documents, held, resumed, let in by hand.

use std::sync::Arc;

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use waitroom_core::{Board, Command, FinishCause, Hold, Reply, Settings};
use waitroom_store::RoomName;

use super::acting::Deed;
use super::picture::picture;
use super::{Act, internal};
use crate::caller::Role;
use crate::desk::{Desk, RoomDesk};
use crate::document::{self, Mistake, Written};
use crate::problem::{Code, FieldProblem, Problem};
use crate::request::bad_field;

pub async fn list(act: Act) -> Result<(StatusCode, Value), Problem> {
    let rooms: Vec<Value> = act.desk.rooms().iter().map(|room| picture(&act.desk, room)).collect();
    let unopened = act.desk.unopened.rooms();
    let unopened: Vec<Value> =
        unopened.iter().map(|(room, why)| json!({ "room": room.as_str(), "why": why })).collect();
    Ok((StatusCode::OK, json!({ "rooms": rooms, "unopened": unopened })))
}

pub async fn show(act: Act) -> Result<(StatusCode, Value), Problem> {
    Ok((StatusCode::OK, picture(&act.desk, &*act.room()?)))
}

/// The whole document in place of the old one; the same document twice changes nothing.
pub async fn put(act: Act) -> Result<(StatusCode, Value), Problem> {
    let name = RoomName::parse(act.room.as_deref().unwrap_or_default())
        .map_err(|bad| bad_field("room", &bad.to_string()))?;
    let written = written(&act, &name, &Settings::default())?;
    let known = act.desk.room(name.as_str()).is_ok();
    let room = act.desk.open(&name, &act.caller.id).await?;
    let fresh = room.settings().is_none();
    let command = Command::Configure { settings: Box::new(written.settings), by: act.actor() };
    act.desk.operate(&room, &act.caller.id, Deed::Configure, command).await?;
    settle(&room).await;
    let status = if known && !fresh { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, picture(&act.desk, &room)))
}

/// What an operator may turn while a sale runs; everything else is the owner's.
pub const LIVE_KEYS: &[&str] = &["rate", "burst", "max_active", "max_waiting", "message"];

/// The keys that the document names; all others stay as they are.
pub async fn patch(act: Act) -> Result<(StatusCode, Value), Problem> {
    let room = act.room()?;
    let changed = |board: &Board| {
        let Some(current) = board.state().settings() else {
            let detail = "it has no settings yet; PUT a whole document first";
            return Err(Problem::new(Code::SettingsInvalid, detail).in_room(room.name()));
        };
        let written = written(&act, room.name(), current)?;
        may_change(&act, &room, &written)?;
        Ok(Command::Configure { settings: Box::new(written.settings), by: act.actor() })
    };
    act.desk.operate_on(&room, &act.caller.id, Deed::Configure, changed).await?;
    settle(&room).await;
    Ok((StatusCode::OK, picture(&act.desk, &room)))
}

fn may_change(act: &Act, room: &RoomDesk, written: &Written) -> Result<(), Problem> {
    let owners = written.keys.iter().find(|key| !LIVE_KEYS.contains(&key.as_str()));
    if let Some(key) = owners
        && act.caller.role < Role::Owner
    {
        let detail = format!(
            "{key} takes a key of role owner; an operator may change {}",
            LIVE_KEYS.join(", ")
        );
        return Err(Problem::new(Code::Forbidden, detail).in_room(room.name()));
    }
    Ok(())
}

/// Reads the document in the body over `base`.
fn written(act: &Act, name: &RoomName, base: &Settings) -> Result<Written, Problem> {
    let mut document: Value = crate::request::json(&act.headers, &act.body)?
        .ok_or_else(|| Problem::new(Code::BadJson, "the body is the room's document"))?;
    let mut mistakes = Vec::new();
    // Documents of files and of other systems say which room they are about.
    if let Some(said) = document.as_object_mut().and_then(|it| it.remove("name"))
        && said.as_str() != Some(name.as_str())
    {
        let problem =
            format!("{} is not the room of this address ({name})", document::value::shown(&said));
        mistakes.push(Mistake::new("name", problem));
    }
    let read = document::read(&document, base);
    let written = read.map_err(|wrong| mistakes.extend(wrong)).ok();
    match written {
        Some(written) if mistakes.is_empty() => Ok(written),
        _ => {
            let fields = mistakes
                .into_iter()
                .map(|it| FieldProblem { field: it.field, problem: it.problem })
                .collect();
            let detail = "see the errors; nothing was changed";
            Err(Problem::new(Code::SettingsInvalid, detail).with_fields(fields).in_room(name))
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reason {
    #[serde(default)]
    reason: String,
}

pub async fn pause(act: Act) -> Result<(StatusCode, Value), Problem> {
    let reason = said_why(&act)?;
    done(&act, Deed::Pause, Command::Hold { hold: Hold::Paused { reason }, by: act.actor() }).await
}

pub async fn drain(act: Act) -> Result<(StatusCode, Value), Problem> {
    let reason = said_why(&act)?;
    let command = Command::Hold { hold: Hold::Draining { reason }, by: act.actor() };
    done(&act, Deed::Drain, command).await
}

fn said_why(act: &Act) -> Result<String, Problem> {
    let Reason { reason } = act.said()?;
    if reason.trim().is_empty() {
        return Err(bad_field("reason", "visitors are told why; say it in a sentence"));
    }
    Ok(reason)
}

pub async fn maintenance(act: Act) -> Result<(StatusCode, Value), Problem> {
    let Reason { reason } = act.said()?;
    let command = Command::Hold { hold: Hold::Maintenance { reason }, by: act.actor() };
    done(&act, Deed::Maintenance, command).await
}

pub async fn resume(act: Act) -> Result<(StatusCode, Value), Problem> {
    act.said::<super::Nothing>()?;
    done(&act, Deed::Resume, Command::Resume { by: act.actor() }).await
}

pub async fn finish(act: Act) -> Result<(StatusCode, Value), Problem> {
    let Reason { reason } = act.said()?;
    let command = Command::Finish { cause: FinishCause::SoldOut, reason, by: act.actor() };
    done(&act, Deed::Finish, command).await
}

pub async fn reopen(act: Act) -> Result<(StatusCode, Value), Problem> {
    act.said::<super::Nothing>()?;
    done(&act, Deed::Reopen, Command::Reopen { by: act.actor() }).await
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
    let admitted = admit_now(&act.desk, &room, count, act.actor()).await?;
    Ok((
        StatusCode::OK,
        json!({ "asked": count, "admitted": admitted, "room": picture(&act.desk, &room) }),
    ))
}

/// Lets the next `count` in now. The earlier interfaces admit through here as well.
pub async fn admit_now(
    desk: &Desk,
    room: &RoomDesk,
    count: u64,
    by: waitroom_core::Actor,
) -> Result<u64, Problem> {
    let entropy = waitroom_store::Entropy::next_u128(&waitroom_store::OsEntropy).to_be_bytes();
    let who = by.0.clone();
    let command = Command::AdmitNow { count, entropy, by };
    let answer = desk.operate(room, &who, Deed::Admit, command).await?;
    let Reply::Admitted { count } = answer.reply else { return Err(internal("an admit")) };
    settle(room).await;
    Ok(count)
}

async fn done(act: &Act, deed: Deed<'_>, command: Command) -> Result<(StatusCode, Value), Problem> {
    let room: Arc<RoomDesk> = act.room()?;
    act.desk.operate(&room, &act.caller.id, deed, command).await?;
    settle(&room).await;
    Ok((StatusCode::OK, picture(&act.desk, &room)))
}

/// An operator sees what was just done: the next board, not the last one.
async fn settle(room: &RoomDesk) {
    room.newest_board().await;
}
