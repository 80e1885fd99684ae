//! `GET …/board`: the public board, the same bytes for all, made for caches.

use http::{HeaderValue, Response, StatusCode, header};

use super::Ask;
use crate::body::Body;
use crate::desk::RoomDesk;
use crate::problem::{Code, Problem};

pub fn board(ask: &Ask, room: &RoomDesk) -> Result<Response<Body>, Problem> {
    let Some(shown) = room.hub.public(&room.handle().board_guard()) else {
        let detail = "public_board is off: queue length is this room's secret; ask for status";
        return Err(Problem::new(Code::BoardOff, detail).in_room(room.name()));
    };
    let mut response = match ask.head.headers.get(header::IF_NONE_MATCH) {
        Some(matched) if *matched == shown.tag => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        _ => {
            let mut response = Response::new(Body::full(shown.json.clone()));
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            response
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, shown.tag.clone());
    // A second: as old as a picture may be that any cache between us and a million pages shows.
    let cache = HeaderValue::from_static("public, max-age=1");
    headers.insert(header::CACHE_CONTROL, cache);
    // Nothing on it is anybody's secret, so any page may read it.
    let anyone = HeaderValue::from_static("*");
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, anyone);
    Ok(response)
}
