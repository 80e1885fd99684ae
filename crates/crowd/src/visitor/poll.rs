//! Waiting by asking now and then, or by a question that is answered when something changes.

use std::time::Duration;

use crate::history::Verb;
use crate::plan::Channel;
use crate::tally::{Fate, LONG_POLL};
use crate::wire::Ask;

use super::call::Heard;
use super::join::{may_pass, turn};
use super::{Turn, Visitor};

/// How long a long poll may wait, in seconds.
const LONG_S: u64 = 10;

impl Visitor {
    pub(super) async fn poll(&mut self) -> Turn {
        let mut attempt = 0;
        let mut pause = self.until_next_look();
        loop {
            if let Some(turn) = self.patience(pause).await {
                return turn;
            }
            let told_ms = match self.look().await {
                Heard::Ticket(ticket) => {
                    if let Some(turn) = turn(&ticket) {
                        return turn;
                    }
                    attempt = 0;
                    let long = self.channel == Channel::Long;
                    pause = if long { 50 } else { self.until_next_look() };
                    continue;
                }
                Heard::Problem(problem) if may_pass(&problem.code) => problem.retry_after_ms,
                Heard::Problem(_) => return Turn::Fate(Fate::Ended),
                Heard::Nothing => None,
            };
            attempt += 1;
            pause = self.backoff(attempt, told_ms);
        }
    }

    async fn look(&mut self) -> Heard {
        if self.channel == Channel::Long {
            let ask = self.status_ask(&format!("&wait={LONG_S}"));
            let ask = Ask { counted_as: Some(LONG_POLL), ..ask };
            let (pool, mut stop) = (self.world.long.clone(), self.stop.clone());
            return tokio::select! {
                heard = self.call_on(&pool, Verb::Status, ask) => heard,
                // A question that is given up says nothing about the room.
                () = stop.wait() => Heard::Nothing,
            };
        }
        // Some look by heartbeat: it brings a fresh token along.
        if self.rng.chance(0.15) {
            let ask = self.with_token(Ask::post(self.path("heartbeat")));
            return self.call(Verb::Heartbeat, ask).await;
        }
        let ask = self.status_ask("");
        self.call(Verb::Status, ask).await
    }
}

/// How long to wait for the answer to a long poll.
pub(crate) fn long_timeout(timeout: Duration) -> Duration {
    timeout + Duration::from_secs(LONG_S)
}
