//! Interfaces that clients of earlier systems speak, kept as they were.
//!
//! Lives here: their addresses, field names, codes and tokens. Two of them:
//! - `demo.rs`: one room, three calls (`/enqueue`, `/status`, `/admin/allow`);
//! - `queue/`: `/api/v1` and its WebSocket `/ws/queues/{id}`;
//!
//! and in `root.rs` the two addresses that their operators watch, `/health` and `/metrics`.
//! Stays out: decisions. Everything is a look at the board or a command of the desk that our own
//! API uses as well; what the words mean here is in `docs/adapters.md`.
//! The only state is [`Memory`]: bounded, of this instance, gone with it.
//! To add another earlier interface: a file here, an arm in [`route`].

mod cross_site;
mod demo;
pub(crate) mod queue;
mod root;
mod stands;
mod today;
mod visits;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::Method;
use waitroom_store::RoomName;

use crate::caller::Role;
use crate::visitor::{Answering, Ask, not_found, wrong_method};
use today::Today;
use visits::Visits;

/// What the earlier interfaces remember by themselves, because no log holds it: pages looked at
/// inside, and how the day went so far. A restart forgets it, other instances do not see it, and
/// nothing is decided by it.
#[derive(Debug, Default)]
pub struct Memory {
    visits: Mutex<Visits>,
    /// One for each room that was asked about; rooms are few.
    today: Mutex<HashMap<RoomName, Arc<Mutex<Today>>>>,
    /// Held while a room is made, so that of two who make the same one learns that it exists.
    making: tokio::sync::Mutex<()>,
}

impl Memory {
    fn visits(&self) -> std::sync::MutexGuard<'_, Visits> {
        self.visits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the earlier interfaces let operators do, with the role that it takes. The handlers ask for
/// it; a test holds both to each other, and to the table of `/api/v1`.
pub const OPERATOR_ROUTES: &[(&str, &str, Role)] = &[
    ("POST", "/admin/allow", Role::Operator),
    ("POST", "/api/v1/admin/queues", Role::Owner),
    ("PATCH", "/api/v1/admin/queues/{id}", Role::Owner),
    ("GET", "/api/v1/admin/queues/{id}/stats", Role::Viewer),
    ("DELETE", "/api/v1/admin/sessions/{id}", Role::Operator),
];

/// Whatever is at an address that our own interface does not know.
pub fn route(ask: Box<Ask>) -> Answering {
    let (method, path) = (&ask.head.method, ask.head.uri.path());
    let get = *method == Method::GET || *method == Method::HEAD;
    match path {
        "/enqueue" => demo::route(ask, demo::Verb::Enqueue),
        "/status" => demo::route(ask, demo::Verb::Status),
        "/admin/allow" => demo::route(ask, demo::Verb::Allow),
        "/health" | "/metrics" if !get => wrong_method("GET"),
        "/health" => root::health(&ask.desk),
        "/metrics" => root::metrics(&ask),
        _ if path.starts_with(queue::PREFIX) => queue::route(ask),
        _ if path.starts_with(queue::SOCKET_PREFIX) => queue::socket_route(ask),
        _ => not_found(),
    }
}
