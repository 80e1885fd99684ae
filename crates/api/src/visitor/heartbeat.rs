//! `POST …/heartbeat`: the visitor is still there, and gets the token to go on with: the same one
//! while it is young, then a fresh one, also in the cookie if that is where the old one came from.

use std::sync::Arc;

use http::{Response, StatusCode};
use waitroom_core::Board;

use super::{Answering, Ask, Cookie, with_token};
use crate::answer::{Sight, VisitorAnswer};
use crate::body::Body;
use crate::caller::{TokenHolder, token_text};
use crate::desk::RoomDesk;
use crate::limits::Route;
use crate::problem::Problem;

/// A token of that age is replaced. It would be good for as long as the ticket; a newer one moves
/// on to newer keys, and renews the cookie that holds it.
const FRESH_S: u64 = 600;

pub fn heartbeat(mut ask: Box<Ask>, room: Arc<RoomDesk>) -> Answering {
    let holder = match heard(&ask, &room) {
        Ok(holder) => holder,
        Err(problem) => return problem.into(),
    };
    let board = room.handle().board_guard();
    if room.told_more(&board, holder.presented.ticket).is_none() {
        match answer(&mut ask, &room, &board, &holder, false) {
            Err(problem) if room.is_behind(&board, &problem) => {}
            answer => return answer.into(),
        }
    }
    drop(board);
    Answering::later(async move {
        let (board, stale) = room.newest_board().await;
        let answer = answer(&mut ask, &room, &board, &holder, stale);
        answer.map_err(|problem| room.waited(stale, problem))
    })
}

fn heard(ask: &Ask, room: &RoomDesk) -> Result<TokenHolder, Problem> {
    let holder = ask.holder(room)?;
    ask.desk
        .meter(Route::Heartbeat, holder.who())
        .map_err(|problem| problem.in_room(room.name()))?;
    Ok(holder)
}

/// Whether the token that came is the one to go on with.
pub(crate) fn goes_on(holder: &TokenHolder, sight: &Sight, now_s: u64) -> bool {
    let same = sight.id == holder.id && Some(sight.view.holder) == holder.presented.holder;
    same && holder.newest && now_s.saturating_sub(u64::from(holder.issued_s)) < FRESH_S
}

fn answer(
    ask: &mut Ask,
    room: &RoomDesk,
    board: &Board,
    holder: &TokenHolder,
    stale: bool,
) -> Result<Response<Body>, Problem> {
    let desk = &ask.desk;
    let mut sight = room.hear(board, &holder.presented)?;
    sight.stale = stale;
    let mut answer = VisitorAnswer::of(room, board.state(), &sight);
    if goes_on(holder, &sight, desk.now_s()) {
        answer.token = token_text(desk, room, &ask.head.headers);
        let bytes = answer.to_bytes();
        return Ok(ask.json(StatusCode::OK, bytes));
    }
    let cookie = if holder.by_cookie { Cookie::Set } else { Cookie::Leave };
    Ok(with_token(desk, room, &sight, answer, StatusCode::OK, cookie))
}
