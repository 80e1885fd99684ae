//! New settings in place of the old: all of them, or none.

use crate::admit::weightless;
use crate::command::Actor;
use crate::event::{Event, What};
use crate::lane::{Lane, LaneIndex};
use crate::reply::{Refusal, Reply};
use crate::room::{Decided, Room};
use crate::settings::{Invalid, Rate, Settings, bad};
use crate::state::Phase;
use crate::units::{Epoch, LaneId, Timestamp};
use std::sync::Arc;

impl Room {
    pub(crate) fn decide_configure(
        &self,
        at: Timestamp,
        settings: &Settings,
        by: &Actor,
        out: &mut Vec<Event>,
    ) -> Decided {
        if self.state.epoch == Epoch(0) {
            return Err(Refusal::NotReady);
        }
        let mut wrong = settings.check().err().unwrap_or_default();
        wrong.extend(self.cannot_follow(settings));
        if !wrong.is_empty() {
            return Err(Refusal::Settings(wrong));
        }
        if self.state.settings.as_deref() == Some(settings) {
            return Ok(Reply::Done);
        }
        let settings = Arc::new(settings.clone());
        out.push(What::Configured { settings: settings.clone(), by: by.clone() }.at(at));
        // A room that is due opens with its settings, so that the next join already gets in.
        self.push_steps(at, &settings, self.state.draw.commitment.is_some(), out);
        Ok(Reply::Done)
    }

    /// The settings in force with another pace: one command, so that a change by an operator that
    /// came just before is never undone.
    pub(crate) fn decide_pace(
        &self,
        at: Timestamp,
        rate: Rate,
        by: &Actor,
        out: &mut Vec<Event>,
    ) -> Decided {
        let settings = self.state.ready()?;
        if settings.rate.is_none() {
            return Ok(Reply::Done);
        }
        let paced = Settings { rate: Some(rate), ..Settings::clone(settings) };
        self.decide_configure(at, &paced, by, out)
    }

    /// What may not change any more, because tickets that exist depend on it.
    fn cannot_follow(&self, new: &Settings) -> Vec<Invalid> {
        let mut wrong = Vec::new();
        let Some(old) = &self.state.settings else { return wrong };
        let counts = self.state.counts();
        if old.shuffle_window != new.shuffle_window && counts.joined > 0 {
            let bound = format!("{}: it is fixed by the first ticket", old.shuffle_window);
            bad(&mut wrong, "shuffle_window", new.shuffle_window, bound);
        }
        let committed = self.state.draw.commitment.is_some();
        let fixed = self.state.phase > Phase::Doors || committed || counts.joined > 0;
        if old.draw != new.draw && fixed {
            let bound = "as it was: the draw is committed, or people have joined";
            bad(&mut wrong, "draw", "changed", bound);
        }
        if self.state.draw.closed && old.starts_at != new.starts_at {
            bad(&mut wrong, "starts_at", "changed", "as it was: the draw has closed");
        }
        for lane in &self.state.lanes {
            if lane.counts.waiting > 0 && !new.lane(lane.id) {
                let found = format!("lane {} left out", lane.id);
                let bound = format!("kept while {} wait in it", lane.counts.waiting);
                bad(&mut wrong, "lanes", found, bound);
            }
        }
        wrong
    }

    pub(crate) fn absorb_configured(&mut self, at: Timestamp, settings: &Arc<Settings>) {
        let was_frozen = self.state.frozen();
        match self.state.settings.replace(settings.clone()) {
            Some(old) => {
                self.state.bucket.change(at, &old, settings);
                let virtual_time = self.state.virtual_time;
                for lane in &mut self.state.lanes {
                    // Its clock stood still, which is no claim on the turns of the others.
                    if weightless(&old, lane.id) {
                        lane.virtual_time = lane.virtual_time.max(virtual_time);
                    }
                }
            }
            None => self.state.bucket.at = at,
        }
        let ordinary = (0..settings.lanes.len()).map(|i| LaneId(i as u8));
        let returning = settings.returning.map(|_| LaneId::RETURNING);
        for id in ordinary.chain(returning) {
            if self.state.lane(id).is_none() {
                let place = self.state.lanes.partition_point(|lane| lane.id < id);
                self.state.lanes.insert(place, Lane::new(id, self.state.epoch));
                self.index.lanes.insert(place, LaneIndex::default());
            }
        }
        // `keep_inside` may have changed in the middle of a maintenance.
        if self.state.frozen() != was_frozen {
            self.grant_grace(at);
        }
    }
}
