//! Whether a room can be asked, and what a site does while it cannot.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What the last attempts to ask the room came to.
#[derive(Debug, Default)]
pub struct Reach {
    away: AtomicBool,
}

impl Reach {
    pub fn is_away(&self) -> bool {
        self.away.load(Relaxed)
    }

    /// Says whether this is news.
    pub fn note(&self, answered: bool) -> bool {
        self.away.swap(!answered, Relaxed) == answered
    }
}

/// A hard cap on how many a second come in without a pass: a second's worth at most, also after
/// a quiet hour, and none saved up. Time is an argument, in milliseconds of a steady clock.
#[derive(Debug, Default)]
pub struct Cap {
    /// The second that is counted, and how many came in it: 40 and 24 bits.
    window: AtomicU64,
}

const COUNT_BITS: u32 = 24;

impl Cap {
    /// Whether one more may come in now.
    pub fn take(&self, now_ms: u64, per_s: u32) -> bool {
        let second = now_ms / 1_000;
        let most = u64::from(per_s).min((1 << COUNT_BITS) - 1);
        let next = |window: u64| {
            let (counted, count) = (window >> COUNT_BITS, window & ((1 << COUNT_BITS) - 1));
            let count = if counted == second { count } else { 0 };
            (count < most).then(|| second << COUNT_BITS | (count + 1))
        };
        self.window.fetch_update(Relaxed, Relaxed, next).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_is_hard_in_every_second_and_nothing_is_saved_up() {
        let cap = Cap::default();
        let came = |from_ms: u64| (0..50).filter(|i| cap.take(from_ms + i, 10)).count();
        assert_eq!(came(5_000), 10);
        assert_eq!(came(5_500), 0, "the same second");
        assert_eq!(came(3_600_000), 10, "an hour later it is still ten");
        assert!(!Cap::default().take(1_000, 0), "none is none");
    }

    #[test]
    fn only_a_change_is_news() {
        let reach = Reach::default();
        assert!(!reach.is_away());
        assert!(!reach.note(true));
        assert!(reach.note(false));
        assert!(!reach.note(false));
        assert!(reach.is_away());
        assert!(reach.note(true));
    }
}
