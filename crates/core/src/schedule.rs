//! The schedule: opening, start, end; and the operator's word that the sale is over.

use crate::command::{Actor, FinishCause};
use crate::event::{Event, What};
use crate::reply::{Refusal, Reply};
use crate::room::{Decided, Room};
use crate::settings::Settings;
use crate::state::{Finish, Phase};
use crate::units::Timestamp;

impl Room {
    /// The next step of the schedule that is due, and the phase that follows it.
    pub(crate) fn next_phase(
        &self,
        at: Timestamp,
        settings: &Settings,
        phase: Phase,
        committed: bool,
    ) -> Option<(What, Phase)> {
        let due = |time: Option<Timestamp>| time.is_none_or(|time| time <= at);
        match phase {
            Phase::Ended => None,
            _ if self.end_due(settings).is_some_and(|ends_at| ends_at <= at) => {
                let closed = self.state.waiting();
                let by = Actor::new("schedule");
                let reason = String::new();
                let cause = FinishCause::Schedule;
                Some((What::SaleEnded { cause, reason, closed, by }, Phase::Ended))
            }
            // Nobody joins before the draw is committed to.
            Phase::Scheduled
                if due(settings.opens_at) && (settings.draw.is_none() || committed) =>
            {
                Some((What::DoorsOpened, Phase::Doors))
            }
            Phase::Doors if due(settings.starts_at) => match settings.draw {
                None => Some((What::SaleStarted, Phase::Running)),
                // A draw without a commitment would not be one: the room stays held.
                Some(_) if !committed => None,
                Some(_) => {
                    let counts = self.state.lanes.iter().map(|lane| (lane.id, lane.next().0));
                    Some((What::DrawClosed { counts: counts.collect() }, Phase::Drawing))
                }
            },
            _ => None,
        }
    }

    /// All steps that are due but the close of a draw, which is the tick's: it sees the lanes that
    /// new settings bring.
    pub(crate) fn push_steps(
        &self,
        at: Timestamp,
        settings: &Settings,
        committed: bool,
        out: &mut Vec<Event>,
    ) {
        let mut phase = self.state.phase;
        while let Some((what, next)) = self.next_phase(at, settings, phase, committed)
            && next != Phase::Drawing
        {
            out.push(what.at(at));
            phase = next;
        }
    }

    /// When the schedule ends the sale; an end that an operator reopened over counts no more.
    fn end_due(&self, settings: &Settings) -> Option<Timestamp> {
        let finish = self.state.finish.as_ref();
        settings.ends_at.filter(|ends_at| finish.is_none_or(|finish| *ends_at > finish.at))
    }

    pub(crate) fn next_schedule(&self, settings: &Settings) -> Option<Timestamp> {
        let step = match self.state.phase {
            Phase::Ended => return None,
            // Without its commitment a draw goes nowhere; time does not help.
            _ if settings.draw.is_some() && self.state.draw.commitment.is_none() => None,
            Phase::Scheduled => Some(settings.opens_at.unwrap_or(Timestamp(0))),
            Phase::Doors => Some(settings.starts_at.unwrap_or(Timestamp(0))),
            _ => None,
        };
        [step, self.end_due(settings)].into_iter().flatten().min()
    }

    pub(crate) fn decide_finish(
        &self,
        at: Timestamp,
        cause: FinishCause,
        reason: &str,
        by: &Actor,
        out: &mut Vec<Event>,
    ) -> Decided {
        self.state.ready()?;
        if self.state.phase != Phase::Ended {
            let closed = self.state.waiting();
            let reason = reason.to_owned();
            out.push(What::SaleEnded { cause, reason, closed, by: by.clone() }.at(at));
        }
        Ok(Reply::Done)
    }

    pub(crate) fn decide_reopen(&self, at: Timestamp, by: &Actor, out: &mut Vec<Event>) -> Decided {
        self.state.ready()?;
        match self.state.phase {
            // A sale that ended in the middle of its draw cannot go on without it.
            Phase::Ended if self.state.draw.closed && self.state.draw.revealed.is_none() => {
                Err(Refusal::DrawPending)
            }
            Phase::Ended => {
                out.push(What::Reopened { by: by.clone() }.at(at));
                Ok(Reply::Done)
            }
            _ => Ok(Reply::Done),
        }
    }

    pub(crate) fn absorb_doors_opened(&mut self) {
        self.state.phase = Phase::Doors;
    }

    pub(crate) fn absorb_sale_started(&mut self, at: Timestamp) {
        self.state.phase = Phase::Running;
        self.empty_bucket(at);
    }

    pub(crate) fn absorb_sale_ended(&mut self, at: Timestamp, cause: FinishCause, reason: &str) {
        let from = std::mem::replace(&mut self.state.phase, Phase::Ended);
        self.state.finish = Some(Finish { cause, reason: reason.to_owned(), at, from });
        for (lane, index) in self.state.lanes.iter_mut().zip(&mut self.index.lanes) {
            // Nobody's record is touched: 20 million people are told by one comparison.
            if lane.counts.waiting > 0 {
                lane.closings.push((lane.next(), at));
            }
            lane.counts.closed += lane.counts.waiting;
            lane.counts.waiting = 0;
            lane.line.close();
            index.closed(lane, at);
        }
    }

    /// The sale goes on where it ended: one that was ended before its start waits for the start.
    pub(crate) fn absorb_reopened(&mut self, at: Timestamp) {
        if let Some(finish) = &mut self.state.finish {
            self.state.phase = match finish.from {
                Phase::Drawing => Phase::Running,
                phase => phase,
            };
            // From here on only an end that lies ahead counts, see `end_due`.
            finish.at = at;
        }
        self.empty_bucket(at);
    }

    /// What was saved up while nobody was admitted must not come out at once.
    pub(crate) fn empty_bucket(&mut self, at: Timestamp) {
        self.state.bucket.level = 0;
        self.state.bucket.at = at;
    }
}
