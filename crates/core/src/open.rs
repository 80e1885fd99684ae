//! A new owner begins: `Opened` is the first event of every epoch.
//!
//! It empties the bucket and gives every deadline inside its full grace, so that an outage makes
//! neither no-shows nor a burst. It is in the log, so a replay does the same.

use crate::event::{Event, What};
use crate::reply::{Refusal, Reply};
use crate::room::{Decided, Room};
use crate::slots::{Inside, Stage};
use crate::units::{Epoch, Timestamp};

impl Room {
    pub(crate) fn decide_open(&self, at: Timestamp, epoch: Epoch, out: &mut Vec<Event>) -> Decided {
        if epoch <= self.state.epoch || epoch > Epoch::MAX {
            return Err(Refusal::StaleEpoch { newest: self.state.epoch });
        }
        out.push(What::Opened { epoch }.at(at));
        Ok(Reply::Done)
    }

    pub(crate) fn absorb_opened(&mut self, at: Timestamp, epoch: Epoch) {
        if self.state.epoch == Epoch(0) {
            self.state.founded_at = at;
        }
        self.state.epoch = epoch;
        self.state.opened_at = at;
        self.state.bucket.level = 0;
        self.state.bucket.at = at;
        for lane in &mut self.state.lanes {
            lane.begin_epoch(epoch);
        }
        self.grant_grace(at);
    }

    /// Gives everyone inside the full time from now on; during maintenance, time without end.
    pub(crate) fn grant_grace(&mut self, at: Timestamp) {
        let Some(settings) = self.state.settings.clone() else { return };
        let frozen = self.state.frozen();
        let graced = |deadline: Timestamp, full: Timestamp| match deadline {
            _ if frozen => NEVER,
            NEVER => full,
            deadline => deadline.max(full),
        };
        for slot in 0..self.state.slots.entries.len() {
            let Some(inside) = *self.state.slots.entries.get(slot) else { continue };
            let stage = match inside.stage {
                Stage::Admitted { claim_by } => {
                    Stage::Admitted { claim_by: graced(claim_by, at.after(settings.claim_within)) }
                }
                Stage::Active(mut session) => {
                    let full = at.after(settings.session_timeout);
                    session.expires_at = graced(session.expires_at, full);
                    Stage::Active(session)
                }
                Stage::Held { .. } => continue,
            };
            if stage != inside.stage {
                self.state.slots.entries.set(slot, Some(Inside { stage, ..inside }));
            }
        }
        // All at once: with many inside, moving their deadlines one by one takes ten times longer.
        self.index.slots.time_again(&self.state.slots);
    }
}

/// The deadline of those whose time stands still.
pub(crate) const NEVER: Timestamp = Timestamp(u64::MAX);
