//! The two things a store takes from outside: time and chance.
//!
//! Lives here: [`Clock`] and [`Entropy`], the real ones and those of the simulator. Both are
//! given to a store when it is made, so that a whole run repeats from one seed.
//! Stays out: the disk, which has its own seam in [`crate::disk`].

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Instant, SystemTime, UNIX_EPOCH},
};

/// Time as the store sees it.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since some fixed moment; never goes back. Leases and memberships run on it.
    fn now_ms(&self) -> u64;
    /// Milliseconds since 1970, for people. May jump; only retention by age looks at it.
    fn wall_ms(&self) -> u64;
}

/// Random bytes as the store needs them, for lease nonces.
pub trait Entropy: Send + Sync + 'static {
    fn next_u128(&self) -> u128;
}

/// Time and chance together: every store is made with one of these.
#[derive(Clone)]
pub struct Seams {
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
}

impl Seams {
    /// The machine's own clock and randomness.
    pub fn real() -> Seams {
        Seams { clock: Arc::new(MachineClock::new()), entropy: Arc::new(OsEntropy) }
    }

    /// A given clock, and nonces that follow from `seed`.
    pub fn seeded(clock: Arc<dyn Clock>, seed: u64) -> Seams {
        Seams { clock, entropy: Arc::new(SeededEntropy(Mutex::new(seed))) }
    }
}

impl fmt::Debug for Seams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seams at {} ms", self.clock.now_ms())
    }
}

/// The machine's monotonic clock, and its wall clock for people.
#[derive(Debug)]
pub struct MachineClock(Instant);

impl MachineClock {
    pub fn new() -> MachineClock {
        MachineClock(Instant::now())
    }
}

impl Default for MachineClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MachineClock {
    fn now_ms(&self) -> u64 {
        self.0.elapsed().as_millis() as u64
    }

    fn wall_ms(&self) -> u64 {
        // A machine set before 1970 gets 0: a wrong date must not stop a sale.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    pub fn at(ms: u64) -> Arc<ManualClock> {
        Arc::new(ManualClock(AtomicU64::new(ms)))
    }

    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn wall_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// The operating system's randomness.
#[derive(Debug)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    fn next_u128(&self) -> u128 {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the operating system always has randomness to give");
        u128::from_le_bytes(bytes)
    }
}

/// The same numbers again for the same seed. For tests and the simulator only.
#[derive(Debug)]
struct SeededEntropy(Mutex<u64>);

impl Entropy for SeededEntropy {
    fn next_u128(&self) -> u128 {
        let mut state = self.0.lock().expect("nobody panics while holding it");
        (u128::from(splitmix(&mut state)) << 64) | u128::from(splitmix(&mut state))
    }
}

/// One step of SplitMix64: enough to tell nonces and simulated faults apart, no secret.
pub(crate) fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
