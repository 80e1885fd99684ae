//! What happened so far, in numbers: people by stage, calls by kind with their latencies.
//!
//! Every visitor writes here, so counters are atomic and each kind of call has a histogram of its
//! own behind a lock that is held for nanoseconds.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hdrhistogram::Histogram;

/// Latencies in microseconds, from one to a minute, three digits exact.
const MOST_US: u64 = 60_000_000;

/// The first surprises are told, the rest counted.
const SURPRISES_KEPT: usize = 20;

/// Calls that are meant to take their time; they say nothing about how fast the server is.
pub const LONG_POLL: &str = "long_poll";

/// Where a visitor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Outside,
    Waiting,
    Inside,
}

/// What became of a visitor, in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Completed,
    Left,
    Silent,
    /// The room ended the ticket: expired, closed, revoked.
    Ended,
    /// Still waiting or inside when the run ended.
    Unfinished,
    /// Never got a place.
    Refused,
}

#[derive(Debug, Default)]
pub struct Tally {
    pub arrived: AtomicU64,
    pub joined: AtomicU64,
    pub admitted: AtomicU64,
    pub waiting: AtomicI64,
    pub inside: AtomicI64,
    pub fates: [AtomicU64; 6],
    pub forgeries: AtomicU64,
    pub boards: AtomicU64,
    pub frames: AtomicU64,
    pub reconnects: AtomicU64,
    /// Calls that never left: the server could not be reached.
    pub unreachable: AtomicU64,
    pub lost: AtomicU64,
    pub calls: AtomicU64,
    kinds: Mutex<BTreeMap<&'static str, Kind>>,
    /// From the answer to the join until the turn was heard of, in milliseconds.
    waits: Mutex<Option<Histogram<u64>>>,
    /// Of the current second.
    second: Mutex<Option<Histogram<u64>>>,
    problems: Mutex<BTreeMap<String, u64>>,
    surprises: Mutex<Surprises>,
}

/// Answers in which something was not as it should be.
#[derive(Clone, Debug, Default)]
pub struct Surprises {
    pub count: u64,
    pub first: Vec<String>,
}

#[derive(Debug)]
pub struct Kind {
    pub fine: u64,
    pub refused: u64,
    pub lost: u64,
    pub latency: Histogram<u64>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Fine,
    Refused,
    Lost,
}

impl End {
    pub fn of(fine: bool) -> End {
        if fine { End::Fine } else { End::Refused }
    }
}

impl Tally {
    pub fn call(&self, name: &'static str, end: End, ns: u64) {
        let us = (ns / 1_000).clamp(1, MOST_US);
        self.calls.fetch_add(1, Ordering::Relaxed);
        if end == End::Lost {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        let mut kinds = lock(&self.kinds);
        let kind = kinds.entry(name).or_insert_with(|| Kind {
            fine: 0,
            refused: 0,
            lost: 0,
            latency: histogram(),
        });
        match end {
            End::Fine => kind.fine += 1,
            End::Refused => kind.refused += 1,
            End::Lost => kind.lost += 1,
        }
        // How long nothing came says nothing about answers.
        if end != End::Lost {
            kind.latency.saturating_record(us);
            drop(kinds);
            if name != LONG_POLL {
                lock(&self.second).get_or_insert_with(histogram).saturating_record(us);
            }
        }
    }

    /// Somebody heard of their turn.
    pub fn waited(&self, ms: u64) {
        // The bound of the histogram is sixteen hours in milliseconds.
        lock(&self.waits).get_or_insert_with(histogram).saturating_record(ms.max(1));
    }

    /// How long people waited who were let in, in milliseconds: at these quantiles.
    pub fn waits(&self, quantiles: [f64; 3]) -> Option<[u64; 3]> {
        let waits = lock(&self.waits);
        waits.as_ref().map(|waits| quantiles.map(|it| waits.value_at_quantile(it)))
    }

    pub fn problem(&self, code: &str) {
        *lock(&self.problems).entry(code.to_owned()).or_default() += 1;
    }

    pub fn surprise(&self, said: impl Into<String>) {
        let mut surprises = lock(&self.surprises);
        surprises.count += 1;
        if surprises.first.len() < SURPRISES_KEPT {
            surprises.first.push(said.into());
        }
    }

    pub fn step(&self, from: Stage, to: Stage) {
        let gauge = |stage: Stage| match stage {
            Stage::Outside => None,
            Stage::Waiting => Some(&self.waiting),
            Stage::Inside => Some(&self.inside),
        };
        gauge(from).inspect(|it| {
            it.fetch_sub(1, Ordering::Relaxed);
        });
        gauge(to).inspect(|it| {
            it.fetch_add(1, Ordering::Relaxed);
        });
        if to == Stage::Inside && from != Stage::Inside {
            self.admitted.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn fate(&self, fate: Fate) {
        self.fates[fate as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn fated(&self, fate: Fate) -> u64 {
        self.fates[fate as usize].load(Ordering::Relaxed)
    }

    /// The latencies of the second that ends now: p50 and p99 in microseconds.
    pub fn end_second(&self) -> Option<(u64, u64)> {
        let second = lock(&self.second).take()?;
        Some((second.value_at_quantile(0.5), second.value_at_quantile(0.99)))
    }

    pub fn kinds(&self) -> MutexGuard<'_, BTreeMap<&'static str, Kind>> {
        lock(&self.kinds)
    }

    pub fn problems(&self) -> BTreeMap<String, u64> {
        lock(&self.problems).clone()
    }

    pub fn surprises(&self) -> Surprises {
        lock(&self.surprises).clone()
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MOST_US, 3).expect("the bounds are constants and fit")
}

/// Whoever panicked while counting left numbers behind that are still numbers.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
