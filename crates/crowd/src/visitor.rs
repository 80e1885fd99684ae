//! One visitor: comes, joins, waits by some channel, goes in, stays, goes.
//!
//! Lives here: the life, and the one door (`call.rs`) through which every HTTP call goes, so that
//! each is timed, checked on the spot and written down. One file per way of waiting.
//! A visitor survives the server: calls that got lost are repeated with the same key, channels are
//! opened again, tickets are kept. At the end everyone looks once more, so that a place that was
//! lost in between is noticed.

mod call;
mod inside;
mod join;
mod live;
mod mischief;
pub(crate) mod poll;
mod rpc;

use crate::plan::Channel;
use crate::rng::Rng;
use crate::spot::Spot;
use crate::tally::{Fate, Stage};
use crate::world::{Shared, Stop};

#[derive(Debug)]
pub struct Visitor {
    world: Shared,
    who: u64,
    rng: Rng,
    stop: Stop,
    channel: Channel,
    nature: Nature,
    misbehaves: bool,
    /// The address that this visitor claims, if addresses are claimed.
    address: Option<String>,
    key: String,
    held: Option<Held>,
    spot: Spot,
    stage: Stage,
    /// When the place was given, in nanoseconds of the run's clock.
    joined_at: u64,
    /// When to look again, as told last.
    next_check_ms: u64,
}

/// A ticket in the hand.
#[derive(Clone, Debug)]
struct Held {
    id: String,
    /// None for users of a service, which proves itself by its key.
    token: Option<String>,
    pass: Option<String>,
}

/// How long this one can wait, in nanoseconds of the run's clock.
#[derive(Clone, Copy, Debug)]
enum Nature {
    Patient,
    LeavesAt(u64),
    FallsSilentAt(u64),
}

/// Why waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// It is our turn.
    Come,
    Fate(Fate),
}

/// How a rest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Rested,
    Stopped,
    GaveUp,
}

impl Visitor {
    pub fn new(world: Shared, who: u64, stop: Stop) -> Visitor {
        let plan = &world.plan;
        let mut rng = Rng::of(plan.seed, who);
        let channel = plan.mix.pick(rng.unit());
        let misbehaves = rng.chance(plan.misbehave);
        // Somewhere in the run, but not before there was something to wait for.
        let left_ms = plan.duration_ms.saturating_sub(world.start.ns() / 1_000_000);
        let patience_ns = (200 + rng.below(left_ms.max(1))) * 1_000_000;
        let at = world.start.ns() + patience_ns;
        let kind = rng.unit();
        let nature = if kind < plan.abandon {
            Nature::LeavesAt(at)
        } else if kind < plan.abandon + plan.silent {
            Nature::FallsSilentAt(at)
        } else {
            Nature::Patient
        };
        // Ten, then the number: never anybody's real address.
        let address = plan.own_addresses.then(|| {
            let [_, a, b, c] = (who as u32).to_be_bytes();
            format!("10.{a}.{b}.{c}")
        });
        // 128 bits from a seed would repeat a former run's keys; the start's clock tells runs apart.
        let unique = world.start.wall_ms;
        let key = format!("crowd-{:016x}{:016x}-{who}", rng.next(), rng.next() ^ unique);
        let (spot, stage) = (Spot::default(), Stage::Outside);
        Visitor {
            who,
            rng,
            stop,
            channel,
            nature,
            misbehaves,
            address,
            key,
            held: None,
            spot,
            stage,
            joined_at: 0,
            next_check_ms: 2_000,
            world,
        }
    }

    /// The whole visit but the last look. Says what became of it.
    pub async fn visit(&mut self) -> Fate {
        let joined = match self.channel {
            Channel::Grpc => self.join_by_rpc().await,
            _ => self.join().await,
        };
        let fate = match joined {
            Err(fate) => fate,
            Ok(turn) => self.wait_and_enter(turn).await,
        };
        self.step(Stage::Outside);
        self.world.tally.fate(fate);
        fate
    }

