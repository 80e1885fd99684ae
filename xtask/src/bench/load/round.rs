//! What one stretch of load found out, and the best of several.

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

/// The best of several rounds, by each measure: the round that the neighbours disturbed least.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Best {
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

    fn best(&self) -> Best {
        let (requests, all) = (self.requests as f64, self.cpu.iter().sum::<Duration>());
        Best {
            per_second: requests / self.wall.as_secs_f64(),
            per_cpu_second: requests / all.as_secs_f64(),
            per_cpu_second_of_first: requests / self.cpu[0].as_secs_f64(),
            p50: self.p50,
            p99: self.p99,
        }
    }
}

impl Best {
    pub fn of(rounds: &[Round]) -> Self {
        let better = |one: Self, other: Self| Self {
            per_second: one.per_second.max(other.per_second),
            per_cpu_second: one.per_cpu_second.max(other.per_cpu_second),
            per_cpu_second_of_first: one.per_cpu_second_of_first.max(other.per_cpu_second_of_first),
            p50: one.p50.min(other.p50),
            p99: one.p99.min(other.p99),
        };
        rounds.iter().map(Round::best).reduce(better).expect("there is at least one round")
    }
}
