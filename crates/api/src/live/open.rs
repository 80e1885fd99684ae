//! Opening a live channel: who may, and the handshake.

use std::sync::Arc;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use waitroom_core::Presented;
use waitroom_listen::{Endless, Io};

use super::frames::Carrier;
use super::voice::Voice;
use super::{socket, stream::Stream};
use crate::body::Body;
use crate::cors;
use crate::desk::RoomDesk;
use crate::limits::Route;
use crate::problem::{Code, Problem};
use crate::request::query;
use crate::visitor::{Answering, Ask, json};

/// RFC 6455, section 1.3: what a server adds to the key to show that it speaks the protocol.
const WEBSOCKET_GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// `POST …/live-ticket`: opens one channel within 30 seconds, so that the real token is in no
/// address line.
pub async fn ticket(ask: Box<Ask>, room: Arc<RoomDesk>) -> Result<Response<Body>, Problem> {
    let holder = room.token_holder(&ask.desk, &ask.head.method, &ask.head.headers)?;
    let who = u128::from_be_bytes(holder.id.to_bytes());
    ask.desk.meter(Route::Session, who).map_err(|problem| problem.in_room(room.name()))?;
    let (board, _) = room.newest_board().await;
    let sight = room.look(&board, &holder.presented)?;
    let now_ms = ask.desk.clock.wall_ms();
    let (name, holder) = (room.name().as_str(), sight.view.holder);
    let text = ask.desk.signatures.live_tickets.write(name, sight.id, holder, now_ms);
    let answer = serde_json::json!({
        "live_ticket": text.to_string(),
        "expires_in_ms": waitroom_pass::LIVE_TICKET_LIFE_MS,
    });
    Ok(json(StatusCode::OK, answer.to_string().into_bytes()))
}

/// `GET …/stream`: server-sent events.
pub fn stream(ask: Box<Ask>, room: Arc<RoomDesk>) -> Answering {
    known_here(ask, room, |ask, room| events(&ask, room))
}

fn events(ask: &Ask, room: Arc<RoomDesk>) -> Result<Response<Body>, Problem> {
    let presented = who(ask, &room)?;
    let subscription = room.hub.subscribe(&room, presented, Carrier::Events, Voice::Ours);
    let mut response = Response::new(Body::Stream(Box::new(Stream::new(subscription))));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx would otherwise keep letters until it has a page of them.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response.extensions_mut().insert(Endless);
    Ok(response)
}

/// `GET …/live`: WebSocket.
pub fn websocket(ask: Box<Ask>, room: Arc<RoomDesk>) -> Answering {
    known_here(ask, room, |ask, room| upgrade(ask, room, who, Voice::Ours))
}

/// A live ticket that another instance wrote, and that was used up there for this request.
#[derive(Clone, Copy)]
struct UsedUp;

/// Opens a channel at once, or after the instance was asked that wrote the live ticket: it alone
/// knows whether that was used before.
fn known_here(
    mut ask: Box<Ask>,
    room: Arc<RoomDesk>,
    open: impl FnOnce(Box<Ask>, Arc<RoomDesk>) -> Result<Response<Body>, Problem> + Send + 'static,
) -> Answering {
    let tickets = &ask.desk.signatures.live_tickets;
    let text = query(&ask.head.uri, "live_ticket");
    let mark = text.and_then(|text| Some(tickets.read(room.name().as_str(), text).ok()?.1));
    let foreign = mark.filter(|mark| mark.writer != tickets.writer());
    let (Some(mark), Some(cluster)) = (foreign, ask.desk.cluster.get()) else {
        return open(ask, room).into();
    };
    let used = cluster.use_live_ticket(mark);
    Answering::later(async move {
        if used.await {
            ask.head.extensions.insert(UsedUp);
        }
        open(ask, room)
    })
}

/// Makes a WebSocket of a connection. `who` is asked last: a live ticket is used up by looking.
pub fn upgrade(
    mut ask: Box<Ask>,
    room: Arc<RoomDesk>,
    who: impl FnOnce(&Ask, &RoomDesk) -> Result<Presented, Problem>,
    voice: Voice,
) -> Result<Response<Body>, Problem> {
    let in_room = |problem: Problem| problem.in_room(room.name());
    let accept = handshake(&ask.head.headers).map_err(in_room)?;
    // Browsers do not ask before they open a WebSocket, so the Origin is looked at here. Without
    // one it is no browser.
    let settings = room.settings();
    if cors::judge(&ask.head.headers, settings.as_deref()) == cors::Verdict::Refused {
        return Err(in_room(cors::refused()));
    }
    let presented = who(&ask, &room)?;
    let Some(upgrade) = ask.head.extensions.remove::<hyper::upgrade::OnUpgrade>() else {
        let detail = "this connection cannot be upgraded";
        return Err(in_room(Problem::new(Code::UpgradeRequired, detail)));
    };
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        let subscription = room.hub.subscribe(&room, presented, Carrier::WebSocket, voice);
        drop(room);
        match Io::take(upgraded) {
            Ok(taken) => {
                // The seat is what the listener counts the connection by.
                let _seat = taken.seat;
                socket::serve(taken.socket, &taken.early, subscription).await;
            }
            Err(upgraded) => {
                let io = hyper_util::rt::TokioIo::new(upgraded);
                socket::serve(io, &[], subscription).await;
            }
        }
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

/// A live ticket in the address, or the ticket token in header or cookie.
fn who(ask: &Ask, room: &RoomDesk) -> Result<Presented, Problem> {
    let presented = match query(&ask.head.uri, "live_ticket") {
        Some(text) => {
            let now_ms = ask.desk.clock.wall_ms();
            let (tickets, name) = (&ask.desk.signatures.live_tickets, room.name().as_str());
            let live = match ask.head.extensions.get::<UsedUp>() {
                Some(UsedUp) => tickets.read(name, text).map(|(live, _)| live),
                None => tickets.take(name, text, now_ms),
            };
            let live = live.ok().and_then(|live| room.presented(live.id, Some(live.holder)));
            live.ok_or_else(|| {
                let detail = "the live ticket was used, is too old, or is not of this room";
                Problem::new(Code::TokenInvalid, detail).in_room(room.name())
            })?
        }
        None => room.token_holder(&ask.desk, &ask.head.method, &ask.head.headers)?.presented,
    };
    room.handle().beat(presented.ticket);
    let board = room.handle().board_guard();
    match room.look(&board, &presented) {
        Ok(_) => Ok(presented),
        // Not on the board yet; the hub shows it when it is.
        Err(problem) if room.is_behind(&board, &problem) => Ok(presented),
        Err(problem) => Err(problem),
    }
}

fn handshake(headers: &HeaderMap) -> Result<HeaderValue, Problem> {
    let says = |name: header::HeaderName, word: &str| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|it| it.to_str().ok())
            .any(|line| line.split(',').any(|part| part.trim().eq_ignore_ascii_case(word)))
    };
    let key = headers.get(header::SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok());
    let version = says(header::SEC_WEBSOCKET_VERSION, "13");
    match key {
        Some(key)
            if version
                && says(header::CONNECTION, "upgrade")
                && says(header::UPGRADE, "websocket") =>
        {
            let text = format!("{key}{WEBSOCKET_GUID}");
            let sum = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
            let accept = STANDARD.encode(sum.as_ref());
            Ok(HeaderValue::try_from(accept).expect("base64 is a header value"))
        }
        _ => Err(Problem::new(Code::UpgradeRequired, "open it as a WebSocket, version 13")),
    }
}
