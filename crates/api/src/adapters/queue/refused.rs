//! Errors of the queue API: `{error:{code,message,details},request_id}`.
//!
//! Its ten codes are coarser than ours, so `details.reason` carries ours.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use waitroom_store::{Entropy, OsEntropy};

use crate::adapters::stands::Over;
use crate::body::Body;
use crate::problem::{Code, FieldProblem, Problem};

#[derive(Debug)]
pub struct Refused {
    status: u16,
    code: &'static str,
    message: String,
    reason: &'static str,
    fields: Vec<FieldProblem>,
    retry_after_ms: Option<u64>,
}

impl Refused {
    /// What is asked about has ended.
    pub fn over(over: Over) -> Refused {
        let (code, what) = match over.was_inside {
            true => ("SESSION_EXPIRED", "session"),
            false => ("POSITION_EXPIRED", "position"),
        };
        Refused::gone(code, format!("the {what} is over: {}", over.reason), over.reason)
    }

    pub fn session_over(reason: &'static str) -> Refused {
        Refused::gone("SESSION_EXPIRED", format!("the session is over: {reason}"), reason)
    }

    fn gone(code: &'static str, message: String, reason: &'static str) -> Refused {
        Refused { status: 410, code, message, reason, fields: Vec::new(), retry_after_ms: None }
    }

    pub fn into_response(self) -> Response<Body> {
        let mut details = json!({ "reason": self.reason });
        if let Some(ms) = self.retry_after_ms {
            details["retry_after_seconds"] = Value::from(ms.div_ceil(1_000));
        }
        if !self.fields.is_empty() {
            details["errors"] = json!(self.fields);
        }
        let request_id = OsEntropy.next_u128();
        let document = json!({
            "error": { "code": self.code, "message": self.message, "details": details },
            "request_id": format!("{request_id:032x}"),
        });
        let mut response = Response::new(Body::full(Bytes::from(document.to_string())));
        *response.status_mut() =
            StatusCode::from_u16(self.status).expect("the tables hold HTTP statuses");
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(ms) = self.retry_after_ms {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000)));
        }
        if self.status == 401 {
            let scheme = HeaderValue::from_static("Bearer realm=\"waitroom\"");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Refused {
        let (status, code) = in_their_words(problem.code);
        let message = match problem.detail.is_empty() {
            true => problem.code.title().to_owned(),
            false => problem.detail,
        };
        Refused {
            status,
            code,
            message,
            reason: problem.code.text(),
            fields: problem.fields,
            retry_after_ms: problem.retry_after_ms,
        }
    }
}

/// The status and the code for each of ours.
fn in_their_words(code: Code) -> (u16, &'static str) {
    match code {
        // A token of a place that another device holds proves nothing any more.
        Code::MovedElsewhere => (401, "UNAUTHORIZED"),
        Code::ClaimTooLate | Code::TicketForgotten | Code::PlaceLost => (410, "POSITION_EXPIRED"),
        Code::RateLimited => (429, "RATE_LIMITED"),
        Code::QueueFull => (503, "QUEUE_FULL"),
        // Nobody can join now: this interface knows no schedule and no end of a sale.
        Code::Maintenance | Code::NotOpenYet | Code::RoomEnded => (503, "MAINTENANCE_MODE"),
        Code::SettingsInvalid => (400, "INVALID_REQUEST"),
        // Only the gate says these; this interface knows no status for them.
        Code::OriginDown | Code::OriginBroken | Code::OriginSlow => (503, "INTERNAL_ERROR"),
        code => match code.status() {
            401 => (401, "UNAUTHORIZED"),
            403 => (403, "FORBIDDEN"),
            404 => (404, "NOT_FOUND"),
            status @ 400..500 => (status, "INVALID_REQUEST"),
            status => (status, "INTERNAL_ERROR"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_of_ours_has_one_of_the_ten_codes_and_a_fitting_status() {
        for code in Code::ALL {
            let (status, word) = in_their_words(*code);
            let expected: &[u16] = match word {
                "INVALID_REQUEST" => &[400, 405, 408, 409, 413, 415, 426],
                "UNAUTHORIZED" => &[401],
                "FORBIDDEN" => &[403],
                "NOT_FOUND" => &[404],
                "POSITION_EXPIRED" => &[410],
                "RATE_LIMITED" => &[429],
                "QUEUE_FULL" | "MAINTENANCE_MODE" => &[503],
                "INTERNAL_ERROR" => &[500, 503],
                other => panic!("{other} is no code of this interface"),
            };
            assert!(expected.contains(&status), "{code:?} became {status} {word}");
        }
    }
}
