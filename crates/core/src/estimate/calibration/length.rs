//! Classes of length: two doublings of the wait each, from one tick up to days.
//! Lives here: the arithmetic. Stays out: what is kept per class.

pub(super) const LENGTHS: usize = 11;
const OCTAVES: f64 = 2.0;

#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    pub tick_ms: f64,
}

impl Lengths {
    pub fn class(self, wait_ms: f64) -> usize {
        (self.exact(wait_ms) as usize).min(LENGTHS - 1)
    }

    /// The class whose middle lies below, and how far towards the next middle.
    pub fn between(self, wait_ms: f64) -> (usize, f64) {
        let at = (self.exact(wait_ms) - 0.5).clamp(0.0, (LENGTHS - 1) as f64);
        (at as usize, at.fract())
    }

    pub fn middle_ms(self, class: usize) -> f64 {
        self.tick_ms * ((class as f64 + 0.5) * OCTAVES).exp2()
    }

    fn exact(self, wait_ms: f64) -> f64 {
        (wait_ms / self.tick_ms).max(1.0).log2() / OCTAVES
    }
}
