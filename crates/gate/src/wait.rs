//! `GET /.waitroom/wait?to=PATH`: the waiting room without JavaScript.
//!
//! Joins whoever has no ticket yet, shows the place, asks the browser to come back, and when it is
//! their turn claims the place, sets the pass and goes on to PATH. A place is given only to a
//! browser that keeps cookies: the first visit leaves one and looks whether it comes back, so a
//! robot that keeps none takes no place.

use std::net::IpAddr;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, header};
use waitroom_api::answer::VisitorAnswer;
use waitroom_api::binding;
use waitroom_api::caller::TokenHolder;
use waitroom_api::limits::Route;
use waitroom_api::visitor::join::{Joiner, place};
use waitroom_api::{Code, Problem};
use waitroom_core::{Command, Presented, Reply, Status};

use crate::BASE;
use crate::body::Body;
use crate::cookies;
use crate::facts::Facts;
use crate::framing;
use crate::gate::{Gate, SiteGate};
use crate::negotiate::Taste;
use crate::page;
use crate::render::{self, see_other};
use crate::room::GateRoom;
use crate::target;
use crate::verdict::{self, Ruled};

/// How often a page without a script looks: not for every visitor of a long line every second.
const REFRESH_S: std::ops::RangeInclusive<u64> = 2..=30;
/// The cookie that shows that cookies are kept.
const TRIED: &str = "wr-tried=1";

pub async fn wait(gate: &Gate, head: &Parts, client: IpAddr) -> Response<Body> {
    let host = framing::check(head).map(|to| to.host).unwrap_or_default();
    let facts = Facts {
        host: &host,
        path: head.uri.path(),
        query: head.uri.query(),
        method: &head.method,
        headers: &head.headers,
        client,
        now_s: gate.desk.now_s(),
    };
    let trouble = |problem: Problem| render::trouble(&Taste::of(&facts), problem);
    if !facts.only_looks() {
        return trouble(Problem::new(Code::MethodNotAllowed, "use GET"));
    }
    let asked = facts.query_value("to").and_then(target::decode).unwrap_or_else(|| "/".to_owned());
    let Some((at, room)) = room_of(gate, &facts, &asked) else {
        return see_other(&target::local(&asked).unwrap_or_else(|| "/".to_owned()));
    };
    let target_url = room.desk.settings().map(|it| it.target_url.clone()).unwrap_or_default();
    let to = target::safe(&asked, &target_url).unwrap_or_else(|| "/".to_owned());
    if !keeps_cookies(&facts) {
        return try_cookies(gate, &facts, &to);
    }
    match personal(gate, &at, &room, &facts, &to).await {
        Ok(response) => response,
        Err(problem) => shown(gate, &room, &facts, &to, None, &problem_text(problem), 15),
    }
}

/// The room of the address that somebody wants to go to.
fn room_of(gate: &Gate, facts: &Facts<'_>, to: &str) -> Option<(Arc<SiteGate>, Arc<GateRoom>)> {
    let at = gate.site(facts.host)?;
    let path = to.split(['?', '#']).next().unwrap_or("/");
    match verdict::rule(&at.site, &Facts { path, ..*facts }) {
        Ruled::Room(name) => Some((at.clone(), gate.room(name.as_str())?)),
        Ruled::By(_) => None,
    }
}

fn keeps_cookies(facts: &Facts<'_>) -> bool {
    let lines = facts.headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
    lines.flat_map(|line| line.split(';')).any(|pair| pair.trim_ascii() == TRIED)
}

fn try_cookies(gate: &Gate, facts: &Facts<'_>, to: &str) -> Response<Body> {
    if facts.query_value("tried").is_some() {
        let detail = "your place in line is kept in a cookie; please allow cookies for this site";
        return render::trouble(&Taste::of(facts), Problem::new(Code::BadRequest, detail));
    }
    let mut response = see_other(&format!("{BASE}/wait?to={}&tried=1", target::encode(to)));
    let secure = if gate.dev() { "" } else { "; Secure" };
    let cookie = format!("{TRIED}; Path={BASE}/; Max-Age=86400; HttpOnly; SameSite=Lax{secure}");
    let cookie = HeaderValue::from_str(&cookie).expect("it is plain ASCII");
    response.headers_mut().append(header::SET_COOKIE, cookie);
    response
}

