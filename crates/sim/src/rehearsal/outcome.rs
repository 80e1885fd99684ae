//! What a rehearsal found. Lives here: the figures, as they go into JSON. Stays out: how they are
//! shown. Everything but [`Speed`] is a function of plan and seed.

use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub plan: PlanSaid,
    pub counts: Counts,
    /// When the last waiting visitor had entered or left, since the doors opened.
    pub drained_ms: u64,
    pub waits: Waits,
    pub lanes: Vec<LaneFound>,
    pub admissions: Admissions,
    /// Spearman's rank correlation between arriving and entering; none with fewer than two.
    pub fairness: Option<f64>,
    pub estimates: Estimates,
    pub moments: Vec<Moment>,
    pub speed: Speed,
}

#[derive(Clone, Debug, Serialize)]
pub struct PlanSaid {
    pub visitors: u64,
    pub shape: String,
    pub over_ms: u64,
    pub rate_per_s: Option<u64>,
    pub capacity: u64,
    pub tick_ms: u64,
    pub patience: String,
    pub no_show: f64,
    pub come_back: f64,
    pub session_ms: u64,
    pub seed: u64,
}

/// Where everybody ended up. `joined` counts tickets: who comes back takes another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub joined: u64,
    pub came_back: u64,
    pub admitted: u64,
    pub completed: u64,
    pub no_shows: u64,
    pub left: u64,
    pub lapsed: u64,
    pub waiting: u64,
    pub inside: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Waits {
    pub people: u64,
    pub mean_ms: u64,
    pub p10_ms: u64,
    pub p25_ms: u64,
    pub p50_ms: u64,
    pub p75_ms: u64,
    pub p90_ms: u64,
    pub p95_ms: u64,
    pub p99_ms: u64,
    pub max_ms: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct LaneFound {
    pub name: String,
    pub weight: u32,
    pub joined: u64,
    pub waits: Waits,
}

#[derive(Clone, Debug, Serialize)]
pub struct Admissions {
    pub limit_per_s: Option<u64>,
    pub busiest_second: u64,
    /// Mean per second while people were waiting.
    pub while_waiting_per_s: Option<f64>,
    pub peak_waiting: u64,
    pub peak_active: u64,
}

/// How the 80 % intervals fared with visitors who stayed until they entered, each asked at a
/// random moment of their wait, after the first minute.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Estimates {
    pub asked: u64,
    /// Share of intervals that held. 0.75 to 0.85 is the aim.
    pub held: Option<f64>,
    /// Entered sooner than the interval said; later than it said.
    pub below: Option<f64>,
    pub above: Option<f64>,
    /// Width over likely value.
    pub width_median: Option<f64>,
    pub width_p90: Option<f64>,
    pub wider_than_twice: Option<f64>,
    pub unknown: Option<f64>,
    pub unknown_because: Vec<UnknownShare>,
    pub by_wait: Vec<EstimatesOf>,
}

#[derive(Clone, Debug, Serialize)]
pub struct UnknownShare {
    pub reason: String,
    pub share: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct EstimatesOf {
    pub likely: String,
    pub asked: u64,
    pub held: f64,
    pub below: f64,
    pub above: f64,
    /// Real wait over likely wait: the 10th, 50th and 90th percentile.
    pub real_over_likely: [f64; 3],
}

/// One point of the charts.
#[derive(Clone, Debug, Serialize)]
pub struct Moment {
    pub at_s: u64,
    pub joined_per_s: f64,
    pub admitted_per_s: f64,
    pub admitted_in_busiest_s: u32,
    pub departed_per_s: f64,
    pub waiting: u64,
    pub active: u64,
    pub wait_p10_ms: Option<u64>,
    pub wait_p50_ms: Option<u64>,
    pub wait_p90_ms: Option<u64>,
    /// Share of the estimates given in this stretch that held.
    pub held: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Speed {
    pub took_ms: u64,
    pub visitors_per_s: f64,
}
