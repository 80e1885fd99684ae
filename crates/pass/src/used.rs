//! Which single-use texts were used, in bounded memory.
//!
//! A text is remembered until it expires; then its expiry refuses it. When the set is full, the
//! entry that would expire first is dropped, and everything that ends no later is counted as
//! expired from then on. So a flood shortens the life of unused texts, and never lets a used
//! one in again.

use std::collections::BTreeSet;

use crate::live_ticket::LiveRefused;

#[derive(Debug)]
pub(crate) struct Used {
    /// By end, so that the first is the one to drop.
    seen: BTreeSet<(u64, [u8; 16])>,
    max: usize,
    /// Whatever ends at or before this is over.
    over_ms: u64,
}

impl Used {
    pub(crate) fn new(max: usize) -> Self {
        Used { seen: BTreeSet::new(), max: max.max(1), over_ms: 0 }
    }

    pub(crate) fn take(
        &mut self,
        ends_ms: u64,
        random: [u8; 16],
        now_ms: u64,
    ) -> Result<(), LiveRefused> {
        self.over_ms = self.over_ms.max(now_ms);
        while self.seen.first().is_some_and(|(ends, _)| *ends <= self.over_ms) {
            self.seen.pop_first();
        }
        if ends_ms <= self.over_ms {
            return Err(LiveRefused::Expired);
        }
        if !self.seen.insert((ends_ms, random)) {
            return Err(LiveRefused::UsedBefore);
        }
        if self.seen.len() > self.max
            && let Some((ends, _)) = self.seen.pop_first()
        {
            self.over_ms = ends;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(n: u8) -> [u8; 16] {
        [n; 16]
    }

    #[test]
    fn a_text_is_taken_once_and_never_after_its_end() {
        let mut used = Used::new(10);
        assert_eq!(used.take(100, random(1), 50), Ok(()));
        assert_eq!(used.take(100, random(1), 50), Err(LiveRefused::UsedBefore));
        assert_eq!(used.take(100, random(2), 99), Ok(()));
        assert_eq!(used.take(100, random(3), 100), Err(LiveRefused::Expired));
        assert_eq!(used.take(100, random(1), 100), Err(LiveRefused::Expired));
        assert!(used.seen.is_empty(), "what expired is forgotten");
    }

    #[test]
    fn a_clock_that_steps_back_brings_no_used_text_to_life() {
        let mut used = Used::new(10);
        assert_eq!(used.take(100, random(1), 50), Ok(()));
        assert_eq!(used.take(300, random(2), 200), Ok(()));
        assert_eq!(used.take(100, random(1), 60), Err(LiveRefused::Expired));
    }

    #[test]
    fn when_full_the_oldest_end_early_and_no_used_text_comes_back() {
        let mut used = Used::new(3);
        for n in 0..100u8 {
            assert_eq!(used.take(1_000 + u64::from(n), random(n), 0), Ok(()), "{n}");
            assert!(used.seen.len() <= 3);
            for before in 0..=n {
                let again = used.take(1_000 + u64::from(before), random(before), 0);
                assert!(again.is_err(), "{before} came back after {n}");
            }
        }
        assert_eq!(used.take(1_050, random(200), 0), Err(LiveRefused::Expired));
    }
}
