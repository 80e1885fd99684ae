//! What a caller hears when something cannot be done: a problem document with a stable code.
//!
//! Lives here: the codes, their HTTP status and title, and how core's refusals and the engine's
//! silences become one. Two readers, two texts: `detail` is for the caller; what only we know is
//! logged by whoever knows it and never gets in here.
//! To add a code: a row in the table, a line in `docs/api.md`.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;
use waitroom_core::{DrawRefusal, Refusal, Status};
use waitroom_engine::Unanswered;
use waitroom_store::RoomName;

use crate::body::Body;

macro_rules! codes {
    ($($variant:ident $text:literal $status:literal $title:literal;)*) => {
        /// The stable name of what went wrong. Clients branch on it; texts may change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code { $($variant,)* }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            pub fn text(self) -> &'static str {
                match self { $(Code::$variant => $text,)* }
            }

            pub fn status(self) -> u16 {
                match self { $(Code::$variant => $status,)* }
            }

            pub fn title(self) -> &'static str {
                match self { $(Code::$variant => $title,)* }
            }
        }
    };
}

codes! {
    BadJson "bad_json" 400 "The body is not the JSON that was expected";
    BadRequest "bad_request" 400 "Something in the request cannot be meant";
    LaneUnknown "lane_unknown" 400 "There is no such lane";
    MetadataTooLarge "metadata_too_large" 400 "The metadata is too large";
    IdempotencyKeyWeak "idempotency_key_weak" 400 "The Idempotency-Key is too short to be unique";
    TokenMissing "token_missing" 401 "A ticket token is needed";
    TokenInvalid "token_invalid" 401 "The ticket token is not valid in this room";
    JoinTokenInvalid "join_token_invalid" 401 "The join token is not valid";
    ApiKeyMissing "api_key_missing" 401 "An API key is needed";
    ApiKeyInvalid "api_key_invalid" 401 "The API key is not valid";
    PassRequired "pass_required" 401 "A pass is needed; the waiting room gives one";
    ChallengeRequired "challenge_required" 403 "A challenge must be answered first";
    Forbidden "forbidden" 403 "This caller may not do that";
    HeaderRequired "header_required" 403 "A request that relies on a cookie needs the header Waitroom-Request";
    PassRefused "pass_refused" 403 "The pass was altered or was never a pass";
    OriginRefused "origin_refused" 403 "Pages of this origin may not talk to this room";
    NotFound "not_found" 404 "There is nothing here";
    RoomUnknown "room_unknown" 404 "There is no such room";
    ApiKeyUnknown "api_key_unknown" 404 "There is no such API key";
    TicketUnknown "ticket_unknown" 404 "There is no such ticket";
    BoardOff "board_off" 404 "This room has no public board";
    MethodNotAllowed "method_not_allowed" 405 "This address does not take that method";
    KeyReused "key_reused" 409 "The Idempotency-Key was used with another body";
    MovedElsewhere "moved_elsewhere" 409 "The place was moved to another device";
    WrongStatus "wrong_status" 409 "The ticket's status does not allow this";
    NotOpenYet "not_open_yet" 409 "The room has not opened yet";
    Paused "paused" 409 "The room is paused";
    DrawPending "draw_pending" 409 "The draw has not been made yet";
    RoomExists "room_exists" 409 "There is a room of that name already";
    ApiKeyEnded "api_key_ended" 409 "The API key has ended, or has its follower";
    LastOwner "last_owner" 409 "It is the last key of an owner";
    ClaimTooLate "claim_too_late" 410 "The admission was not claimed in time";
    TicketForgotten "ticket_forgotten" 410 "The ticket ended long ago and is forgotten";
    PlaceLost "place_lost" 410 "The place was lost in a failure of the store";
    RoomEnded "room_ended" 410 "The sale is over";
    BodyTooLarge "body_too_large" 413 "The body is too large";
    BodyTooSlow "body_too_slow" 408 "The body did not arrive in time";
    UnsupportedMediaType "unsupported_media_type" 415 "The body must be application/json";
    SettingsInvalid "settings_invalid" 422 "The room's settings cannot be meant";
    UpgradeRequired "upgrade_required" 426 "This address speaks WebSocket";
    RateLimited "rate_limited" 429 "Too many requests";
    Internal "internal" 500 "Something went wrong here";
    OriginDown "origin_down" 502 "The site behind the waiting room cannot be reached";
    OriginBroken "origin_broken" 502 "The site behind the waiting room broke off";
    OriginBusy "origin_busy" 503 "The site behind the waiting room has as much to do as it may";
    OriginSlow "origin_slow" 504 "The site behind the waiting room did not answer in time";
    QueueFull "queue_full" 503 "The queue is full";
    Maintenance "maintenance" 503 "The room is under maintenance";
    Draining "draining" 503 "The room takes nobody new";
    Overloaded "overloaded" 503 "The room has more to do than it can";
    Unavailable "unavailable" 503 "The room cannot be reached right now";
    OutcomeUnknown "outcome_unknown" 503 "It may have been done or not; repeat with the same Idempotency-Key";
    Stopping "stopping" 503 "This instance is going down";
}

