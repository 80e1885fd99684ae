//! The operators' listener: `/admin/v1`, with API keys and roles.
//!
//! Lives here: the table of routes, each with the role it takes; one file per noun.
//! To add a route: a row in [`ROUTES`]. A row without a role does not compile, and a request that
//! no row fits is refused before anything is looked at.

pub mod acting;
mod cluster;
mod console;
mod events;
mod gate;
mod keys;
pub mod office;
mod picture;
mod report;
mod rooms;
mod tickets;
pub mod trail;

pub use rooms::{LIVE_KEYS, admit_now};

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use hyper::service::Service;
use serde_json::Value;

use crate::body::Body;
use crate::caller::{ApiCaller, Role};
use crate::desk::{Desk, Pending, RoomDesk};
use crate::health;
use crate::metrics::{self, Door, Timed, Watched};
use crate::problem::{Code, Problem};
use crate::request::whole_body;
use crate::visitor::{Answering, json, not_found, wrong_method};

/// One request of an operator, after the key was checked.
#[derive(Debug)]
pub struct Act {
    pub desk: Arc<Desk>,
    pub caller: ApiCaller,
    pub headers: HeaderMap,
    pub uri: Uri,
    pub room: Option<String>,
    pub id: Option<String>,
    pub body: Bytes,
}

/// What an operator is answered.
#[derive(Debug)]
pub enum Told {
    Json(StatusCode, Value),
    Csv(String),
}

impl From<(StatusCode, Value)> for Told {
    fn from((status, value): (StatusCode, Value)) -> Told {
        Told::Json(status, value)
    }
}

impl Told {
    fn into_response(self) -> Response<Body> {
        match self {
            Told::Json(status, value) => json(status, value.to_string().into_bytes()),
            Told::Csv(text) => {
                let mut response = json(StatusCode::OK, text.into_bytes());
                let kind = HeaderValue::from_static("text/csv; charset=utf-8");
                response.headers_mut().insert(header::CONTENT_TYPE, kind);
                response
            }
        }
    }
}

type Handler = fn(Act) -> Pending<'static, Result<Told, Problem>>;

/// What an operator can ask for. `{room}` and `{id}` stand for one part of the path.
#[derive(Clone, Copy)]
pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
    pub role: Role,
    pub summary: &'static str,
    /// The schema of the body in `openapi.rs`; empty where there is none.
    pub body: &'static str,
    handler: Handler,
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ({})", self.method, self.path, self.role.word())
    }
}

macro_rules! routes {
    ($($method:literal $path:literal $role:ident $handler:path, $body:literal, $summary:literal;)*) => {
        pub const ROUTES: &[Route] = &[$(Route {
            method: $method,
            path: $path,
            role: Role::$role,
            summary: $summary,
            body: $body,
            handler: |act| Box::pin(async move { $handler(act).await.map(Told::from) }),
        },)*];
    };
}

