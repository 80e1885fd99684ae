//! How readily waiting people give up.
//!
//! Lives here: the two ways to go and their hazards by age. Who presses "leave" is gone at once;
//! who closes the page is noticed only when the heartbeat has been missing for its time. Counted
//! together the second kind looks like a jump in the hazard at that age, and a trend drawn through
//! the jump misleads. So silence is dated back to when it began.
//! Stays out: who it was.

use super::Departure;
use super::ageing::{Ageing, Belief, Hazard, Lean};

/// Nobody must give up, so evenly nothing is assumed of ages not seen yet; leaning to a faster
/// line, most would within the hour.
const BELIEF: Belief = Belief {
    trend_max: 2.0,
    trend_doubt: 0.3,
    faster_ms: 80.0 * 60_000.0,
    even_ms: f64::INFINITY,
    rise_max: Some(3.0),
};

#[derive(Clone, Debug)]
pub(super) struct GivingUp {
    openly: Ageing,
    silently: Ageing,
}

/// What share of people of an age will still be in line later.
#[derive(Clone, Debug)]
pub(super) struct Staying {
    openly: Hazard,
    silently: Hazard,
    lapse_after_ms: f64,
}

impl GivingUp {
    pub fn new() -> Self {
        GivingUp { openly: Ageing::new(BELIEF), silently: Ageing::new(BELIEF) }
    }

    pub fn departed(&mut self, age_ms: u64, how: Departure, lapse_after_ms: u64) {
        match how {
            Departure::Left => self.openly.departed(age_ms),
            Departure::Lapsed => self.silently.departed(age_ms.saturating_sub(lapse_after_ms)),
            Departure::TakenOut => {}
        }
    }

    /// `people` of one age have waited another `passed_ms`.
    pub fn exposed(&mut self, age_ms: u64, people: u64, passed_ms: u64, lapse_after_ms: u64) {
        self.openly.exposed(age_ms, people, passed_ms);
        if let Some(silent_age_ms) = age_ms.checked_sub(lapse_after_ms) {
            self.silently.exposed(silent_age_ms, people, passed_ms);
        }
    }

    pub fn decay(&mut self, passed_ms: u64) {
        self.openly.decay(passed_ms);
        self.silently.decay(passed_ms);
    }

    pub fn staying(&self, lean: Lean, lapse_after_ms: u64) -> Staying {
        Staying {
            openly: self.openly.curve(lean),
            silently: self.silently.curve(lean),
            lapse_after_ms: lapse_after_ms as f64,
        }
    }
}

impl Staying {
    /// The share of people aged `age_ms` who are still in line after `more_ms`.
    pub fn share(&self, age_ms: f64, more_ms: f64) -> f64 {
        let silent_from = (age_ms - self.lapse_after_ms).max(0.0);
        let silent_to = (age_ms + more_ms - self.lapse_after_ms).max(0.0);
        self.openly.survival(age_ms, more_ms)
            * self.silently.survival(silent_from, silent_to - silent_from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_taken_out_of_the_line_tells_nothing_about_patience() {
        let staying_after = |how| {
            let mut giving_up = GivingUp::new();
            for _ in 0..100 {
                giving_up.exposed(60_000, 1_000, 1_000, 30_000);
                giving_up.departed(60_000, how, 30_000);
            }
            giving_up.staying(Lean::Even, 30_000).share(60_000.0, 10_000.0)
        };
        assert!(staying_after(Departure::Left) < 0.995);
        assert!(staying_after(Departure::Lapsed) < 0.995);
        assert_eq!(staying_after(Departure::TakenOut), 1.0);
    }
}
