//! The operators' listener: `/admin/v1`, with API keys and roles.
//!
//! Lives here: the table of routes, each with the role it takes; one file per noun.
//! To add a route: a row in [`ROUTES`]. A row without a role does not compile, and a request that
//! no row fits is refused before anything is looked at.

mod gate;
mod rooms;
mod tickets;

pub use rooms::admit_now;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::Service;
use serde_json::Value;

use crate::body::Body;
use crate::caller::{ApiCaller, Role};
use crate::desk::{Desk, Pending, RoomDesk};
use crate::problem::{Code, Problem};
use crate::public::Answer;
use crate::request::whole_body;
use crate::visitor::{Answering, json, not_found, wrong_method};

/// One request of an operator, after the key was checked.
#[derive(Debug)]
pub struct Act {
    pub desk: Arc<Desk>,
    pub caller: ApiCaller,
    pub headers: HeaderMap,
    pub room: Option<String>,
    pub id: Option<String>,
    pub body: Bytes,
}

type Handler = fn(Act) -> Pending<'static, Result<(StatusCode, Value), Problem>>;

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
            handler: |act| Box::pin($handler(act)),
        },)*];
    };
}

routes! {
    "GET" "/admin/v1/rooms" Viewer rooms::list, "", "All rooms, and how they stand";
    "GET" "/admin/v1/rooms/{room}" Viewer rooms::show, "", "One room: its settings, and how it stands";
    "PUT" "/admin/v1/rooms/{room}" Owner rooms::put, "RoomDocument", "Make a room, or put new settings in place of the old; the same twice changes nothing";
    "POST" "/admin/v1/rooms/{room}/pause" Operator rooms::pause, "Reason", "Admit nobody for now; everyone keeps their place and reads the reason";
    "POST" "/admin/v1/rooms/{room}/maintenance" Operator rooms::maintenance, "ReasonOrNone", "Show the maintenance page, with a reason";
    "POST" "/admin/v1/rooms/{room}/resume" Operator rooms::resume, "", "Go on after a pause or maintenance";
    "POST" "/admin/v1/rooms/{room}/admit" Operator rooms::admit, "Count", "Let the next people in now, within max_active";
    "POST" "/admin/v1/rooms/{room}/finish" Operator rooms::finish, "ReasonOrNone", "The sale is over: waiting tickets end, with a reason";
    "POST" "/admin/v1/rooms/{room}/reopen" Operator rooms::reopen, "", "The sale goes on after all";
    "GET" "/admin/v1/rooms/{room}/tickets/{id}" Viewer tickets::show, "", "One ticket";
    "POST" "/admin/v1/rooms/{room}/tickets/{id}/revoke" Operator tickets::revoke, "", "End a ticket or a session";
    "POST" "/admin/v1/rooms/{room}/tickets/{id}/move" Operator tickets::move_to, "Lane", "Put a waiting ticket at the end of another lane";
    "POST" "/admin/v1/rooms/{room}/staff-pass" Operator gate::staff_pass, "", "A pass for somebody of the house, good for twelve hours";
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
    type Future = Answer;

    fn call(&self, request: Request<Incoming>) -> Answer {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        if let "/health/live" | "/health/ready" = path {
            return Answering::Now(json(StatusCode::OK, b"{\"status\":\"ok\"}".to_vec())).into();
        }
        let mut fits = ROUTES.iter().filter_map(|it| Some((it, fit(it.path, path)?))).peekable();
        if fits.peek().is_none() {
            return not_found().into();
        }
        let found = fits.find(|(route, _)| head.method.as_str() == route.method);
        let Some((route, (room, id))) = found else {
            let here = ROUTES.iter().filter(|it| fit(it.path, path).is_some());
            let methods: Vec<&str> = here.map(|it| it.method).collect();
            return wrong_method(&methods.join(", ")).into();
        };
        let caller = match self.desk.require(&head.headers, route.role) {
            Ok(caller) => caller,
            Err(problem) => return Answering::from(problem).into(),
        };
        let (desk, handler) = (self.desk.clone(), route.handler);
        Answering::later(async move {
            let (bytes_max, within) =
                (desk.manners.admin_body_bytes_max, desk.manners.body_timeout);
            let body = whole_body(&head.headers, body, bytes_max, within).await?;
            let headers = head.headers;
            let (status, value) = handler(Act { desk, caller, headers, room, id, body }).await?;
            Ok(json(status, value.to_string().into_bytes()))
        })
        .into()
    }
}

/// The parts of `path` that stand for `{room}` and `{id}`, if it has the pattern's shape.
fn fit(pattern: &str, path: &str) -> Option<(Option<String>, Option<String>)> {
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
        self.desk.room(self.room.as_deref().unwrap_or_default())
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
