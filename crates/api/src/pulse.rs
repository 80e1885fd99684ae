//! How a room's commands fare on their way to the disk: how long they take, as a running mean, and
//! whether the store takes them at all.
//!
//! The mean is one number in one atomic: a reader gets a value of some moment, and of two writers at once one
//! may be lost. For a dashboard that is exact enough, and a command pays a load and a store.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Each command weighs a sixteenth: a slow disk shows within a second, one slow answer does not.
const WEIGHT: u64 = 16;

#[derive(Debug, Default)]
pub struct Pulse {
    mean_ns: AtomicU64,
    failing: AtomicBool,
    /// Why the store did not take the last command, for operators; empty while it does.
    why: Mutex<String>,
}

impl Pulse {
    pub fn note(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX / WEIGHT);
        let mean = self.mean_ns.load(Ordering::Relaxed);
        let next = if mean == 0 { took } else { mean - mean / WEIGHT + took / WEIGHT };
        self.mean_ns.store(next, Ordering::Relaxed);
    }

    /// The store did not take a command. Says whether that is new.
    pub fn fails(&self, why: &str) -> bool {
        let mut known = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        why.clone_into(&mut known);
        !self.failing.swap(true, Ordering::Relaxed)
    }

    /// The store took a command. Says whether it had not before.
    pub fn works(&self) -> bool {
        self.failing.load(Ordering::Relaxed) && self.failing.swap(false, Ordering::Relaxed)
    }

    /// Why nothing can be written right now, if so.
    pub fn trouble(&self) -> Option<String> {
        let failing = self.failing.load(Ordering::Relaxed);
        failing.then(|| self.why.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// In milliseconds, to the microsecond; none before the first command.
    pub fn mean_ms(&self) -> Option<f64> {
        let mean = self.mean_ns.load(Ordering::Relaxed);
        (mean > 0).then(|| (mean / 1_000) as f64 / 1_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_disk_shows_and_one_slow_answer_does_not() {
        let pulse = Pulse::default();
        assert_eq!(pulse.mean_ms(), None);
        (0..100).for_each(|_| pulse.note(Duration::from_millis(1)));
        assert_eq!(pulse.mean_ms(), Some(1.0));
        pulse.note(Duration::from_millis(10));
        assert!(pulse.mean_ms().is_some_and(|mean| mean < 2.0));
        (0..100).for_each(|_| pulse.note(Duration::from_millis(10)));
        assert!(pulse.mean_ms().is_some_and(|mean| mean > 9.0));
    }

    #[test]
    fn trouble_is_told_once_when_it_begins_and_once_when_it_ends() {
        let pulse = Pulse::default();
        assert!(!pulse.works());
        assert!(pulse.fails("no space") && !pulse.fails("still no space"));
        assert_eq!(pulse.trouble().as_deref(), Some("still no space"));
        assert!(pulse.works() && !pulse.works());
        assert_eq!(pulse.trouble(), None);
    }
}
