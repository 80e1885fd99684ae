//! How a ticket stands, in the terms that both earlier interfaces share.
//!
//! Lives here: numbers where our own answers have null (a position before the draw, a wait that
//! nobody knows), and the claim that is sent on a visitor's behalf, because these interfaces
//! hand out the pass without one.

use std::sync::Arc;

use waitroom_core::{Board, Command, Ending, Presented, Reply, Session, Status, Timestamp};
use waitroom_pass::{AdapterToken, Form, Reading};

use waitroom_pass::Binding;

use crate::answer::{Sight, ended_because};
use crate::desk::{Desk, RoomDesk};
use crate::pace;
use crate::problem::{Code, Problem};
use crate::visitor::claim::enter_url;

/// How a ticket stands.
#[derive(Debug)]
pub enum Stands {
    Waiting(Waiting),
    /// Admitted or active. A pass takes a claim where the room wants one: see [`enter`].
    Inside,
    Over(Over),
}

/// A place in line, all of it in numbers.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// 1 is next; before a draw it is the queue's length, because nobody has a place yet.
    pub position: u64,
    /// Of the whole room, and never below the position.
    pub queue_length: u64,
    /// The likely wait, or 0 when nobody knows it.
    pub wait_s: u64,
    pub heartbeat_interval_s: u64,
    pub heartbeat_timeout_s: u64,
    /// When the place is lost unless something is heard of the visitor before.
    pub expires_at: Timestamp,
}

/// What an admitted visitor gets.
#[derive(Debug)]
pub struct Entry {
    pub pass: String,
    /// The target with the pass in it; none where the room names no target.
    pub url: Option<String>,
    pub expires_at: Timestamp,
}

/// A ticket that ended, and whether its holder had been inside.
#[derive(Clone, Copy, Debug)]
pub struct Over {
    pub reason: &'static str,
    pub was_inside: bool,
}

/// The 30 heartbeats a minute of the rate limit.
const HEARTBEAT_S_MIN: u64 = 2;

impl Stands {
    pub fn of(room: &RoomDesk, board: &Board, sight: &Sight) -> Stands {
        match sight.view.status {
            Status::Waiting => Stands::Waiting(waiting(room, board, sight)),
            Status::Admitted | Status::Active => Stands::Inside,
            _ => Stands::Over(over(sight)),
        }
    }
}

fn waiting(room: &RoomDesk, board: &Board, sight: &Sight) -> Waiting {
    let (state, view) = (board.state(), &sight.view);
    // A place of the last milliseconds is newer than the board; it counts itself.
    let seen = view.position.unwrap_or(1) + view.behind.unwrap_or(0);
    let queue_length = state.waiting().max(seen);
    let likely = view.position.map(|at| room.estimate(at.saturating_sub(1), view.ticket.lane));
    let likely_ms = likely.and_then(Result::ok).map(|interval| interval.likely_ms);
    let settings = state.settings().cloned().unwrap_or_default();
    let timeout = settings.heartbeat_timeout;
    let interval_ms = match settings.heartbeat_interval.0 {
        0 => {
            let place = pace::Place {
                position: view.position,
                likely_wait_ms: likely_ms,
                waiting: queue_length,
                heartbeat_timeout: timeout,
            };
            pace::next_check_ms(place, view.ticket, sight.version)
        }
        set => set,
    };
    let silent_at = room.now().after(timeout);
    let too_old_at = view.joined_at.filter(|_| settings.ticket_life.0 > 0);
    let too_old_at = too_old_at.map(|joined_at| joined_at.after(settings.ticket_life));
    Waiting {
        position: view.position.unwrap_or(queue_length),
        queue_length,
        wait_s: likely_ms.unwrap_or(0).div_ceil(1_000),
        heartbeat_interval_s: interval_ms.div_ceil(1_000).max(HEARTBEAT_S_MIN),
        heartbeat_timeout_s: timeout.0.div_ceil(1_000),
        expires_at: too_old_at.map_or(silent_at, |too_old_at| too_old_at.min(silent_at)),
    }
}

