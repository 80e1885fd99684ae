//! The pace follows the origin's health: additive increase, multiplicative decrease.
//!
//! Lives here: the controller, which is pure (signals and time in, a rate out), and what the gate
//! measures. Once in each window it looks at what requests came to. A window in which answers were
//! slow, failed, or piled up cuts the rate; a good one with people to serve adds a step; one in
//! which too little happened to tell moves it towards the fallback. Never below the floor, never
//! above the ceiling.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::gate::{Gate, SiteGate};

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Admissions a minute, at least and at most.
    pub floor_per_min: u32,
    pub ceiling_per_min: u32,
    /// Where the rate goes while nothing can be told of the origin.
    pub fallback_per_min: u32,
    /// An answer slower than this is a slow one.
    pub slow: Duration,
    /// A window with more slow or failed answers than this, in percent, cuts the rate.
    pub bad_percent_max: u32,
    /// More requests at the origin at once than this cut the rate too; 0 means no matter.
    pub in_flight_max: u32,
    /// How long one look takes.
    pub window: Duration,
    /// What a good window adds, in percent of the ceiling.
    pub step_percent: u32,
    /// What a bad window leaves, in percent.
    pub cut_to_percent: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            floor_per_min: 6,
            ceiling_per_min: 600,
            fallback_per_min: 60,
            slow: Duration::from_secs(1),
            bad_percent_max: 10,
            in_flight_max: 0,
            window: Duration::from_secs(2),
            step_percent: 5,
            cut_to_percent: 70,
        }
    }
}

/// What one window came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub answers: u64,
    pub slow: u64,
    pub failed: u64,
    pub in_flight: u64,
}

/// Less than this in a window says nothing.
const ANSWERS_MIN: u64 = 5;

#[derive(Clone, Debug, PartialEq)]
pub struct Controller {
    settings: Settings,
    /// Thousandths of an admission a minute, so that small steps add up.
    milli_per_min: u64,
}

impl Controller {
    pub fn new(settings: Settings) -> Controller {
        let milli_per_min = u64::from(settings.fallback_per_min) * 1_000;
        Controller { settings, milli_per_min }.bounded()
    }

    pub fn per_min(&self) -> u32 {
        (self.milli_per_min / 1_000) as u32
    }

    /// A window has passed. Says the rate from now on.
    pub fn look(&mut self, seen: &Seen) -> u32 {
        let settings = &self.settings;
        let step = u64::from(settings.ceiling_per_min) * 10 * u64::from(settings.step_percent);
        let crowded = settings.in_flight_max > 0
            && seen.in_flight > u64::from(settings.in_flight_max);
        let bad = seen.slow + seen.failed;
        self.milli_per_min = if crowded
            || (seen.answers >= ANSWERS_MIN
                && bad * 100 > seen.answers * u64::from(settings.bad_percent_max))
        {
            self.milli_per_min * u64::from(settings.cut_to_percent) / 100
        } else if seen.answers >= ANSWERS_MIN {
            self.milli_per_min + step
        } else {
            let fallback = u64::from(settings.fallback_per_min) * 1_000;
            let (now, step) = (self.milli_per_min, step.max(1));
            now.clamp(fallback.saturating_sub(step), fallback + step)
                .clamp(now.saturating_sub(step), now + step)
        };
        *self = self.clone().bounded();
        self.per_min()
    }

    fn bounded(mut self) -> Controller {
        let (floor, ceiling) = (self.settings.floor_per_min, self.settings.ceiling_per_min);
        let (floor, ceiling) = (u64::from(floor) * 1_000, u64::from(ceiling) * 1_000);
        self.milli_per_min = self.milli_per_min.clamp(floor, ceiling.max(floor));
        self
    }
}

/// What the gate has measured since the last look.
#[derive(Debug, Default)]
pub struct Signals {
    answers: AtomicU64,
    slow: AtomicU64,
    failed: AtomicU64,
    slow_ms: AtomicU64,
}

impl Signals {
    pub fn note(&self, ms: u64, fine: bool) {
        self.answers.fetch_add(1, Relaxed);
        if !fine {
            self.failed.fetch_add(1, Relaxed);
        } else if ms > self.slow_ms.load(Relaxed).max(1) {
            self.slow.fetch_add(1, Relaxed);
        }
    }

    /// What counts as slow from now on.
    pub fn watch(&self, slow: Duration) {
        self.slow_ms.store(slow.as_millis() as u64, Relaxed);
    }

    pub fn take(&self, in_flight: usize) -> Seen {
        Seen {
            answers: self.answers.swap(0, Relaxed),
            slow: self.slow.swap(0, Relaxed),
            failed: self.failed.swap(0, Relaxed),
            in_flight: in_flight as u64,
        }
    }
}

/// One look at a site's origin, and the room's pace after it.
pub async fn follow(_gate: &Gate, _at: &SiteGate) {}
