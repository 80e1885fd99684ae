//! API keys: who I am, who has keys, new ones, pairs, ends.
//!
//! The text of a key is in the answer that makes it and nowhere else.

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use waitroom_core::when;
use waitroom_store::system::ApiKey;

use super::office::{MadeKey, WantedKey};
use super::{Act, office};
use crate::caller::Role;
use crate::document::value;
use crate::problem::Problem;
use crate::request::bad_field;

/// How long a key works beside its follower, unless something else is asked for: a day in which
/// everybody who has it gets the new one.
const OVERLAP_MS: u64 = 24 * 3_600_000;
/// Longer is no overlap, and shorter than ten years, as every span of a key.
const SPAN_MS_MAX: u64 = 10 * 366 * 24 * 3_600_000;
const NOTE_LETTERS_MAX: usize = 200;

pub async fn me(act: Act) -> Result<(StatusCode, Value), Problem> {
    let known = match act.desk.installation.office() {
        Some(office) => {
            office.keys().await.into_iter().find(|key| key.id.as_str() == &*act.caller.id)
        }
        None => None,
    };
    let told = json!({
        "id": &*act.caller.id,
        "role": act.caller.role.word(),
        "note": known.as_ref().map_or("", |key| key.note.as_str()),
        "expires_at": known.as_ref().and_then(|key| key.expires_at_ms).map(when::utc),
    });
    Ok((StatusCode::OK, told))
}

pub async fn list(act: Act) -> Result<(StatusCode, Value), Problem> {
    let keys = act.office()?.keys().await;
    Ok((StatusCode::OK, json!({ "keys": keys.iter().map(picture).collect::<Vec<_>>() })))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    role: Option<String>,
    #[serde(default)]
    note: String,
    expires_in: Option<Value>,
}

pub async fn create(act: Act) -> Result<(StatusCode, Value), Problem> {
    let Wanted { role, note, expires_in } = act.said()?;
    let role = role.as_deref().and_then(Role::parse);
    let role = role.ok_or_else(|| bad_field("role", "viewer, operator or owner"))?;
    if note.chars().count() > NOTE_LETTERS_MAX {
        return Err(bad_field("note", &format!("at most {NOTE_LETTERS_MAX} letters")));
    }
    let life_ms = expires_in.map(|it| span(&it, "expires_in", 1)).transpose()?;
    let wanted = WantedKey { who: &act.caller.id, role, note: &note, life_ms };
    let made = act.office()?.create_key(wanted).await?;
    Ok((StatusCode::CREATED, shown_once(&made)))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Overlap {
    overlap: Option<Value>,
}

pub async fn rotate(act: Act) -> Result<(StatusCode, Value), Problem> {
    let Overlap { overlap } = act.said()?;
    let overlap_ms = overlap.map(|it| span(&it, "overlap", 0)).transpose()?.unwrap_or(OVERLAP_MS);
    let id = act.id.as_deref().unwrap_or_default();
    let made = act.office()?.rotate_key(&act.caller.id, id, overlap_ms).await?;
    Ok((StatusCode::CREATED, shown_once(&made)))
}

pub async fn revoke(act: Act) -> Result<(StatusCode, Value), Problem> {
    act.said::<super::Nothing>()?;
    let id = act.id.as_deref().unwrap_or_default();
    let revoked = act.office()?.revoke_key(&act.caller.id, id).await?;
    Ok((StatusCode::OK, picture(&revoked)))
}

fn span(given: &Value, field: &str, ms_min: u64) -> Result<u64, Problem> {
    if given.is_number() {
        return Err(bad_field(field, "a text with a unit, such as \"30d\""));
    }
    let span = value::span(given).map_err(|why| bad_field(field, &why))?.0;
    if !(ms_min..=SPAN_MS_MAX).contains(&span) {
        return Err(bad_field(field, "a span of time up to ten years, such as \"30d\""));
    }
    Ok(span)
}

fn picture(key: &ApiKey) -> Value {
    json!({
        "id": key.id,
        "role": key.role,
        "note": key.note,
        "created_at": when::utc(key.created_at_ms),
        "created_by": key.created_by,
        "expires_at": key.expires_at_ms.map(when::utc),
        "last_used_at": key.last_used_at_ms.map(when::utc),
        "revoked_at": key.revoked_at_ms.map(when::utc),
        "replaced_by": key.replaced_by,
    })
}

fn shown_once(made: &MadeKey) -> Value {
    let mut told = picture(&made.key);
    told["key"] = made.secret.as_str().into();
    told
}

impl Act {
    pub(super) fn office(&self) -> Result<&dyn office::Office, Problem> {
        self.desk.installation.office().ok_or_else(office::none)
    }
}
