//! What a caller hears when something cannot be done, in the words of the gRPC contract.
//!
//! A text begins with a code and a dash: `WTR001 - Session not found: …` where the contract has
//! a number, otherwise our own code, `overloaded - …`. The trailer `waitroom-code` carries our own
//! in any case, and `grpc-retry-pushback-ms` says when to come back, which client libraries obey.

use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code as Grpc, Status};

use crate::problem::{Code, Problem};

/// The numbers of the contract. 7 was never told to anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    NotFound,
    Expired,
    AlreadyExists,
    InvalidStatus,
    QueueFull,
    EventNotFound,
    ConfigNotFound,
    NotAllowed,
}

impl Number {
    /// How a text begins, word for word.
    fn text(self) -> &'static str {
        match self {
            Number::NotFound => "WTR001 - Session not found",
            Number::Expired => "WTR002 - Session expired",
            Number::AlreadyExists => "WTR003 - Session already exists",
            Number::InvalidStatus => "WTR004 - Invalid session status",
            Number::QueueFull => "WTR005 - Queue is full",
            Number::EventNotFound => "WTR006 - Event not found",
            Number::ConfigNotFound => "WTR008 - Config not found",
            Number::NotAllowed => "WTR009 - Wait room not allowed",
        }
    }
}

/// Every problem there is, as gRPC has it. UNAVAILABLE means "the same again, later";
/// FAILED_PRECONDITION "not before something else has happened".
fn row(code: Code) -> (Grpc, Option<Number>) {
    use Number::*;
    match code {
        Code::BadJson
        | Code::BadRequest
        | Code::LaneUnknown
        | Code::MetadataTooLarge
        | Code::IdempotencyKeyWeak
        | Code::UnsupportedMediaType
        | Code::SettingsInvalid => (Grpc::InvalidArgument, None),
        Code::TokenMissing
        | Code::TokenInvalid
        | Code::JoinTokenInvalid
        | Code::ApiKeyMissing
        | Code::ApiKeyInvalid
        | Code::PassRequired => (Grpc::Unauthenticated, None),
        Code::Forbidden | Code::HeaderRequired | Code::OriginRefused | Code::PassRefused => {
            (Grpc::PermissionDenied, None)
        }
        Code::ChallengeRequired => (Grpc::PermissionDenied, Some(NotAllowed)),
        Code::NotFound | Code::BoardOff | Code::ApiKeyUnknown => (Grpc::NotFound, None),
        Code::MethodNotAllowed | Code::UpgradeRequired => (Grpc::Unimplemented, None),
        Code::RoomUnknown => (Grpc::NotFound, Some(EventNotFound)),
        // A lost place is nobody's: as for one that never was, the way on is to join.
        Code::TicketUnknown | Code::PlaceLost => (Grpc::NotFound, Some(NotFound)),
        Code::TicketForgotten => (Grpc::NotFound, Some(Expired)),
        Code::ApiKeyEnded | Code::LastOwner => (Grpc::FailedPrecondition, None),
        Code::ClaimTooLate => (Grpc::FailedPrecondition, Some(Expired)),
        Code::KeyReused | Code::RoomExists => (Grpc::AlreadyExists, Some(AlreadyExists)),
        Code::MovedElsewhere | Code::WrongStatus => (Grpc::FailedPrecondition, Some(InvalidStatus)),
        Code::NotOpenYet | Code::Paused | Code::DrawPending | Code::RoomEnded => {
            (Grpc::FailedPrecondition, Some(NotAllowed))
        }
        Code::Maintenance | Code::Draining => (Grpc::Unavailable, Some(NotAllowed)),
        Code::QueueFull => (Grpc::ResourceExhausted, Some(QueueFull)),
        Code::RateLimited | Code::BodyTooLarge => (Grpc::ResourceExhausted, None),
        Code::BodyTooSlow | Code::OriginSlow => (Grpc::DeadlineExceeded, None),
        Code::Internal => (Grpc::Internal, None),
        // Only the gate says these, which speaks no gRPC.
        Code::OriginDown | Code::OriginBroken | Code::OriginBusy => (Grpc::Unavailable, None),
        Code::Overloaded | Code::Unavailable | Code::OutcomeUnknown | Code::Stopping => {
            (Grpc::Unavailable, None)
        }
    }
}

pub fn refused(problem: Problem) -> Status {
    let (code, number) = row(problem.code);
    // There is no Idempotency-Key here: the user's name does its work.
    let (title, detail) = match problem.code {
        Code::OutcomeUnknown => {
            ("It may have been done or not", "repeat the call: a user has one place, and keeps it")
        }
        code => (code.title(), problem.detail.as_str()),
    };
    let begin = match number {
        Some(number) => number.text().to_owned(),
        None => format!("{} - {title}", problem.code.text()),
    };
    let text = if detail.is_empty() { begin } else { format!("{begin}: {detail}") };
    Status::with_metadata(code, text, trailers(problem.code, problem.retry_after_ms))
}

/// A session that is over, where the call needs one that is not.
pub fn expired(detail: &str) -> Status {
    told(Grpc::FailedPrecondition, Number::Expired, Code::WrongStatus, detail)
}

/// A room that nobody has given settings.
pub fn no_settings() -> Status {
    let detail = "the room exists, and has no settings yet";
    told(Grpc::FailedPrecondition, Number::ConfigNotFound, Code::Unavailable, detail)
}

fn told(code: Grpc, number: Number, ours: Code, detail: &str) -> Status {
    let text = format!("{}: {detail}", number.text());
    Status::with_metadata(code, text, trailers(ours, None))
}

