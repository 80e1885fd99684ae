//! One class of estimates: those that err alike.
//!
//! Lives here: the latest errors, their fit, and the stretch that keeps the share of intervals
//! that hold where it should be.
//! The fit knows the past; when the crowd changes its ways it lags. The stretch looks at whether
//! the intervals *as they were said* hold: those of probes the front has passed, and, since that
//! may take an hour, also those of probes on their way, as far as can be told by now. Too many
//! misses widen the next intervals, too few narrow them, each side for itself.

use super::fit::{Expected, Fit, Miss};

/// Errors remembered. With sixty, a tenth of them is known to about four in a hundred.
const KEPT: usize = 64;
/// From so many errors of passed probes on, those on their way are no longer fitted.
const RIPE: usize = 20;

/// How much one passed probe moves the stretch, and the share of misses per side it settles at.
const STEP: f64 = 0.08;
const STEP_TAIL: f64 = 0.09;
/// The same for probes on their way. Judged early, noise looks larger than it will be, so more
/// misses are tolerated. Misses all along would stretch e-fold within a twentieth of the wait.
const PULL_TAIL: f64 = 0.16;
const PULL_OVER: f64 = 0.05;
const PULL_OVER_MS_MIN: f64 = 5_000.0;
/// Within one refresh no more than this, and never beyond these.
const PULL_MAX: f64 = 0.3;
const STRETCH_MIN: f64 = 0.5;
const STRETCH_MAX: f64 = 4.0;

/// What went wrong one way may swing back, so the shorter side keeps this much of the longer.
const LOPSIDED: f64 = 0.4;

#[derive(Clone, Debug)]
pub(super) struct Class {
    misses: Vec<Miss>,
    next: usize,
    stale: bool,
    /// Errors of probes on their way, of this refresh only.
    unripe: Vec<Miss>,
    pull: Sides,
    looks: f64,
    known: bool,
}

/// What a class has learned: enough for an interval, and to lend to another class that has seen
/// nothing yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learned {
    fit: Fit,
    stretch: Sides,
}

impl Learned {
    pub const NOTHING: Learned =
        Learned { fit: Fit::BLANK, stretch: Sides { low: 1.0, high: 1.0 } };

    /// The lowest and highest error to expect of an estimate with this noise and doubt. The
    /// projection itself always lies between them: it is what visitors are told as likely, and it
    /// must not jump where one class ends and another begins, or somebody further back would be
    /// promised less.
    pub fn expected(&self, noise: f64, doubt: f64) -> (f64, f64) {
        self.between(noise, doubt, self.stretch)
    }

    /// The same before stretching: what the errors themselves say.
    pub fn fitted(&self, noise: f64, doubt: f64) -> (f64, f64) {
        self.between(noise, doubt, Sides { low: 1.0, high: 1.0 })
    }

    fn between(&self, noise: f64, doubt: f64, stretch: Sides) -> (f64, f64) {
        let Expected { middle, down, up } = self.fit.expected(noise, doubt);
        let (down, up) = (down * stretch.low, up * stretch.high);
        let (down, up) = (down.max(up * LOPSIDED), up.max(down * LOPSIDED));
        ((middle - down).min(0.0), (middle + up).max(0.0))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sides {
    low: f64,
    high: f64,
}

/// The interval as it was said, on the scale of [`Miss::error`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    pub low: f32,
    pub high: f32,
}

impl Class {
    pub fn new() -> Self {
        Class {
            misses: Vec::new(),
            next: 0,
            stale: false,
            unripe: Vec::new(),
            pull: Sides::default(),
            looks: 0.0,
            known: false,
        }
    }

    /// A probe was passed.
    pub fn resolved(&mut self, miss: Miss, said: Said, learned: &mut Learned) {
        let stretch = &mut learned.stretch;
        stretch.low = pulled(stretch.low, STEP * (missed(miss.error < said.low) - STEP_TAIL));
        stretch.high = pulled(stretch.high, STEP * (missed(miss.error > said.high) - STEP_TAIL));
        if self.misses.len() < KEPT {
            self.misses.push(miss);
        } else {
            self.misses[self.next % KEPT] = miss;
        }
        self.next = self.next.wrapping_add(1);
        self.stale = true;
    }

