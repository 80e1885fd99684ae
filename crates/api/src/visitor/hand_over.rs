//! `POST …/hand-over`: the place goes to the device that asks; older tokens die.

use std::sync::Arc;

use http::{Response, StatusCode};
use waitroom_core::{Command, Presented, Reply};

use super::{Ask, Cookie, with_token};
use crate::answer::VisitorAnswer;
use crate::body::Body;
use crate::desk::RoomDesk;
use crate::limits::Route;
use crate::problem::{Code, Problem};

pub async fn hand_over(ask: Box<Ask>, room: Arc<RoomDesk>) -> Result<Response<Body>, Problem> {
    let holder = ask.holder(&room)?;
    let who = u128::from_be_bytes(holder.id.to_bytes());
    ask.desk.meter(Route::Session, who).map_err(|problem| problem.in_room(room.name()))?;
    room.handle().beat(holder.presented.ticket);
    let (mut sight, reply) =
        room.act(holder.presented, Command::HandOver(holder.presented)).await?;
    let Reply::HandedOver { holder: new, .. } = reply else {
        return Err(Problem::new(Code::Internal, "a hand-over was answered by something else"));
    };
    sight.view.holder = new;
    sight.presented = Presented { holder: Some(new), ..sight.presented };
    let board = room.handle().board_guard();
    let answer = VisitorAnswer::of(&room, board.state(), &sight);
    Ok(with_token(&ask.desk, &room, &sight, answer, StatusCode::OK, Cookie::Set))
}
