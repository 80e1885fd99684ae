//! Entries of the `_system` log as an audit reads them: who did what, and what it changed.
//!
//! Lives here: which entries are audit entries ([`AuditLine::of`] is the one place that says so),
//! and their words. Every act of an operator is one entry: acts on keys are entries of their own
//! kind, acts on rooms are `Audit` entries. What the server keeps for itself (sealed secrets, the
//! list of rooms, when keys were used) is in the same log and under the same chain, but it is
//! nobody's act and not shown.

use serde_json::{Value, json};

use super::{Entry, What};
use crate::log::Head;

/// One act.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditLine {
    /// Where it stands in the `_system` log; what stands between two lines is nobody's act.
    pub index: u64,
    pub at_ms: u64,
    pub who: String,
    /// A stable word: `configure`, `pause`, `key_create`, …
    pub action: String,
    pub room: Option<String>,
    pub before: Value,
    pub after: Value,
}

impl AuditLine {
    /// None for entries that are no act of anybody.
    pub fn of(index: Head, entry: &Entry) -> Option<AuditLine> {
        let (action, room, before, after) = match &entry.what {
            What::ApiKeyCreated { id, role, note, expires_at_ms, .. } => {
                let after = json!({ "key": id, "role": role, "note": note, "expires_at_ms": expires_at_ms });
                ("key_create", None, Value::Null, after)
            }
            What::ApiKeyRotated { old, old_ends_at_ms, id, expires_at_ms, .. } => {
                let before = json!({ "key": old });
                let after = json!({
                    "key": id, "expires_at_ms": expires_at_ms, "old_ends_at_ms": old_ends_at_ms,
                });
                ("key_rotate", None, before, after)
            }
            What::ApiKeyRevoked { id } => {
                let of = |revoked: bool| json!({ "key": id, "revoked": revoked });
                ("key_revoke", None, of(false), of(true))
            }
            What::RoomRemoved { room } => {
                ("room_remove", Some(room.clone()), json!({ "room": room }), Value::Null)
            }
            What::Audit { room, action, detail } => {
                let (before, after) = (detail["before"].clone(), detail["after"].clone());
                (action.as_str(), room.clone(), before, after)
            }
            // Making a room writes down its name; that its settings were put is the act.
            What::RoomCreated { .. }
            | What::ApiKeysUsed { .. }
            | What::SecretSealed { .. }
            | What::SecretRetired { .. }
            | What::Unknown => return None,
        };
        Some(AuditLine {
            index: index.0,
            at_ms: entry.at_ms,
            who: entry.who.clone(),
            action: action.to_owned(),
            room,
            before,
            after,
        })
    }
}
