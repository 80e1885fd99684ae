//! The pace. Units: every millisecond brings `rate.count`, every admission costs `rate.per`.

use super::Model;
use waitroom_core::{Settings, Timestamp};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    units: u128,
    as_of: Timestamp,
}

impl Model {
    pub(super) fn tokens(&self, at: Timestamp, settings: &Settings) -> u64 {
        let Some(rate) = settings.rate else { return 0 };
        (self.units(at, settings) / rate.per.0 as u128) as u64
    }

    pub(super) fn take_token(&mut self, at: Timestamp, settings: &Settings) {
        let price = settings.rate.expect("a paced admission has a pace").per.0 as u128;
        let units = self.units(at, settings);
        assert!(units >= price, "nobody is admitted without a token");
        self.bucket = Bucket { units: units - price, as_of: at };
    }

    pub(super) fn return_token(&mut self, at: Timestamp, settings: &Settings) {
        let Some(rate) = settings.rate else { return };
        let units = self.units(at, settings) + rate.per.0 as u128;
        self.bucket = Bucket { units: units.min(most(settings)), as_of: at };
    }

    pub(super) fn empty_bucket(&mut self, at: Timestamp) {
        self.bucket = Bucket { units: 0, as_of: at };
    }

    /// Whole and broken tokens stay, but never more than the new burst.
    pub(super) fn change_pace(&mut self, at: Timestamp, old: &Settings, new: &Settings) {
        let units = match (old.rate, new.rate) {
            (Some(was), Some(is)) => {
                let kept = self.units(at, old) * is.per.0 as u128 / was.per.0 as u128;
                kept.min(most(new))
            }
            _ => 0,
        };
        self.bucket = Bucket { units, as_of: at };
    }

    fn units(&self, at: Timestamp, settings: &Settings) -> u128 {
        let Some(rate) = settings.rate else { return 0 };
        let come = at.since(self.bucket.as_of).0 as u128 * rate.count as u128;
        (self.bucket.units + come).min(most(settings))
    }
}

/// The burst; by default a tick's worth, at least one token.
fn most(settings: &Settings) -> u128 {
    let Some(rate) = settings.rate else { return 0 };
    let token = rate.per.0 as u128;
    match settings.burst {
        Some(burst) => burst as u128 * token,
        None => token.max(settings.tick.0 as u128 * rate.count as u128),
    }
}
