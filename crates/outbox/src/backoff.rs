//! How long to wait before another try.
//!
//! Doubles from `first` to `most`; each wait is drawn between half and all of it, so that many
//! relays of one dead bus do not come back in step.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    tries: u32,
    seed: u64,
}

impl Backoff {
    pub fn new(first: Duration, most: Duration, seed: u64) -> Backoff {
        Backoff { first, most, tries: 0, seed }
    }

    /// It worked: the next trouble begins anew.
    pub fn reset(&mut self) {
        self.tries = 0;
    }

    /// How often it has failed in a row.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    pub fn wait(&mut self) -> Duration {
        let doubled = self.first.saturating_mul(1 << self.tries.min(20));
        self.tries = self.tries.saturating_add(1);
        let whole = doubled.min(self.most);
        // SplitMix64: spread is all that is asked of it.
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let share = ((mixed ^ (mixed >> 31)) % 1_001) as u32;
        whole / 2 + whole / 2 * share / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_most_and_begin_anew_after_a_success() {
        let (first, most) = (Duration::from_millis(100), Duration::from_secs(10));
        for seed in 0..50 {
            let mut backoff = Backoff::new(first, most, seed);
            for tried in 0..40 {
                let whole = first.saturating_mul(1 << tried.min(20)).min(most);
                let wait = backoff.wait();
                assert!(wait >= whole / 2 && wait <= whole, "{tried}: {wait:?} of {whole:?}");
            }
            backoff.reset();
            assert!(backoff.wait() <= first);
        }
    }

    #[test]
    fn two_relays_do_not_wait_in_step() {
        let wait = |seed| Backoff::new(Duration::from_secs(1), Duration::from_secs(1), seed).wait();
        let waits: std::collections::BTreeSet<_> = (0..100).map(wait).collect();
        assert!(waits.len() > 50, "{}", waits.len());
    }
}
