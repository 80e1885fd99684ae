//! `GET /health` and `GET /metrics`: what the operators of the earlier systems watch.

use std::fmt::Write as _;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;
use waitroom_core::settings::PublicBoardMode;

use crate::body::Body;
use crate::caller::Role;
use crate::desk::{Desk, RoomDesk};
use crate::visitor::{self, Answering, Ask};

/// Well, or on the way down; a balancer that asks here sends visitors elsewhere then.
pub fn health(desk: &Desk) -> Answering {
    let (status, word) = match *desk.draining.borrow() {
        true => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
        false => (StatusCode::OK, "ok"),
    };
    let document = json!({
        "status": word,
        "version": env!("CARGO_PKG_VERSION"),
        "queues": desk.rooms().len(),
    });
    Answering::Now(visitor::json(status, document.to_string().into_bytes()))
}

/// One line of each kind for every room that the caller may know the length of.
pub fn metrics(ask: &Ask) -> Answering {
    let desk = &ask.desk;
    let trusted = match desk.manners.keyless {
        true => true,
        false => desk.require(&ask.head.headers, Role::Viewer).is_ok(),
    };
    let mut rooms = desk.rooms();
    // How long a queue is can be a business secret; who has no key sees what everybody can.
    rooms.retain(|room| {
        let board = room.settings().map(|settings| settings.public_board);
        trusted || board == Some(PublicBoardMode::Full)
    });
    let mut text = String::new();
    for (name, kind, help, figure) in FIGURES {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for room in &rooms {
            // Room names are of letters, digits and dashes, so they need no escapes.
            let _ = writeln!(text, "{name}{{room=\"{}\"}} {}", room.name(), figure(room));
        }
    }
    let mut response = Response::new(Body::full(Bytes::from(text)));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Answering::Now(response)
}

type Figure = (&'static str, &'static str, &'static str, fn(&RoomDesk) -> u64);

const FIGURES: &[Figure] = &[
    ("waitroom_waiting", "gauge", "People in line.", |room| counts(room).waiting),
    ("waitroom_admitted", "gauge", "Admitted, and not claimed yet.", |room| counts(room).admitted),
    ("waitroom_active", "gauge", "Sessions inside.", |room| counts(room).active),
    ("waitroom_connections", "gauge", "Live channels on this instance.", |room| {
        room.hub.connected() as u64
    }),
    ("waitroom_joined_total", "counter", "Tickets given since the room was made.", |room| {
        counts(room).joined
    }),
    ("waitroom_admissions_total", "counter", "Admissions since the room was made.", |room| {
        counts(room).admissions
    }),
];

fn counts(room: &RoomDesk) -> waitroom_core::Counts {
    room.handle().board_guard().state().counts()
}
