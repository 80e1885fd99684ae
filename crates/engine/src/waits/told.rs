//! Whether what visitors could read of their wait came true.
//!
//! Lives here: a bounded sample of intervals, each as somebody in line could have read it at a
//! random moment, held against the moment of their admission.
//! Stays out: learning from it; the estimator calibrates itself by probes of its own. This is the
//! independent count that is shown to operators.
//! Who leaves before their turn is not counted, nor is an interval that was told before an
//! operator changed the settings or paused the room: it was not meant for that.

use waitroom_core::estimate::{Estimator, Interval};
use waitroom_core::{LaneId, Order, Standing, State, Status, Ticket, Timestamp};

/// Open samples of all lanes together.
const OPEN_MAX: usize = 512;

/// Samples of one lane over the time that those sampled will wait, so that a long wait does not
/// fill the table. No more than one per lane and call, that is, per second.
const PER_WAIT: u64 = 64;

#[derive(Debug, Default)]
pub(super) struct Told {
    open: Vec<Asked>,
    /// By lane: not again before this.
    pauses: Vec<(LaneId, Timestamp)>,
    held: u64,
    told: u64,
    luck: u64,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    ticket: Ticket,
    order: Order,
    at: Timestamp,
    low_ms: u64,
    high_ms: u64,
}

impl Told {
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.held, self.told)
    }

    /// What was told is not to be judged any more.
    pub(super) fn forget(&mut self) {
        self.open = Vec::new();
        self.pauses = Vec::new();
    }

    /// Somebody in each lane reads their interval. Real visitors do that at any moment between two
    /// ticks, so these do too.
    pub(super) fn ask(&mut self, at: Timestamp, tick_ms: u64, state: &State, room: &Estimator) {
        for lane in state.lane_ids() {
            let waiting = state.lane_counts(lane).waiting;
            let paused = self.pauses.iter().any(|&(of, until)| of == lane && at < until);
            if waiting == 0 || paused || self.open.len() >= OPEN_MAX {
                continue;
            }
            let ahead = self.below(waiting);
            let Some(standing) = state.standing(lane, ahead) else { continue };
            let Ok(interval) = room.estimate(ahead, lane.0) else { continue };
            self.pauses.retain(|(of, _)| *of != lane);
            self.pauses.push((lane, Timestamp(at.0 + interval.likely_ms / PER_WAIT)));
            let at = Timestamp(at.0 + self.below(tick_ms));
            let Standing { ticket, order, .. } = standing;
            let Interval { low_ms, high_ms, .. } = interval;
            self.open.push(Asked { ticket, order, at, low_ms, high_ms });
        }
    }

    /// People of `lane` were admitted, everybody before `front`.
    pub(super) fn admitted(&mut self, at: Timestamp, lane: LaneId, front: Order, state: &State) {
        let (held, told) = (&mut self.held, &mut self.told);
        self.open.retain(|asked| {
            if asked.ticket.lane != lane || asked.order >= front {
                return true;
            }
            let entered =
                matches!(state.status(asked.ticket), Some(Status::Admitted | Status::Active));
            // Whoever would have read it only after the call did not read it.
            if entered && asked.at <= at {
                let waited_ms = at.since(asked.at).0;
                *told += 1;
                *held += u64::from((asked.low_ms..=asked.high_ms).contains(&waited_ms));
            }
            false
        });
    }

    /// Evenly one of `n`, always the same sequence.
    fn below(&mut self, n: u64) -> u64 {
        self.luck = self.luck.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.luck;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * u128::from(n)) >> 64) as u64
    }
}
