//! What is to be rehearsed: the sale as its operator imagines it.
//!
//! Lives here: the numbers of a sale, their bounds, and what a wrong one is told.
//! Stays out: how the numbers were typed (the command line) and what becomes of them.

use std::fmt;

/// More tickets than this do not fit the driver's 28 bits per lane, returns included.
pub const VISITORS_MAX: u64 = 100_000_000;
/// Lane numbers are kept in four bits.
pub const LANES_MAX: usize = 16;
/// No sale is rehearsed beyond this much virtual time.
pub const LENGTH_MS_MAX: u64 = 7 * 24 * 3_600_000;

/// A whole sale.
#[derive(Clone, Debug)]
pub struct Plan {
    pub visitors: u64,
    pub shape: Shape,
    /// How long people keep arriving. A CSV brings its own length.
    pub over_ms: u64,
    /// Admissions per second; none means that only the slots limit.
    pub rate_per_s: Option<u64>,
    /// How many may be inside (`max_active`).
    pub capacity: u64,
    pub tick_ms: u64,
    pub lanes: Vec<Lane>,
    pub patience: Patience,
    /// Share of those giving up who press "leave"; the others fall silent and lapse later.
    pub leaves_openly: f64,
    pub heartbeat_timeout_ms: u64,
    /// Share of admitted visitors who never come to claim.
    pub no_show: f64,
    /// How long an admitted visitor may take to claim.
    pub hold_ms: u64,
    /// How long visitors take to react to "it is your turn", in the middle.
    pub reaction_ms: u64,
    /// How long they stay inside, in the middle, and how unequal they are in that.
    pub session_ms: u64,
    pub session_spread: f64,
    /// Share of those who gave up that comes back, and after how long on average.
    pub come_back: f64,
    pub come_back_after_ms: u64,
    pub seed: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    pub name: String,
    pub weight: u32,
    /// Its part of the visitors, relative to the other lanes.
    pub share: f64,
}

/// When people arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Three quarters come at once, ebbing away within minutes; the rest trickles in.
    Spike,
    /// A trickle first, then a growing crowd until the end.
    Late,
    /// The same number every second.
    Steady,
    /// Arrivals of each second, as read from a file. Scaled to `visitors`.
    Given(Vec<u64>),
}

impl Shape {
    pub fn name(&self) -> &'static str {
        match self {
            Shape::Spike => "spike",
            Shape::Late => "late",
            Shape::Steady => "steady",
            Shape::Given(_) => "csv",
        }
    }
}

/// How long people are willing to wait. `median_ms`: half of them give up before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Patience {
    Endless,
    /// At every moment the same chance to give up.
    Exponential {
        median_ms: u64,
    },
    /// `shape` below 1: who has waited long stays; above 1: people tire.
    Weibull {
        median_ms: u64,
        shape: f64,
    },
    /// Very unequal people; the usual finding.
    Lognormal {
        median_ms: u64,
        spread: f64,
    },
}

/// A number outside its bounds: which one, what it was, what it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfBounds {
    pub field: &'static str,
    pub was: String,
    pub bound: String,
}

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} is out of bounds; {}", self.field, self.was, self.bound)
    }
}

impl std::error::Error for OutOfBounds {}

impl Plan {
    /// A sale of `visitors` at `rate_per_s` with everything else as usual.
    pub fn usual(visitors: u64, shape: Shape, rate_per_s: u64) -> Self {
        let session_ms = 4 * 60_000;
        Plan {
            visitors,
            shape,
            over_ms: Plan::usual_over_ms(visitors, rate_per_s),
            rate_per_s: Some(rate_per_s),
            // Well above what the rate fills (a mean stay is longer than the middle one), so that the rate is the limit unless asked otherwise.
            capacity: (rate_per_s * session_ms / 1_000 * 3).max(1),
            tick_ms: 200,
            lanes: vec![Lane { name: "everyone".into(), weight: 1, share: 1.0 }],
            patience: Patience::Lognormal { median_ms: 45 * 60_000, spread: 1.0 },
            leaves_openly: 0.3,
            heartbeat_timeout_ms: 60_000,
            no_show: 0.03,
            hold_ms: 90_000,
            reaction_ms: 8_000,
            session_ms,
            session_spread: 0.6,
            come_back: 0.1,
            come_back_after_ms: 5 * 60_000,
            seed: 1,
        }
    }

    /// Long enough that twice as many arrive as may enter: a sale that needs a waiting room.
    pub fn usual_over_ms(visitors: u64, rate_per_s: u64) -> u64 {
        (visitors * 500 / rate_per_s.max(1)).max(60_000)
    }

    /// Everything that is wrong with the plan, all at once.
    pub fn check(&self) -> Result<(), Vec<OutOfBounds>> {
        let mut wrong = Vec::new();
        let mut whole = |field, was: u64, min: u64, max: u64| {
            if was < min || was > max {
                let bound = format!("it may be {min} to {max}");
                wrong.push(OutOfBounds { field, was: was.to_string(), bound });
            }
        };
        whole("visitors", self.visitors, 1, VISITORS_MAX);
        whole("over (ms)", self.over_ms, 1_000, LENGTH_MS_MAX);
        if let Some(rate) = self.rate_per_s {
            whole("rate", rate, 1, 10_000_000);
        }
        whole("capacity", self.capacity, 1, 1 << 32);
        whole("tick (ms)", self.tick_ms, 10, 60_000);
        whole("heartbeat-timeout (ms)", self.heartbeat_timeout_ms, 1_000, 24 * 3_600_000);
        whole("hold (ms)", self.hold_ms, 1_000, 24 * 3_600_000);
        whole("reaction (ms)", self.reaction_ms, 0, 24 * 3_600_000);
        whole("session (ms)", self.session_ms, 1, 24 * 3_600_000);
        whole("come-back-after (ms)", self.come_back_after_ms, 1, 24 * 3_600_000);
        whole("lanes", self.lanes.len() as u64, 1, LANES_MAX as u64);
        for lane in &self.lanes {
            whole("lane weight", u64::from(lane.weight), 1, 1_000_000);
        }
        let mut part = |field, was: f64, min: f64, max: f64| {
            if !(was >= min && was <= max) {
                let bound = format!("it may be {min} to {max}");
                wrong.push(OutOfBounds { field, was: was.to_string(), bound });
            }
        };
        part("no-show", self.no_show, 0.0, 0.95);
        part("leave-openly", self.leaves_openly, 0.0, 1.0);
        // At 1 nobody would ever be gone for good, and the sale would never end.
        part("come-back", self.come_back, 0.0, 0.9);
        part("session-spread", self.session_spread, 0.0, 3.0);
        match self.patience {
            Patience::Weibull { shape, .. } => part("patience shape", shape, 0.1, 10.0),
            Patience::Lognormal { spread, .. } => part("patience spread", spread, 0.0, 4.0),
            Patience::Endless | Patience::Exponential { .. } => {}
        }
        for lane in &self.lanes {
            part("lane share", lane.share, 0.0, 1e9);
        }
        let shares: f64 = self.lanes.iter().map(|lane| lane.share).sum();
        part("lane shares together", shares, f64::MIN_POSITIVE, f64::MAX);
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}
