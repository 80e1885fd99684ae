//! `POST …/leave`: the visitor goes; from inside this completes the session.

use std::sync::Arc;

use http::{Response, StatusCode, header};
use waitroom_core::Command;

use super::{Ask, json};
use crate::answer::VisitorAnswer;
use crate::body::Body;
use crate::cookies;
use crate::desk::RoomDesk;
use crate::limits::Route;
use crate::problem::Problem;

pub async fn leave(ask: Box<Ask>, room: Arc<RoomDesk>) -> Result<Response<Body>, Problem> {
    let holder = ask.holder(&room)?;
    let who = u128::from_be_bytes(holder.id.to_bytes());
    ask.desk.meter(Route::Session, who).map_err(|problem| problem.in_room(room.name()))?;
    let (sight, _) = room.act(holder.presented, Command::Leave(holder.presented)).await?;
    let board = room.handle().board_guard();
    let answer = VisitorAnswer::of(&room, board.state(), &sight);
    let mut response = json(StatusCode::OK, answer.to_bytes());
    let cookie = cookies::clear_ticket(room.name(), ask.desk.manners.dev);
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}
