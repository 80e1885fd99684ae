//! Chance from a seed: the same seed makes the same people.
//!
//! SplitMix64: one word of state, so ten thousand visitors have ten thousand of them.

#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A stream of its own for each visitor, whatever the others do.
    pub fn of(seed: u64, who: u64) -> Rng {
        let mut mixed = Rng(seed ^ who.wrapping_mul(0xd1342543de82ef95));
        Rng(mixed.next() ^ who)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e3779b97f4a7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
        z ^ (z >> 31)
    }

    /// From 0 to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// Below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// How long something takes that may end at any moment, with this mean.
    pub fn around(&mut self, mean_ms: u64) -> u64 {
        let waits = -(1.0 - self.unit()).ln();
        // Five times the mean is rare enough to cut, so that a run has an end.
        (mean_ms as f64 * waits.min(5.0)) as u64
    }
}
