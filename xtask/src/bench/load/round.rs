//! What one stretch of load found out, and the middle of several.

use std::time::Duration;

use super::super::disk::percentile_index;

/// One measured stretch against one server.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    pub requests: u64,
    pub wall: Duration,
    /// CPU time of each process that had to do with serving, in the order they were given.
    pub cpu: Vec<Duration>,
    pub p50: Duration,
    pub p99: Duration,
}

/// The middle of several rounds, by each measure. Not the best: whoever is lucky once would win.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Typical {
    pub per_second: f64,
    /// Per CPU second of all processes that served.
    pub per_cpu_second: f64,
    /// Per CPU second of the first of them alone.
    pub per_cpu_second_of_first: f64,
    pub p50: Duration,
    pub p99: Duration,
}

impl Round {
    /// From the latencies in nanoseconds, which it puts in order.
    pub fn of(latencies: &mut [u32], wall: Duration, cpu: Vec<Duration>) -> Self {
        latencies.sort_unstable();
        let sorted = &*latencies;
        let at = |percent| match sorted {
            [] => Duration::ZERO,
            all => Duration::from_nanos(u64::from(all[percentile_index(all.len(), percent)])),
        };
        Self { requests: sorted.len() as u64, wall, cpu, p50: at(50), p99: at(99) }
    }

    fn typical(&self) -> Typical {
        let (requests, all) = (self.requests as f64, self.cpu.iter().sum::<Duration>());
        Typical {
            per_second: requests / self.wall.as_secs_f64(),
            per_cpu_second: requests / all.as_secs_f64(),
            per_cpu_second_of_first: requests / self.cpu[0].as_secs_f64(),
            p50: self.p50,
            p99: self.p99,
        }
    }
}

impl Typical {
    pub fn of(rounds: &[Round]) -> Self {
        let all: Vec<Self> = rounds.iter().map(Round::typical).collect();
        let rate = |of: fn(&Self) -> f64| {
            let mut rates: Vec<f64> = all.iter().map(of).collect();
            rates.sort_unstable_by(f64::total_cmp);
            rates[rates.len() / 2]
        };
        let time = |of: fn(&Self) -> Duration| {
            let mut times: Vec<Duration> = all.iter().map(of).collect();
            times.sort_unstable();
            times[times.len() / 2]
        };
        Self {
            per_second: rate(|it| it.per_second),
            per_cpu_second: rate(|it| it.per_cpu_second),
            per_cpu_second_of_first: rate(|it| it.per_cpu_second_of_first),
            p50: time(|it| it.p50),
            p99: time(|it| it.p99),
        }
    }
}
