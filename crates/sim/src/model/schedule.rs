//! A new owner; opening, start and end of the sale; pause and maintenance.

use super::person::Stage;
use super::{Answer, Model};
use waitroom_core::{Epoch, Finish, FinishCause, Hold, Phase, Refusal, Reply, Status, Timestamp};

impl Model {
    /// A new owner begins: no burst, and nobody inside pays for the time without one.
    pub(super) fn open(&mut self, at: Timestamp, epoch: Epoch) -> Answer {
        if epoch <= self.epoch || epoch > Epoch::MAX {
            return Err(Refusal::StaleEpoch { newest: self.epoch });
        }
        self.epoch = epoch;
        self.empty_bucket(at);
        self.grant_grace(at);
        self.happened(at);
        Ok(Reply::Done)
    }

    /// Takes one step of the schedule if one is due.
    pub(super) fn next_step_of_schedule(&mut self, at: Timestamp, may_close_draw: bool) -> bool {
        let settings = self.settings.clone().expect("a schedule is part of settings");
        let due = |time: Option<Timestamp>| time.is_none_or(|time| time <= at);
        // The end that an operator reopened over counts no more.
        let over = self.finish.as_ref().map(|finish| finish.at);
        let ends_at = settings.ends_at.filter(|ends_at| over.is_none_or(|over| *ends_at > over));
        match self.phase {
            Phase::Ended => return false,
            _ if ends_at.is_some_and(|ends_at| ends_at <= at) => {
                self.end_sale(at, FinishCause::Schedule, "");
            }
            // Nobody joins before the draw is committed to.
            Phase::Scheduled | Phase::Doors
                if settings.draw.is_some() && !self.draw.is_committed() =>
            {
                return false;
            }
            Phase::Scheduled if due(settings.opens_at) => self.phase = Phase::Doors,
            Phase::Doors if due(settings.starts_at) => match settings.draw {
                None => {
                    self.phase = Phase::Running;
                    self.empty_bucket(at);
                }
                Some(_) if !may_close_draw => return false,
                Some(_) => self.close_draw(),
            },
            _ => return false,
        }
        self.happened(at);
        true
    }

    pub(super) fn finish_sale(
        &mut self,
        at: Timestamp,
        cause: FinishCause,
        reason: &str,
    ) -> Answer {
        self.ready()?;
        if self.phase != Phase::Ended {
            self.end_sale(at, cause, reason);
        }
        Ok(Reply::Done)
    }

    /// The sale goes on from where it ended; whoever was closed stays closed.
    pub(super) fn reopen(&mut self, at: Timestamp) -> Answer {
        self.ready()?;
        if self.phase != Phase::Ended {
            return Ok(Reply::Done);
        }
        self.phase = match self.ended_in {
            Phase::Drawing if !self.draw.is_revealed() => return Err(Refusal::DrawPending),
            Phase::Drawing => Phase::Running,
            phase => phase,
        };
        if let Some(finish) = &mut self.finish {
            finish.at = at;
        }
        self.empty_bucket(at);
        self.happened(at);
        Ok(Reply::Done)
    }

    pub(super) fn put_on_hold(&mut self, at: Timestamp, hold: &Hold) -> Answer {
        self.ready()?;
        if self.hold.as_ref() != Some(hold) {
            let before = self.inside_is_shut_out();
            let goes_on = matches!(hold, Hold::Draining { .. });
            if goes_on && self.nobody_is_let_in() {
                self.empty_bucket(at);
            }
            self.hold = Some(hold.clone());
            if self.inside_is_shut_out() != before {
                self.grant_grace(at);
            }
            self.happened(at);
        }
        Ok(Reply::Done)
    }

    pub(super) fn resume(&mut self, at: Timestamp) -> Answer {
        self.ready()?;
        if self.hold.is_some() {
            let before = self.inside_is_shut_out();
            self.empty_bucket(at);
            self.hold = None;
            if before {
                self.grant_grace(at);
            }
            self.happened(at);
        }
        Ok(Reply::Done)
    }

    /// An operator holds those in line back, not only those who come.
    fn nobody_is_let_in(&self) -> bool {
        matches!(self.hold, Some(Hold::Paused { .. } | Hold::Maintenance { .. }))
    }

    fn end_sale(&mut self, at: Timestamp, cause: FinishCause, reason: &str) {
        self.ended_in = self.phase;
        self.phase = Phase::Ended;
        let from = self.ended_in;
        self.finish = Some(Finish { cause, reason: reason.to_owned(), at, from });
        for person in self.people.values_mut() {
            if person.status() == Status::Waiting {
                person.stage = Stage::Over { status: Status::Closed, at };
                person.gone_at = at;
            }
        }
        self.happened(at);
    }
}
