//! How long people waited: exact counts per tick, so that percentiles are exact too.
//! Lives here: the histogram. Stays out: what counts as waiting.

use super::outcome::Waits;

#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    /// How many waited so many ticks.
    ticks: Vec<u64>,
    count: u64,
    sum: u64,
}

impl Histogram {
    pub fn add(&mut self, ticks: u64) {
        let at = ticks as usize;
        if at >= self.ticks.len() {
            self.ticks.resize((at + 1).max(self.ticks.len() * 2), 0);
        }
        self.ticks[at] += 1;
        self.count += 1;
        self.sum += ticks;
    }

    /// The smallest wait that at least the share `p` did not exceed.
    pub fn percentile(&self, p: f64) -> u64 {
        let rank = ((p * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (ticks, n) in self.ticks.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return ticks as u64;
            }
        }
        0
    }

    pub fn waits(&self, tick_ms: u64) -> Waits {
        let at = |p| self.percentile(p) * tick_ms;
        Waits {
            people: self.count,
            mean_ms: (self.sum * tick_ms).checked_div(self.count).unwrap_or(0),
            p10_ms: at(0.10),
            p25_ms: at(0.25),
            p50_ms: at(0.50),
            p75_ms: at(0.75),
            p90_ms: at(0.90),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            max_ms: at(1.0),
        }
    }
}
