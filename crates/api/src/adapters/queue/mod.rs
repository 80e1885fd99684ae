//! The queue API: `/api/v1/…` and the WebSocket `/ws/queues/{id}`.
//!
//! Lives here: the table of routes and what every call shares (rate limits that tell how one
//! stands, errors in this interface's shape). One file per noun: `positions.rs`, `sessions.rs`,
//! `operators.rs`, `frames.rs` for the WebSocket.
//! A queue is a room, a position a ticket, a session an admitted ticket: the same id for both.
//! To add a route: a row in [`ROUTES`], an arm in [`answer`].

pub(crate) mod frames;
mod operators;
mod positions;
mod refused;
mod rooms;
mod sessions;

use std::sync::Arc;

use http::{HeaderValue, Method, Response, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use waitroom_core::Presented;
use waitroom_core::id::TicketId;

use super::cross_site;
use super::visits::{Traces, network};
use crate::body::Body;
use crate::caller::ApiCaller;
use crate::cors;
use crate::desk::RoomDesk;
use crate::limits::{Route as Limited, Standing};
use crate::problem::{Code, Problem};
use crate::request::whole_body;
use crate::visitor::{self, Answering, Ask};
use refused::Refused;

pub const PREFIX: &str = "/api/v1/";
pub const SOCKET_PREFIX: &str = "/ws/queues/";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Enqueue,
    Status,
    Heartbeat,
    Cancel,
    Session,
    Activity,
    MakeQueue,
    ChangeQueue,
    Stats,
    EndSession,
}

/// What can be asked for; `{id}` stands for one part of the path.
const ROUTES: &[(&str, &str, Verb)] = &[
    ("POST", "queues/{id}/enqueue", Verb::Enqueue),
    ("GET", "queues/{id}/status", Verb::Status),
    ("POST", "queues/{id}/heartbeat", Verb::Heartbeat),
    ("DELETE", "queues/{id}/position", Verb::Cancel),
    ("GET", "sessions/{id}", Verb::Session),
    ("POST", "sessions/{id}/activity", Verb::Activity),
    ("POST", "admin/queues", Verb::MakeQueue),
    ("PATCH", "admin/queues/{id}", Verb::ChangeQueue),
    ("GET", "admin/queues/{id}/stats", Verb::Stats),
    ("DELETE", "admin/sessions/{id}", Verb::EndSession),
];

/// One call, and how the caller stands with the limit that it was counted against.
struct Call {
    ask: Box<Ask>,
    rate: Option<Standing>,
}

/// What a path is about.
enum Place {
    Queue(Arc<RoomDesk>),
    Session(Inside),
    Nothing,
}

/// A session that a path names.
#[derive(Clone, Debug)]
struct Inside {
    room: Arc<RoomDesk>,
    id: TicketId,
    named: Presented,
}

pub fn route(ask: Box<Ask>) -> Answering {
    let path = &ask.head.uri.path()[PREFIX.len()..];
    let fits: Vec<_> =
        ROUTES.iter().filter_map(|row| Some((row.0, row.2, fit(row.1, path)?))).collect();
    let Some((allowed, first, id)) = fits.first().copied() else {
        return refuse(Problem::new(Code::NotFound, "no such route").into());
    };
    let place = match place(&ask, first, id.unwrap_or_default()) {
        Ok(place) => place,
        Err(problem) => return refuse(problem.into()),
    };
    let room = match &place {
        Place::Queue(room) | Place::Session(Inside { room, .. }) => Some(room.clone()),
        Place::Nothing => None,
    };
    let verb = fits.iter().find(|(method, ..)| ask.head.method.as_str() == *method);
    let verb = match verb {
        Some((_, verb, _)) => *verb,
        None if cors::is_preflight(&ask.head.method, &ask.head.headers) => first,
        None => {
            let problem = Problem::new(Code::MethodNotAllowed, format!("use {allowed}"));
            let mut response = Refused::from(problem).into_response();
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
            return Answering::Now(response);
        }
    };
    let refusing = |problem| Refused::from(problem).into_response();
    cross_site::guard(ask, room.as_deref(), refusing, move |ask| serve(ask, verb, place))
}

fn refuse(refused: Refused) -> Answering {
    Answering::Now(refused.into_response())
}

/// The part of `path` that stands for `{id}`, if it has the pattern's shape.
fn fit<'a>(pattern: &str, path: &'a str) -> Option<Option<&'a str>> {
    let mut id = None;
    let mut parts = path.split('/');
    for wanted in pattern.split('/') {
        let part = parts.next()?;
        match wanted {
            "{id}" if !part.is_empty() => id = Some(part),
            wanted if wanted == part => {}
            _ => return None,
        }
    }
    parts.next().is_none().then_some(id)
}

fn place(ask: &Ask, verb: Verb, id: &str) -> Result<Place, Problem> {
    match verb {
        Verb::MakeQueue => Ok(Place::Nothing),
        Verb::Session | Verb::Activity | Verb::EndSession => {
            let unknown = || Problem::new(Code::TicketUnknown, "no queue here has that session");
            let id = TicketId::parse(id).map_err(|_| unknown())?;
            let found = ask.desk.find(id);
            let (room, named) = found.ok_or_else(|| ask.desk.unopened.not_found(unknown()))?;
            Ok(Place::Session(Inside { room, id, named }))
        }
        _ => ask.desk.room(id).map(Place::Queue),
    }
}

async fn serve(ask: Box<Ask>, verb: Verb, place: Place) -> Response<Body> {
    let mut call = Call { ask, rate: None };
    let answered = answer(&mut call, verb, place).await;
    let mut response = answered.unwrap_or_else(Refused::into_response);
    call.tell_rate(&mut response);
    response
}

