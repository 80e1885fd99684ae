//! What a visitor is told: one shape for join, status, heartbeat, claim, leave and live frames.

use bytes::Bytes;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;
use waitroom_core::estimate::{Interval, Unknown};
use waitroom_core::id::{SupportCode, TicketId};
use waitroom_core::{Ending, Hold, Phase, Presented, State, Status, Timestamp, View, when};

use crate::desk::RoomDesk;
use crate::pace;
use crate::problem::status_word;

/// The visitor answer. Fields that say nothing are left out, but for those a client looks for.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct VisitorAnswer<'a> {
    /// The ticket's id: a name, not a credential.
    #[schema(value_type = String)]
    pub ticket: TicketId,
    /// The ticket token: proves that the caller holds the place. Keep it secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<&'a str>,
    pub room: &'a str,
    /// The newest event that this answer knows of. Send the largest you have seen.
    pub version: u64,
    /// waiting, admitted, active, completed, expired, left, moved, closed or revoked
    pub status: &'static str,
    pub place: Option<Place>,
    /// 1 = next; 0 once admitted; null before a draw and after the end.
    pub position: Option<u64>,
    pub ahead: Option<u64>,
    pub behind: Option<u64>,
    pub wait: Option<Wait>,
    /// not_started, paused, closed, no_data, too_far, too_wide, drawing or ended
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_unknown_because: Option<&'static str>,
    /// When to ask again. A client that follows it never loses its place to silence.
    pub next_check_ms: u64,
    /// scheduled, held, drawing, running, paused, maintenance, draining or ended
    pub room_status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// What the operator tells everybody; it stops nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub draw_pending: bool,
    /// This instance has not yet heard of the version that the client has seen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
    /// Short, to read out on the phone.
    #[schema(value_type = String)]
    pub support_code: SupportCode,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub joined_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub admitted_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_because: Option<&'static str>,
    /// When admitted: claim the place by then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub claim_by: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<String>,
    /// The end of the session, unless activity renews it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub expires_at: Option<Moment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_url: Option<&'a str>,
    /// The target with the pass in it, for one redirect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enter_url: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq, ToSchema)]
pub struct Place {
    pub lane: u8,
    pub order: u64,
}

/// Four of five visitors who are told this wait between `low_s` and `high_s`.
#[derive(Debug, Clone, Copy, Serialize, PartialEq, Eq, ToSchema)]
pub struct Wait {
    pub low_s: u64,
    pub likely_s: u64,
    pub high_s: u64,
}

impl Wait {
    pub fn of(it: &Interval) -> Wait {
        Wait {
            low_s: it.low_ms / 1_000,
            likely_s: it.likely_ms.div_ceil(1_000),
            high_s: it.high_ms.div_ceil(1_000),
        }
    }
}

/// A picture of one ticket and the state of the room that it was taken from.
#[derive(Clone, Debug)]
pub struct Sight {
    pub id: TicketId,
    pub presented: Presented,
    pub view: View,
    pub version: u64,
    pub stale: bool,
}

impl<'a> VisitorAnswer<'a> {
    /// What `sight` says, in the room's words of `state`.
    pub fn of(room: &'a RoomDesk, state: &'a State, sight: &Sight) -> VisitorAnswer<'a> {
        let view = &sight.view;
        let settings = state.settings();
        let waits = view.status == Status::Waiting;
        let ahead = view.position.map(|position| position.saturating_sub(1));
        let (wait, unknown) = match (waits, ahead) {
            (true, Some(ahead)) => match room.estimate(ahead, view.ticket.lane) {
                Ok(interval) => (Some(interval), None),
                Err(unknown) => (None, Some(unknown.code())),
            },
            (true, None) => (None, Some(before_the_draw(state))),
            // Admitted: no wait is left, and that is known.
            (false, _) if view.status.is_live() => (None, None),
            (false, _) => (None, Some("ended")),
        };
        let next_check_ms = pace::next_check_ms(
            pace::Place {
                position: view.position,
                likely_wait_ms: wait.map(|wait| wait.likely_ms),
                waiting: state.waiting(),
                heartbeat_timeout: settings
                    .map_or_else(Default::default, |it| it.heartbeat_timeout),
            },
            view.ticket,
            sight.version,
        );
        let (room_status, reason) = room_status(state);
        VisitorAnswer {
            ticket: sight.id,
            token: None,
            room: room.name().as_str(),
            version: sight.version,
            status: status_word(view.status),
            place: view.order.map(|order| Place { lane: view.ticket.lane.0, order: order.0 }),
            position: view.position,
            ahead,
            behind: view.behind,
            wait: wait.map(|it| Wait::of(&it)),
            wait_unknown_because: unknown,
            next_check_ms,
            room_status,
            reason,
            message: state.message(),
            draw_pending: waits && state.draw_pending(),
            stale: sight.stale,
            support_code: sight.id.support_code(),
            joined_at: view.joined_at.and_then(Moment::of),
            admitted_at: view.admitted_at.and_then(Moment::of),
            ended_because: ended_because(view),
            claim_by: view.claim_by.and_then(Moment::of),
            pass: None,
            expires_at: view.session.and_then(|session| Moment::of(session.expires_at)),
            target_url: None,
            enter_url: None,
        }
    }

    pub fn to_bytes(&self) -> Bytes {
        crate::written::answer(self)
    }
}

/// A moment as it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment(u64);

impl Moment {
    /// During maintenance deadlines stand still at the end of time, which is no moment to tell
    /// anybody.
    pub fn of(at: Timestamp) -> Option<Moment> {
        (at.0 < when::YEAR_10_000_MS).then_some(Moment(at.0))
    }

    pub fn text(self) -> [u8; 24] {
        when::utc_text(self.0)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&when::utc(self.0))
    }
}

fn before_the_draw(state: &State) -> &'static str {
    match state.phase() {
        Phase::Drawing => "drawing",
        _ => Unknown::NotStarted.code(),
    }
}

/// The room's status in one word, and why, if somebody said why.
pub fn room_status(state: &State) -> (&'static str, Option<&str>) {
    let finish = state.finish().map(|finish| finish.reason.as_str());
    match (state.phase(), state.hold()) {
        (Phase::Ended, _) => ("ended", finish.filter(|reason| !reason.is_empty())),
        (_, Some(Hold::Paused { reason })) => ("paused", Some(reason)),
        (_, Some(Hold::Maintenance { reason })) => ("maintenance", Some(reason)),
        (_, Some(Hold::Draining { reason })) => ("draining", Some(reason)),
        (Phase::Scheduled, _) => ("scheduled", None),
        (Phase::Doors, _) => ("held", None),
        (Phase::Drawing, _) => ("drawing", None),
        (Phase::Running, _) => ("running", None),
    }
}

pub(crate) fn ended_because(view: &View) -> Option<&'static str> {
    if view.status.is_live() {
        return None;
    }
    Some(match (view.status, view.ending) {
        (_, Some(Ending::Completed)) => "completed",
        (_, Some(Ending::Left)) => "left",
        (_, Some(Ending::Silent)) => "heartbeat_timeout",
        (_, Some(Ending::TooOld)) => "too_old",
        (_, Some(Ending::NoShow)) => "no_show",
        (_, Some(Ending::SessionOver)) => "session_over",
        (_, Some(Ending::CheckoutFailed)) => "checkout_failed",
        (_, Some(Ending::CheckoutExpired)) => "checkout_expired",
        (_, Some(Ending::Revoked)) => "revoked",
        (status, None) => status_word(status),
    })
}
