//! The outbox for operators: how sinks fare, telling one of them things again, and the dead letters
//! of webhooks.

use std::sync::Arc;

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Act;
use crate::desk::{DeadAsked, OutboxDesk, SinkPicture};
use crate::problem::{Code, Problem};
use crate::request::bad_field;

pub async fn sinks(act: Act) -> Result<(StatusCode, Value), Problem> {
    let sinks = act.desk.outbox.get().map(|outbox| outbox.sinks()).unwrap_or_default();
    let sinks: Vec<Value> = sinks.iter().map(picture).collect();
    Ok((StatusCode::OK, json!({ "sinks": sinks })))
}

fn picture(sink: &SinkPicture) -> Value {
    let room = |lag: &crate::desk::SinkLag| {
        json!({
            "room": lag.room.as_str(),
            "at": lag.at,
            "lag_events": lag.events,
            "lag_seconds": lag.seconds,
        })
    };
    json!({
        "sink": sink.name,
        "sent": sink.sent,
        "failures": sink.failures,
        "gaps": sink.gaps,
        "dead_letters": sink.dead,
        "trouble": sink.trouble,
        "rooms": sink.lags.iter().map(room).collect::<Vec<_>>(),
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct From {
    from: Option<u64>,
}

pub async fn replay(act: Act) -> Result<(StatusCode, Value), Problem> {
    let room = act.room()?;
    let sink = act.id.as_deref().unwrap_or_default();
    let from = act.said::<From>()?.from.filter(|from| *from > 0);
    let from = from.ok_or_else(|| bad_field("from", "the index of an event, 1 or more"))?;
    let outbox = outbox(&act, sink)?;
    outbox.replay(sink, room.name(), from).await?;
    let after = json!({ "sink": sink, "from": from });
    let detail = json!({ "before": null, "after": after });
    let installation = &act.desk.installation;
    installation.audit(&act.caller.id, Some(room.name()), "replay", detail).await?;
    let answer = json!({ "room": room.name().as_str(), "sink": sink, "from": from });
    Ok((StatusCode::OK, answer))
}

fn outbox(act: &Act, sink: &str) -> Result<Arc<dyn OutboxDesk>, Problem> {
    let outbox = act.desk.outbox.get().cloned();
    let known = outbox.filter(|outbox| outbox.sinks().iter().any(|it| it.name == sink));
    known.ok_or_else(|| Problem::new(Code::NotFound, "events go to no sink of that name"))
}

pub async fn dead(act: Act) -> Result<(StatusCode, Value), Problem> {
    Ok((StatusCode::OK, letters(&act)?.dead(DeadAsked::List).await?))
}

pub async fn dead_letter(act: Act) -> Result<(StatusCode, Value), Problem> {
    let (room, id) = (act.room()?, act.id.as_deref().unwrap_or_default());
    let asked = DeadAsked::Show { room: room.name(), id };
    Ok((StatusCode::OK, letters(&act)?.dead(asked).await?))
}

pub async fn replay_dead(act: Act) -> Result<(StatusCode, Value), Problem> {
    let (room, id) = (act.room()?, act.id.as_deref().unwrap_or_default());
    settle(&act, DeadAsked::Replay { room: room.name(), id }, "replay_dead_letter").await
}

pub async fn drop_dead(act: Act) -> Result<(StatusCode, Value), Problem> {
    let (room, id) = (act.room()?, act.id.as_deref().unwrap_or_default());
    settle(&act, DeadAsked::Drop { room: room.name(), id }, "drop_dead_letter").await
}

/// Does what ends a letter, and notes who did it.
async fn settle(
    act: &Act,
    asked: DeadAsked<'_>,
    action: &str,
) -> Result<(StatusCode, Value), Problem> {
    let answer = letters(act)?.dead(asked).await?;
    if let DeadAsked::Replay { room, id } | DeadAsked::Drop { room, id } = asked {
        let detail = json!({ "before": { "letter": id }, "after": null });
        act.desk.installation.audit(&act.caller.id, Some(room), action, detail).await?;
    }
    Ok((StatusCode::OK, answer))
}

fn letters(act: &Act) -> Result<Arc<dyn OutboxDesk>, Problem> {
    let outbox = act.desk.outbox.get().cloned();
    outbox.ok_or_else(|| Problem::new(Code::NotFound, "events go nowhere"))
}
