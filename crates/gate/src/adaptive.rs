//! The pace follows the origin's health: additive increase, multiplicative decrease.
//!
//! Lives here: the controller, which is pure (signals and time in, a rate out), and what the gate
//! measures. Once in each window it looks at what requests came to. A window in which answers were
//! slow, failed, or piled up cuts the rate; a good one with people to serve adds a step; one in
//! which too little happened to tell moves it towards the fallback. Never below the floor, never
//! above the ceiling.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use waitroom_core::settings::Rate;
use waitroom_core::{Actor, Command, Millis};

use crate::gate::{Gate, SiteGate};
use crate::upkeep::ANSWERS_WITHIN;

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
        let crowded =
            settings.in_flight_max > 0 && seen.in_flight > u64::from(settings.in_flight_max);
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
            let now = self.milli_per_min;
            fallback.clamp(now.saturating_sub(step), now + step)
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

/// The controller of one site, and when it looked last.
#[derive(Debug, Default)]
pub struct Following(Mutex<Option<(Controller, u64)>>);

impl Following {
    /// The rate from now on, when a window has passed; time in milliseconds of a steady clock.
    pub fn due(
        &self,
        settings: &Settings,
        now_ms: u64,
        seen: impl FnOnce() -> Seen,
    ) -> Option<u32> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (controller, looked_ms) =
            kept.get_or_insert_with(|| (Controller::new(settings.clone()), now_ms));
        if now_ms.saturating_sub(*looked_ms) < settings.window.as_millis() as u64 {
            return None;
        }
        *looked_ms = now_ms;
        Some(controller.look(&seen()))
    }
}

/// One look at a site's origin, and the pace of its rooms after it.
pub async fn follow(gate: &Gate, at: &SiteGate) {
    let Some(settings) = &at.site.adaptive else { return };
    at.signals.watch(settings.slow);
    let now_ms = gate.desk.clock.now_ms();
    let seen = || at.signals.take(at.origins.in_flight());
    let Some(per_min) = at.following.due(settings, now_ms, seen) else { return };
    let rate = Rate { count: per_min, per: Millis::from_secs(60) };
    for name in at.site.rooms() {
        let Some(room) = gate.room(name.as_str()) else { continue };
        // Of several gates the one beside the room's owner sets the pace; two would pull at it.
        if room.desk.handle().follows() {
            continue;
        }
        // Only a change is worth an entry in the log; rooms without a pace have none to follow.
        let now = room.desk.settings().and_then(|settings| settings.rate);
        if now.is_some_and(|now| now != rate) {
            let pace = Command::Pace { rate, by: Actor::new("gate") };
            let _ = tokio::time::timeout(ANSWERS_WITHIN, room.desk.send(pace)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(answers: u64) -> Seen {
        Seen { answers, ..Seen::default() }
    }

    fn slow(answers: u64) -> Seen {
        Seen { answers, slow: answers, ..Seen::default() }
    }

    #[test]
    fn an_origin_made_slow_brings_the_rate_down_within_seconds_and_it_recovers() {
        let settings = Settings::default();
        let mut controller = Controller::new(settings.clone());
        for _ in 0..30 {
            controller.look(&good(100));
        }
        assert_eq!(controller.per_min(), 600, "a healthy origin is at the ceiling");
        // Three windows of two seconds.
        let fell: Vec<u32> = (0..3).map(|_| controller.look(&slow(100))).collect();
        assert_eq!(fell, [420, 294, 205]);
        for _ in 0..30 {
            controller.look(&slow(100));
        }
        assert_eq!(controller.per_min(), settings.floor_per_min, "never below the floor");
        let first = controller.look(&good(100));
        assert_eq!(first, 6 + 30, "a step of five percent of the ceiling");
        for _ in 0..30 {
            controller.look(&good(100));
        }
        assert_eq!(controller.per_min(), 600, "never above the ceiling");
    }

    #[test]
    fn errors_and_a_crowd_count_like_slowness_and_a_few_bad_answers_do_not() {
        let mut controller = Controller::new(Settings { in_flight_max: 50, ..Settings::default() });
        let before = controller.per_min();
        let failing = Seen { answers: 100, failed: 11, ..Seen::default() };
        assert!(controller.look(&failing) < before);
        let crowded = Seen { answers: 0, in_flight: 51, ..Seen::default() };
        let before = controller.per_min();
        assert!(controller.look(&crowded) < before, "also when nothing is answered at all");
        let before = controller.per_min();
        let fine = Seen { answers: 100, slow: 10, ..Seen::default() };
        assert!(controller.look(&fine) > before);
    }

    #[test]
    fn without_a_signal_the_rate_goes_to_the_fallback_step_by_step() {
        let mut controller = Controller::new(Settings::default());
        for _ in 0..30 {
            controller.look(&good(100));
        }
        assert_eq!(controller.look(&good(4)), 570, "four answers say nothing");
        for _ in 0..40 {
            controller.look(&Seen::default());
        }
        assert_eq!(controller.per_min(), 60);
        for _ in 0..40 {
            controller.look(&slow(100));
        }
        for _ in 0..40 {
            controller.look(&Seen::default());
        }
        assert_eq!(controller.per_min(), 60, "from below too");
    }

    #[test]
    fn a_look_is_taken_once_in_a_window_of_injected_time() {
        let (following, settings) = (Following::default(), Settings::default());
        let looks =
            (0..=100).filter(|tenth| following.due(&settings, tenth * 100, || good(100)).is_some());
        assert_eq!(looks.count(), 5, "ten seconds, windows of two");
    }
}
