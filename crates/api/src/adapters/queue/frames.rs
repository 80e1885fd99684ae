//! The WebSocket of the queue API: who may open it, and what it says.
//!
//! Everything is `{type, data}`: `position_update`, `admitted`, `expired`. The hub carries the
//! frames at its own cadence; here is only what is in them. A client sends `heartbeat`, but any
//! frame shows that it is there.

use std::sync::Arc;

use http::Response;
use serde_json::{Value, json};
use waitroom_core::{Board, when};
use waitroom_pass::Form;

use super::refused::Refused;
use crate::adapters::stands::{self, Held, Stands};
use crate::answer::Sight;
use crate::body::Body;
use crate::caller::bearer;
use crate::desk::{Desk, RoomDesk};
use crate::live::{self, Voice};
use crate::problem::{Code, Problem};
use crate::request::query;
use crate::visitor::Ask;

/// What a connection hears.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    Update(Vec<u8>),
    Admitted(Vec<u8>),
    /// The room wants a claim before there is a pass to hand out.
    ClaimFirst,
    /// The last word.
    Expired(Vec<u8>),
}

/// Whether a connection hears of its position for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    First,
    Later,
}

/// How a ticket stands, as a frame.
pub fn frame(
    desk: &Desk,
    room: &RoomDesk,
    board: &Board,
    sight: &Sight,
    greeting: Greeting,
) -> Frame {
    match Stands::of(room, board, sight) {
        Stands::Waiting(waiting) => {
            let mut data = json!({
                "position_id": sight.id,
                "queue_id": room.name().as_str(),
                "position": waiting.position,
                "queue_length": waiting.queue_length,
                "estimated_wait_seconds": waiting.wait_s,
                "status": "waiting",
                "expires_at": when::utc(waiting.expires_at.0),
            });
            // One that may have run out opened the channel; this one is good for five minutes.
            if greeting == Greeting::First {
                data["token"] = Value::from(stands::token(desk, room, Form::Queue, sight));
            }
            Frame::Update(said("position_update", &data))
        }
        Stands::Inside => match sight.view.session {
            None => Frame::ClaimFirst,
            Some(session) => {
                let entry = stands::entry(desk, room, sight, &session);
                let data = json!({
                    "position_id": sight.id,
                    "queue_id": room.name().as_str(),
                    "position": 0,
                    "status": "admitted",
                    "session_token": entry.pass,
                    "redirect_url": entry.url,
                    "session_expires_at": when::utc(entry.expires_at.0),
                });
                Frame::Admitted(said("admitted", &data))
            }
        },
        Stands::Over(over) => Frame::Expired(expired(over.reason)),
    }
}

pub fn expired(reason: &str) -> Vec<u8> {
    said("expired", &json!({ "reason": reason }))
}

fn said(kind: &str, data: &Value) -> Vec<u8> {
    json!({ "type": kind, "data": data }).to_string().into_bytes()
}

/// Opens the channel for whoever holds a token, in the header or, for browsers, in the address.
/// A token that has run out will do: the channel is a heartbeat.
pub async fn open(ask: Box<Ask>, room: Arc<RoomDesk>) -> Result<Response<Body>, Refused> {
    let shown = bearer(&ask.head.headers).or_else(|| query(&ask.head.uri, "token"));
    let shown = shown.ok_or_else(|| {
        Problem::new(Code::TokenMissing, "send the token as Authorization: Bearer or ?token=")
    })?;
    let held = Held::read(&ask.desk, &room, Form::Queue, shown)?;
    room.handle().beat(held.presented.ticket);
    let (board, sight) = stands::look(&room, &held.presented).await?;
    if let Stands::Over(over) = Stands::of(&room, &board, &sight) {
        return Err(Refused::over(over));
    }
    ask.desk.earlier.follow(&ask.desk, &room);
    let voice = Voice::Queue(ask.desk.clone());
    Ok(live::upgrade(ask, room, |_, _| Ok(held.presented), voice)?)
}
