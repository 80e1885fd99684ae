//! What an answer says, understood as far as a visitor must.

use serde::Deserialize;

use super::http::Reply;
use crate::history::Got;

/// A visitor answer or a problem.
#[derive(Clone, Debug)]
pub enum Answer {
    Ticket(Box<Ticket>),
    Problem(Problem),
    /// Neither; with why.
    Strange(String),
}

/// The one shape that visitor answers share.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Ticket {
    pub ticket: String,
    pub token: Option<String>,
    pub room: String,
    pub version: Option<u64>,
    pub status: String,
    pub place: Option<Place>,
    pub position: Option<u64>,
    pub ahead: Option<u64>,
    pub behind: Option<u64>,
    pub wait: Option<Wait>,
    pub wait_unknown_because: Option<String>,
    pub next_check_ms: Option<u64>,
    pub room_status: String,
    pub draw_pending: bool,
    pub stale: bool,
    pub support_code: Option<String>,
    pub ended_because: Option<String>,
    pub pass: Option<String>,
    pub enter_url: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Place {
    pub lane: u8,
    pub order: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Wait {
    pub low_s: f64,
    pub likely_s: f64,
    pub high_s: f64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Problem {
    pub code: String,
    pub status: u16,
    pub retry_after_ms: Option<u64>,
}

impl Answer {
    pub fn of(reply: &Reply) -> Answer {
        let fine = (200..300).contains(&reply.http);
        let json = serde_json::from_slice::<serde_json::Value>;
        if fine {
            return match serde_json::from_slice::<Ticket>(&reply.body) {
                Ok(ticket) if ticket.ticket.is_empty() => Answer::Strange("no ticket".into()),
                Ok(ticket) => Answer::Ticket(Box::new(ticket)),
                Err(error) => Answer::Strange(format!("no visitor answer: {error}")),
            };
        }
        match serde_json::from_slice::<Problem>(&reply.body) {
            Ok(mut problem) if !problem.code.is_empty() => {
                problem.retry_after_ms = problem.retry_after_ms.or(reply.retry_after_ms);
                Answer::Problem(problem)
            }
            _ if json(&reply.body).is_err() => {
                Answer::Strange(format!("{} and no JSON", reply.http))
            }
            _ => Answer::Strange(format!("{} and no problem with a code", reply.http)),
        }
    }

    /// As the history has it.
    pub fn got(&self, http: u16) -> Got<'static> {
        let mut got = match self {
            Answer::Ticket(ticket) => ticket.got(),
            Answer::Problem(problem) => {
                Got { code: Some(problem.code.clone().into()), ..Got::default() }
            }
            Answer::Strange(_) => Got::default(),
        };
        got.http = Some(http);
        got
    }
}

impl Ticket {
    pub fn got(&self) -> Got<'static> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned().into());
        let (iat, exp) = self.pass.as_deref().map_or((None, None), claims);
        Got {
            ticket: some(&self.ticket),
            version: self.version,
            status: some(&self.status),
            position: self.position,
            lane: self.place.map(|place| place.lane),
            order: self.place.map(|place| place.order),
            room_status: some(&self.room_status),
            draw_pending: self.draw_pending,
            iat,
            exp,
            ..Got::default()
        }
    }

    pub fn is_over(&self) -> bool {
        matches!(
            self.status.as_str(),
            "completed" | "expired" | "left" | "moved" | "closed" | "revoked"
        )
    }

    pub fn is_inside(&self) -> bool {
        matches!(self.status.as_str(), "admitted" | "active")
    }
}

/// Issued and expires, from a pass that is not checked here: origins do that.
pub fn claims(pass: &str) -> (Option<u64>, Option<u64>) {
    use base64::Engine as _;
    let payload = pass.split('.').nth(1).unwrap_or_default();
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload);
    let claims: serde_json::Value =
        bytes.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    (claims["iat"].as_u64(), claims["exp"].as_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(http: u16, body: &str) -> Reply {
        let (content_type, retry_after_ms) = ("application/json".into(), Some(2_000));
        Reply { t0: 0, t1: 1, http, content_type, retry_after_ms, body: body.to_owned().into() }
    }

    #[test]
    fn an_answer_is_a_ticket_a_problem_or_strange() {
        let ticket = r#"{"ticket":"a","version":3,"status":"waiting","place":{"lane":0,"order":4},
            "position":5,"room_status":"running","something_new":1}"#;
        let answer = Answer::of(&reply(200, ticket));
        let got = answer.got(200);
        assert_eq!((got.http, got.version, got.order), (Some(200), Some(3), Some(4)));
        let problem = Answer::of(&reply(503, r#"{"code":"outcome_unknown","status":503}"#));
        assert!(matches!(&problem, Answer::Problem(it) if it.retry_after_ms == Some(2_000)));
        assert!(problem.got(503).is_unknown());
        for (http, body) in [(200, "[]"), (200, "{}"), (200, ""), (404, "<html>"), (500, "{}")] {
            assert!(matches!(Answer::of(&reply(http, body)), Answer::Strange(_)), "{http} {body}");
        }
    }

    #[test]
    fn the_times_of_a_pass_are_read_and_nothing_else() {
        // {"alg":"none"}.{"iat":7,"exp":9}.
        assert_eq!(claims("eyJhbGciOiJub25lIn0.eyJpYXQiOjcsImV4cCI6OX0."), (Some(7), Some(9)));
        for garbage in ["", "a.b.c", "...", "x"] {
            assert_eq!(claims(garbage), (None, None), "{garbage}");
        }
    }
}
