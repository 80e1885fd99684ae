//! Text messages, through an address that hands them to whichever provider the operator has.
//!
//! The same signature as a webhook's; the body is `{"to": "+4915…", "text": "…", "room": "…"}`.
//! 2xx means that it was taken; 400, 404 and 422 that there is no such number.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use waitroom_store::Clock;

use super::{NotSent, Notice};
use crate::webhook::{Answer, Line, Post, Secrets};

pub struct Sms {
    pub line: Line,
    pub secrets: Secrets,
    pub clock: Arc<dyn Clock>,
}

impl Sms {
    pub(super) async fn send(&self, number: &str, notice: &Notice) -> Result<(), NotSent> {
        let text = format!("{}. {}", notice.subject(), notice.text());
        let body = json!({ "to": number, "text": text, "room": notice.room.as_str() });
        let body = Bytes::from(body.to_string());
        let id = format!("notice:{}:{}", notice.room, notice.ticket);
        let at_s = self.clock.wall_ms() / 1_000;
        let signature = self.secrets.sign(&id, at_s, &body).map_err(|_| NotSent::Later)?;
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "application/json"),
            ("webhook-id", &id),
            ("webhook-timestamp", &at_s.to_string()),
            ("webhook-signature", &signature),
        ] {
            let value = HeaderValue::from_str(value).map_err(|_| NotSent::Never)?;
            headers.insert(HeaderName::from_static(name), value);
        }
        match self.line.post(headers, body).await {
            Ok(Answer { status: 200..=299, .. }) => Ok(()),
            Ok(Answer { status: 400 | 404 | 422, .. }) => Err(NotSent::Never),
            _ => Err(NotSent::Later),
        }
    }
}

impl std::fmt::Debug for Sms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sms by {:?}", self.line)
    }
}

/// As E.164 writes numbers.
pub(super) fn check(number: &str) -> Result<(), &'static str> {
    let digits = number.strip_prefix('+').unwrap_or_default();
    let fits = (7..=15).contains(&digits.len()) && digits.bytes().all(|it| it.is_ascii_digit());
    if fits { Ok(()) } else { Err("no number; write it with + and the country") }
}
