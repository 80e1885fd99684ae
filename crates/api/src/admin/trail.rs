//! What happened: the audit of the installation, and the log of a room.

use http::StatusCode;
use serde_json::{Value, json};
use waitroom_core::{Event, when};
use waitroom_store::system::AuditLine;

use super::Act;
use crate::facts::Told;
use crate::problem::Problem;
use crate::request::{bad_field, query, query_number};

const LIMIT: u64 = 100;
const LIMIT_MAX: u64 = 1_000;
/// Enough log for a thousand events of any kind; most are a few bytes.
const LOG_BYTES: usize = 256 << 10;

pub async fn audit(act: Act) -> Result<(StatusCode, Value), Problem> {
    let (after, limit) = page(&act)?;
    let room = query(&act.uri, "room");
    let page = act.office()?.audit_after(after, limit as usize, room).await?;
    let entries: Vec<Value> = page.lines.iter().map(line).collect();
    let told = json!({
        "entries": entries, "head": page.head, "chain": page.chain, "next": page.next,
    });
    Ok((StatusCode::OK, told))
}

/// One act as it is told, here and by `waitroom audit`.
pub fn line(line: &AuditLine) -> Value {
    json!({
        "index": line.index,
        "at": when::utc(line.at_ms),
        "who": line.who,
        "action": line.action,
        "room": line.room,
        "before": line.before,
        "after": line.after,
    })
}

pub async fn log(act: Act) -> Result<(StatusCode, Value), Problem> {
    let room = act.room()?;
    let (after, limit) = page(&act)?;
    let page = act.office()?.events(room.name(), after, LOG_BYTES).await?;
    let shown = &page.events[..page.events.len().min(limit as usize)];
    let told = |(index, event): &(u64, Event)| Told::of(event).json(*index);
    let events: Vec<Value> = shown.iter().map(told).collect();
    let next = shown.last().map_or(page.head.max(after), |(index, _)| *index);
    let told = json!({
        "events": events, "head": page.head, "next": next, "trimmed_to": page.trimmed_to,
    });
    Ok((StatusCode::OK, told))
}

fn page(act: &Act) -> Result<(u64, u64), Problem> {
    let after = query_number(&act.uri, "after")?.unwrap_or(0);
    // No log has an index beyond what JSON's readers can hold.
    if after > i64::MAX as u64 {
        return Err(bad_field("after", "an index of the log"));
    }
    let limit = query_number(&act.uri, "limit")?.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(bad_field("limit", &format!("a number from 1 to {LIMIT_MAX}")));
    }
    Ok((after, limit))
}
