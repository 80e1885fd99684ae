//! What the calibration has learned so far: enough to make an interval of a projected wait.
//!
//! Lives here: the interval. Stays out: the errors it was learned from; this is what an outlook
//! carries to whoever answers.

use super::super::projection::Projected;
use super::super::{Interval, Unknown, WIDTH_GIVEN_UP, WIDTH_MAX};
use super::class::Learned;
use super::drift::Drifts;
use super::length::{LENGTHS, Lengths};

/// One class of doubt per doubling of its share of the wait, from a thousandth up.
const DOUBTS: usize = 9;
const DOUBT_FIRST: f64 = 0.001;

/// Where doubt is less than this share of the noise, noise decides.
const DOUBT_SLIGHT: f64 = 0.5;

/// First by length, then by doubt.
pub(super) const CLASSES: usize = LENGTHS + DOUBTS;

#[derive(Clone, Debug)]
pub(in super::super) struct Voice {
    pub(super) lengths: Lengths,
    pub(super) drifts: Drifts,
    pub(super) learned: [Learned; CLASSES],
}

impl Voice {
    pub(super) fn new(tick_ms: f64) -> Self {
        Voice {
            lengths: Lengths { tick_ms },
            drifts: Drifts::default(),
            learned: [Learned::NOTHING; CLASSES],
        }
    }

    /// The interval for a projected wait.
    pub fn interval(&self, projected: Projected) -> Result<Interval, Unknown> {
        let projected = self.drifted(projected);
        let (noise, doubt) = self.relative(projected);
        let learned = &self.learned[self.class(projected.wait_ms, noise, doubt)];
        let base = projected.wait_ms + self.shift();
        let likely = projected.wait_ms;
        // Beyond twenty times as long or short nothing is said anyway.
        let at = |error: f64| (base * error.clamp(-3.0, 3.0).exp() - self.shift()).max(0.0);
        let width = |low: f64, high: f64| (high - low) / likely.max(1.0);
        // Within a few ticks of the front the ticks themselves are wider than the rule.
        let near = likely < 5.0 * self.lengths.tick_ms;
        let (low, high) = learned.fitted(noise, doubt);
        if !near && width(at(low), at(high)) > WIDTH_GIVEN_UP {
            return Err(Unknown::TooWide);
        }
        let (low, high) = learned.expected(noise, doubt);
        let (low, high) = (at(low), at(high));
        // Too wide is drawn in: less often right, but still of use.
        let keep = (WIDTH_MAX / width(low, high).max(1e-9)).min(1.0);
        let (low, high) = (likely - (likely - low) * keep, likely + (high - likely) * keep);
        Ok(Interval {
            low_ms: low.round() as u64,
            likely_ms: likely.round() as u64,
            high_ms: high.round() as u64,
        })
    }

    pub(super) fn drifted(&self, projected: Projected) -> Projected {
        self.drifts.applied(projected, self.lengths)
    }

    pub(super) fn relative(&self, projected: Projected) -> (f64, f64) {
        let base = projected.wait_ms + self.shift();
        (projected.noise_ms / base, projected.doubt_ms / base)
    }

    /// Added to both sides of a ratio, to keep it sane for waits of a tick or two.
    pub(super) fn shift(&self) -> f64 {
        self.lengths.tick_ms * 2.0
    }

    /// Where noise rules, estimates of like length err alike; where doubt rules, those of like
    /// doubt do.
    pub(super) fn class(&self, wait_ms: f64, noise: f64, doubt: f64) -> usize {
        if doubt < noise * DOUBT_SLIGHT {
            return self.lengths.class(wait_ms);
        }
        let octaves = (doubt / DOUBT_FIRST).max(1.0).log2() as usize;
        LENGTHS + octaves.min(DOUBTS - 1)
    }
}
