//! What the core finds impossible, in the words of the document.
//!
//! Lives here: from the core's fields and milliseconds to the document's fields, units and
//! moments. Stays out: the bounds themselves (`waitroom_core::settings`).

use serde_json::{Map, Value};
use waitroom_core::{Invalid, Settings, Timestamp, when};

use super::{Mistake, value};

/// What a field is measured by. When the measure itself could not be read, its default stands
/// in for it, and comparing with that would blame the wrong line.
const MEASURED_BY: &[(&str, &[&str])] = &[
    ("returning", &["memory"]),
    ("pass_life", &["session_timeout"]),
    ("ticket_life", &["heartbeat_timeout"]),
    ("heartbeat_interval", &["heartbeat_timeout"]),
    ("starts_at", &["opens_at"]),
    ("ends_at", &["opens_at", "starts_at"]),
    ("draw", &["starts_at"]),
];

/// Adds what cannot be to what could not be read.
pub fn add_what_cannot_be(
    settings: &Settings,
    document: &Map<String, Value>,
    mistakes: &mut Vec<Mistake>,
) {
    let Err(wrong) = settings.check() else { return };
    let unread: Vec<String> = mistakes.iter().map(|it| top(&it.field).to_owned()).collect();
    let is_unread = |key: &str| unread.iter().any(|it| it == key);
    for invalid in wrong {
        let key = top(&invalid.field);
        let measures = MEASURED_BY.iter().find(|(it, _)| *it == key).map_or(&[][..], |(_, by)| *by);
        if !is_unread(key) && !measures.iter().any(|by| is_unread(by)) {
            mistakes.push(in_our_words(&invalid, settings, document));
        }
    }
}

/// The setting that a path begins with.
fn top(field: &str) -> &str {
    field.split(['.', '[']).next().unwrap_or(field)
}

fn in_our_words(invalid: &Invalid, settings: &Settings, document: &Map<String, Value>) -> Mistake {
    let field = &*invalid.field;
    let shown = |at: Option<Timestamp>| at.map_or("none".into(), |Timestamp(ms)| when::utc(ms));
    let problem = match field {
        "starts_at" => {
            format!(
                "{} is before opens_at ({})",
                shown(settings.starts_at),
                shown(settings.opens_at)
            )
        }
        "ends_at" => {
            let (begins, name) = match settings.starts_at {
                Some(starts) => (starts, "starts_at"),
                None => (settings.opens_at.unwrap_or_default(), "opens_at"),
            };
            format!("{} is not after {name} ({})", shown(settings.ends_at), shown(Some(begins)))
        }
        "draw" => "a draw needs starts_at, the moment it closes".into(),
        "rate.count" => "0 does not fit; write \"none\" for manual admits only".into(),
        _ => {
            // As it was written, where it was written as one value.
            let written = document.get(field).filter(|it| it.is_string() || it.is_number());
            let found = written.map_or(invalid.found.clone(), value::shown);
            format!("{found} does not fit; allowed: {}", invalid.bound)
        }
    };
    Mistake::new(field, problem)
}