    /// A probe is on its way; `miss` is how wrong it looks by now.
    pub fn revised(&mut self, miss: Miss, said: Said, wait_ms: f64) {
        let weight = 1.0 / (wait_ms * PULL_OVER).max(PULL_OVER_MS_MIN);
        self.pull.low += weight * (missed(miss.error < said.low) - PULL_TAIL);
        self.pull.high += weight * (missed(miss.error > said.high) - PULL_TAIL);
        self.looks += 1.0;
        if self.misses.len() < RIPE {
            self.unripe.push(miss);
        }
    }

    pub fn refresh(&mut self, passed_ms: u64, learned: &mut Learned) {
        if self.looks > 0.0 {
            let by = passed_ms as f64 / self.looks;
            let stretch = &mut learned.stretch;
            stretch.low = pulled(stretch.low, self.pull.low * by);
            stretch.high = pulled(stretch.high, self.pull.high * by);
            (self.pull, self.looks) = (Sides::default(), 0.0);
        }
        if self.misses.len() >= RIPE {
            if std::mem::take(&mut self.stale) {
                learned.fit = Fit::of(&self.misses);
                self.known = true;
            }
        } else if self.misses.len() + self.unripe.len() >= RIPE {
            self.unripe.extend_from_slice(&self.misses);
            learned.fit = Fit::of(&self.unripe);
            self.known = true;
        }
        self.unripe.clear();
    }

    /// Whether it has seen enough to go by its own errors.
    pub fn known(&self) -> bool {
        self.known
    }
}

fn missed(missed: bool) -> f64 {
    if missed { 1.0 } else { 0.0 }
}

fn pulled(stretch: f64, by: f64) -> f64 {
    (stretch * by.clamp(-PULL_MAX, PULL_MAX).exp()).clamp(STRETCH_MIN, STRETCH_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: Said = Said { low: -9.0, high: 9.0 };

    fn miss(error: f32) -> Miss {
        Miss { error, noise: 0.1, doubt: 0.0, share: 1.0 }
    }

    #[test]
    fn only_the_latest_errors_count() {
        let (mut class, mut learned) = (Class::new(), Learned::NOTHING);
        let errors = (0..KEPT).map(|_| 5.0).chain((0..KEPT).map(|_| 0.0));
        errors.for_each(|error| class.resolved(miss(error), WIDE, &mut learned));
        assert!(class.misses.iter().all(|miss| miss.error == 0.0));
        class.refresh(1_000, &mut learned);
        let (low, high) = learned.fitted(0.1, 0.0);
        assert!(low <= 0.0 && high >= 0.0 && high - low < 0.5, "{low}..{high}");
    }

    #[test]
    fn the_interval_reaches_down_and_up_from_its_middle_and_holds_the_projection() {
        let (mut class, mut learned) = (Class::new(), Learned::NOTHING);
        // A third longer than projected, more or less.
        let errors = [0.2, 0.3, 0.4].into_iter().cycle().take(KEPT);
        errors.for_each(|error| class.resolved(miss(error), WIDE, &mut learned));
        class.refresh(1_000, &mut learned);
        let (low, high) = learned.fitted(0.1, 0.0);
        assert_eq!(low, 0.0, "what is told as likely lies within");
        assert!((0.35..0.5).contains(&high), "{high}");
    }

    #[test]
    fn misses_on_one_side_widen_that_side_and_hits_narrow_both() {
        let said = Said { low: -0.1, high: 0.1 };
        let stretched = |error: f32| {
            let (mut class, mut learned) = (Class::new(), Learned::NOTHING);
            for _ in 0..5 {
                class.revised(miss(error), said, 60_000.0);
                class.refresh(1_000, &mut learned);
            }
            (learned.stretch.low, learned.stretch.high)
        };
        let (low, high) = stretched(0.5);
        assert!(low < 1.0 && high > 1.0, "{low}, {high}");
        let (low, high) = stretched(-0.5);
        assert!(low > 1.0 && high < 1.0, "{low}, {high}");
        let (low, high) = stretched(0.0);
        assert!(low < 1.0 && high < 1.0 && low == high, "{low}, {high}");
    }
}
