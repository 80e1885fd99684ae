//! Chance that can be repeated: one seed, one history.
//!
//! Lives here: a small generator (xoshiro256++, seeded through splitmix64) and the few
//! distributions the simulator draws from. Stays out: entropy of any kind.

/// A generator of pseudo-random numbers. Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
    /// The second of the pair of normals that one draw yields.
    spare_normal: Option<f64>,
}

impl Rng {
    pub fn new(seed: u64) -> Self {
        let mut mix = seed;
        let state = std::array::from_fn(|_| splitmix(&mut mix));
        Rng { state, spare_normal: None }
    }

    /// A generator of its own for one purpose, so that one more draw here shifts nothing there.
    pub fn fork(&mut self) -> Self {
        Rng::new(self.next_u64())
    }

    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    pub fn bytes16(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.next_u64().to_be_bytes());
        bytes[8..].copy_from_slice(&self.next_u64().to_be_bytes());
        bytes
    }

    /// Uniform in (0, 1]: never zero, so a logarithm of it is finite.
    pub fn unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in 0..n.
    pub fn below(&mut self, n: u64) -> u64 {
        // The bias of the wide multiplication is below n / 2^64: invisible in any simulation.
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.unit() <= p
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }

    /// Standard normal.
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare_normal.take() {
            return spare;
        }
        let radius = (2.0 * self.exponential()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.unit()).sin_cos();
        self.spare_normal = Some(radius * sin);
        radius * cos
    }

    /// How many of `n` succeed with probability `p` each. Exact for few successes, rounded normal
    /// beyond, where nobody could tell the two apart.
    pub fn binomial(&mut self, n: u64, p: f64) -> u64 {
        if n == 0 || p <= 0.0 {
            return 0;
        }
        if p >= 1.0 {
            return n;
        }
        let mean = n as f64 * p;
        let spread = mean * (1.0 - p);
        if spread > 100.0 {
            let drawn = (mean + spread.sqrt() * self.normal()).round();
            return drawn.clamp(0.0, n as f64) as u64;
        }
        if p > 0.5 {
            return n - self.binomial(n, 1.0 - p);
        }
        // Jump from success to success.
        let (mut successes, mut at) = (0, 0.0);
        let log_fail = (-p).ln_1p();
        loop {
            at += (self.unit().ln() / log_fail).floor() + 1.0;
            if at > n as f64 {
                return successes;
            }
            successes += 1;
        }
    }
}

fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
