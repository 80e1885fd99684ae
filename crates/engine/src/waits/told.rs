//! Whether what visitors could read of their wait came true.
//!
//! Lives here: a bounded sample of intervals, each as somebody in line could have read it at a
//! random moment, held against the moment of their admission.
//! Stays out: learning from it; the estimator calibrates itself by probes of its own. This is the
//! independent count that is shown to operators.
//! Who leaves before their turn is not counted, nor is an interval that was told before an
//! operator changed the settings or paused the room: it was not meant for that.

use crate::figures::ERROR_SCALE;
use waitroom_core::estimate::{Estimator, Interval};
use waitroom_core::{LaneId, Order, Standing, State, Status, Ticket, Timestamp};

/// Open samples of all lanes together.
const OPEN_MAX: usize = 512;

/// Samples of one lane over the time that those sampled will wait, so that a long wait does not
/// fill the table. No more than one per lane and call, that is, per second.
const PER_WAIT: u64 = 64;

/// The shortest likely wait that an error is a share of.
const LIKELY_MS_MIN: u64 = 1_000;

#[derive(Debug, Default)]
pub(super) struct Told {
    open: Vec<Asked>,
    /// By lane: not again before this.
    pauses: Vec<(LaneId, Timestamp)>,
    judged: Judged,
    luck: u64,
}

/// How what was told compares with what came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Intervals that were told to somebody who was admitted.
    pub told: u64,
    /// Of those, the ones that held.
    pub held: u64,
    /// Of those, how far the likely wait was from the real one: counts on [`ERROR_SCALE`].
    pub errors: [u64; ERROR_SCALE.len()],
    /// The sum of these distances, in thousandths of the likely wait.
    pub error_permille: u64,
}

impl Judged {
    fn note(&mut self, asked: &Asked, waited_ms: u64) {
        self.told += 1;
        self.held += u64::from((asked.low_ms..=asked.high_ms).contains(&waited_ms));
        // A likely wait below a moment is a moment: shares of nothing mean nothing.
        let likely_ms = asked.likely_ms.max(LIKELY_MS_MIN);
        let permille = waited_ms.abs_diff(asked.likely_ms).saturating_mul(1_000) / likely_ms;
        self.errors[ERROR_SCALE.bucket(permille)] += 1;
        self.error_permille += permille;
    }
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    ticket: Ticket,
    order: Order,
    at: Timestamp,
    low_ms: u64,
    likely_ms: u64,
    high_ms: u64,
}

impl Told {
    pub(super) fn judged(&self) -> Judged {
        self.judged
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
            let Interval { low_ms, likely_ms, high_ms } = interval;
            self.open.push(Asked { ticket, order, at, low_ms, likely_ms, high_ms });
        }
    }

    /// People of `lane` were admitted, everybody before `front`.
    pub(super) fn admitted(&mut self, at: Timestamp, lane: LaneId, front: Order, state: &State) {
        let judged = &mut self.judged;
        self.open.retain(|asked| {
            if asked.ticket.lane != lane || asked.order >= front {
                return true;
            }
            let entered =
                matches!(state.status(asked.ticket), Some(Status::Admitted | Status::Active));
            // Whoever would have read it only after the call did not read it.
            if entered && asked.at <= at {
                judged.note(asked, at.since(asked.at).0);
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
