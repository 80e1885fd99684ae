//! The one place that turns a verdict into an answer.
//!
//! The answer to somebody without a ticket is the same for everybody who asks for the same
//! address in the same language: it sets no cookie and may be kept for a second, so a cache in
//! front takes the crowd. Anything personal is `no-store`.

use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;
use waitroom_api::{Code, Problem};

use crate::BASE;
use crate::body::Body;
use crate::cookies;
use crate::facts::{Facts, PASS};
use crate::gate::{Gate, SiteGate};
use crate::negotiate::{Taste, Wants, takes_gzip, wants};
use crate::page::{self, Page};
use crate::room::GateRoom;
use crate::site::Waiting;
use crate::target;
use crate::verdict::{Refusal, Why};

/// What a shared cache must tell apart: kinds of answer, languages, and visitors with a pass.
const VARY: HeaderValue = HeaderValue::from_static(
    "Accept, Accept-Encoding, Accept-Language, Cookie, Sec-Fetch-Dest, Waitroom-Pass",
);
/// When somebody without JavaScript is sent on to the personal page.
const ON_TO_PERSONAL_S: u64 = 1;
/// When a program should ask again; the room's own answers say it better.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// To the waiting room.
pub fn wait(
    gate: &Gate,
    at: &SiteGate,
    room: Option<&GateRoom>,
    facts: &Facts<'_>,
    why: Why,
) -> Response<Body> {
    let Some(room) = room else {
        return trouble(&Taste::of(facts), room_away());
    };
    let back_to = target::cleaned(facts.path, facts.query);
    let mut response = match (wants(facts), at.site.waiting) {
        (Wants::Page, Waiting::Redirect) => {
            see_other(&format!("{BASE}/wait?to={}", target::encode(&back_to)))
        }
        (Wants::Page, Waiting::Page) => {
            let shown = page::Shown {
                accept_language: facts.header(header::ACCEPT_LANGUAGE),
                answer: None,
                back_to: &back_to,
                refresh_s: ON_TO_PERSONAL_S,
                now_ms: facts.now_s * 1_000,
                notices: &gate.notices_of(room),
            };
            of_page(
                at.site.waiting_status,
                page::for_stranger(room, &shown, takes_gzip(facts.headers)),
            )
        }
        (Wants::Json, _) => waiting_document(at, room.name(), &back_to),
        (Wants::Nothing, _) => nothing(at.site.waiting_status),
    };
    let shown = cookies::shown(facts.headers, room.name(), gate.dev());
    let stranger = shown.ticket.is_none() && shown.pass.is_none() && why == Why::NoPass;
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, RETRY_AFTER);
    headers.insert(header::VARY, VARY);
    let cache = match stranger && facts.only_looks() && facts.header(PASS).is_none() {
        true => HeaderValue::from_static("public, max-age=1"),
        false => HeaderValue::from_static("no-store"),
    };
    headers.insert(header::CACHE_CONTROL, cache);
    if shown.pass.is_some() && why != Why::RoomAway {
        for cookie in gate.forget(room.name()) {
            headers.append(header::SET_COOKIE, cookie);
        }
    }
    response
}

/// Not to the origin, and why.
pub fn refuse(
    gate: &Gate,
    at: &SiteGate,
    room: Option<&GateRoom>,
    facts: &Facts<'_>,
    refusal: &Refusal,
) -> Response<Body> {
    let problem = refused(refusal);
    let problem = match room {
        Some(room) => problem.in_room(room.desk.name()),
        None => problem,
    };
    let mut response = match (refusal, wants(facts), room) {
        // A browser with a broken cookie belongs to somebody: they may wait like everybody.
        (Refusal::Forged(_), Wants::Page, Some(room)) => {
            wait(gate, at, Some(room), facts, Why::SessionEnded)
        }
        _ => trouble(&Taste::of(facts), problem),
    };
    if let (Refusal::Forged(_), Some(room)) = (refusal, room) {
        let headers = response.headers_mut();
        headers.remove(header::SET_COOKIE);
        for cookie in gate.forget(room.name()) {
            headers.append(header::SET_COOKIE, cookie);
        }
    }
    response
}

/// What is wrong, in words.
pub fn refused(refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::Forged(why) => {
            let detail = format!("the pass was refused ({}); join for a new one", why.code());
            Problem::new(Code::PassRefused, detail)
        }
        Refusal::Maintenance { reason } => Problem::new(Code::Maintenance, reason.clone()),
    }
}

pub fn room_away() -> Problem {
    Problem::new(Code::Unavailable, "the waiting room is being brought up")
}

/// A problem in the form that the client can use.
pub fn trouble(taste: &Taste, problem: Problem) -> Response<Body> {
    if taste.wants == Wants::Page {
        let status = StatusCode::from_u16(problem.code.status()).unwrap_or(StatusCode::BAD_GATEWAY);
        let mut response = of_page(status, page::trouble(&problem, taste.language()));
        if let Some(ms) = problem.retry_after_ms {
            let seconds = HeaderValue::from(ms.div_ceil(1_000));
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        return response;
    }
    problem.into_response().map(Body::Api)
}

/// A redirect that is always followed by a GET. `to` was made by [`target`].
pub fn see_other(to: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    let safe = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    headers.insert(header::LOCATION, safe);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The address may have held a pass: no site that is linked from the next page shall see it.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

pub fn of_page(status: StatusCode, page: Page) -> Response<Body> {
    let mut response = Response::new(Body::full(page.html));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::CONTENT_LANGUAGE, HeaderValue::from_static(page.language));
    if page.packed {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(header::CONTENT_SECURITY_POLICY, page.policy);
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert("x-robots-tag", HeaderValue::from_static("noindex"));
    response
}

/// For programs: where to join, ask and claim, so that an application can queue for one action.
pub fn waiting_document(at: &SiteGate, name: &str, back_to: &str) -> Response<Body> {
    let address = |verb: &str| format!("{BASE}/v1/rooms/{name}/{verb}");
    let document = json!({
        "type": "https://waitroom.dev/problems/pass_required",
        "title": Code::PassRequired.title(),
        "status": at.site.waiting_status.as_u16(),
        "code": Code::PassRequired.text(),
        "detail": "join, follow next_check_ms, claim, and repeat this request with the header Waitroom-Pass",
        "room": name,
        "join": address("join"),
        "poll": address("status"),
        "claim": address("claim"),
        "live": address("live"),
        "page": format!("{BASE}/wait?to={}", target::encode(back_to)),
    });
    let mut response = Response::new(Body::full(document.to_string()));
    *response.status_mut() = at.site.waiting_status;
    let problem = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(header::CONTENT_TYPE, problem);
    response
}

pub fn nothing(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    // A picture with status 200 and no bytes would be kept as a broken one.
    let status = if status.is_success() { StatusCode::SERVICE_UNAVAILABLE } else { status };
    *response.status_mut() = status;
    response
}
