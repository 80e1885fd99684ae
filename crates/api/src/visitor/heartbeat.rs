//! `POST …/heartbeat`: the visitor is still there, and gets a fresh token.

use std::sync::Arc;

use http::{Response, StatusCode};
use waitroom_core::{Board, Presented};

use super::{Answering, Ask, with_token};
use crate::answer::VisitorAnswer;
use crate::body::Body;
use crate::desk::{Desk, RoomDesk};
use crate::limits::Route;
use crate::problem::Problem;

pub fn heartbeat(ask: Ask, room: Arc<RoomDesk>) -> Answering {
    let presented = match heard(&ask, &room) {
        Ok(presented) => presented,
        Err(problem) => return problem.into(),
    };
    let board = room.handle().board_guard();
    if room.told(presented.ticket) <= board.version() {
        match answer(&ask.desk, &room, &board, &presented) {
            Err(problem) if room.is_behind(&board, &problem) => {}
            answer => return answer.into(),
        }
    }
    drop(board);
    Answering::later(async move {
        let (board, _) = room.board_since(room.handle().committed()).await;
        answer(&ask.desk, &room, &board, &presented)
    })
}

fn heard(ask: &Ask, room: &RoomDesk) -> Result<Presented, Problem> {
    let holder = ask.holder(room)?;
    let who = u128::from_be_bytes(holder.id.to_bytes());
    ask.desk.meter(Route::Heartbeat, who).map_err(|problem| problem.in_room(room.name()))?;
    Ok(holder.presented)
}

fn answer(
    desk: &Desk,
    room: &RoomDesk,
    board: &Board,
    presented: &Presented,
) -> Result<Response<Body>, Problem> {
    let sight = room.look(board, presented)?;
    // As it is named now: a moved ticket is heard of where it went.
    room.handle().beat(sight.view.ticket);
    let answer = VisitorAnswer::of(room, board.state(), &sight);
    Ok(with_token(desk, room, &sight, answer, StatusCode::OK))
}
