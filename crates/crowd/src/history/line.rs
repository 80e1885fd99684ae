//! One line of a history.
//!
//! Texts are borrowed from the line where they can be: a history of ten million lines is read
//! without an allocation for each. Fields that nobody knows are left out, never invented.
//! To add a call: a variant of [`Verb`], a row in `docs/history.md`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// The format that this release writes and reads.
pub const FORMAT: u32 = 1;

/// The first line of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The format of the lines below.
    pub history: u32,
    /// Who wrote it.
    pub by: String,
    /// The wall clock at moment 0, RFC 3339 and in milliseconds.
    pub started: String,
    pub started_ms: u64,
    pub seed: u64,
    /// What is known of the rooms' settings. A room that is not here is judged by what needs none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rooms: BTreeMap<String, RoomFacts>,
}

/// The settings of a room that promises are measured by.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoomFacts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_active: Option<u64>,
    /// Missing: unknown. With a count of 0: nobody is admitted by the pace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// How long a finished ticket is remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_ms: Option<u64>,
    /// Whether a draw or shuffle windows decide about the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shuffled: Option<bool>,
}

/// `count` admissions per `per_ms`, and so many at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    pub count: u64,
    pub per_ms: u64,
    pub burst: u64,
}

/// A line: the header or a call. Read one at a time, so its size costs nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq)]
pub enum Line<'a> {
    Header(Header),
    Call(Call<'a>),
}

/// What was asked and what came back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Call<'a> {
    /// When it was sent and when its answer was complete, in nanoseconds since the header's
    /// moment, on a clock that only goes forward. What the server sent unasked has both alike.
    pub t0: u64,
    pub t1: u64,
    /// The visitor, counted from 0. Lines of one visitor stand in the order of `t1`.
    pub who: u64,
    pub call: Verb,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub room: Cow<'a, str>,
    /// The `Idempotency-Key` of a join.
    #[serde(borrow, default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub key: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Sent::is_nothing")]
    pub sent: Sent<'a>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub got: Option<Got<'a>>,
    /// No answer came: it may have happened or not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lost: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    Join,
    Status,
    Heartbeat,
    Claim,
    Leave,
    Complete,
    Activity,
    /// A frame of a live channel that tells of the ticket.
    Frame,
    LiveTicket,
    /// Opening a live channel with something that must not open it.
    Live,
    /// Operators.
    Pause,
    Resume,
    Admit,
    /// New settings; `sent.facts` has them.
    Settings,
    /// Anything else.
    #[default]
    #[serde(other)]
    Other,
}

impl Verb {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Join => "join",
            Verb::Status => "status",
            Verb::Heartbeat => "heartbeat",
            Verb::Claim => "claim",
            Verb::Leave => "leave",
            Verb::Complete => "complete",
            Verb::Activity => "activity",
            Verb::Frame => "frame",
            Verb::LiveTicket => "live_ticket",
            Verb::Live => "live",
            Verb::Pause => "pause",
            Verb::Resume => "resume",
            Verb::Admit => "admit",
            Verb::Settings => "settings",
            Verb::Other => "other",
        }
    }

    /// Whether the answer shows the room exactly as it was at the answer's version. Answers to
    /// commands carry the head of their round, and what they show may be from earlier in it.
    pub fn is_a_look(self) -> bool {
        matches!(self, Verb::Status | Verb::Heartbeat | Verb::Frame)
    }
}

/// What was sent, as far as it matters to a judge. Never a token or a pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sent<'a> {
    /// The ticket whose token, pass or id was presented.
    #[serde(borrow, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub ticket: Option<Cow<'a, str>>,
    /// Who the shop says it is.
    #[serde(borrow, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub user: Option<Cow<'a, str>>,
    /// What is wrong with the proof that was presented; a call that has this must be refused.
    #[serde(borrow, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub forged: Option<Cow<'a, str>>,
    /// How many an operator asked to admit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts: Option<RoomFacts>,
}

impl Sent<'_> {
    fn is_nothing(&self) -> bool {
        *self == Sent::default()
    }
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Got<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<u16>,
    /// A gRPC code; 0 is fine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grpc: Option<u16>,
    /// The problem's code.
    #[serde(borrow, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub code: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub ticket: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The ticket's status.
    #[serde(borrow, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub status: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<u64>,
    #[serde(borrow, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub room_status: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "is_false")]
    pub draw_pending: bool,
    /// The pass's claims, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iat: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exp: Option<u64>,
    /// How many an operator's call let in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub granted: Option<u64>,
}

impl Got<'_> {
    /// Whether it did what was asked.
    pub fn is_fine(&self) -> bool {
        match (self.http, self.grpc) {
            (Some(http), _) => (200..300).contains(&http) || http == 101,
            (None, Some(grpc)) => grpc == 0,
            // A frame has neither: it was sent, so it is fine.
            (None, None) => true,
        }
    }

    /// Whether it may have happened although it was not confirmed. A gateway's or a server's own
    /// trouble says nothing about the room.
    pub fn is_unknown(&self) -> bool {
        let unknown_code = self.code.as_deref() == Some("outcome_unknown");
        let uncoded = self.code.is_none() && self.http.is_some_and(|http| http >= 500);
        // CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE, DATA_LOSS.
        let grpc = matches!(self.grpc, Some(1 | 2 | 4 | 13 | 14 | 15));
        unknown_code || uncoded || self.code.as_deref() == Some("internal") || grpc
    }
}

/// Borrows where it can; serde alone would copy a `Cow` that sits in an `Option`.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    Ok(Option::<Text<'de>>::deserialize(from)?.map(|text| text.0))
}

fn is_false(flag: &bool) -> bool {
    !flag
}
