//! What this instance counts, and `GET /metrics` of the admin listener.
//!
//! Lives here: counters that requests move ([`Metrics`]), and the page on which they are told
//! together with what rooms and listeners count themselves. To add a figure: a row in
//! `families.rs`, its lines in `page.rs`, and `docs/metrics.md` written anew (a test says how).
//! Stays out: the few lines of `/metrics` on the public listener, which clients of an earlier
//! system read (`adapters/root.rs`).

mod families;
mod page;
mod process;
mod routes;
mod timed;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use waitroom_listen::Stats;
use waitroom_watch::{Counter, Histogram, Page, Scale};

use crate::body::Body;
use crate::caller::Role;
use crate::desk::Desk;
use crate::limits::Route;
use crate::problem::{Code, Problem};

pub use families::FAMILIES;
pub(crate) use routes::{Door, RouteId};
pub use timed::Timed;
pub(crate) use timed::Watched;

/// From a look at a board (microseconds) to a long poll.
const REQUEST_SCALE: Scale = Scale {
    bounds: &[
        25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
        1_000_000, 5_000_000, 30_000_000,
    ],
    per_unit: 1_000_000,
};

/// Classes of answers: informational (a WebSocket was opened) to our own failure.
pub(crate) const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Credentials that were missing or not good, told apart by the problem that was answered.
const TOKENS: [(&str, &str, Code); 7] = [
    ("ticket", "missing", Code::TokenMissing),
    ("ticket", "invalid", Code::TokenInvalid),
    ("ticket", "cookie_alone", Code::HeaderRequired),
    ("ticket", "moved", Code::MovedElsewhere),
    ("api_key", "missing", Code::ApiKeyMissing),
    ("api_key", "invalid", Code::ApiKeyInvalid),
    ("join_token", "invalid", Code::JoinTokenInvalid),
];

/// Something that can be read again while the server runs, and how that went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    Done,
    Refused,
}

#[derive(Debug)]
pub struct Metrics {
    routes: Vec<RouteFigures>,
    problems: [Counter; Code::ALL.len()],
    limited: [Counter; LIMITED.len()],
    reloads: [Counter; 2],
    /// Pass keys that began or ceased to sign, or were published.
    pub key_changes: Counter,
    pub passes: Counter,
    open: AtomicBool,
    listeners: OnceLock<Vec<(&'static str, Arc<Stats>)>>,
}

const LIMITED: [&str; 4] = ["join", "status", "heartbeat", "session"];

#[derive(Debug)]
struct RouteFigures {
    classes: [Counter; CLASSES.len()],
    seconds: Histogram,
}

impl Default for Metrics {
    fn default() -> Metrics {
        let figures = || RouteFigures {
            classes: Default::default(),
            seconds: Histogram::new(&REQUEST_SCALE),
        };
        Metrics {
            routes: (0..routes::count()).map(|_| figures()).collect(),
            problems: std::array::from_fn(|_| Counter::default()),
            limited: Default::default(),
            reloads: Default::default(),
            key_changes: Counter::default(),
            passes: Counter::default(),
            open: AtomicBool::new(false),
            listeners: OnceLock::new(),
        }
    }
}

impl Metrics {
    /// Anybody who reaches the admin listener may read the page, without a key: for scrapers
    /// within a private network.
    pub fn open_to_all(&self) {
        self.open.store(true, Ordering::Relaxed);
    }

    /// The listeners of this instance, by name; said once.
    pub fn listeners(&self, listeners: Vec<(&'static str, Arc<Stats>)>) {
        let _said_once = self.listeners.set(listeners);
    }

    pub fn reloaded(&self, reload: Reload) {
        self.reloads[reload as usize].one();
    }

    pub(crate) fn limited(&self, route: Route) {
        let at = match route {
            Route::Join => 0,
            Route::Status => 1,
            Route::Heartbeat => 2,
            Route::Session => 3,
        };
        self.limited[at].one();
    }

    pub(crate) fn problem(&self, code: Code) {
        self.problems[code as usize].one();
    }

    pub(crate) fn answered(&self, route: RouteId, status: u16, micros: u64) {
        let figures = &self.routes[route.index()];
        let class = (usize::from(status) / 100).clamp(1, CLASSES.len()) - 1;
        figures.classes[class].one();
        figures.seconds.note(micros);
    }
}

/// Everything that is counted, as Prometheus reads it.
pub fn text(desk: &Desk) -> String {
    page::write(desk)
}

/// `GET /metrics` of the admin listener.
pub(crate) fn answer(desk: &Desk, headers: &HeaderMap) -> Result<Response<Body>, Problem> {
    if !desk.metrics.open.load(Ordering::Relaxed) {
        desk.require(headers, Role::Viewer)?;
    }
    let mut response = Response::new(Body::full(Bytes::from(text(desk))));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(Page::CONTENT_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_has_a_counter_of_its_own() {
        let metrics = Metrics::default();
        for (at, code) in Code::ALL.iter().enumerate() {
            metrics.problem(*code);
            assert_eq!(metrics.problems[at].get(), 1, "{code:?}");
        }
    }

    #[test]
    fn an_answer_is_counted_by_its_class() {
        let metrics = Metrics::default();
        let route = RouteId::of(Door::Public, "GET", "/v1/rooms/spring/board", None);
        for status in [101, 200, 201, 304, 404, 429, 503, 999] {
            metrics.answered(route, status, 30);
        }
        let counts = metrics.routes[route.index()].classes.each_ref().map(Counter::get);
        assert_eq!(counts, [1, 2, 1, 2, 2]);
    }
}
