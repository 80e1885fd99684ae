//! Time has passed: what is due, one phase at a time.
//!
//! The first phase that has something to do does it and says `again`; the caller absorbs and
//! comes back. So each phase looks at the true state, and none has to guess what another one
//! would have changed. The order matters: lapse before admitting, for a freed place belongs to
//! the next in this same tick.

use crate::event::Event;
use crate::reply::Reply;
use crate::room::{Decided, Room};
use crate::settings::Settings;
use crate::units::Timestamp;

impl Room {
    pub(crate) fn decide_tick(
        &self,
        at: Timestamp,
        entropy: &[u8; 16],
        out: &mut Vec<Event>,
    ) -> Decided {
        let settings = self.state.ready()?;
        let before = out.len();
        let committed = self.state.draw.commitment.is_some();
        if let Some((what, _)) = self.next_phase(at, settings, self.state.phase, committed) {
            out.push(what.at(at));
        }
        let nothing_yet = |out: &Vec<Event>| out.len() == before;
        if nothing_yet(out) {
            self.decide_deadlines(at, out);
        }
        if nothing_yet(out) {
            self.decide_too_old(at, settings, out);
        }
        if nothing_yet(out) {
            self.decide_seal(at, settings, entropy, out);
        }
        if nothing_yet(out) {
            self.decide_turns(at, settings, out);
        }
        if nothing_yet(out) {
            self.decide_forget(at, settings, out);
        }
        Ok(Reply::Ticked { again: out.len() > before })
    }

    /// When to come back with `Command::Tick`, should nobody come first. May lie in the past.
    pub fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        let settings = self.state.ready().ok()?;
        let now = now.max(self.state.last_at);
        [
            self.next_schedule(settings),
            self.index.slots.first_deadline().filter(|at| *at < crate::open::NEVER),
            self.next_too_old(settings),
            self.next_seal(now, settings),
            self.next_turn(now, settings),
            self.next_forget(settings),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// When the next paced admission can be made, if only the pace stands before it.
    fn next_turn(&self, now: Timestamp, settings: &Settings) -> Option<Timestamp> {
        if self.state.admits().is_err() || self.state.slots_free(settings) == 0 {
            return None;
        }
        let somebody = self.state.lanes.iter().any(|lane| lane.counts.waiting > 0);
        somebody.then(|| self.state.bucket.ready_at(now, settings)).flatten()
    }
}
