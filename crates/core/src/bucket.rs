//! The pace: a token bucket in whole numbers.
//!
//! Lives here: how many paced admissions a room may make now, and when it may make the next.
//! The level counts in units of which `rate.count` arrive per millisecond and one admission
//! costs `rate.per` milliseconds' worth, so no rate is ever rounded.
//! Promise 5 rests on this file: in every window, paced admissions minus returned ones are at
//! most rate × window + burst.

use crate::settings::{Rate, Settings};
use crate::units::{Millis, Timestamp};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) level: u64,
    /// The moment at which `level` was true.
    pub(crate) at: Timestamp,
}

impl Bucket {
    /// What the bucket holds at `at`, in units.
    pub(crate) fn level_at(&self, at: Timestamp, settings: &Settings) -> u64 {
        let Some(rate) = settings.rate else { return 0 };
        let arrived = (at.since(self.at).0 as u128) * rate.count as u128;
        (self.level as u128 + arrived).min(capacity(rate, settings) as u128) as u64
    }

    /// Whole admissions that may be made at `at`.
    pub(crate) fn tokens(&self, at: Timestamp, settings: &Settings) -> u64 {
        settings.rate.map_or(0, |rate| self.level_at(at, settings) / rate.per.0)
    }

    pub(crate) fn settle(&mut self, at: Timestamp, settings: &Settings) {
        self.level = self.level_at(at, settings);
        self.at = at;
    }

    pub(crate) fn take_one(&mut self, at: Timestamp, settings: &Settings) {
        self.settle(at, settings);
        let cost = settings.rate.map_or(0, |rate| rate.per.0);
        self.level = self.level.checked_sub(cost).expect("decide took a token that was there");
    }

    pub(crate) fn give_back(&mut self, at: Timestamp, settings: &Settings) {
        self.settle(at, settings);
        if let Some(rate) = settings.rate {
            self.level = (self.level + rate.per.0).min(capacity(rate, settings));
        }
    }

    /// A live change keeps what was saved up, but never more than the new burst. The level is
    /// carried over in whole and broken tokens of the new rate.
    pub(crate) fn change(&mut self, at: Timestamp, old: &Settings, new: &Settings) {
        self.settle(at, old);
        self.level = match (old.rate, new.rate) {
            (Some(was), Some(is)) => {
                let carried = self.level as u128 * is.per.0 as u128 / was.per.0 as u128;
                carried.min(capacity(is, new) as u128) as u64
            }
            _ => 0,
        };
    }

    /// When the next look at the bucket is worth it: at one token, or at half a tick's worth where
    /// that is more. Half, so that a late tick of up to half a tick loses nothing to the cap.
    pub(crate) fn ready_at(&self, at: Timestamp, settings: &Settings) -> Option<Timestamp> {
        let rate = settings.rate?;
        let half_tick = settings.tick.0 / 2 * rate.count as u64;
        let wanted = rate.per.0.max(half_tick).min(capacity(rate, settings));
        let missing = wanted.saturating_sub(self.level_at(at, settings));
        Some(at.after(Millis(missing.div_ceil(rate.count as u64))))
    }
}

/// The most the bucket holds: the burst, or one tick's worth, at least one token.
fn capacity(rate: Rate, settings: &Settings) -> u64 {
    match settings.burst {
        Some(burst) => burst as u64 * rate.per.0,
        None => rate.per.0.max(rate.count as u64 * settings.tick.0),
    }
}
