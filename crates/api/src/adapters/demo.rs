//! The single-room demo API: `POST /enqueue`, `POST /status`, `POST /admin/allow?n=`.
//!
//! One room, `default`. Errors are our problem documents: the original had none of its own.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use serde::{Deserialize, Serialize};
use waitroom_core::Actor;
use waitroom_pass::Form;

use super::cross_site;
use super::stands::{self, Entry, Held, Stands};
use crate::admin::admit_now;
use crate::answer::Sight;
use crate::body::Body;
use crate::caller::Role;
use crate::desk::{Desk, RoomDesk};
use crate::limits::Route;
use crate::problem::{Code, Problem};
use crate::request::{query, query_number, whole_body};
use crate::visitor::join::{Joiner, place};
use crate::visitor::{Answering, Ask, json, wrong_method};

/// The one room of this interface.
const ROOM: &str = "default";
/// As many as the original let in when nobody said how many.
const ALLOW_BY_DEFAULT: u64 = 10;
const TOKEN_HEADER: &str = "x-queue-token";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Enqueue,
    Status,
    Allow,
}

/// What `/enqueue` and `/status` say.
#[derive(Debug, Default, Serialize)]
struct Told {
    /// Whether the ticket lives: it waits, or was let in.
    in_queue: bool,
    /// 1 is next; 0 = allowed; -1 = not in queue.
    position: i64,
    total_in_queue: u64,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_url: Option<String>,
    /// 0 when nobody knows.
    wait_time_est_seconds: u64,
}

pub fn route(ask: Box<Ask>, verb: Verb) -> Answering {
    let room = match ask.desk.room(ROOM) {
        Ok(room) => room,
        Err(problem) => return problem.into(),
    };
    if ask.head.method != Method::POST && ask.head.method != Method::OPTIONS {
        return wrong_method("POST");
    }
    let serving = room.clone();
    cross_site::guard(ask, Some(&room), Problem::into_response, move |ask| async move {
        let room = serving;
        let answered = match verb {
            _ if ask.head.method != Method::POST => {
                Err(Problem::new(Code::MethodNotAllowed, "use POST"))
            }
            Verb::Enqueue => enqueue(ask, &room).await,
            Verb::Status => status(ask, &room).await,
            Verb::Allow => allow(&ask, &room).await,
        };
        answered.unwrap_or_else(|problem| problem.in_room(room.name()).into_response())
    })
}

/// A place; the one that the caller has already, if it shows its token.
async fn enqueue(ask: Box<Ask>, room: &Arc<RoomDesk>) -> Result<Response<Body>, Problem> {
    let Ask { desk, client, head, .. } = *ask;
    desk.meter(Route::Join, desk.manners.limits.network(client))?;
    let shown = head.headers.get(TOKEN_HEADER).and_then(|it| it.to_str().ok());
    // A token that means nothing here is no reason to be turned away.
    let held = shown.and_then(|text| Held::read(&desk, room, Form::Demo, text).ok());
    let joiner = Joiner { holding: held.map(|held| held.presented), ..Joiner::default() };
    let (sight, _) = place(room, room.settings().as_deref(), joiner).await?;
    answer(&desk, room, &sight).await
}

#[derive(Debug, Deserialize)]
struct Shown {
    token: String,
}

/// Where a ticket stands. The call is also the heartbeat, and there is no other way to a fresh
/// token, so one that has run out is as good as a young one.
async fn status(mut ask: Box<Ask>, room: &Arc<RoomDesk>) -> Result<Response<Body>, Problem> {
    let Some(body) = ask.body.take() else { return Err(no_token()) };
    let manners = &ask.desk.manners;
    let body =
        whole_body(&ask.head.headers, body, manners.body_bytes_max, manners.body_timeout).await?;
    if body.is_empty() {
        return Err(no_token());
    }
    let Shown { token } = serde_json::from_slice(&body)
        .map_err(|error| Problem::new(Code::BadJson, error.to_string()))?;
    let held = Held::read(&ask.desk, room, Form::Demo, &token)?;
    ask.desk.meter(Route::Status, held.who())?;
    room.handle().beat(held.presented.ticket);
    match stands::look(room, &held.presented).await {
        Ok((_, sight)) => answer(&ask.desk, room, &sight).await,
        // It ended so long ago that nothing else is known: certainly not in the queue.
        Err(problem) if matches!(problem.code, Code::TicketForgotten | Code::PlaceLost) => {
            let total_in_queue = room.handle().board_guard().state().waiting();
            Ok(told(&Told { position: -1, total_in_queue, ..Told::default() }))
        }
        Err(problem) => Err(problem),
    }
}

fn no_token() -> Problem {
    Problem::new(Code::BadJson, "send {\"token\": \"…\"}, as it came in X-Queue-Token")
}

async fn answer(desk: &Desk, room: &RoomDesk, sight: &Sight) -> Result<Response<Body>, Problem> {
    let board = room.handle().board();
    let total_in_queue = board.state().waiting();
    let answer = match Stands::of(room, &board, sight) {
        Stands::Waiting(waiting) => Told {
            in_queue: true,
            position: i64::try_from(waiting.position).unwrap_or(i64::MAX),
            total_in_queue: waiting.queue_length,
            wait_time_est_seconds: waiting.wait_s,
            ..Told::default()
        },
        Stands::Inside => {
            let Entry { url, .. } = stands::enter(desk, room, sight).await?;
            Told {
                in_queue: true,
                allowed: true,
                total_in_queue,
                target_url: url,
                ..Told::default()
            }
        }
        Stands::Over(_) => Told { position: -1, total_in_queue, ..Told::default() },
    };
    let mut response = told(&answer);
    if answer.in_queue {
        let token = stands::token(desk, room, Form::Demo, sight);
        let token = HeaderValue::try_from(token).expect("a JWT is plain ASCII");
        response.headers_mut().insert(TOKEN_HEADER, token);
    }
    Ok(response)
}

fn told(answer: &Told) -> Response<Body> {
    json(StatusCode::OK, serde_json::to_vec(answer).expect("an answer is plain data"))
}

/// Lets in the next `n` who wait. A key may come in any of the three headers; development mode
/// takes none, but does not overlook a wrong one.
async fn allow(ask: &Ask, room: &RoomDesk) -> Result<Response<Body>, Problem> {
    let (desk, headers) = (&ask.desk, &ask.head.headers);
    let by = match desk.manners.keyless {
        true if desk.service(headers)?.is_none() => Actor::new("demo"),
        _ => Actor::new(&desk.require(headers, Role::Operator)?.id),
    };
    // `?n=` is the same as no n at all.
    let asked = match query(&ask.head.uri, "n") {
        Some("") => None,
        _ => query_number(&ask.head.uri, "n")?,
    };
    let mut left = asked.filter(|n| *n > 0).unwrap_or(ALLOW_BY_DEFAULT);
    while left > 0 {
        let step = left.min(waitroom_core::ADMIT_NOW_MAX);
        let admitted = admit_now(desk, room, step, by.clone()).await?;
        left -= step;
        if admitted < step {
            // The line is empty or the house is full.
            break;
        }
    }
    let now_ns = u128::from(desk.clock.wall_ms()) * 1_000_000;
    let text = format!("Allowed up to timestamp {now_ns}");
    let mut response = Response::new(Body::full(Bytes::from(text)));
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
