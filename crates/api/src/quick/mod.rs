//! The short way to what people ask who wait: join, status, heartbeat, board.
//!
//! Lives here: these four for requests of the plainest kind, straight from the bytes that came to
//! the bytes that go (`waitroom_listen::Quick`). Whatever has more to it (an API key, a long poll,
//! a page of another site, a header that is not listed in `said.rs`, a refusal of a look) is left
//! to [`visitor`](crate::visitor), which answers everything. Both give the same answers, and
//! `tests/quick.rs` compares them; so a change of one of the four is made there and shows here.

mod reply;
mod said;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use http::Response;
use waitroom_listen::{Nets, Peer, Plain, Quick, Quickly, client_behind};
use waitroom_watch::span;

use crate::answer::VisitorAnswer;
use crate::body::Body;
use crate::caller::TokenHolder;
use crate::desk::{Desk, RoomDesk};
use crate::limits::Route;
use crate::metrics::{Door, RouteId};
use crate::problem::{Code, Problem};
use crate::visitor::{heartbeat, join, parted, status};
use crate::written::{self, Out};
use said::Said;

#[derive(Debug)]
pub struct ShortWay {
    desk: Arc<Desk>,
    trusted: Arc<Nets>,
    /// What addresses of rooms begin with here.
    prefixes: Vec<String>,
    routes: Routes,
}

/// Where each is counted.
#[derive(Debug)]
struct Routes {
    join: RouteId,
    status: RouteId,
    heartbeat: RouteId,
    board: RouteId,
}

impl ShortWay {
    /// `bases` are the paths under which the visitor API is found, such as the empty one.
    pub fn new(desk: Arc<Desk>, trusted: Arc<Nets>, bases: &[&str]) -> ShortWay {
        let route = |verb| {
            let path = format!("/v1/rooms/x/{verb}");
            RouteId::of(Door::Public, "", &path, None)
        };
        let routes = Routes {
            join: route("join"),
            status: route("status"),
            heartbeat: route("heartbeat"),
            board: route("board"),
        };
        let prefixes = bases.iter().map(|base| format!("{base}/v1/rooms/")).collect();
        ShortWay { desk, trusted, prefixes, routes }
    }
}

impl Quick for ShortWay {
    fn answer(&self, peer: &Peer, request: &Plain<'_>, out: &mut Vec<u8>) -> Quickly {
        self.try_answer(peer, request, out).unwrap_or(Quickly::NotMine)
    }
}

impl ShortWay {
    fn try_answer(&self, peer: &Peer, request: &Plain<'_>, out: &mut Vec<u8>) -> Option<Quickly> {
        // A request that is followed has a span around it.
        if span::is_on() {
            return None;
        }
        let since = Instant::now();
        let rest = self.prefixes.iter().find_map(|prefix| request.target.strip_prefix(&**prefix));
        let (name, verb) = parted(rest?)?;
        let said = Said::of(request.headers)?;
        let room = self.desk.room(name).ok()?;
        let (route, status) = match (request.method, verb) {
            ("GET", "status") => (self.routes.status, self.status(&room, &said, out)?),
            ("POST", "heartbeat") => (self.routes.heartbeat, self.heartbeat(&room, &said, out)?),
            ("GET", "board") => (self.routes.board, self.board(&room, &said, out)?),
            ("POST", "join") => return self.join(since, peer.socket.ip(), room, &said, out),
            _ => return None,
        };
        self.desk.metrics.answered(route, status, since.elapsed().as_micros() as u64);
        Some(Quickly::Written)
    }