async fn answer(call: &mut Call, verb: Verb, place: Place) -> Result<Response<Body>, Refused> {
    match (verb, place) {
        (Verb::Enqueue, Place::Queue(room)) => positions::enqueue(call, &room).await,
        (Verb::Status, Place::Queue(room)) => positions::status(call, &room).await,
        (Verb::Heartbeat, Place::Queue(room)) => positions::heartbeat(call, &room).await,
        (Verb::Cancel, Place::Queue(room)) => positions::cancel(call, &room).await,
        (Verb::Session, Place::Session(inside)) => sessions::show(call, &inside).await,
        (Verb::Activity, Place::Session(inside)) => sessions::activity(call, &inside).await,
        (Verb::EndSession, Place::Session(inside)) => operators::end_session(call, &inside).await,
        (Verb::MakeQueue, _) => operators::make(call).await,
        (Verb::ChangeQueue, Place::Queue(room)) => operators::change(call, &room).await,
        (Verb::Stats, Place::Queue(room)) => operators::stats(call, &room).await,
        _ => Err(Problem::new(Code::NotFound, "no such route").into()),
    }
}

/// `GET /ws/queues/{id}`.
pub fn socket_route(ask: Box<Ask>) -> Answering {
    let room = match ask.desk.room(&ask.head.uri.path()[SOCKET_PREFIX.len()..]) {
        Ok(room) => room,
        Err(problem) => return refuse(problem.into()),
    };
    if ask.head.method != Method::GET {
        return refuse(Problem::new(Code::MethodNotAllowed, "use GET").into());
    }
    Answering::Later(Box::pin(async move {
        frames::open(ask, room).await.unwrap_or_else(Refused::into_response)
    }))
}

impl Call {
    /// Counts the call against a limit, and keeps in mind how the caller stands.
    fn meter(&mut self, route: Limited, who: u128) -> Result<(), Problem> {
        let desk = &self.ask.desk;
        match desk.meter(route, who) {
            Ok(standing) => {
                self.rate = standing;
                Ok(())
            }
            Err(problem) => {
                let limit = desk.manners.limits.of(route).map_or(0, |limit| limit.burst);
                let reset_ms = problem.retry_after_ms.unwrap_or(0);
                self.rate = Some(Standing { limit, remaining: 0, reset_ms });
                Err(problem)
            }
        }
    }

    fn tell_rate(&self, response: &mut Response<Body>) {
        let Some(Standing { limit, remaining, reset_ms }) = self.rate else { return };
        let reset_s = (self.ask.desk.clock.wall_ms() + reset_ms).div_ceil(1_000);
        let headers = response.headers_mut();
        headers.insert("x-ratelimit-limit", HeaderValue::from(limit));
        headers.insert("x-ratelimit-remaining", HeaderValue::from(remaining));
        // The second, since 1970, from which nothing is held against the caller.
        headers.insert("x-ratelimit-reset", HeaderValue::from(reset_s));
    }

    /// The body as JSON, whatever its type is called: clients of this interface often leave the
    /// type out, and without cookies there is nothing that the type would protect.
    async fn said<T: DeserializeOwned + Default>(&mut self) -> Result<T, Problem> {
        let Some(body) = self.ask.body.take() else { return Ok(T::default()) };
        let manners = &self.ask.desk.manners;
        let headers = &self.ask.head.headers;
        let bytes = whole_body(headers, body, manners.body_bytes_max, manners.body_timeout).await?;
        if bytes.is_empty() {
            return Ok(T::default());
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| Problem::new(Code::BadJson, error.to_string()))
    }

    /// The service behind a key that was named as one; a bearer is a position's token here.
    fn service(&self) -> Result<Option<ApiCaller>, Problem> {
        let headers = &self.ask.head.headers;
        match headers.contains_key("x-api-key") || headers.contains_key("x-admin-key") {
            true => self.ask.desk.service(headers),
            false => Ok(None),
        }
    }

    fn bearer(&self) -> Option<&str> {
        crate::caller::bearer(&self.ask.head.headers)
    }

    /// Who asks, without what would name a person.
    fn traces(&self, room: &RoomDesk) -> Traces {
        let agent = self.ask.head.headers.get(header::USER_AGENT);
        let hash = |agent: &HeaderValue| {
            let hash = room.keyed_hash(agent.as_bytes());
            hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
        };
        Traces { network: Some(network(self.ask.client)), user_agent: agent.map(hash) }
    }
}

fn told(status: StatusCode, answer: &impl Serialize) -> Response<Body> {
    visitor::json(status, serde_json::to_vec(answer).expect("an answer is plain data"))
}

#[cfg(test)]
mod tests {
    use super::{PREFIX, ROUTES, fit};
    use crate::adapters::OPERATOR_ROUTES;

    #[test]
    fn every_operator_route_has_its_role() {
        for (method, path, _) in ROUTES.iter().filter(|(_, path, _)| path.starts_with("admin/")) {
            let whole = format!("{PREFIX}{path}");
            let known = OPERATOR_ROUTES.iter().any(|it| it.0 == *method && it.1 == whole);
            assert!(known, "{method} {whole} has no role in OPERATOR_ROUTES");
        }
    }

    #[test]
    fn a_path_fits_a_pattern_part_by_part() {
        assert_eq!(fit("queues/{id}/status", "queues/spring/status"), Some(Some("spring")));
        assert_eq!(fit("admin/queues", "admin/queues"), Some(None));
        for other in ["queues//status", "queues/a/status/", "queues/a/b/status", "queues/a"] {
            assert_eq!(fit("queues/{id}/status", other), None, "{other}");
        }
    }
}