routes! {
    "GET" "/admin/v1/me" Viewer keys::me, "", "Who this key is";
    "GET" "/admin/v1/keys" Owner keys::list, "", "All API keys, without their texts";
    "POST" "/admin/v1/keys" Owner keys::create, "NewKey", "Make an API key; its text is in this answer and nowhere else";
    "POST" "/admin/v1/keys/{id}/rotate" Owner keys::rotate, "Overlap", "Make the key that follows this one; the old one works on for the overlap";
    "DELETE" "/admin/v1/keys/{id}" Owner keys::revoke, "", "End an API key at once";
    "GET" "/admin/v1/audit" Viewer trail::audit, "", "What operators did, oldest first: ?after=N&limit=100&room=R";
    "GET" "/admin/v1/rooms" Viewer rooms::list, "", "All rooms, and how they stand";
    "GET" "/admin/v1/rooms/{room}" Viewer rooms::show, "", "One room: its settings, and how it stands";
    "PUT" "/admin/v1/rooms/{room}" Owner rooms::put, "RoomDocument", "Make a room, or put new settings in place of the old; the same twice changes nothing";
    "PATCH" "/admin/v1/rooms/{room}" Operator rooms::patch, "RoomDocument", "Change what the document names; an operator may change rate, burst, max_active, max_waiting and message, an owner everything";
    "POST" "/admin/v1/rooms/{room}/drain" Operator rooms::drain, "Reason", "Take nobody new; those in line are still let in, and everybody reads the reason";
    "GET" "/admin/v1/rooms/{room}/report" Viewer report::report, "", "What happened so far, in numbers: ?format=json or csv";
    "GET" "/admin/v1/rooms/{room}/log" Viewer trail::log, "", "Events of the room, oldest first: ?after=N&limit=100";
    "GET" "/admin/v1/rooms/{room}/tickets" Viewer tickets::find, "", "Tickets by ?support_code= or ?user_id=";
    "POST" "/admin/v1/rooms/{room}/pause" Operator rooms::pause, "Reason", "Admit nobody for now; everyone keeps their place and reads the reason";
    "POST" "/admin/v1/rooms/{room}/maintenance" Operator rooms::maintenance, "ReasonOrNone", "Show the maintenance page, with a reason";
    "POST" "/admin/v1/rooms/{room}/resume" Operator rooms::resume, "", "Go on after a pause, maintenance or drain";
    "POST" "/admin/v1/rooms/{room}/admit" Operator rooms::admit, "Count", "Let the next people in now, within max_active";
    "POST" "/admin/v1/rooms/{room}/finish" Operator rooms::finish, "ReasonOrNone", "The sale is over: waiting tickets end, with a reason";
    "POST" "/admin/v1/rooms/{room}/reopen" Operator rooms::reopen, "", "The sale goes on after all";
    "GET" "/admin/v1/rooms/{room}/tickets/{id}" Viewer tickets::show, "", "One ticket";
    "POST" "/admin/v1/rooms/{room}/tickets/{id}/revoke" Operator tickets::revoke, "", "End a ticket or a session";
    "POST" "/admin/v1/rooms/{room}/tickets/{id}/move" Operator tickets::move_to, "Lane", "Put a waiting ticket at the end of another lane";
    "GET" "/admin/v1/rooms/{room}/gates/{id}" Operator gate::hear, "", "For a gate elsewhere: who ended early, and by ?confirmed= which version it goes by";
    "POST" "/admin/v1/rooms/{room}/staff-pass" Operator gate::staff_pass, "", "A pass for somebody of the house, good for twelve hours";
    "GET" "/admin/v1/events" Viewer events::sinks, "", "Where events go, and how far each sink is behind in each room";
    "POST" "/admin/v1/rooms/{room}/events/{id}/replay" Operator events::replay, "From", "Tell the sink {id} the room's events again, from one on";
    "GET" "/admin/v1/cluster" Viewer cluster::show, "", "Every instance that shares these rooms, and who owns which";
    "GET" "/admin/v1/dead-letters" Viewer events::dead, "", "Messages that a webhook did not take, without their bodies";
    "GET" "/admin/v1/rooms/{room}/dead-letters/{id}" Operator events::dead_letter, "", "One of them, with its body";
    "POST" "/admin/v1/rooms/{room}/dead-letters/{id}/replay" Operator events::replay_dead, "", "Send it once more, with its old id; it goes when it is taken";
    "DELETE" "/admin/v1/rooms/{room}/dead-letters/{id}" Operator events::drop_dead, "", "Throw it away";
    "GET" "/admin/v1/gate" Viewer gate::report, "", "What the gate did: verdicts and bypasses of every site";
}

/// Answers the requests of one connection.
#[derive(Clone, Debug)]
pub struct Admin {
    desk: Arc<Desk>,
}

impl Admin {
    pub fn new(desk: Arc<Desk>) -> Admin {
        Admin { desk }
    }
}

impl Service<Request<Incoming>> for Admin {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Timed;

