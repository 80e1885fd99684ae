//! Pause, maintenance and drain: what an operator holds back, with a reason that visitors see.
//! A paused room and one in maintenance admit nobody and keep every place; a draining one takes
//! nobody new and goes on admitting.

use crate::command::{Actor, Hold};
use crate::event::{Event, What};
use crate::reply::Reply;
use crate::room::{Decided, Room};
use crate::units::Timestamp;

impl Room {
    pub(crate) fn decide_hold(
        &self,
        at: Timestamp,
        hold: &Hold,
        by: &Actor,
        out: &mut Vec<Event>,
    ) -> Decided {
        self.state.ready()?;
        if self.state.hold.as_ref() != Some(hold) {
            out.push(What::Held { hold: hold.clone(), by: by.clone() }.at(at));
        }
        Ok(Reply::Done)
    }

    pub(crate) fn decide_resume(&self, at: Timestamp, by: &Actor, out: &mut Vec<Event>) -> Decided {
        self.state.ready()?;
        if self.state.hold.is_some() {
            out.push(What::Resumed { by: by.clone() }.at(at));
        }
        Ok(Reply::Done)
    }

    pub(crate) fn absorb_held(&mut self, at: Timestamp, hold: &Hold) {
        let was_frozen = self.state.frozen();
        // From a pause straight into a drain people are let in again: no catch-up burst.
        let stopped = self.state.hold.as_ref().is_some_and(Hold::stops_admissions);
        if stopped && !hold.stops_admissions() {
            self.empty_bucket(at);
        }
        self.state.hold = Some(hold.clone());
        if self.state.frozen() != was_frozen {
            self.grant_grace(at);
        }
    }

    pub(crate) fn absorb_resumed(&mut self, at: Timestamp) {
        let was_frozen = self.state.frozen();
        self.state.hold = None;
        // After a drain too, where it costs a token at most: whoever judges a log need not know
        // what kind of hold has ended.
        self.empty_bucket(at);
        if was_frozen {
            self.grant_grace(at);
        }
    }
}
