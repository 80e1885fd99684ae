//! How a run went, in figures: what the report shows and `--json` writes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::plan::{Operator, Plan};
use crate::tally::{Fate, Kind};
use crate::world::World;

#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    pub plan: Told,
    pub took_ms: u64,
    pub people: People,
    /// Of those who were let in.
    pub waited: Option<Waited>,
    pub calls: Vec<Calls>,
    /// Refusals by their code.
    pub problems: BTreeMap<String, u64>,
    pub live: Live,
    /// Calls that never left this machine.
    pub unreachable: u64,
    /// Things presented that were false; every one must have been refused.
    pub forgeries: u64,
    /// Answers in which a visitor saw something wrong on the spot.
    pub surprises: u64,
    pub first_surprises: Vec<String>,
    pub moments: Vec<Moment>,
    pub history_lines: u64,
}

/// The plan, as far as a reader wants to know.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    pub target: String,
    pub room: String,
    pub visitors: u64,
    pub over_ms: u64,
    pub shape: &'static str,
    pub mix: String,
    pub abandon: f64,
    pub silent: f64,
    pub misbehave: f64,
    pub stay_ms: u64,
    pub duration_ms: u64,
    pub speed: f64,
    pub connections: usize,
    pub seed: u64,
    pub operator: Operator,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct People {
    pub arrived: u64,
    pub joined: u64,
    pub admitted: u64,
    pub completed: u64,
    pub left: u64,
    pub silent: u64,
    pub ended: u64,
    pub unfinished: u64,
    pub refused: u64,
}

/// From the answer to the join until the turn was heard of.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Waited {
    pub p50_ms: u64,
    pub p95_ms: u64,
    pub longest_ms: u64,
}

/// Calls of one kind. Latencies are of calls that were answered, from the first byte out to the
/// last byte in, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Calls {
    pub name: &'static str,
    pub fine: u64,
    pub refused: u64,
    pub lost: u64,
    pub p50_us: u64,
    pub p90_us: u64,
    pub p99_us: u64,
    pub p999_us: u64,
    pub max_us: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Live {
    pub frames: u64,
    pub boards: u64,
    pub reconnects: u64,
}

/// One second of the run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Moment {
    pub at_s: u64,
    pub waiting: u64,
    pub inside: u64,
    pub calls: u64,
    pub lost: u64,
    pub p50_us: u64,
    pub p99_us: u64,
}

impl Outcome {
    pub(crate) fn of(world: &World, took_ms: u64, moments: Vec<Moment>) -> Outcome {
        let tally = &world.tally;
        let count = |it: &AtomicU64| it.load(Ordering::Relaxed);
        let surprises = tally.surprises();
        Outcome {
            plan: Told::of(&world.plan),
            took_ms,
            people: People {
                arrived: count(&tally.arrived),
                joined: count(&tally.joined),
                admitted: count(&tally.admitted),
                completed: tally.fated(Fate::Completed),
                left: tally.fated(Fate::Left),
                silent: tally.fated(Fate::Silent),
                ended: tally.fated(Fate::Ended),
                unfinished: tally.fated(Fate::Unfinished),
                refused: tally.fated(Fate::Refused),
            },
            waited: tally.waits([0.5, 0.95, 1.0]).map(|[p50_ms, p95_ms, longest_ms]| Waited {
                p50_ms,
                p95_ms,
                longest_ms,
            }),
            calls: tally.kinds().iter().map(|(name, kind)| Calls::of(name, kind)).collect(),
            problems: tally.problems(),
            live: Live {
                frames: count(&tally.frames),
                boards: count(&tally.boards),
                reconnects: count(&tally.reconnects),
            },
            unreachable: count(&tally.unreachable),
            forgeries: count(&tally.forgeries),
            surprises: surprises.count,
            first_surprises: surprises.first,
            moments,
            history_lines: 0,
        }
    }

    pub fn total_calls(&self) -> u64 {
        self.calls.iter().map(|it| it.fine + it.refused + it.lost).sum()
    }

    pub fn total_lost(&self) -> u64 {
        self.calls.iter().map(|it| it.lost).sum()
    }
}

impl Told {
    fn of(plan: &Plan) -> Told {
        Told {
            target: plan.public.to_string(),
            room: plan.room.clone(),
            visitors: plan.visitors,
            over_ms: plan.over_ms,
            shape: plan.shape.name(),
            mix: plan.mix.to_string(),
            abandon: plan.abandon,
            silent: plan.silent,
            misbehave: plan.misbehave,
            stay_ms: plan.stay_ms,
            duration_ms: plan.duration_ms,
            speed: plan.speed,
            connections: plan.connections,
            seed: plan.seed,
            operator: plan.operator,
        }
    }
}

impl Calls {
    fn of(name: &'static str, kind: &Kind) -> Calls {
        let at = |quantile: f64| kind.latency.value_at_quantile(quantile);
        Calls {
            name,
            fine: kind.fine,
            refused: kind.refused,
            lost: kind.lost,
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: kind.latency.max(),
        }
    }
}