fn trailers(code: Code, retry_after_ms: Option<u64>) -> MetadataMap {
    let mut metadata = MetadataMap::with_capacity(2);
    metadata.insert("waitroom-code", MetadataValue::from_static(code.text()));
    if let Some(ms) = retry_after_ms {
        metadata.insert("grpc-retry-pushback-ms", MetadataValue::from(ms));
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contract, row by row. `docs/grpc.md` shows the same table.
    const TABLE: &[(&str, &str, &str)] = &[
        ("bad_json", "InvalidArgument", ""),
        ("bad_request", "InvalidArgument", ""),
        ("lane_unknown", "InvalidArgument", ""),
        ("metadata_too_large", "InvalidArgument", ""),
        ("idempotency_key_weak", "InvalidArgument", ""),
        ("token_missing", "Unauthenticated", ""),
        ("token_invalid", "Unauthenticated", ""),
        ("join_token_invalid", "Unauthenticated", ""),
        ("api_key_missing", "Unauthenticated", ""),
        ("api_key_invalid", "Unauthenticated", ""),
        ("pass_required", "Unauthenticated", ""),
        ("challenge_required", "PermissionDenied", "WTR009"),
        ("forbidden", "PermissionDenied", ""),
        ("header_required", "PermissionDenied", ""),
        ("pass_refused", "PermissionDenied", ""),
        ("origin_refused", "PermissionDenied", ""),
        ("not_found", "NotFound", ""),
        ("room_unknown", "NotFound", "WTR006"),
        ("api_key_unknown", "NotFound", ""),
        ("ticket_unknown", "NotFound", "WTR001"),
        ("board_off", "NotFound", ""),
        ("method_not_allowed", "Unimplemented", ""),
        ("key_reused", "AlreadyExists", "WTR003"),
        ("moved_elsewhere", "FailedPrecondition", "WTR004"),
        ("wrong_status", "FailedPrecondition", "WTR004"),
        ("not_open_yet", "FailedPrecondition", "WTR009"),
        ("paused", "FailedPrecondition", "WTR009"),
        ("draw_pending", "FailedPrecondition", "WTR009"),
        ("room_exists", "AlreadyExists", "WTR003"),
        ("api_key_ended", "FailedPrecondition", ""),
        ("last_owner", "FailedPrecondition", ""),
        ("claim_too_late", "FailedPrecondition", "WTR002"),
        ("ticket_forgotten", "NotFound", "WTR002"),
        ("place_lost", "NotFound", "WTR001"),
        ("room_ended", "FailedPrecondition", "WTR009"),
        ("body_too_large", "ResourceExhausted", ""),
        ("body_too_slow", "DeadlineExceeded", ""),
        ("unsupported_media_type", "InvalidArgument", ""),
        ("settings_invalid", "InvalidArgument", ""),
        ("upgrade_required", "Unimplemented", ""),
        ("rate_limited", "ResourceExhausted", ""),
        ("internal", "Internal", ""),
        ("origin_down", "Unavailable", ""),
        ("origin_broken", "Unavailable", ""),
        ("origin_busy", "Unavailable", ""),
        ("origin_slow", "DeadlineExceeded", ""),
        ("queue_full", "ResourceExhausted", "WTR005"),
        ("maintenance", "Unavailable", "WTR009"),
        ("draining", "Unavailable", "WTR009"),
        ("overloaded", "Unavailable", ""),
        ("unavailable", "Unavailable", ""),
        ("outcome_unknown", "Unavailable", ""),
        ("stopping", "Unavailable", ""),
    ];

    #[test]
    fn every_problem_has_its_row_and_its_text_begins_with_its_code() {
        let codes: Vec<&str> = TABLE.iter().map(|(code, ..)| *code).collect();
        let all: Vec<&str> = Code::ALL.iter().map(|code| code.text()).collect();
        assert_eq!(codes, all, "the table names every code once, in order");
        for (code, (text, grpc, number)) in Code::ALL.iter().zip(TABLE) {
            let status = refused(Problem::new(*code, "so it is"));
            assert_eq!(format!("{:?}", status.code()), *grpc, "{text}");
            let begins = if number.is_empty() { text } else { number };
            assert!(status.message().starts_with(&format!("{begins} - ")), "{}", status.message());
            assert_eq!(status.metadata().get("waitroom-code").unwrap(), text);
        }
    }

    #[test]
    fn the_contract_s_words_stand_at_the_beginning() {
        let said = refused(Problem::new(Code::TicketUnknown, ""));
        assert_eq!(said.message(), "WTR001 - Session not found");
        assert!(no_settings().message().starts_with("WTR008 - Config not found"));
        assert!(expired("it is").message().starts_with("WTR002 - Session expired"));
    }

    #[test]
    fn whoever_is_told_to_come_back_is_told_when() {
        let problem = Problem::new(Code::RateLimited, "").retry_after(1_200);
        assert_eq!(refused(problem).metadata().get("grpc-retry-pushback-ms").unwrap(), "1200");
        let problem = Problem::new(Code::TicketUnknown, "");
        assert!(refused(problem).metadata().get("grpc-retry-pushback-ms").is_none());
    }

    #[test]
    fn nobody_is_told_of_a_header_that_this_interface_does_not_have() {
        let unknown = waitroom_engine::Unanswered::OutcomeUnknown { why: "disk".into() };
        let said = refused(Problem::unanswered(&unknown));
        assert!(said.message().contains("repeat the call"), "{}", said.message());
        assert!(!said.message().contains("Idempotency"), "{}", said.message());
    }
}