async fn personal(
    gate: &Gate,
    at: &SiteGate,
    room: &GateRoom,
    facts: &Facts<'_>,
    to: &str,
) -> Result<Response<Body>, Problem> {
    let desk = &gate.desk;
    let ticket = cookies::shown(facts.headers, room.name(), gate.dev()).ticket;
    let holder = ticket.and_then(|text| room.desk.read_token(desk, text));
    let found = match &holder {
        Some(holder) => look(gate, room, holder).await?,
        None => None,
    };
    let (sight, joined) = match found {
        Some(sight) => (sight, false),
        None => {
            desk.meter(Route::Join, desk.manners.limits.network(facts.client))?;
            let holding = holder.map(|holder| holder.presented);
            let settings = room.desk.settings();
            let joiner = Joiner { holding, ..Joiner::default() };
            (place(&room.desk, settings.as_deref(), joiner).await?.0, true)
        }
    };
    if matches!(sight.view.status, Status::Admitted | Status::Active) {
        return claim(gate, at, room, facts, to, sight.presented).await;
    }
    let (text, refresh_ms) = {
        let board = room.desk.handle().board_guard();
        let answer = VisitorAnswer::of(&room.desk, board.state(), &sight);
        (String::from_utf8_lossy(&answer.to_bytes()).into_owned(), answer.next_check_ms)
    };
    let fresh = joined.then(|| {
        let (holder, issued_s) = (sight.view.holder, facts.now_s as u32);
        let token = desk.signatures.tokens.write(room.name(), sight.id, holder, issued_s);
        waitroom_api::cookies::set_ticket(room.desk.name(), &token, gate.dev())
    });
    Ok(shown(gate, room, facts, to, fresh, &text, refresh_ms.div_ceil(1_000)))
}

/// The ticket that the visitor holds, unless it has ended or is gone: then a new one is due.
async fn look(
    gate: &Gate,
    room: &GateRoom,
    holder: &TokenHolder,
) -> Result<Option<waitroom_api::answer::Sight>, Problem> {
    let who = u128::from_be_bytes(holder.id.to_bytes());
    gate.desk.meter(Route::Status, who)?;
    room.desk.handle().beat(holder.presented.ticket);
    let (board, _) = room.desk.board_since(room.desk.told(holder.presented.ticket)).await;
    let seen = match room.desk.look(&board, &holder.presented) {
        Err(problem) if room.desk.is_behind(&board, &problem) => {
            let (board, _) = room.desk.newest_board().await;
            room.desk.look(&board, &holder.presented)
        }
        seen => seen,
    };
    Ok(seen.ok().filter(|sight| sight.view.status.is_live() || sight.view.status == Status::Closed))
}

async fn claim(
    gate: &Gate,
    at: &SiteGate,
    room: &GateRoom,
    facts: &Facts<'_>,
    to: &str,
    presented: Presented,
) -> Result<Response<Body>, Problem> {
    let (sight, reply) = room.desk.act(presented, Command::Claim(presented)).await?;
    let Reply::Claimed { session, .. } = reply else {
        return Err(Problem::new(Code::Internal, "a claim was answered by something else"));
    };
    let mut response = see_other(to);
    let mut fresh = Vec::new();
    // As a claim by script has it: the pass is tied to a cookie that comes with it.
    let bind = gate.desk.manners.bind;
    let known = cookies::shown(facts.headers, room.name(), gate.dev()).nonce.map(str::to_owned);
    let nonce = known.or_else(|| bind.nonce.then(binding::fresh_nonce));
    if let Some(nonce) = nonce.as_deref().filter(|_| bind.nonce) {
        fresh.push(binding::set_nonce(room.desk.name(), nonce, gate.dev()));
    }
    fresh.extend(gate.fresh_pass(at, room, sight.id, &session, facts, nonce.as_deref()));
    let (holder, issued_s) = (sight.view.holder, facts.now_s as u32);
    let token = gate.desk.signatures.tokens.write(room.name(), sight.id, holder, issued_s);
    fresh.push(waitroom_api::cookies::set_ticket(room.desk.name(), &token, gate.dev()));
    for cookie in fresh {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

fn shown(
    gate: &Gate,
    room: &GateRoom,
    facts: &Facts<'_>,
    to: &str,
    fresh: Option<HeaderValue>,
    answer: &str,
    refresh_s: u64,
) -> Response<Body> {
    // The page comes back by itself when there is no script; a header would reload it for all.
    let shown = page::Shown {
        accept_language: facts.header(header::ACCEPT_LANGUAGE),
        answer: Some(answer),
        back_to: to,
        refresh_s: refresh_s.clamp(*REFRESH_S.start(), *REFRESH_S.end()),
        now_ms: facts.now_s * 1_000,
        notices: &gate.notices_of(room),
    };
    let mut response = render::of_page(StatusCode::OK, page::waiting(room, &shown));
    let headers = response.headers_mut();
    headers.extend(fresh.map(|cookie| (header::SET_COOKIE, cookie)));
    response
}

fn problem_text(problem: Problem) -> String {
    String::from_utf8_lossy(&problem.document()).into_owned()
}
