//! How many enter per millisecond.
//!
//! Lives here: admissions while people waited, held against the limit. Stays out: slots, which
//! have their own forecast (`inside`), and lanes, which share the pace by weight in the projection.
//! The correction covers what the limit does not know: manual admissions, returned tokens, an
//! origin that steers the rate.

use super::Settings;
use super::ageing::Lean;
use super::inside::{Inside, PaceAhead};

/// What was seen this long ago counts half.
const HALF_LIFE_MS: f64 = 120_000.0;

/// Closer than this, measured and expected differ only by how ticks fall.
const SAME: f64 = 0.02;

/// Before this much busy time the correction says nothing.
const BUSY_MS_MIN: f64 = 10_000.0;

#[derive(Clone, Debug)]
pub(super) struct Pace {
    fresh: u64,
    admitted: f64,
    expected: f64,
    over_ms: f64,
    was_long: bool,
}

impl Pace {
    pub fn new() -> Self {
        Pace { fresh: 0, admitted: 0.0, expected: 0.0, over_ms: 0.0, was_long: false }
    }

    pub fn admitted(&mut self, n: u64) {
        self.fresh += n;
    }

    /// `passed_ms` went by, the doors `open` and slots free; `waiting` people are in line now.
    pub fn pass(&mut self, passed_ms: u64, open: bool, waiting: u64, settings: &Settings) {
        let passed = passed_ms as f64;
        let limit = settings.rate.map_or(0.0, |rate| rate.per_one_ms());
        // Only where more waited than could enter all the while did the pace limit anything; a
        // line that was empty in between says how few came, not how many may enter.
        let long = waiting as f64 > limit * passed;
        let busy = open && long && self.was_long;
        self.was_long = open && long;
        if busy && passed > 0.0 {
            let keep = (-passed / HALF_LIFE_MS * std::f64::consts::LN_2).exp();
            self.expected = self.expected * keep + limit * passed;
            self.admitted = self.admitted * keep + self.fresh as f64;
            self.over_ms = self.over_ms * keep + passed;
        }
        self.fresh = 0;
    }

    /// The pace to come, or none when nothing is known.
    pub fn ahead(
        &self,
        at: u64,
        settings: &Settings,
        inside: &Inside,
        lean: Lean,
    ) -> Option<PaceAhead> {
        let limit = match settings.rate {
            Some(rate) => Some(rate.per_one_ms() * self.correction()),
            None if self.admitted > 0.0 => Some(self.admitted / self.over_ms),
            None => None,
        };
        match (limit, settings.max_active) {
            (limit, Some(max)) => {
                Some(inside.ahead(at, limit.unwrap_or(f64::MAX.sqrt()), max, lean))
            }
            (Some(limit), None) => Some(PaceAhead::constant(limit)),
            (None, None) => None,
        }
    }

    fn correction(&self) -> f64 {
        if self.expected <= 0.0 || self.over_ms < BUSY_MS_MIN {
            return 1.0;
        }
        let ratio = self.admitted / self.expected;
        if (ratio - 1.0).abs() < SAME { 1.0 } else { ratio.clamp(0.1, 10.0) }
    }
}
