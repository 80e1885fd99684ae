//! `POST …/notify`: a word when the turn comes near, or no longer.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::Ask;
use crate::body::Body;
use crate::desk::{NoticeDesk, RoomDesk};
use crate::limits::Route;
use crate::problem::{Code, Problem};
use crate::request::{bad_field, json as read_json, whole_body};

/// How somebody wants to hear of it. Nothing at all only asks what there is.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NotifyBody {
    /// `email`, `sms` or `push`, as far as the room offers it; `none` takes the wish back.
    pub channel: Option<String>,
    /// The e-mail address, or the number with + and the country.
    pub address: Option<String>,
    /// For push: what the browser's `pushManager.subscribe` gave.
    #[schema(value_type = Option<Object>)]
    pub subscription: Option<Map<String, Value>>,
}

pub async fn notify(mut ask: Box<Ask>, room: Arc<RoomDesk>) -> Result<Response<Body>, Problem> {
    let holder = ask.holder(&room)?;
    let who = u128::from_be_bytes(holder.id.to_bytes());
    ask.desk.meter(Route::Session, who).map_err(|problem| problem.in_room(room.name()))?;
    let name = room.name();
    let notices = ask.desk.notices.get().filter(|it| !it.channels(name).is_empty()).cloned();
    let off = || Problem::new(Code::NotFound, "this room sends no notices").in_room(name);
    let notices = notices.ok_or_else(off)?;
    let manners = &ask.desk.manners;
    let said = match ask.body.take() {
        Some(body) => {
            let (bytes_max, within) = (manners.body_bytes_max, manners.body_timeout);
            let body = whole_body(&ask.head.headers, body, bytes_max, within).await?;
            read_json::<NotifyBody>(&ask.head.headers, &body)?.unwrap_or_default()
        }
        None => NotifyBody::default(),
    };
    let sight = {
        let board = room.handle().board_guard();
        room.look(&board, &holder.presented)
    };
    // A place that this board does not know yet is a fresh one, and waits.
    let waits = match sight {
        Ok(sight) => sight.view.status == waitroom_core::Status::Waiting,
        Err(problem) => {
            let board = room.handle().board_guard();
            if !room.is_behind(&board, &problem) {
                return Err(problem.in_room(name));
            }
            true
        }
    };
    match said.channel.as_deref() {
        None => {}
        Some("none") => notices.forget(name, holder.id).await?,
        Some(channel) => {
            if !waits {
                let detail = "only who waits has a turn that can come near";
                return Err(Problem::new(Code::WrongStatus, detail).in_room(name));
            }
            let wish = wish(&*notices, &room, channel, &said)?;
            notices.ask(name, holder.id, wish).await?;
        }
    }
    let answer = json!({
        "ticket": holder.id.to_string(),
        "room": name.as_str(),
        "channels": notices.channels(name),
        "push_key": notices.push_key(),
        "notify": notices.state(name, holder.id),
    });
    Ok(super::json(StatusCode::OK, answer.to_string().into_bytes()))
}

fn wish(
    notices: &dyn NoticeDesk,
    room: &RoomDesk,
    channel: &str,
    said: &NotifyBody,
) -> Result<Value, Problem> {
    let offered = notices.channels(room.name());
    if !offered.contains(&channel) {
        let known = format!("one of {}, or none", offered.join(", "));
        return Err(bad_field("channel", &known).in_room(room.name()));
    }
    let mut wish = json!({ "channel": channel });
    match channel {
        "push" => wish["subscription"] = said.subscription.clone().into(),
        _ => wish["address"] = said.address.clone().into(),
    }
    Ok(wish)
}
