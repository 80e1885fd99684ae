//! Single tickets: looked at, moved to another lane, revoked.

use std::sync::Arc;

use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use waitroom_core::id::TicketId;
use waitroom_core::{Command, EndHow, Presented};

use super::Act;
use crate::answer::{Sight, VisitorAnswer};
use crate::desk::RoomDesk;
use crate::problem::{Code, Problem};
use crate::request::bad_field;
use crate::visitor::join::lane_named;

pub async fn show(act: Act) -> Result<(StatusCode, Value), Problem> {
    let (room, presented) = named(&act)?;
    let (board, _) = room.board_since(room.handle().committed()).await;
    let sight = room.look(&board, &presented)?;
    Ok((StatusCode::OK, picture(&room, &sight)))
}

pub async fn revoke(act: Act) -> Result<(StatusCode, Value), Problem> {
    act.said::<super::Nothing>()?;
    let (room, presented) = named(&act)?;
    let command = Command::End { ticket: presented, how: EndHow::Revoked, by: act.actor() };
    let (sight, _) = room.act(presented, command).await?;
    Ok((StatusCode::OK, picture(&room, &sight)))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct To {
    lane: Option<String>,
}

pub async fn move_to(act: Act) -> Result<(StatusCode, Value), Problem> {
    let (room, presented) = named(&act)?;
    let To { lane } = act.said()?;
    let lane = lane.ok_or_else(|| bad_field("lane", "the name of the lane to move to"))?;
    let to = lane_named(&room, room.settings().as_deref(), Some(&lane))?;
    let command = Command::Move { ticket: presented, to, by: act.actor() };
    let (sight, _) = room.act(presented, command).await?;
    Ok((StatusCode::OK, picture(&room, &sight)))
}

fn named(act: &Act) -> Result<(Arc<RoomDesk>, Presented), Problem> {
    let room = act.room()?;
    let id = TicketId::parse(act.id.as_deref().unwrap_or_default()).ok();
    let presented = id.and_then(|id| room.presented(id, None));
    let unknown = || {
        Problem::new(Code::TicketUnknown, "this room never gave out that ticket")
            .in_room(room.name())
    };
    let presented = presented.ok_or_else(unknown)?;
    Ok((room, presented))
}

fn picture(room: &RoomDesk, sight: &Sight) -> Value {
    let board = room.handle().board_guard();
    let answer = VisitorAnswer::of(room, board.state(), sight);
    serde_json::to_value(answer).expect("an answer is plain data")
}