    /// Whoever proves to hold a ticket; `changes` as in [`RoomDesk::token_holder`].
    fn holder<'a>(
        &self,
        room: &RoomDesk,
        said: &Said<'a>,
        changes: bool,
    ) -> Option<(TokenHolder, &'a str)> {
        let (text, by_cookie) = said.token(room.name(), self.desk.manners.dev)?;
        if by_cookie && changes && !said.by_script {
            return None;
        }
        let holder = room.read_token(&self.desk, text)?;
        Some((TokenHolder { by_cookie, ..holder }, text))
    }

    fn status(&self, room: &RoomDesk, said: &Said<'_>, out: &mut Vec<u8>) -> Option<u16> {
        let (holder, _) = self.holder(room, said, false)?;
        let board = room.handle().board_guard();
        if room.told_more(&board, holder.presented.ticket).is_some() {
            return None;
        }
        let now = room.now();
        let sight = room.look_at(now, &board, &holder.presented).ok()?;
        self.desk.within_limit(Route::Status, holder.who())?;
        room.handle().beat_at(sight.view.ticket, now);
        let now_s = self.desk.now_s();
        let tag = |text: &mut Out| status::put_tag(&board, &sight, text);
        if let Some(matched) = said.if_none_match
            && written::draft(tag, |tag| tag == matched)
        {
            reply::not_modified(out, matched, now_s);
            return Some(304);
        }
        let answer = VisitorAnswer::of(room, board.state(), &sight);
        written::draft(
            |text| written::put(&answer, text),
            |body| {
                let head = "content-type: application/json\r\ncache-control: no-store\r\netag: ";
                reply::begin(out, head);
                written::behind(out, tag);
                reply::end(out, body, now_s);
            },
        );
        Some(200)
    }

    fn heartbeat(&self, room: &RoomDesk, said: &Said<'_>, out: &mut Vec<u8>) -> Option<u16> {
        let (holder, token) = self.holder(room, said, true)?;
        let board = room.handle().board_guard();
        if room.told_more(&board, holder.presented.ticket).is_some() {
            return None;
        }
        let now = room.now();
        let sight = room.look_at(now, &board, &holder.presented).ok()?;
        let now_s = self.desk.now_s();
        if !heartbeat::goes_on(&holder, &sight, now_s) {
            return None;
        }
        self.desk.within_limit(Route::Heartbeat, holder.who())?;
        room.handle().beat_at(sight.view.ticket, now);
        let answer = VisitorAnswer::of(room, board.state(), &sight);
        let answer = VisitorAnswer { token: Some(token), ..answer };
        written::draft(
            |text| written::put(&answer, text),
            |body| {
                reply::begin(out, "content-type: application/json\r\ncache-control: no-store");
                reply::end(out, body, now_s);
            },
        );
        Some(200)
    }

    fn board(&self, room: &RoomDesk, said: &Said<'_>, out: &mut Vec<u8>) -> Option<u16> {
        let shown = room.hub.public(&room.handle().board_guard())?;
        if said.if_none_match.is_some() {
            return None;
        }
        let head = "content-type: application/json\r\ncache-control: public, max-age=1\r\n\
                    access-control-allow-origin: *\r\netag: ";
        reply::begin(out, head);
        out.extend_from_slice(shown.tag.as_bytes());
        reply::end(out, &shown.json, self.desk.now_s());
        Some(200)
    }

    fn join(
        &self,
        since: Instant,
        peer: IpAddr,
        room: Arc<RoomDesk>,
        said: &Said<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Quickly> {
        // A cookie without the script's header is refused, and a service has more to say.
        let holding = match said.token(room.name(), self.desk.manners.dev) {
            Some((_, true)) if !said.by_script => return None,
            Some((text, _)) => room.read_token(&self.desk, text).map(|it| it.presented),
            None if said.authorization.is_some() => return None,
            None => None,
        };
        let client = client_behind(peer, said.forwarded_for.into_iter(), &self.trusted);
        let (desk, route) = (self.desk.clone(), self.routes.join);
        match join::plain(&desk, &room, client, holding, said.idempotency_key) {
            Err(problem) => {
                finish(&desk, route, since, Err(problem), out);
                Some(Quickly::Written)
            }
            Ok(submitted) => Some(Quickly::Later(Box::pin(async move {
                let answer = join::answer(desk.clone(), room, submitted).await;
                let mut out = Vec::with_capacity(1_024);
                finish(&desk, route, since, answer, &mut out);
                out
            }))),
        }
    }
}

/// Writes and counts an answer.
fn finish(
    desk: &Desk,
    route: RouteId,
    since: Instant,
    answer: Result<Response<Body>, Problem>,
    out: &mut Vec<u8>,
) {
    let response = answer.unwrap_or_else(Problem::into_response);
    let micros = since.elapsed().as_micros() as u64;
    desk.metrics.answered(route, response.status().as_u16(), micros);
    if let Some(code) = response.extensions().get::<Code>() {
        desk.metrics.problem(*code);
    }
    reply::whole(out, response, desk.now_s());
}
