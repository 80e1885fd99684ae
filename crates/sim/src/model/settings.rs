//! New settings in place of the old, and what may not change any more.

use super::{Answer, Model};
use std::sync::Arc;
use waitroom_core::settings::Rate;
use waitroom_core::{Epoch, Invalid, LaneId, Phase, Refusal, Reply, Settings, Timestamp};

impl Model {
    /// Another pace, if the room has one.
    pub(super) fn pace(&mut self, at: Timestamp, rate: Rate) -> Answer {
        let now = self.settings.clone().filter(|_| self.epoch != Epoch(0));
        let mut now = Settings::clone(&*now.ok_or(Refusal::NotReady)?);
        match &mut now.rate {
            None => return Ok(Reply::Done),
            Some(pace) => *pace = rate,
        }
        self.configure(at, &now)
    }

    pub(super) fn configure(&mut self, at: Timestamp, new: &Settings) -> Answer {
        if self.epoch == Epoch(0) {
            return Err(Refusal::NotReady);
        }
        let mut wrong = new.check().err().unwrap_or_default();
        wrong.extend(self.fixed_by_now(new));
        if !wrong.is_empty() {
            return Err(Refusal::Settings(wrong));
        }
        if self.settings.as_deref() == Some(new) {
            return Ok(Reply::Done);
        }
        let shut_out = self.inside_is_shut_out();
        match self.settings.replace(Arc::new(new.clone())) {
            Some(old) => {
                self.change_pace(at, &old, new);
                // The clock of a lane without weight stood still, which is no claim on turns.
                let still: Vec<LaneId> = self
                    .lanes
                    .keys()
                    .copied()
                    .filter(|id| self.step(&old, *id).is_none())
                    .collect();
                for id in still {
                    let lane = self.lanes.get_mut(&id).expect("just listed");
                    lane.clock = lane.clock.max(self.clock);
                }
            }
            None => self.empty_bucket(at),
        }
        for id in 0..=u8::MAX {
            if new.lane(LaneId(id)) {
                self.lanes.entry(LaneId(id)).or_default();
            }
        }
        if self.inside_is_shut_out() != shut_out {
            self.grant_grace(at);
        }
        self.happened(at);
        // The draw is closed by the tick.
        while self.next_step_of_schedule(at, false) {}
        Ok(Reply::Done)
    }

    fn fixed_by_now(&self, new: &Settings) -> Vec<Invalid> {
        let mut wrong = Vec::new();
        let mut fixed = |field: &str, found: String, bound: String| {
            wrong.push(Invalid { field: field.to_owned(), found, bound });
        };
        let Some(old) = &self.settings else { return wrong };
        if old.shuffle_window != new.shuffle_window && !self.people.is_empty() {
            let bound = format!("{}: it is fixed by the first ticket", old.shuffle_window);
            fixed("shuffle_window", new.shuffle_window.to_string(), bound);
        }
        let joined = !self.people.is_empty();
        let draw_is_fixed = self.phase > Phase::Doors || self.draw.is_committed() || joined;
        if old.draw != new.draw && draw_is_fixed {
            let bound = "as it was: the draw is committed, or people have joined";
            fixed("draw", "changed".into(), bound.into());
        }
        if old.starts_at != new.starts_at && self.draw.is_closed() {
            fixed("starts_at", "changed".into(), "as it was: the draw has closed".into());
        }
        for id in self.lanes.keys() {
            let waiting = self.waiting_in(*id).count();
            if waiting > 0 && !new.lane(*id) {
                let bound = format!("kept while {waiting} wait in it");
                fixed("lanes", format!("lane {id} left out"), bound);
            }
        }
        wrong
    }
}
