//! The visitor API: `/v1/rooms/{room}/…` and `/v1/sessions/{ticket}/…`.
//!
//! One file per verb. Looks (status, heartbeat, board) are answered at once from the published
//! board, without a box, a lock or an await; commands wait for the disk.
//! To add a verb: a file, an arm in [`room_route`], an entry in `openapi.rs`, a row in
//! `docs/api.md`.

mod board;
pub(crate) mod claim;
mod hand_over;
pub(crate) mod heartbeat;
pub mod join;
mod leave;
pub mod notify;
mod session;
pub(crate) mod status;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request::Parts};
use hyper::body::Incoming;

use crate::answer::{Sight, VisitorAnswer};
use crate::body::Body;
use crate::caller::TokenHolder;
use crate::cookies;
use crate::cors;
use crate::desk::{Desk, Pending, RoomDesk};
use crate::live;
use crate::problem::{Code, Problem};

/// One request, and all that its answer needs. Handed on in a box: it is large, and it passes
/// through several hands.
#[derive(Debug)]
pub struct Ask {
    pub desk: Arc<Desk>,
    /// The client as far as we trust what we are told.
    pub client: IpAddr,
    pub head: Parts,
    pub body: Option<Incoming>,
}

/// An answer that is there, or one that has to be waited for.
pub enum Answering {
    Now(Response<Body>),
    Later(Pending<'static, Response<Body>>),
}

impl std::fmt::Debug for Answering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Answering::Now(_)) { "Now" } else { "Later" })
    }
}

impl Answering {
    pub fn later(
        answer: impl Future<Output = Result<Response<Body>, Problem>> + Send + 'static,
    ) -> Answering {
        Answering::Later(Box::pin(
            async move { answer.await.unwrap_or_else(Problem::into_response) },
        ))
    }
}

impl From<Result<Response<Body>, Problem>> for Answering {
    fn from(answer: Result<Response<Body>, Problem>) -> Answering {
        Answering::Now(answer.unwrap_or_else(Problem::into_response))
    }
}

impl From<Problem> for Answering {
    fn from(problem: Problem) -> Answering {
        Answering::Now(problem.into_response())
    }
}

/// `rest` is what follows `/v1/rooms/`.
pub fn room_route(ask: Box<Ask>, name_at: usize) -> Answering {
    let path = ask.head.uri.path();
    let Some((name, verb)) = parted(&path[name_at..]) else { return not_found() };
    let room = match ask.desk.room(name) {
        Ok(room) => room,
        Err(problem) => return problem.into(),
    };
    // Same-origin and non-browser requests have nothing to ask here, and pay nothing.
    if !ask.head.headers.contains_key(header::ORIGIN) {
        return room_verb(&ask.head.method.clone(), verb_of(verb), ask, room);
    }
    let verdict = cors::judge(&ask.head.headers, room.settings().as_deref());
    if cors::is_preflight(&ask.head.method, &ask.head.headers) {
        return Answering::Now(cors::preflight(verdict));
    }
    match verdict {
        cors::Verdict::Refused => cors::refused().in_room(room.name()).into(),
        cors::Verdict::NotAsked => room_verb(&ask.head.method.clone(), verb_of(verb), ask, room),
        cors::Verdict::Allowed(origin) => {
            match room_verb(&ask.head.method.clone(), verb_of(verb), ask, room) {
                Answering::Now(mut response) => {
                    cors::allow(&mut response, origin);
                    Answering::Now(response)
                }
                Answering::Later(answer) => Answering::Later(Box::pin(async move {
                    let mut response = answer.await;
                    cors::allow(&mut response, origin);
                    response
                })),
            }
        }
    }
}

/// Before and after the first slash. Names are short, and the general search is made for texts.
pub(crate) fn parted(path: &str) -> Option<(&str, &str)> {
    let at = path.bytes().position(|byte| byte == b'/')?;
    Some((&path[..at], &path[at + 1..]))
}

/// What can be asked of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Join,
    Status,
    Heartbeat,
    Claim,
    Leave,
    HandOver,
    Notify,
    Board,
    LiveTicket,
    Live,
    Stream,
    Unknown,
}