    async fn wait_and_enter(&mut self, first: Option<Turn>) -> Fate {
        if self.misbehaves && self.channel != Channel::Grpc {
            self.misbehave().await;
        }
        let turn = match first {
            Some(turn) => turn,
            None => match self.channel {
                Channel::Poll | Channel::Long => self.poll().await,
                Channel::Sse | Channel::Ws => self.follow().await,
                Channel::Grpc => self.follow_by_rpc().await,
            },
        };
        match turn {
            Turn::Come => self.go_inside().await,
            Turn::Fate(fate) => fate,
        }
    }

    /// After the end of the run: is the place still what it was?
    pub async fn last_look(&mut self) {
        let spread_ms = self.rng.below(1_000 + self.world.plan.visitors / 5);
        tokio::time::sleep(std::time::Duration::from_millis(spread_ms)).await;
        // A server that was killed at the wrong moment needs a moment to come back.
        for attempt in 0..8 {
            if self.held.is_none() || self.look_once().await {
                return;
            }
            let pause_ms = 100 << attempt.min(5);
            tokio::time::sleep(std::time::Duration::from_millis(pause_ms)).await;
        }
        self.world.tally.surprise(format!("visitor {}: no last look in time", self.who));
    }

    fn step(&mut self, to: Stage) {
        match (self.stage, to) {
            (Stage::Outside, Stage::Waiting) => self.joined_at = self.world.start.ns(),
            (Stage::Waiting, Stage::Inside) => {
                let waited = self.world.start.ns().saturating_sub(self.joined_at);
                self.world.tally.waited(waited / 1_000_000);
            }
            _ => {}
        }
        self.world.tally.step(self.stage, to);
        self.stage = to;
    }

    /// Waits before the next look. Something else may come first: the end of the run, or of this
    /// visitor's patience.
    async fn patience(&mut self, ms: u64) -> Option<Turn> {
        let rest = self.rest(ms).await;
        self.after(rest).await
    }

    /// Only waits, so it can be given up for something that comes sooner.
    async fn rest(&mut self, ms: u64) -> Rest {
        let now = self.world.start.ns();
        let (mut wait_ns, mut gives_up) = (ms.saturating_mul(1_000_000), false);
        if let Nature::LeavesAt(at) | Nature::FallsSilentAt(at) = self.nature {
            let left = at.saturating_sub(now);
            gives_up = left <= wait_ns;
            wait_ns = wait_ns.min(left);
        }
        match self.stop.sleep(wait_ns.div_ceil(1_000_000)).await {
            false => Rest::Stopped,
            true if gives_up => Rest::GaveUp,
            true => Rest::Rested,
        }
    }

    /// What follows from a rest. Never given up half way: leaving is a call, and is written down.
    async fn after(&mut self, rest: Rest) -> Option<Turn> {
        match (rest, self.nature) {
            (Rest::Rested, _) => None,
            (Rest::Stopped, _) => Some(Turn::Fate(Fate::Unfinished)),
            (Rest::GaveUp, Nature::LeavesAt(_)) if self.channel == Channel::Grpc => {
                Some(Turn::Fate(self.leave_by_rpc().await))
            }
            (Rest::GaveUp, Nature::LeavesAt(_)) => Some(Turn::Fate(self.leave().await)),
            (Rest::GaveUp, _) => Some(Turn::Fate(Fate::Silent)),
        }
    }

    /// As told, at this crowd's speed, a little sooner or later than the others.
    fn until_next_look(&mut self) -> u64 {
        let jitter = 0.9 + 0.2 * self.rng.unit();
        (self.next_check_ms as f64 * jitter / self.world.plan.speed).max(20.0) as u64
    }

    /// How long to stay away after something went wrong for the n-th time in a row.
    fn backoff(&mut self, attempt: u32, told_ms: Option<u64>) -> u64 {
        let grown = 50u64 << attempt.min(6);
        let base = told_ms.unwrap_or(grown).min(30_000);
        base + self.rng.below(base / 2 + 10)
    }
}