/// Why it ended, in the words of the earlier events where they have one.
fn over(sight: &Sight) -> Over {
    let view = &sight.view;
    let reason = match view.ending {
        Some(Ending::Left) => "cancelled",
        Some(Ending::Revoked) => "admin_revoked",
        _ => ended_because(view).unwrap_or("ended"),
    };
    let was_inside = matches!(
        view.ending,
        Some(
            Ending::Completed
                | Ending::SessionOver
                | Ending::CheckoutFailed
                | Ending::CheckoutExpired
                | Ending::Revoked
        )
    );
    Over { reason, was_inside }
}

/// Looks a ticket up; one that is younger than the board is waited for.
pub async fn look(room: &RoomDesk, presented: &Presented) -> Result<(Arc<Board>, Sight), Problem> {
    let board = room.handle().board();
    match room.look(&board, presented) {
        Ok(sight) => Ok((board, sight)),
        Err(problem) if room.is_behind(&board, &problem) => {
            let (board, stale) = room.newest_board().await;
            let sight = room.look(&board, presented);
            let sight = sight.map_err(|problem| room.waited(stale, problem))?;
            Ok((board, sight))
        }
        Err(problem) => Err(problem),
    }
}

/// Lets an admitted visitor in: claims where that is still to be done, and signs the pass.
pub async fn enter(desk: &Desk, room: &RoomDesk, sight: &Sight) -> Result<Entry, Problem> {
    if let Some(session) = sight.view.session {
        return Ok(entry(desk, room, sight, &session));
    }
    let (sight, reply) = room.act(sight.presented, Command::Claim(sight.presented)).await?;
    match reply {
        Reply::Claimed { session, .. } => Ok(entry(desk, room, &sight, &session)),
        _ => Err(Problem::new(Code::Internal, "a claim was answered by something else")),
    }
}

/// The pass of a session that has begun.
pub fn entry(desk: &Desk, room: &RoomDesk, sight: &Sight, session: &Session) -> Entry {
    let pass = desk.pass(room, sight.id, session, Binding::default());
    let target = room.settings().map(|settings| settings.target_url.clone()).unwrap_or_default();
    let url = (!target.is_empty()).then(|| enter_url(&target, &pass));
    Entry { pass, url, expires_at: session.expires_at }
}

/// Who holds a token of these interfaces, and whether it has run out. A token that did is good
/// where it shows a sign of life, and nowhere else.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub token: AdapterToken,
    pub presented: Presented,
    pub expired: bool,
}

impl Held {
    pub fn read(desk: &Desk, room: &RoomDesk, form: Form, text: &str) -> Result<Held, Problem> {
        let refused = || {
            let detail = "it is altered, of another queue, or of another installation";
            Problem::new(Code::TokenInvalid, detail).in_room(room.name())
        };
        let tokens = &desk.signatures.adapter_tokens;
        let reading = tokens.read(form, room.name().as_str(), text, desk.now_s());
        let (token, expired) = match reading.ok_or_else(refused)? {
            Reading::Fresh(token) => (token, false),
            Reading::Expired(token) => (token, true),
        };
        let presented = room.presented(token.id, Some(token.holder)).ok_or_else(refused)?;
        Ok(Held { token, presented, expired })
    }

    pub fn fresh(self, room: &RoomDesk) -> Result<Held, Problem> {
        if self.expired {
            let detail = "the token has run out; a heartbeat gives a fresh one";
            return Err(Problem::new(Code::TokenInvalid, detail).in_room(room.name()));
        }
        Ok(self)
    }

    /// What rate limits count by.
    pub fn who(&self) -> u128 {
        u128::from_be_bytes(self.token.id.to_bytes())
    }
}

/// A fresh token for the ticket as it is named now.
pub fn token(desk: &Desk, room: &RoomDesk, form: Form, sight: &Sight) -> String {
    let tokens = &desk.signatures.adapter_tokens;
    tokens.write(form, room.name().as_str(), sight.id, sight.view.holder, desk.now_s())
}
