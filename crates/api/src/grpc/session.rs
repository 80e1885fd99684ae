//! A ticket as clients of this interface know it: a session with a status.
//!
//! | status | a ticket that |
//! |---|---|
//! | QUEUED | waits |
//! | PROCESSING | is admitted, and could not be claimed yet |
//! | READY | is inside and has its checkout token |
//! | ACTIVE | is inside, and activity has prolonged the session |
//! | COMPLETED | is done |
//! | FAILED | ended by a failed checkout |
//! | EXPIRED | was silent, too old, not claimed in time, or its session ran out |
//! | CANCELLED | left, was closed or was revoked |
//!
//! A pass is used at the shop, out of our sight; what we see of its use is activity that renews
//! the session. In a room that claims on admission a renewed session is one that was issued after
//! the admission. Where claims are explicit the claim itself is that, and the two cannot be told
//! apart, so such a session stays READY: a client that waits for READY must never miss it.

use waitroom_core::settings::ClaimMode;
use waitroom_core::{Ending, Millis, State, Status, Timestamp, View, when};

use super::proto::SessionStatus;
use crate::answer::Sight;

/// What every answer about a session says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub status: SessionStatus,
    pub position: i64,
    pub queue_length: i64,
}

impl Standing {
    pub fn of(state: &State, sight: &Sight) -> Standing {
        let view = &sight.view;
        // The board may be older than an answer of the room's writer; nobody stands behind the end.
        let waiting = state.waiting().max(view.position.unwrap_or(0));
        let position = match view.status {
            // Before a draw nobody has a position, and clients of this contract expect a number.
            Status::Waiting => view.position.unwrap_or(waiting),
            _ => 0,
        };
        Standing {
            status: status_of(state, view),
            position: signed(position),
            queue_length: signed(waiting),
        }
    }

    /// Whether the client knows all it waited for: it may enter, or never will.
    pub fn is_final(&self) -> bool {
        !matches!(self.status, SessionStatus::Queued | SessionStatus::Processing)
    }
}

/// Ticket numbers have 40 bits, so this never cuts anything.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn status_of(state: &State, view: &View) -> SessionStatus {
    match view.status {
        Status::Waiting => SessionStatus::Queued,
        Status::Admitted => SessionStatus::Processing,
        Status::Active if was_renewed(state, view) => SessionStatus::Active,
        Status::Active => SessionStatus::Ready,
        Status::Completed => SessionStatus::Completed,
        Status::Expired if view.ending == Some(Ending::CheckoutFailed) => SessionStatus::Failed,
        Status::Expired => SessionStatus::Expired,
        Status::Left | Status::Moved | Status::Closed | Status::Revoked => SessionStatus::Cancelled,
    }
}

fn was_renewed(state: &State, view: &View) -> bool {
    let at_once = state.settings().is_some_and(|settings| settings.claim == ClaimMode::OnAdmission);
    match (view.session, view.admitted_at) {
        (Some(session), Some(admitted_at)) => at_once && session.issued_at > admitted_at,
        _ => false,
    }
}

/// When the session ends if nothing more happens: a waiting one by silence or by age, whichever
/// comes first, an admitted one unclaimed, one inside when its time is up. For one that is over,
/// when it ended.
pub fn expires_at(state: &State, view: &View, now: Timestamp) -> String {
    let at = match view.status {
        Status::Waiting => state.settings().map(|settings| {
            let silent = now.after(settings.heartbeat_timeout);
            match (settings.ticket_life, view.joined_at) {
                (Millis(0), _) | (_, None) => silent,
                (life, Some(joined_at)) => silent.min(joined_at.after(life)),
            }
        }),
        Status::Admitted => view.claim_by,
        Status::Active => view.session.map(|session| session.expires_at),
        _ => view.ended_at,
    };
    moment(at)
}

/// RFC 3339 in UTC; empty when it is not known.
pub fn moment(at: Option<Timestamp>) -> String {
    at.filter(|at| at.0 <= LAST_MS).map(|at| when::utc(at.0)).unwrap_or_default()
}

/// The end of the year 9999, the last that RFC 3339 can write. While maintenance stops the clock
/// for those inside, their deadlines lie beyond it: nobody knows when they will be.
const LAST_MS: u64 = 253_402_300_799_999;
