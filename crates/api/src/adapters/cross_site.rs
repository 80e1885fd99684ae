//! Pages of other sites, for the earlier interfaces: the same rule as for our own.
//!
//! These interfaces know no cookies, so a page can only use a token that it was given; the rule
//! still holds for all of them, because a development server takes `/admin/allow` without a key.

use std::future::Future;

use http::Response;

use crate::body::Body;
use crate::cors::{self, Verdict};
use crate::desk::RoomDesk;
use crate::problem::Problem;
use crate::visitor::{Answering, Ask};

/// Answers a preflight, refuses a page that may not ask, and lets one that may read the answer.
pub fn guard<F>(
    ask: Box<Ask>,
    room: Option<&RoomDesk>,
    refuse: fn(Problem) -> Response<Body>,
    answer: impl FnOnce(Box<Ask>) -> F,
) -> Answering
where
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let settings = room.and_then(RoomDesk::settings);
    let verdict = cors::judge(&ask.head.headers, settings.as_deref());
    if cors::is_preflight(&ask.head.method, &ask.head.headers) {
        return Answering::Now(cors::preflight(verdict));
    }
    let origin = match verdict {
        Verdict::Refused => return Answering::Now(refuse(cors::refused())),
        Verdict::NotAsked => None,
        Verdict::Allowed(origin) => Some(origin),
    };
    let answer = answer(ask);
    Answering::Later(Box::pin(async move {
        let mut response = answer.await;
        if let Some(origin) = origin {
            cors::allow(&mut response, origin);
        }
        response
    }))
}