/// One problem, ready to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub code: Code,
    pub detail: String,
    pub room: Option<RoomName>,
    pub retry_after_ms: Option<u64>,
    pub fields: Vec<FieldProblem>,
}

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldProblem {
    pub field: String,
    pub problem: String,
}

/// The document as it is sent (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct Document<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    /// Stable; branch on this.
    code: &'a str,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    room: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [FieldProblem],
}

/// How long a caller should stay away when the room has more to do than it can. One second: a
/// round takes milliseconds, and jitter is the client's.
const BUSY_RETRY_MS: u64 = 1_000;

impl Problem {
    pub fn new(code: Code, detail: impl Into<String>) -> Problem {
        let retry_after_ms = (code.status() == 503).then_some(BUSY_RETRY_MS);
        Problem { code, detail: detail.into(), room: None, retry_after_ms, fields: Vec::new() }
    }

    pub fn in_room(mut self, room: &RoomName) -> Problem {
        self.room = Some(room.clone());
        self
    }

    pub fn retry_after(mut self, ms: u64) -> Problem {
        self.retry_after_ms = Some(ms);
        self
    }

    pub fn with_fields(mut self, fields: Vec<FieldProblem>) -> Problem {
        self.fields = fields;
        self
    }

    /// What a room refused, in the caller's words.
    pub fn refused(refusal: Refusal) -> Problem {
        let (code, detail) = match &refusal {
            Refusal::NotReady => (Code::Unavailable, "the room is being brought up".to_owned()),
            Refusal::NotOpenYet { opens_at } => {
                let opens = waitroom_core::when::utc(opens_at.0);
                (Code::NotOpenYet, format!("the room opens at {opens}"))
            }
            Refusal::NotStarted => (Code::NotOpenYet, "the sale has not started".to_owned()),
            Refusal::DrawPending => (Code::DrawPending, "places are drawn at the start".to_owned()),
            Refusal::Paused { reason } => (Code::Paused, reason.clone()),
            Refusal::Maintenance { reason } => (Code::Maintenance, reason.clone()),
            Refusal::Draining { reason } => (Code::Draining, reason.clone()),
            Refusal::Finished { reason } => (Code::RoomEnded, reason.clone()),
            Refusal::Full { max_waiting } => {
                (Code::QueueFull, format!("{max_waiting} people wait already; try again later"))
            }
            Refusal::UnknownLane { lane } => (Code::LaneUnknown, format!("no lane {lane}")),
            Refusal::UnknownTicket => {
                (Code::TicketUnknown, "this room never gave out that ticket".to_owned())
            }
            Refusal::PlaceLost => (
                Code::PlaceLost,
                "the store lost the end of its log; nobody else has the place; join again".into(),
            ),
            Refusal::Forgotten => (Code::TicketForgotten, "join again for a new place".to_owned()),
            Refusal::MovedElsewhere => {
                (Code::MovedElsewhere, "another device holds the place now".to_owned())
            }
            Refusal::WrongStatus { status } => {
                (Code::WrongStatus, format!("the ticket is {}", status_word(*status)))
            }
            Refusal::ClaimTooLate { claim_by } => (
                Code::ClaimTooLate,
                format!("it had to be claimed by {}", waitroom_core::when::utc(claim_by.0)),
            ),
            Refusal::KeyReused => (Code::KeyReused, "use a new key for a new request".to_owned()),
            Refusal::MetadataTooLarge { bytes_max } => {
                (Code::MetadataTooLarge, format!("at most {bytes_max} bytes"))
            }
            Refusal::NobodyIsNobody => {
                (Code::BadRequest, "the identity or key is all zeros".to_owned())
            }
            Refusal::Settings(_) => {
                (Code::SettingsInvalid, "see the errors; nothing was changed".to_owned())
            }
            Refusal::StaleEpoch { .. } => {
                (Code::Unavailable, "the room is changing hands".to_owned())
            }
            Refusal::Draw(refusal) => (draw_code(*refusal), format!("the draw says {refusal:?}")),
            Refusal::HandedOverTooOften => {
                (Code::Forbidden, "the place has changed devices too often".to_owned())
            }
        };
        let fields = match refusal {
            Refusal::Settings(invalid) => invalid
                .into_iter()
                .map(|it| FieldProblem {
                    problem: format!("{} does not fit; allowed: {}", it.found, it.bound),
                    field: it.field,
                })
                .collect(),
            _ => Vec::new(),
        };
        Problem::new(code, detail).with_fields(fields)
    }

