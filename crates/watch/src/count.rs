//! Counters and histograms: relaxed atomics, no lock, no allocation after they are made.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Goes up and never down.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub const fn new() -> Counter {
        Counter(AtomicU64::new(0))
    }

    pub fn one(&self) {
        self.add(1);
    }

    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The buckets of a histogram, in the small unit in which values are noted; `per_unit` of them make
/// one base unit, in which they are told: 1,000,000 for microseconds told as seconds.
#[derive(Debug, PartialEq, Eq)]
pub struct Scale {
    pub bounds: &'static [u64],
    pub per_unit: u64,
}

/// How values are spread over the buckets of a scale.
#[derive(Debug)]
pub struct Histogram {
    scale: &'static Scale,
    /// One more than there are bounds: the last holds what is beyond them all.
    buckets: Box<[AtomicU64]>,
    sum: AtomicU64,
}

/// A histogram at one moment, or one that somebody counted alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub scale: &'static Scale,
    pub buckets: Vec<u64>,
    pub sum: u64,
}

impl Scale {
    /// The bucket that a value belongs in: the first whose bound it does not exceed.
    pub fn bucket(&self, value: u64) -> usize {
        self.bounds.partition_point(|bound| *bound < value)
    }

    /// How many buckets there are.
    pub const fn len(&self) -> usize {
        self.bounds.len() + 1
    }

    pub const fn is_empty(&self) -> bool {
        self.bounds.is_empty()
    }
}

impl Histogram {
    pub fn new(scale: &'static Scale) -> Histogram {
        let buckets = (0..scale.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { scale, buckets, sum: AtomicU64::new(0) }
    }

    /// Notes one value, in the small unit of the scale.
    pub fn note(&self, value: u64) {
        self.buckets[self.scale.bucket(value)].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    /// Adds what somebody counted alone: so many in each bucket, and their sum.
    pub fn add(&self, buckets: &[u32], sum: u64) {
        for (bucket, count) in self.buckets.iter().zip(buckets).filter(|(_, count)| **count > 0) {
            bucket.fetch_add(u64::from(*count), Relaxed);
        }
        self.sum.fetch_add(sum, Relaxed);
    }

    pub fn now(&self) -> Picture {
        Picture {
            scale: self.scale,
            buckets: self.buckets.iter().map(|bucket| bucket.load(Relaxed)).collect(),
            sum: self.sum.load(Relaxed),
        }
    }
}

impl Picture {
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale { bounds: &[10, 100], per_unit: 10 };

    #[test]
    fn a_value_on_a_bound_belongs_below_it() {
        let histogram = Histogram::new(&SCALE);
        for value in [0, 10, 11, 100, 101, 5_000] {
            histogram.note(value);
        }
        let picture = histogram.now();
        assert_eq!((picture.buckets, picture.sum), (vec![2, 2, 2], 5_222));
    }

    #[test]
    fn what_was_counted_alone_is_added_as_if_it_had_been_noted() {
        let (one, other) = (Histogram::new(&SCALE), Histogram::new(&SCALE));
        for value in [3, 40, 41, 4_000] {
            one.note(value);
        }
        other.add(&[1, 2, 1], 4_084);
        assert_eq!(one.now(), other.now());
        assert_eq!(one.now().count(), 4);
    }
}
