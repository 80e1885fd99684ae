//! A visitor inside: `GET /sessions/{id}` and `POST /sessions/{id}/activity`.
//!
//! The id is the position's. The pass (`session_token`), the position's token or an API key
//! opens it; a visitor sees no session but their own.

use http::{Response, StatusCode};
use serde::Deserialize;
use serde_json::json;
use waitroom_core::{Board, Command, Presented, Status, when};
use waitroom_pass::Form;

use super::refused::Refused;
use super::{Call, Inside, told};
use waitroom_pass::Binding;

use crate::adapters::stands::{self, Held, Stands};
use crate::answer::Sight;
use crate::body::Body;
use crate::caller::Role;
use crate::limits::Route;
use crate::problem::{Code, Problem, status_word};

/// Who asks about a session.
enum Asker {
    Visitor(Presented),
    Service,
}

pub async fn show(call: &mut Call, inside: &Inside) -> Result<Response<Body>, Refused> {
    let asker = asker(call, inside, Role::Viewer)?;
    let presented = count(call, inside, &asker)?;
    let room = &inside.room;
    let (board, sight) = stands::look(room, &presented).await?;
    is_inside(inside, &board, &sight)?;
    let view = &sight.view;
    let sealed = board.state().note(view.ticket).and_then(|note| note.sealed_user.clone());
    // The shop's own name for a person is told to the shop only.
    let user_id = match asker {
        Asker::Service => sealed.and_then(|sealed| room.open_user(&sealed)),
        Asker::Visitor(_) => None,
    };
    let visit = call.ask.desk.earlier.visits().of(sight.id).cloned().unwrap_or_default();
    let started_at = view.admitted_at.unwrap_or_else(|| room.now());
    let expires_at = view.session.map(|session| session.expires_at).or(view.claim_by);
    let last_seen_ms = visit.last_seen_ms.max(started_at.0);
    Ok(told(
        StatusCode::OK,
        &json!({
            "session_id": sight.id,
            "queue_id": room.name().as_str(),
            "user_id": user_id,
            "client_address": visit.network,
            "user_agent": visit.user_agent,
            "started_at": when::utc(started_at.0),
            "expires_at": expires_at.map(|at| when::utc(at.0)),
            "last_seen": when::utc(last_seen_ms),
            "page_views": visit.page_views,
            "status": status_word(view.status),
        }),
    ))
}

/// What a visitor did. It counts one page view; the rest is for the client's own logs.
#[derive(Debug, Default, Deserialize)]
struct Did {
    #[serde(rename = "action")]
    _action: Option<String>,
    #[serde(rename = "page")]
    _page: Option<String>,
    #[serde(rename = "timestamp")]
    _timestamp: Option<serde_json::Value>,
}

pub async fn activity(call: &mut Call, inside: &Inside) -> Result<Response<Body>, Refused> {
    let asker = asker(call, inside, Role::Operator)?;
    let presented = count(call, inside, &asker)?;
    let Did { .. } = call.said().await?;
    let room = &inside.room;
    let (board, sight) = stands::look(room, &presented).await?;
    is_inside(inside, &board, &sight)?;
    if sight.view.status == Status::Admitted {
        stands::enter(&call.ask.desk, room, &sight).await?;
    }
    let renewed = room.act(presented, Command::Renew(presented)).await;
    let (sight, _) = renewed.map_err(|problem| match problem.code {
        // It ended while we looked.
        Code::WrongStatus => Refused::session_over("session_over"),
        _ => problem.into(),
    })?;
    let ended = || Refused::session_over("session_over");
    let session = sight.view.session.ok_or_else(ended)?;
    let desk = &call.ask.desk;
    let (now_ms, traces) = (desk.clock.wall_ms(), call.traces(room));
    let page_views = desk.earlier.visits().note(sight.id, now_ms, 1, traces);
    Ok(told(
        StatusCode::OK,
        &json!({
            "session_id": sight.id,
            "queue_id": room.name().as_str(),
            "status": "active",
            "page_views": page_views,
            "expires_at": when::utc(session.expires_at.0),
            // The session may go on for longer now: so may the pass.
            "session_token": desk.pass(room, sight.id, &session, Binding::default()),
        }),
    ))
}

/// Only those inside have a session: a waiting one is none yet, an ended one is no more.
pub fn is_inside(inside: &Inside, board: &Board, sight: &Sight) -> Result<(), Refused> {
    match Stands::of(&inside.room, board, sight) {
        Stands::Inside => Ok(()),
        Stands::Waiting(_) => {
            Err(Problem::new(Code::TicketUnknown, "the position still waits").into())
        }
        Stands::Over(over) => Err(Refused::session_over(over.reason)),
    }
}

/// Counts a visitor's call; services are not counted.
fn count(call: &mut Call, inside: &Inside, asker: &Asker) -> Result<Presented, Problem> {
    match asker {
        Asker::Service => Ok(inside.named),
        Asker::Visitor(presented) => {
            call.meter(Route::Session, u128::from_be_bytes(inside.id.to_bytes()))?;
            Ok(*presented)
        }
    }
}

fn asker(call: &Call, inside: &Inside, role: Role) -> Result<Asker, Refused> {
    let desk = &call.ask.desk;
    if call.service()?.is_some() {
        desk.require(&call.ask.head.headers, role)?;
        return Ok(Asker::Service);
    }
    let Some(shown) = call.bearer() else {
        let detail = "send the session token, the position's token or an API key";
        return Err(Problem::new(Code::TokenMissing, detail).into());
    };
    let room = &inside.room;
    if let Ok(held) = Held::read(desk, room, Form::Queue, shown) {
        let held = held.fresh(room)?;
        return match held.token.id == inside.id {
            true => Ok(Asker::Visitor(held.presented)),
            false => Err(not_theirs().into()),
        };
    }
    // What a pass is bound to is the gate's to check; whoever calls here shows the pass itself.
    let unseen = waitroom_pass::Presented::default();
    match room.verifier().verify(shown, desk.now_s(), &unseen) {
        Ok(pass) if pass.ticket == inside.id.to_string() => Ok(Asker::Visitor(inside.named)),
        Err(waitroom_pass::Refused::Expired) => Err(Refused::session_over("session_over")),
        _ => Err(not_theirs().into()),
    }
}

fn not_theirs() -> Problem {
    Problem::new(Code::TokenInvalid, "the token is altered, or of another session")
}