    pub fn unanswered(unanswered: &Unanswered) -> Problem {
        let (code, detail) = match unanswered {
            Unanswered::Overloaded => (Code::Overloaded, "nothing was done; try again"),
            Unanswered::Unavailable { .. } => {
                (Code::Unavailable, "nothing was done; the room resumes by itself")
            }
            Unanswered::OutcomeUnknown { .. } => {
                (Code::OutcomeUnknown, "repeat with the same Idempotency-Key to find out")
            }
            Unanswered::NotOwner { .. } => {
                (Code::Unavailable, "nothing was done; the room is changing hands")
            }
            Unanswered::Stopping => (Code::Stopping, "nothing was done; another instance answers"),
        };
        Problem::new(code, detail)
    }

    pub fn document(&self) -> Vec<u8> {
        let document = Document {
            r#type: format!("https://waitroom.dev/problems/{}", self.code.text()),
            title: self.code.title(),
            status: self.code.status(),
            code: self.code.text(),
            detail: &self.detail,
            room: self.room.as_ref().map(RoomName::as_str),
            retry_after_ms: self.retry_after_ms,
            errors: &self.fields,
        };
        serde_json::to_vec(&document).expect("a document is plain data")
    }

    /// The whole answer of HTTP/1, for a connection that ends with it and that no server serves.
    pub fn last_words(&self) -> Bytes {
        let document = self.document();
        let status = StatusCode::from_u16(self.code.status());
        let status = status.expect("the table holds HTTP statuses");
        let mut head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\n\
             cache-control: no-store\r\nconnection: close\r\ncontent-length: {}\r\n",
            document.len()
        );
        if let Some(ms) = self.retry_after_ms {
            head.push_str(&format!("retry-after: {}\r\n", ms.div_ceil(1_000)));
        }
        head.push_str("\r\n");
        [head.as_bytes(), &document].concat().into()
    }

    pub fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::full(Bytes::from(self.document())));
        // Not sent: whoever counts answers finds it here.
        response.extensions_mut().insert(self.code);
        *response.status_mut() =
            StatusCode::from_u16(self.code.status()).expect("the table holds HTTP statuses");
        let headers = response.headers_mut();
        let problem = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, problem);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(ms) = self.retry_after_ms {
            // Whole seconds, rounded up: a client that comes back early is refused again.
            headers.insert(header::RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000)));
        }
        if self.code.status() == 401 {
            let scheme = HeaderValue::from_static("Bearer realm=\"waitroom\"");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

fn draw_code(refusal: DrawRefusal) -> Code {
    match refusal {
        DrawRefusal::NotClosed | DrawRefusal::BeaconMissing => Code::DrawPending,
        _ => Code::BadRequest,
    }
}

/// The word of a status, everywhere the same.
pub fn status_word(status: Status) -> &'static str {
    match status {
        Status::Waiting => "waiting",
        Status::Admitted => "admitted",
        Status::Active => "active",
        Status::Completed => "completed",
        Status::Expired => "expired",
        Status::Left => "left",
        Status::Moved => "moved",
        Status::Closed => "closed",
        Status::Revoked => "revoked",
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        Problem::refused(refusal)
    }
}

impl From<Unanswered> for Problem {
    fn from(unanswered: Unanswered) -> Problem {
        Problem::unanswered(&unanswered)
    }
}
