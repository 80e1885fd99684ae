//! A problem document of the server, and what to say about it.
//!
//! Lives here: reading `application/problem+json`, and the next step for each kind of refusal.
//! Stays out: the call (`client.rs`).

use hyper::StatusCode;
use serde_json::Value;

use crate::failure::{Exit, Failure};

/// No more of what a server says is shown; whatever answers there might not be ours.
const SHOWN_MAX: usize = 400;

/// Why the server said no.
#[derive(Debug)]
pub struct Problem {
    pub status: StatusCode,
    /// The stable word, such as `room_unknown`.
    pub code: String,
    detail: String,
    retry_after_ms: Option<u64>,
    pub errors: Vec<WrongField>,
}

/// A part of the request that is wrong.
#[derive(Debug)]
pub struct WrongField {
    pub field: String,
    pub problem: String,
}

impl Problem {
    /// `None` when it is no problem document: then it is no server of ours.
    pub fn parse(status: StatusCode, body: &[u8]) -> Option<Problem> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let text = |value: &Value| value.as_str().map(shown);
        let code = text(&body["code"])?;
        let detail = text(&body["detail"]).or_else(|| text(&body["title"])).unwrap_or_default();
        let errors = body["errors"].as_array().into_iter().flatten();
        let errors = errors.filter_map(|it| {
            Some(WrongField { field: text(&it["field"])?, problem: text(&it["problem"])? })
        });
        let retry_after_ms = body["retry_after_ms"].as_u64();
        Some(Problem { status, code, detail, retry_after_ms, errors: errors.collect() })
    }

    /// In words. `what` was asked for, such as `room spring-sale`.
    pub fn failure(&self, what: &str) -> Failure {
        let nothing = "nothing was changed";
        let Problem { code, detail, .. } = self;
        let said = |said: &str| format!("{what}: {said} ({code})");
        match (self.status.as_u16(), &**code) {
            (401, _) => Failure::new(Exit::Forbidden, said("the server does not know the API key"))
                .means(nothing)
                .advise("set WAITROOM_ADMIN_KEY (or give --key) to a key of this server;\na development server prints one on start"),
            (403, _) => Failure::new(Exit::Forbidden, said("the API key may not do this"))
                .means(nothing)
                .advise("use a key with the role operator or owner"),
            (404, "room_unknown") => Failure::new(Exit::NotThere, said("there is no such room"))
                .means(nothing)
                .advise("`waitroom room list` shows the rooms, `waitroom room put FILE` makes one"),
            (404, "ticket_unknown" | "api_key_unknown") => Failure::new(Exit::NotThere, said(detail))
                .means(nothing)
                .advise("look at what was typed; `waitroom ticket find` and `waitroom key list` show what there is"),
            (404 | 405, _) => Failure::new(Exit::NotThere, said("the server has no such call"))
                .means(nothing)
                .advise("look whether --server is the admin address, and of the same version as this command"),
            (400 | 413 | 415 | 422, _) => Failure::new(Exit::Usage, said(&self.with_errors()))
                .means(nothing)
                .advise("correct it and try again"),
            (409 | 410, _) => Failure::new(Exit::Wrong, said(detail))
                .means(nothing)
                .advise("`waitroom room list` shows how the rooms are"),
            (503, "outcome_unknown") => Failure::new(Exit::Busy, said(detail))
                .means("it is not known whether it was done")
                .advise("look at the room, then try again"),
            (429 | 503, _) => Failure::new(Exit::Busy, said(detail)).means(nothing).advise(self.later()),
            _ => Failure::new(Exit::Unavailable, said(detail))
                .means("it is not known whether it was done")
                .advise("look at the server's log"),
        }
    }

    fn with_errors(&self) -> String {
        let mut said = self.detail.clone();
        for WrongField { field, problem } in &self.errors {
            said += &format!("\n  {field}: {problem}");
        }
        said
    }

    fn later(&self) -> String {
        match self.retry_after_ms {
            Some(ms) => format!("try again in {} s", ms.div_ceil(1_000)),
            None => "try again in a moment".into(),
        }
    }
}

/// A stranger's text must not steer the reader's terminal.
fn shown(text: &str) -> String {
    text.chars().take(SHOWN_MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
