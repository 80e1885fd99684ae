//! The gate for operators: what it did, and passes for people of the house.

use http::StatusCode;
use serde_json::{Value, json};
use waitroom_core::when;

use super::Act;
use crate::desk::GateDesk;
use crate::problem::{Code, Problem};
use crate::request::query_number;

/// A working day: somebody who needs it longer asks again.
const STAFF_PASS_LIFE_S: u64 = 12 * 3_600;

pub async fn report(act: Act) -> Result<(StatusCode, Value), Problem> {
    Ok((StatusCode::OK, gate(&act)?.report()))
}

/// Nothing is kept of a staff pass: its number in the audit says who asked for it.
pub async fn staff_pass(act: Act) -> Result<(StatusCode, Value), Problem> {
    let gate = gate(&act)?;
    let room = act.room()?;
    let number = waitroom_store::Entropy::next_u128(&waitroom_store::OsEntropy) as u64;
    let expires_s = act.desk.now_s() + STAFF_PASS_LIFE_S;
    let after = json!({ "number": number, "expires_at": when::utc(expires_s * 1_000) });
    let detail = json!({ "before": null, "after": after });
    let installation = &act.desk.installation;
    installation.audit(&act.caller.id, Some(room.name()), "staff_pass", detail).await?;
    let pass = gate.staff_pass(room.name().as_str(), number, expires_s as u32);
    let answer = json!({
        "room": room.name().as_str(),
        "number": number,
        "expires_at": when::utc(expires_s * 1_000),
        "link": format!("/?wr_staff={pass}"),
        "staff_pass": pass,
    });
    Ok((StatusCode::CREATED, answer))
}

/// Its word frees slots, so it needs a key that may act.
pub async fn hear(act: Act) -> Result<(StatusCode, Value), Problem> {
    let room = act.room()?;
    let name = act.id.as_deref().unwrap_or_default();
    let confirmed = query_number(&act.uri, "confirmed")?.unwrap_or(0);
    let heard = gate(&act)?.hear(room.name().as_str(), name, confirmed);
    let unknown = || Problem::new(Code::NotFound, "no site of this room names such a gate");
    Ok((StatusCode::OK, heard.ok_or_else(unknown)?))
}

fn gate(act: &Act) -> Result<std::sync::Arc<dyn GateDesk>, Problem> {
    let gate = act.desk.gate.get().and_then(std::sync::Weak::upgrade);
    gate.ok_or_else(|| Problem::new(Code::NotFound, "this instance has no gate"))
}
