//! Which events of a room's log are acts of operators: for the entries that a crash kept from the
//! audit.
//!
//! Lives here: from an event to the entry that its act should have. What was before the act is
//! not in the event; such an entry says `recovered` instead.
//! To add an act: an arm in [`of`].

use serde_json::{Value, json};
use waitroom_api::document;
use waitroom_core::{Ending, FinishCause, Hold, What};

#[derive(Debug)]
pub struct Act<'a> {
    pub who: &'a str,
    pub action: &'static str,
    after: Value,
}

impl Act<'_> {
    /// What the audit keeps of it.
    pub fn detail(&self, version: u64) -> Value {
        json!({ "before": null, "after": self.after, "version": version, "recovered": true })
    }
}

/// None for events that are nobody's act: what visitors, services and time do.
pub fn of(what: &What) -> Option<Act<'_>> {
    let (by, action, after) = match what {
        What::Configured { settings, by } => (by, "configure", document::to_json(settings)),
        What::Held { hold, by } => {
            let (action, status) = match hold {
                Hold::Paused { .. } => ("pause", "paused"),
                Hold::Maintenance { .. } => ("maintenance", "maintenance"),
                Hold::Draining { .. } => ("drain", "draining"),
            };
            (by, action, json!({ "status": status, "reason": hold.reason() }))
        }
        What::Resumed { by } => (by, "resume", Value::Null),
        What::AdmittedNow { asked, granted, by } => {
            (by, "admit", json!({ "asked": asked, "admitted": granted }))
        }
        What::SaleEnded { cause: FinishCause::Schedule, .. } => return None,
        What::SaleEnded { reason, by, .. } => {
            (by, "finish", json!({ "status": "ended", "reason": reason }))
        }
        What::Reopened { by } => (by, "reopen", Value::Null),
        What::Moved { from, to, by, .. } => {
            (by, "move", json!({ "from": from.to_string(), "to": to.to_string() }))
        }
        What::Ended { ticket, ending: Ending::Revoked, by, .. } => {
            (by, "revoke", json!({ "ticket": ticket.to_string(), "status": "revoked" }))
        }
        _ => return None,
    };
    Some(Act { who: &by.0, action, after })
}
