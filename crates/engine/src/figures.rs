//! What a room counts of itself, for operators. Nothing is decided by it.
//!
//! Lives here: [`Figures`], shared by the room's task and whoever reads it, and [`Tally`], what one
//! round adds to it once it is durable: what a crash took back was never counted.
//! Stays out: whatever the board tells already (lengths and totals of all time).

use crate::error::Unanswered;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use waitroom_core::{Ending, Event, What};
use waitroom_watch::{Counter, Histogram, Scale};

/// From a moment to half a day: people wait that long for some sales.
pub const WAIT_SCALE: Scale = Scale {
    bounds: &[
        200, 1_000, 5_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_200_000, 1_800_000,
        3_600_000, 7_200_000, 14_400_000, 43_200_000,
    ],
    per_unit: 1_000,
};

/// From a disk with a cache (50 µs) to one that hangs.
pub const APPEND_SCALE: Scale = Scale {
    bounds: &[
        50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_500, 25_000, 50_000, 100_000, 250_000,
        1_000_000, 5_000_000,
    ],
    per_unit: 1_000_000,
};

/// Events that one append makes durable.
pub const BATCH_SCALE: Scale =
    Scale { bounds: &[1, 2, 4, 8, 16, 64, 256, 1_024, 4_096, 16_384], per_unit: 1 };

/// How far a likely wait was from the real one, as a share of the likely one.
pub const ERROR_SCALE: Scale =
    Scale { bounds: &[20, 50, 100, 200, 300, 500, 750, 1_000, 2_000, 5_000], per_unit: 1_000 };

/// The figures of one room on this instance, since it was opened here.
#[derive(Debug)]
pub struct Figures {
    /// From joining to being admitted, of those who were.
    pub waits: Histogram,
    /// From the close of a round until it is durable.
    pub append: Histogram,
    pub batch: Histogram,
    endings: [Counter; Ending::ALL.len()],
    /// Times the room was lost (an append failed, a panic) and had to be rebuilt.
    pub failures: Counter,
    unanswered: [Counter; UNANSWERED.len()],
    open: AtomicBool,
    /// Why it is not open; empty while it is.
    trouble: Mutex<String>,
}

/// Why commands got no reply, in the order of the counters.
pub const UNANSWERED: [&str; 5] =
    ["overloaded", "unavailable", "outcome_unknown", "not_owner", "stopping"];

impl Default for Figures {
    fn default() -> Figures {
        Figures {
            waits: Histogram::new(&WAIT_SCALE),
            append: Histogram::new(&APPEND_SCALE),
            batch: Histogram::new(&BATCH_SCALE),
            endings: Default::default(),
            failures: Counter::default(),
            unanswered: Default::default(),
            open: AtomicBool::new(false),
            trouble: Mutex::default(),
        }
    }
}

impl Figures {
    /// Tickets that ended so.
    pub fn endings(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Ending::ALL.into_iter().zip(&self.endings).map(|(it, count)| (ending_word(it), count.get()))
    }

    /// Commands that got no reply, by the reason.
    pub fn unanswered(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        UNANSWERED.into_iter().zip(&self.unanswered).map(|(word, count)| (word, count.get()))
    }

    /// Why the room cannot write now; none while it can.
    pub fn trouble(&self) -> Option<String> {
        if self.open.load(Ordering::Acquire) {
            return None;
        }
        Some(self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    pub(crate) fn opened(&self) {
        self.open.store(true, Ordering::Release);
    }

    pub(crate) fn lost(&self, why: &str) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = why.to_owned();
        self.open.store(false, Ordering::Release);
    }

    pub(crate) fn missed(&self, unanswered: &Unanswered) {
        let at = match unanswered {
            Unanswered::Overloaded => 0,
            Unanswered::Unavailable { .. } => 1,
            Unanswered::OutcomeUnknown { .. } => 2,
            Unanswered::NotOwner { .. } => 3,
            Unanswered::Stopping => 4,
        };
        self.unanswered[at].one();
    }

    pub(crate) fn durable(&self, tally: &Tally) {
        if !tally.any {
            return;
        }
        self.waits.add(&tally.waits, tally.waited_ms);
        for (counter, count) in self.endings.iter().zip(&tally.endings) {
            if *count > 0 {
                counter.add(u64::from(*count));
            }
        }
    }
}

/// What a round holds, counted while it is decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    waits: [u32; WAIT_SCALE.len()],
    waited_ms: u64,
    endings: [u32; Ending::ALL.len()],
    any: bool,
}

impl Tally {
    #[inline]
    pub(crate) fn note(&mut self, event: &Event) {
        match &event.what {
            What::Admitted { joined_at, .. } => {
                let waited_ms = event.at.since(*joined_at).0;
                self.waits[WAIT_SCALE.bucket(waited_ms)] += 1;
                self.waited_ms += waited_ms;
                self.any = true;
            }
            What::Ended { ending, .. } => {
                self.endings[*ending as usize - 1] += 1;
                self.any = true;
            }
            _ => {}
        }
    }
}

/// The word of an ending, in figures and reports.
pub fn ending_word(ending: Ending) -> &'static str {
    match ending {
        Ending::Completed => "completed",
        Ending::Left => "left",
        Ending::Silent => "silent",
        Ending::TooOld => "too_old",
        Ending::NoShow => "no_show",
        Ending::SessionOver => "session_over",
        Ending::CheckoutFailed => "checkout_failed",
        Ending::CheckoutExpired => "checkout_expired",
        Ending::Revoked => "revoked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_has_its_counter() {
        for (at, ending) in Ending::ALL.into_iter().enumerate() {
            assert_eq!(ending as usize - 1, at, "{ending:?}");
        }
    }

    #[test]
    fn a_room_that_was_lost_says_why_until_it_is_open_again() {
        let figures = Figures::default();
        assert_eq!(figures.trouble().as_deref(), Some(""), "not opened yet");
        figures.opened();
        assert_eq!(figures.trouble(), None);
        figures.lost("no space left on device");
        assert_eq!(figures.trouble().as_deref(), Some("no space left on device"));
        figures.opened();
        assert_eq!(figures.trouble(), None);
    }
}