    fn call(&self, request: Request<Incoming>) -> Timed {
        let (method, uri) = (request.method().as_str(), request.uri());
        let watched = Watched::begin(Door::Admin, method, uri.path(), None, request.headers());
        Timed::of(watched, &self.desk, self.answer(request))
    }
}

impl Admin {
    fn answer(&self, request: Request<Incoming>) -> Answering {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        match path {
            "/health/live" => return health::live(),
            "/health/ready" => return health::ready(&self.desk, health::Reader::Operator),
            "/metrics" if head.method == http::Method::GET => {
                return metrics::answer(&self.desk, &head.headers).into();
            }
            "/metrics" => return wrong_method("GET"),
            _ => {}
        }
        if path == "/console" || path.starts_with("/console/") {
            return console::answer(&head.method, path, &head.headers);
        }
        if path == "/docs" {
            let get = head.method == Method::GET || head.method == Method::HEAD;
            let answer = if get { crate::openapi_page::answer() } else { wrong_method("GET") };
            return answer;
        }
        let mut fits = ROUTES.iter().filter_map(|it| Some((it, fit(it.path, path)?))).peekable();
        if fits.peek().is_none() {
            return not_found();
        }
        let found = fits.find(|(route, _)| head.method.as_str() == route.method);
        let Some((route, (room, id))) = found else {
            let here = ROUTES.iter().filter(|it| fit(it.path, path).is_some());
            let methods: Vec<&str> = here.map(|it| it.method).collect();
            return wrong_method(&methods.join(", "));
        };
        let caller = match self.desk.require(&head.headers, route.role) {
            Ok(caller) => caller,
            Err(problem) => return problem.into(),
        };
        let (desk, handler) = (self.desk.clone(), route.handler);
        Answering::later(async move {
            let (bytes_max, within) =
                (desk.manners.admin_body_bytes_max, desk.manners.body_timeout);
            let body = whole_body(&head.headers, body, bytes_max, within).await?;
            let (headers, uri) = (head.headers, head.uri);
            let who = caller.id.clone();
            let on = room.clone().unwrap_or_default();
            let done = handler(Act { desk, caller, headers, uri, room, id, body }).await;
            if route.method != "GET" {
                // Whoever reads the log sees who did what; the body may hold secrets and stays out.
                let act = format_args!("{} {}", route.method, route.path);
                match &done {
                    Ok(_) => tracing::info!(%who, %act, room = on, "operator act"),
                    Err(problem) => {
                        let code = problem.code.text();
                        tracing::warn!(%who, %act, room = on, code, "operator act refused");
                    }
                }
            }
            Ok(done?.into_response())
        })
    }
}

/// The parts of `path` that stand for `{room}` and `{id}`, if it has the pattern's shape.
pub(crate) fn fit(pattern: &str, path: &str) -> Option<(Option<String>, Option<String>)> {
    let (mut room, mut id) = (None, None);
    let mut parts = path.split('/');
    for wanted in pattern.split('/') {
        let part = parts.next()?;
        match wanted {
            "{room}" => room = Some(part.to_owned()),
            "{id}" => id = Some(part.to_owned()),
            wanted if wanted == part => {}
            _ => return None,
        }
    }
    parts.next().is_none().then_some((room, id))
}

/// The body of a request that needs none: nothing, or an empty object.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl Act {
    fn room(&self) -> Result<Arc<RoomDesk>, Problem> {
        let found = self.desk.room(self.room.as_deref().unwrap_or_default());
        found.map_err(|problem| self.desk.unopened.told_to_operators(problem))
    }

    fn said<T: serde::de::DeserializeOwned + Default>(&self) -> Result<T, Problem> {
        Ok(crate::request::json(&self.headers, &self.body)?.unwrap_or_default())
    }

    fn actor(&self) -> waitroom_core::Actor {
        waitroom_core::Actor::new(&self.caller.id)
    }
}

fn internal(what: &str) -> Problem {
    Problem::new(Code::Internal, format!("{what} was answered by something else"))
}
