//! How many requests had which verdict, so that no bypass goes unseen.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::verdict::{Bypass, Verdict};

/// Counters of one site, read by metrics and by the console.
#[derive(Debug, Default)]
pub struct Counts {
    pub passed: AtomicU64,
    pub waited: AtomicU64,
    pub refused: AtomicU64,
    /// By [`Bypass`], in its order.
    pub bypassed: [AtomicU64; Bypass::ALL.len()],
    /// Signatures that were looked at; the rest of `passed` was known by cookie.
    pub signatures: AtomicU64,
    /// Requests that the origin was asked, how many of them ended badly (no answer, or one of
    /// 500 and above), and how long all of them took to begin.
    pub origin_asked: AtomicU64,
    pub origin_bad: AtomicU64,
    pub origin_ms: AtomicU64,
    pub origin_failed: AtomicU64,
    pub origin_busy: AtomicU64,
    pub retried: AtomicU64,
    pub tunnels: AtomicU64,
    pub sessions_ended_by_origin: AtomicU64,
    pub renewed: AtomicU64,
}

impl Counts {
    pub fn note(&self, verdict: &Verdict) {
        one_more(match verdict {
            Verdict::Pass(_) => &self.passed,
            Verdict::Wait(_) => &self.waited,
            Verdict::Refuse(_) => &self.refused,
            Verdict::Bypass(why) => &self.bypassed[*why as usize],
        });
    }

    /// What came of asking the origin.
    pub fn origin(&self, ms: u64, fine: bool) {
        one_more(&self.origin_asked);
        if !fine {
            one_more(&self.origin_bad);
        }
        self.origin_ms.fetch_add(ms, Relaxed);
    }

    /// All of them by name.
    pub fn now(&self) -> Vec<(&'static str, u64)> {
        let mut all = vec![
            ("passed", self.passed.load(Relaxed)),
            ("waited", self.waited.load(Relaxed)),
            ("refused", self.refused.load(Relaxed)),
            ("signatures", self.signatures.load(Relaxed)),
            ("origin_asked", self.origin_asked.load(Relaxed)),
            ("origin_bad", self.origin_bad.load(Relaxed)),
            ("origin_ms", self.origin_ms.load(Relaxed)),
            ("origin_failed", self.origin_failed.load(Relaxed)),
            ("origin_busy", self.origin_busy.load(Relaxed)),
            ("retried", self.retried.load(Relaxed)),
            ("tunnels", self.tunnels.load(Relaxed)),
            ("sessions_ended_by_origin", self.sessions_ended_by_origin.load(Relaxed)),
            ("renewed", self.renewed.load(Relaxed)),
        ];
        let bypassed = Bypass::ALL.iter().zip(&self.bypassed);
        all.extend(bypassed.map(|(why, count)| (why.word(), count.load(Relaxed))));
        all
    }
}

pub fn one_more(count: &AtomicU64) {
    count.fetch_add(1, Relaxed);
}
