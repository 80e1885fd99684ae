//! Joining, looking, leaving: what every visitor does, whatever the channel.
//!
//! The key of a join stays the same over all attempts, so that a place which was given and whose
//! answer got lost is found again instead of taken twice.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::history::Verb;
use crate::tally::{Fate, Stage};
use crate::wire::{Ask, Ticket};

use super::call::Heard;
use super::{Turn, Visitor};

impl Visitor {
    /// A place in line. Ok with a turn when it is decided already; Err when there is no place.
    pub(super) async fn join(&mut self) -> Result<Option<Turn>, Fate> {
        for attempt in 1.. {
            let ask = Ask { key: Some(self.key.clone()), ..Ask::post(self.path("join")) };
            let told_ms = match self.call(Verb::Join, ask).await {
                Heard::Ticket(ticket) => {
                    self.world.tally.joined.fetch_add(1, Ordering::Relaxed);
                    self.step(Stage::Waiting);
                    return Ok(turn(&ticket));
                }
                Heard::Problem(problem) if may_pass(&problem.code) => problem.retry_after_ms,
                Heard::Problem(_) => return Err(Fate::Refused),
                Heard::Nothing => None,
            };
            let pause = self.backoff(attempt, told_ms);
            if !self.stop.sleep(pause).await {
                break;
            }
        }
        Err(Fate::Refused)
    }

    /// Gives the place up and says so; from inside, this completes the visit.
    pub(super) async fn leave(&mut self) -> Fate {
        for attempt in 0..6 {
            let ask = self.with_token(Ask::post(self.path("leave")));
            match self.call(Verb::Leave, ask).await {
                Heard::Ticket(ticket) if ticket.status == "completed" => return Fate::Completed,
                Heard::Ticket(_) => return Fate::Left,
                Heard::Problem(problem) if !may_pass(&problem.code) => return Fate::Ended,
                _ => {}
            }
            let pause = self.backoff(attempt, None);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        Fate::Silent
    }

    /// Looks once; whether an answer came that says something about the ticket.
    pub(super) async fn look_once(&mut self) -> bool {
        if self.held.as_ref().is_none_or(|held| held.token.is_none()) {
            return self.look_once_by_rpc().await;
        }
        let ask = self.status_ask("");
        match self.call(Verb::Status, ask).await {
            Heard::Ticket(_) => true,
            Heard::Problem(problem) => !may_pass(&problem.code),
            Heard::Nothing => false,
        }
    }
}

/// What a ticket's status means for somebody who waits.
pub(super) fn turn(ticket: &Ticket) -> Option<Turn> {
    if ticket.is_inside() {
        return Some(Turn::Come);
    }
    ticket.is_over().then_some(Turn::Fate(match ticket.status.as_str() {
        "completed" => Fate::Completed,
        "left" => Fate::Left,
        _ => Fate::Ended,
    }))
}

/// Whether the same call may be answered otherwise in a moment.
pub(super) fn may_pass(code: &str) -> bool {
    matches!(
        code,
        "rate_limited"
            | "not_open_yet"
            | "queue_full"
            | "maintenance"
            | "draining"
            | "overloaded"
            | "unavailable"
            | "outcome_unknown"
            | "stopping"
            | "internal"
    )
}