fn verb_of(text: &str) -> Verb {
    match text {
        "join" => Verb::Join,
        "status" => Verb::Status,
        "heartbeat" => Verb::Heartbeat,
        "claim" => Verb::Claim,
        "leave" => Verb::Leave,
        "hand-over" => Verb::HandOver,
        "notify" => Verb::Notify,
        "board" => Verb::Board,
        "live-ticket" => Verb::LiveTicket,
        "live" => Verb::Live,
        "stream" => Verb::Stream,
        _ => Verb::Unknown,
    }
}

fn room_verb(method: &Method, verb: Verb, ask: Box<Ask>, room: Arc<RoomDesk>) -> Answering {
    let posts = !matches!(verb, Verb::Status | Verb::Board | Verb::Live | Verb::Stream);
    let fits = if posts { *method == Method::POST } else { *method == Method::GET };
    if verb == Verb::Unknown {
        return not_found();
    }
    if !fits {
        return wrong_method(if posts { "POST" } else { "GET" });
    }
    match verb {
        Verb::Join => join::join(ask, room),
        Verb::Status => status::status(ask, room),
        Verb::Heartbeat => heartbeat::heartbeat(ask, room),
        Verb::Claim => Answering::later(claim::claim(ask, room)),
        Verb::Leave => Answering::later(leave::leave(ask, room)),
        Verb::HandOver => Answering::later(hand_over::hand_over(ask, room)),
        Verb::Notify => Answering::later(notify::notify(ask, room)),
        Verb::Board => board::board(&ask, &room).into(),
        Verb::LiveTicket => Answering::later(live::ticket(ask, room)),
        Verb::Live => live::websocket(ask, room),
        Verb::Stream => live::stream(ask, room),
        Verb::Unknown => not_found(),
    }
}

/// `rest` is what follows `/v1/sessions/`.
pub fn session_route(ask: Box<Ask>, id_at: usize) -> Answering {
    let path = ask.head.uri.path();
    let Some((id, verb)) = path[id_at..].split_once('/') else { return not_found() };
    let how = match verb {
        "complete" => session::How::Complete,
        "activity" => session::How::Activity,
        _ => return not_found(),
    };
    if ask.head.method != Method::POST {
        return wrong_method("POST");
    }
    let id = id.to_owned();
    Answering::later(session::session(ask, id, how))
}

pub fn not_found() -> Answering {
    Problem::new(Code::NotFound, "see /openapi.json for what there is").into()
}

pub fn wrong_method(allowed: &str) -> Answering {
    let mut response =
        Problem::new(Code::MethodNotAllowed, format!("use {allowed}")).into_response();
    let allow = HeaderValue::from_str(allowed).expect("methods are plain words");
    response.headers_mut().insert(header::ALLOW, allow);
    Answering::Now(response)
}

/// A JSON answer that no cache keeps.
pub fn json(status: StatusCode, bytes: impl Into<Bytes>) -> Response<Body> {
    json_with(HeaderMap::new(), status, bytes.into())
}

fn json_with(mut headers: HeaderMap, status: StatusCode, bytes: Bytes) -> Response<Body> {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let mut response = Response::new(Body::full(bytes));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

impl Ask {
    /// The same as [`json`], for the last that is done with a request: the answer's headers lie
    /// where the request's lay, so that a look asks for no memory to hold them.
    fn json(&mut self, status: StatusCode, bytes: Bytes) -> Response<Body> {
        let mut headers = std::mem::take(&mut self.head.headers);
        headers.clear();
        json_with(headers, status, bytes)
    }

    fn holder(&self, room: &RoomDesk) -> Result<TokenHolder, Problem> {
        room.token_holder(&self.desk, &self.head.method, &self.head.headers)
    }
}

/// Whether a browser is to keep the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cookie {
    Set,
    /// The caller keeps its token by itself.
    Leave,
}

/// A fresh token for the ticket as it is named now, in the answer and in the cookie.
fn with_token(
    desk: &Desk,
    room: &RoomDesk,
    sight: &Sight,
    answer: VisitorAnswer<'_>,
    status: StatusCode,
    cookie: Cookie,
) -> Response<Body> {
    let (holder, issued_s) = (sight.view.holder, desk.now_s() as u32);
    let token = desk.signatures.tokens.write(room.name().as_str(), sight.id, holder, issued_s);
    let answer = VisitorAnswer { token: Some(token.as_str()), ..answer };
    let mut response = json(status, answer.to_bytes());
    if cookie == Cookie::Set {
        let cookie = cookies::set_ticket(room.name(), &token, desk.manners.dev);
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}
