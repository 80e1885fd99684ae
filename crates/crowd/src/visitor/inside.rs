//! The turn: claim, stay, go.

use crate::errand::{Done, Errand, Guest};
use crate::history::Verb;
use crate::plan::Channel;
use crate::tally::{Fate, Stage};
use crate::wire::Ask;

use super::Visitor;
use super::call::Heard;
use super::join::may_pass;

impl Visitor {
    pub(super) async fn go_inside(&mut self) -> Fate {
        self.step(Stage::Inside);
        if self.channel != Channel::Grpc {
            // People need a moment to notice.
            let notices = self.rng.below(300);
            if !self.stop.sleep(notices).await {
                return Fate::Unfinished;
            }
            if let Some(fate) = self.claim().await {
                return fate;
            }
        }
        if let (Some(errand), Some(pass)) = (self.world.plan.errand.clone(), self.pass()) {
            return self.go_on(&*errand, pass).await;
        }
        let stay = self.rng.around(self.world.plan.stay_ms);
        if !self.stop.sleep(stay).await {
            return Fate::Unfinished;
        }
        // The page inside asks too, and the judge learns from it how long the slot was held.
        self.look_once().await;
        if self.channel != Channel::Grpc && self.rng.chance(0.15) {
            return self.leave().await;
        }
        self.complete().await
    }

    fn pass(&self) -> Option<String> {
        self.held.as_ref()?.pass.clone()
    }

    /// Does what this visitor came for.
    async fn go_on(&mut self, errand: &dyn Errand, pass: String) -> Fate {
        let guest =
            Guest { who: self.who, pass, luck: self.rng.next(), address: self.address.clone() };
        let mut stop = self.stop.clone();
        let done = tokio::select! {
            done = errand.run(guest) => done,
            () = stop.wait() => return Fate::Unfinished,
        };
        match done {
            Done::Completed => {
                // Whether the room has heard of it: in the history, for the judge.
                self.look_once().await;
                Fate::Completed
            }
            Done::Leaves => self.leave().await,
            Done::Vanishes => Fate::Silent,
        }
    }

    /// Exchanges the admission for a pass; some do it twice, and must get the same. None when it
    /// is done, otherwise what became of the visit.
    async fn claim(&mut self) -> Option<Fate> {
        for attempt in 0.. {
            let ask = self.with_token(Ask::post(self.path("claim")));
            let told_ms = match self.call(Verb::Claim, ask).await {
                Heard::Ticket(ticket) if ticket.is_over() => return Some(Fate::Ended),
                Heard::Ticket(ticket) => {
                    if ticket.pass.is_none() {
                        let said = format!("visitor {} claim: no pass", self.who);
                        self.world.tally.surprise(said);
                    }
                    break;
                }
                // A pause does not lock those out who were admitted before it, but may hold them up.
                Heard::Problem(problem) if may_pass(&problem.code) || problem.code == "paused" => {
                    problem.retry_after_ms
                }
                Heard::Problem(_) => return Some(Fate::Ended),
                Heard::Nothing => None,
            };
            let pause = self.backoff(attempt, told_ms);
            if !self.stop.sleep(pause).await {
                return Some(Fate::Unfinished);
            }
        }
        if self.rng.chance(0.3) {
            let ask = self.with_token(Ask::post(self.path("claim")));
            self.call(Verb::Claim, ask).await;
        }
        if self.rng.chance(0.1) {
            let ask = self.with_token(Ask::post(self.session_path("activity")));
            self.call(Verb::Activity, ask).await;
        }
        None
    }

    async fn complete(&mut self) -> Fate {
        for attempt in 0..6 {
            // By the pass, by the ticket, or by the shop's key: each must do.
            let held = self.held.clone();
            let (pass, token) = held.map_or((None, None), |held| (held.pass, held.token));
            let key = self.world.plan.key.as_ref().map(|key| key.0.clone());
            let proof = if self.rng.chance(0.5) { pass.or(token) } else { token.or(pass) };
            let Some(proof) = proof.or(key) else { return Fate::Unfinished };
            let ask = Ask::post(self.session_path("complete")).bearer(proof);
            match self.call(Verb::Complete, ask).await {
                Heard::Ticket(ticket) if ticket.status == "completed" => return Fate::Completed,
                Heard::Ticket(_) => return Fate::Ended,
                // A pass lives shorter than a session; the ticket still proves it.
                Heard::Problem(problem)
                    if problem.code == "token_invalid"
                        && self.held.as_mut().is_some_and(|held| held.pass.take().is_some()) => {}
                Heard::Problem(problem) if !may_pass(&problem.code) => return Fate::Ended,
                _ => {}
            }
            let pause = self.backoff(attempt, None);
            if !self.stop.sleep(pause).await {
                break;
            }
        }
        Fate::Unfinished
    }

    fn session_path(&self, what: &str) -> String {
        let id = self.held.as_ref().map_or("none", |held| held.id.as_str());
        format!("{}/v1/sessions/{id}/{what}", self.world.plan.base)
    }
}
