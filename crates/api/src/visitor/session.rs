//! `POST /v1/sessions/{ticket}/complete` and `…/activity`: the shop, or the visitor inside, says
//! that a session is over or goes on.

use std::sync::Arc;

use http::{Response, StatusCode};
use waitroom_core::id::TicketId;
use waitroom_core::{Actor, Command, EndHow, Presented};

use waitroom_pass::Binding;

use super::{Ask, json};
use crate::answer::VisitorAnswer;
use crate::binding;
use crate::body::Body;
use crate::caller::{Role, bearer};
use crate::desk::{Desk, RoomDesk};
use crate::limits::Route;
use crate::problem::{Code, Problem};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Complete,
    Activity,
}

pub async fn session(ask: Box<Ask>, id: String, how: How) -> Result<Response<Body>, Problem> {
    let desk = &ask.desk;
    let unknown = || Problem::new(Code::TicketUnknown, "no room here gave out that ticket");
    let id = TicketId::parse(&id).map_err(|_| unknown())?;
    let (room, named) = desk.find(id).ok_or_else(|| desk.unopened.not_found(unknown()))?;
    let (by, presented, binding) = who_says(desk, &room, id, named, &ask)?;
    if by.0.as_ref() == "visitor" {
        let who = u128::from_be_bytes(id.to_bytes());
        desk.meter(Route::Session, who).map_err(|problem| problem.in_room(room.name()))?;
    }
    let command = match how {
        How::Complete => Command::End { ticket: presented, how: EndHow::Completed, by },
        How::Activity => Command::Renew(presented),
    };
    let (sight, _) = room.act(presented, command).await?;
    let board = room.handle().board_guard();
    let mut answer = VisitorAnswer::of(&room, board.state(), &sight);
    // A session that goes on may have a later end: the pass that says so comes along.
    if let (How::Activity, Some(session)) = (how, sight.view.session) {
        answer.pass = Some(desk.pass(&room, sight.id, &session, binding));
    }
    Ok(json(StatusCode::OK, answer.to_bytes()))
}

/// An API key speaks for any session; a pass or a ticket token for its own only. The pass that
/// follows is tied to what the old one was, or to whoever holds the ticket.
fn who_says(
    desk: &Desk,
    room: &Arc<RoomDesk>,
    id: TicketId,
    named: Presented,
    ask: &Ask,
) -> Result<(Actor, Presented, Binding), Problem> {
    let headers = &ask.head.headers;
    let visitor = || Actor::new("visitor");
    let pass = headers.get("waitroom-pass").and_then(|it| it.to_str().ok());
    let pass = pass.or_else(|| bearer(headers).filter(|text| text.starts_with("eyJ")));
    if let Some(pass) = pass {
        // What a pass is bound to is the gate's to check; whoever calls here shows the pass itself.
        let unseen = waitroom_pass::Presented::default();
        let checked = room.verifier_anywhere().verify(pass, desk.now_s(), &unseen);
        if let Some(pass) = checked.ok().filter(|pass| pass.ticket == id.to_string()) {
            return Ok((visitor(), named, pass.binding));
        }
        let detail = "the pass is altered, expired, or of another session";
        return Err(Problem::new(Code::TokenInvalid, detail).in_room(room.name()));
    }
    if let Some(token) = bearer(headers).filter(|text| text.starts_with("wt1_")) {
        return match room.read_token(desk, token).filter(|holder| holder.id == id) {
            Some(holder) => {
                let nonce = binding::nonce(headers, room.name(), desk.manners.dev);
                let shown = binding::shown(headers, ask.client, nonce);
                Ok((visitor(), holder.presented, desk.manners.bind.binding(id, &shown)))
            }
            None => {
                let detail = "the token is altered or of another session";
                Err(Problem::new(Code::TokenInvalid, detail).in_room(room.name()))
            }
        };
    }
    let caller = desk.require(headers, Role::Operator).map_err(|problem| match problem.code {
        Code::ApiKeyMissing => {
            Problem::new(Code::TokenMissing, "send the pass, the ticket token or an API key")
        }
        _ => problem,
    })?;
    Ok((Actor::new(&caller.id), named, Binding::default()))
}
