//! Single tickets: looked at, looked for, moved to another lane, revoked.

use std::ops::ControlFlow;
use std::sync::Arc;

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use waitroom_core::id::{SupportCode, TicketId};
use waitroom_core::{Command, EndHow, Presented, Ticket};

use super::Act;
use super::acting::Deed;
use crate::answer::{Sight, VisitorAnswer};
use crate::desk::RoomDesk;
use crate::problem::{Code, Problem};
use crate::request::{bad_field, query_text};
use crate::visitor::join::lane_named;

/// More than one ticket fits a support code once in a thousand large rooms; a person has a few.
const FOUND_MAX: usize = 20;

pub async fn show(act: Act) -> Result<(StatusCode, Value), Problem> {
    let (room, presented) = named(&act)?;
    let (board, _) = room.newest_board().await;
    let sight = room.look(&board, &presented)?;
    Ok((StatusCode::OK, picture(&room, &sight)))
}

enum Wanted {
    Code(SupportCode),
    Person(waitroom_core::Identity),
}

/// By what somebody reads out on the phone, or by the shop's name for the user. No table leads
/// from either to a ticket, so all that the room remembers are looked through, beside everything
/// else that the server does: about a second for twenty million.
pub async fn find(act: Act) -> Result<(StatusCode, Value), Problem> {
    let room = act.room()?;
    let (code, user) = (query_text(&act.uri, "support_code"), query_text(&act.uri, "user_id"));
    let wanted = match (code, user) {
        (Some(code), None) => {
            let code = SupportCode::parse(&code);
            Wanted::Code(code.map_err(|error| bad_field("support_code", &error.to_string()))?)
        }
        (None, Some(user)) => Wanted::Person(room.identity(&user)),
        _ => return Err(bad_field("support_code", "give support_code or user_id, one of them")),
    };
    let (board, _) = room.newest_board().await;
    let looked = tokio::task::spawn_blocking({
        let room = room.clone();
        move || {
            let mut found: Vec<Ticket> = Vec::new();
            board.state().each_known(|ticket, whose| {
                let fits = match &wanted {
                    Wanted::Person(person) => *person == whose,
                    Wanted::Code(code) => {
                        room.id_of(&board, ticket).is_some_and(|id| id.support_code() == *code)
                    }
                };
                if fits {
                    found.push(ticket);
                }
                if found.len() < FOUND_MAX {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            });
            let named = found.iter().filter_map(|ticket| board.state().named(*ticket));
            let sights = named.filter_map(|named| room.look(&board, &named).ok());
            sights.map(|sight| picture(&room, &sight)).collect::<Vec<Value>>()
        }
    });
    let tickets = looked.await.map_err(|_| super::internal("a search"))?;
    Ok((StatusCode::OK, json!({ "tickets": tickets })))
}

pub async fn revoke(act: Act) -> Result<(StatusCode, Value), Problem> {
    act.said::<super::Nothing>()?;
    let (room, presented) = named(&act)?;
    let command = Command::End { ticket: presented, how: EndHow::Revoked, by: act.actor() };
    let deed = Deed::Revoke { ticket: presented, reason: None };
    acted(&act, &room, deed, presented, command).await
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
    acted(&act, &room, Deed::Move(presented), presented, command).await
}

async fn acted(
    act: &Act,
    room: &RoomDesk,
    deed: Deed<'_>,
    presented: Presented,
    command: Command,
) -> Result<(StatusCode, Value), Problem> {
    let answer = act.desk.operate(room, &act.caller.id, deed, command).await?;
    let (board, _) = room.board_since(answer.version).await;
    let sight = room.look(&board, &presented)?;
    Ok((StatusCode::OK, picture(room, &sight)))
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
