//! The visitor answer, as far as a page shows it. docs/api.md describes all of it.

use serde::Deserialize;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Answer {
    pub status: String,
    pub room_status: String,
    pub reason: Option<String>,
    pub position: Option<u64>,
    pub wait: Option<Wait>,
    pub support_code: Option<String>,
    pub draw_pending: bool,
    pub ended_because: Option<String>,
    pub claim_by: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Wait {
    pub low_s: u64,
    pub likely_s: u64,
    pub high_s: u64,
}

impl Answer {
    /// Reads an answer; none when it is no answer, which a page survives by asking itself.
    pub fn read(json: &str) -> Option<Answer> {
        serde_json::from_str(json).ok().filter(|it: &Answer| !it.status.is_empty())
    }
}

/// A problem document, as far as a page tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Problem {
    pub code: String,
    pub detail: String,
}

impl Problem {
    pub fn read(json: &str) -> Option<Problem> {
        serde_json::from_str(json).ok().filter(|it: &Problem| !it.code.is_empty())
    }
}

/// The answer as the script gets it. Credentials stay in the cookie: a page may be saved, printed
/// or kept by a cache that was set up wrongly.
pub fn for_script(json: &str) -> serde_json::Value {
    let mut value = serde_json::from_str(json).unwrap_or(serde_json::Value::Null);
    if let Some(fields) = value.as_object_mut() {
        for secret in ["token", "pass", "enter_url"] {
            fields.remove(secret);
        }
    }
    value
}
