//! Sessions of those inside: activity that keeps them alive, and what the origin says of them.
//!
//! Every request of somebody inside is activity, but the log needs to hear of it only now and
//! then. A request whose session has used up a tenth of its life puts its ticket into a small
//! set; once a second the set is sent as one batch. A request that shows a pass older than the
//! session's gets the newer one with its answer.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use http::{HeaderMap, HeaderName};
use waitroom_core::{Session, Settings, Ticket, Timestamp};

/// Tickets whose sessions are to be renewed. When it is full the rest wait for a later request
/// of theirs: a session lives for minutes, the set is emptied every second.
#[derive(Debug, Default)]
pub struct Activity {
    tickets: Mutex<BTreeSet<Ticket>>,
}

/// One batch through the engine's queue.
const ACTIVITY_MAX: usize = 1_024;

impl Activity {
    pub fn note(&self, ticket: Ticket) {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        if tickets.len() < ACTIVITY_MAX {
            tickets.insert(ticket);
        }
    }

    pub fn take(&self) -> BTreeSet<Ticket> {
        std::mem::take(&mut *self.tickets.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Whether the log should hear of this activity: a tenth of the session's or of the pass's life
/// is used up. The core asks the same before it writes.
pub fn is_due(now: Timestamp, session: &Session, settings: &Settings) -> bool {
    let used = |end: Timestamp, life: u64| {
        let left = end.0.saturating_sub(now.0);
        (life.saturating_sub(left)) * 10 >= life.max(1)
    };
    let timeout = settings.session_timeout.0;
    let pass_life = match settings.pass_life.0 {
        0 => timeout,
        life => life,
    };
    let session_due = settings.session_renewal && used(session.expires_at, timeout);
    // A pass is renewed within its session, also where the session itself is not.
    let pass_due =
        session.pass_expires_at < session.expires_at && used(session.pass_expires_at, pass_life);
    session_due || pass_due
}

/// What an origin says about the visitor whose request it answers, or about the room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Said {
    pub session: Option<SessionWord>,
    pub sold_out: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionWord {
    /// Bought, registered, done: the slot is for the next.
    Complete,
    /// Out, for whatever reason.
    End,
}

const SESSION: HeaderName = HeaderName::from_static("waitroom-session");
const ROOM: HeaderName = HeaderName::from_static("waitroom-room");

/// Reads and takes away what the origin says; no visitor sees it. A word that is none of ours
/// does nothing.
pub fn said(headers: &mut HeaderMap) -> Said {
    let mut said = Said::default();
    // Nearly every answer has neither.
    if let Some(word) = headers.remove(SESSION) {
        said.session = match word.as_bytes() {
            b"complete" => Some(SessionWord::Complete),
            b"end" => Some(SessionWord::End),
            _ => None,
        };
    }
    if let Some(word) = headers.remove(ROOM) {
        said.sold_out = word.as_bytes() == b"sold-out";
    }
    said
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use waitroom_core::Millis;

    use super::*;

    #[test]
    fn the_log_hears_of_activity_once_a_tenth_of_the_life_is_used() {
        let settings = Settings { session_timeout: Millis(100_000), ..Settings::default() };
        let session = |end: u64| Session {
            issued_at: Timestamp(0),
            expires_at: Timestamp(end),
            pass_expires_at: Timestamp(end),
        };
        let now = Timestamp(1_000_000);
        assert!(!is_due(now, &session(1_100_000), &settings));
        assert!(!is_due(now, &session(1_090_001), &settings));
        assert!(is_due(now, &session(1_090_000), &settings));
        let fixed = Settings { session_renewal: false, ..settings };
        assert!(!is_due(now, &session(1_000_001), &fixed), "such a session is not renewed");
    }

    #[test]
    fn a_short_pass_is_renewed_within_a_session_that_is_not() {
        let settings = Settings {
            session_timeout: Millis(100_000),
            session_renewal: false,
            pass_life: Millis(10_000),
            ..Settings::default()
        };
        let session = Session {
            issued_at: Timestamp(0),
            expires_at: Timestamp(100_000),
            pass_expires_at: Timestamp(10_000),
        };
        assert!(!is_due(Timestamp(0), &session, &settings));
        assert!(is_due(Timestamp(1_000), &session, &settings));
    }

    #[test]
    fn what_the_origin_says_is_taken_away_whatever_it_is() {
        let with = |session: &'static str, room: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(SESSION, HeaderValue::from_static(session));
            headers.insert(ROOM, HeaderValue::from_static(room));
            let said = said(&mut headers);
            assert!(headers.is_empty());
            said
        };
        assert_eq!(
            with("complete", "sold-out"),
            Said { session: Some(SessionWord::Complete), sold_out: true }
        );
        assert_eq!(with("end", "x").session, Some(SessionWord::End));
        assert_eq!(with("nonsense", "sold_out"), Said::default());
    }
}
