//! `GET …/status`: where a ticket stands. Answered from the board; with `wait`, when that changes.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header};
use tokio::time::Instant;
use waitroom_core::{Board, Presented};

use super::{Answering, Ask};
use crate::answer::{Sight, VisitorAnswer, room_status};
use crate::body::Body;
use crate::desk::RoomDesk;
use crate::limits::Route;
use crate::problem::{Problem, status_word};
use crate::request::{bad_field, query, query_number};
use crate::written::{Out, written};

/// Proxies cut quiet requests after 30 to 60 seconds.
const WAIT_S_MAX: u64 = 30;

pub fn status(mut ask: Box<Ask>, room: Arc<RoomDesk>) -> Answering {
    let holder = match ask.holder(&room) {
        Ok(holder) => holder,
        Err(problem) => return problem.into(),
    };
    if let Err(problem) = ask.desk.meter(Route::Status, holder.who()) {
        return problem.in_room(room.name()).into();
    }
    let (wait, seen) = match ask.head.uri.query() {
        None => (Duration::ZERO, 0),
        Some(_) => match asked(&ask) {
            Ok(asked) => asked,
            Err(problem) => return problem.in_room(room.name()).into(),
        },
    };
    let board = room.handle().board_guard();
    let seen = seen.max(room.told_more(&board, holder.presented.ticket).unwrap_or(0));
    if wait.is_zero() && seen <= board.version() {
        match answer(&mut ask, &room, &board, &holder.presented, false) {
            Err(problem) if room.is_behind(&board, &problem) => {}
            answer => return answer.into(),
        }
    }
    // Behind what the client knows, or not yet knowing the ticket at all.
    let unknown = board.version() >= seen && wait.is_zero();
    drop(board);
    let seen = if unknown { None } else { Some(seen) };
    Answering::later(long_poll(ask, room, holder.presented, wait, seen))
}

fn asked(ask: &Ask) -> Result<(Duration, u64), Problem> {
    let seen = query_number(&ask.head.uri, "version")?.unwrap_or(0);
    let wait = match query(&ask.head.uri, "wait") {
        None => 0,
        // Seconds, with or without their unit.
        Some(text) => text
            .strip_suffix('s')
            .unwrap_or(text)
            .parse()
            .map_err(|_| bad_field("wait", "whole seconds, at most 30"))?,
    };
    Ok((Duration::from_secs(wait.min(WAIT_S_MAX)), seen))
}

/// Answers as soon as something differs from what the client has (its `If-None-Match`) or, where
/// it does not say, from what it would have been told on arrival. `seen` is the version that the
/// client knows of; none when it is only known that the board is too old.
async fn long_poll(
    mut ask: Box<Ask>,
    room: Arc<RoomDesk>,
    presented: Presented,
    wait: Duration,
    seen: Option<u64>,
) -> Result<Response<Body>, Problem> {
    let until = Instant::now() + wait;
    let (mut board, stale) = match seen {
        Some(seen) => room.board_since(seen).await,
        None => room.newest_board().await,
    };
    let first = room.look(&board, &presented).map_err(|problem| room.waited(stale, problem))?;
    // Whoever waits for an answer is there, from the first moment on.
    room.handle().beat(first.view.ticket);
    let matched = ask.head.headers.get(header::IF_NONE_MATCH).cloned();
    let had = matched.unwrap_or_else(|| tag(&board, &first));
    let mut draining = ask.desk.draining.subscribe();
    loop {
        let sight = room.look(&board, &presented)?;
        if tag(&board, &sight) != had {
            break;
        }
        let newer = tokio::select! {
            newer = tokio::time::timeout_at(until, room.handle().next_board(board.version())) => newer.ok(),
            // An instance that goes down answers what it knows; the next request finds another.
            _ = draining.wait_for(|draining| *draining) => None,
        };
        match newer {
            Some(newer) => board = newer,
            None => break,
        }
    }
    answer(&mut ask, &room, &board, &presented, stale)
}

fn answer(
    ask: &mut Ask,
    room: &RoomDesk,
    board: &Board,
    presented: &Presented,
    stale: bool,
) -> Result<Response<Body>, Problem> {
    let mut sight = room.hear(board, presented)?;
    sight.stale = stale;
    let tag = tag(board, &sight);
    if ask.head.headers.get(header::IF_NONE_MATCH) == Some(&tag) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().insert(header::ETAG, tag);
        return Ok(response);
    }
    let answer = VisitorAnswer::of(room, board.state(), &sight);
    let bytes = answer.to_bytes();
    let mut response = ask.json(StatusCode::OK, bytes);
    response.headers_mut().insert(header::ETAG, tag);
    Ok(response)
}

/// What a visitor would call a change: the status, the position, and what the room says.
fn tag(board: &Board, sight: &Sight) -> HeaderValue {
    let text = written(|text| put_tag(board, sight, text));
    HeaderValue::from_maybe_shared(text).expect("words and digits are a header value")
}

pub(crate) fn put_tag(board: &Board, sight: &Sight, text: &mut Out) {
    let (room_status, reason) = room_status(board.state());
    let position = sight.view.position.map_or(u64::MAX, |position| position);
    text.add("\"");
    text.add(status_word(sight.view.status));
    text.number("-", position);
    text.add("-");
    text.add(room_status);
    if let Some(reason) = reason {
        let fold = |sum: u64, byte| sum.wrapping_mul(33) ^ u64::from(byte);
        text.number("-", reason.bytes().fold(5381, fold));
    }
    text.add("\"");
}
