//! How the projection for one and the same place keeps changing.
//!
//! Lives here: the mean revision per time passed, by length of wait. A projection that has had to
//! be shortened by a second each minute will most likely have to be shortened on; so the drift
//! both moves the projection and adds to its doubt. Where nothing drifts, it adds nothing.

use super::super::projection::Projected;
use super::length::{LENGTHS, Lengths};

/// How much of the drift is taken to go on, and how much of it is in doubt either way. Drifts
/// fade more often than they grow, hence not all of it.
const TRUST: f64 = 0.6;
const DOUBT: f64 = 0.5;

/// The drift is averaged over this share of the wait it bears on.
const OVER: f64 = 0.2;
const OVER_MS_MIN: f64 = 10_000.0;
const OVER_MS_MAX: f64 = 600_000.0;

/// A line cannot be expected to take half or twice as long because of its drift alone.
const MAX: f64 = 0.5;

#[derive(Clone, Debug, Default)]
pub(super) struct Drifts {
    lengths: [Drift; LENGTHS],
}

#[derive(Clone, Copy, Debug, Default)]
struct Drift {
    now: f64,
    /// How much of a full average stands behind it, 0 to 1.
    seen: f64,
    sum: f64,
    looks: f64,
}

impl Drifts {
    /// A place with a wait of class `length` was projected anew; `revised` is the change per time.
    pub fn add(&mut self, length: usize, revised: f64) {
        self.lengths[length].sum += revised.clamp(-1.0, 1.0);
        self.lengths[length].looks += 1.0;
    }

    /// Takes up what was added while `passed_ms` went by.
    pub fn settle(&mut self, passed_ms: u64, lengths: Lengths) {
        for (length, drift) in self.lengths.iter_mut().enumerate() {
            let over_ms = (lengths.middle_ms(length) * OVER).clamp(OVER_MS_MIN, OVER_MS_MAX);
            drift.settle(passed_ms as f64, over_ms);
        }
    }

    /// The projection, moved on the way it has been moving.
    pub fn applied(&self, projected: Projected, lengths: Lengths) -> Projected {
        let (length, share) = lengths.between(projected.wait_ms);
        let next = (length + 1).min(LENGTHS - 1);
        let (a, b) = (self.lengths[length].now, self.lengths[next].now);
        let drift = (a * (1.0 - share) + b * share) * projected.wait_ms;
        Projected {
            wait_ms: projected.wait_ms + TRUST * drift,
            doubt_ms: projected.doubt_ms.hypot(DOUBT * drift),
            ..projected
        }
    }
}

impl Drift {
    fn settle(&mut self, passed_ms: f64, over_ms: f64) {
        if self.looks > 0.0 {
            // The first looks count in full: an average of what there is, not of what there is
            // and nothing.
            let keep = (-passed_ms / over_ms).exp();
            self.seen = self.seen * keep + 1.0 - keep;
            let weight = ((1.0 - keep) / self.seen.max(1e-9)).min(1.0);
            self.now += weight * (self.sum / self.looks - self.now);
            self.now = self.now.clamp(-MAX, MAX);
        }
        (self.sum, self.looks) = (0.0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVER: f64 = 10_000.0;

    fn looked(drift: &mut Drift, revised: f64, passed_ms: f64) -> f64 {
        (drift.sum, drift.looks) = (revised, 1.0);
        drift.settle(passed_ms, OVER);
        drift.now
    }

    #[test]
    fn the_first_look_counts_in_full_and_later_ones_by_the_time_they_stand_for() {
        for passed_ms in [100.0, OVER, 10.0 * OVER] {
            assert_eq!(looked(&mut Drift::default(), 0.4, passed_ms), 0.4);
        }
        let mut drift = Drift::default();
        looked(&mut drift, 0.4, 10.0 * OVER);
        let (mut short, mut long) = (drift, drift);
        let after_a_moment = looked(&mut short, 0.0, OVER / 100.0);
        assert!((0.39..0.4).contains(&after_a_moment), "{after_a_moment}");
        let after_its_time = looked(&mut drift, 0.0, OVER);
        assert!((0.14..0.15).contains(&after_its_time), "1/e of it is left: {after_its_time}");
        let after_long = looked(&mut long, 0.0, 10.0 * OVER);
        assert!((0.0..0.001).contains(&after_long), "{after_long}");
    }

    #[test]
    fn without_a_look_nothing_is_forgotten() {
        let mut drift = Drift::default();
        looked(&mut drift, -0.3, OVER);
        drift.settle(100.0 * OVER, OVER);
        assert_eq!(drift.now, -0.3);
    }
}
