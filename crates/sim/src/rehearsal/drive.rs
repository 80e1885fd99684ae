//! The sale runs: tick by tick, what is due happens.
//!
//! Lives here: the order of things within a tick, and the few bytes kept per visitor (when they
//! joined, when they entered or how they left).
//! Stays out: the decisions (the room's), the behaviour (`crowd`), the figures (`waits`, `series`,
//! `asks`, `fairness`).

use std::time::Instant;

use waitroom_core::estimate::{Departure, Doors, Estimator, LanePart, Rate, Settings};
use waitroom_engine::{Judged, Onlooker};

use super::asks::Asks;
use super::calendar::Calendar;
use super::desk::{Desk, Ticked};
use super::outcome::{Admissions, Counts, LaneFound, Outcome, PlanSaid, Speed};
use super::plan::{LENGTH_MS_MAX, OutOfBounds, Plan};
use super::series::Series;
use super::waits::Histogram;
use super::{arrivals, crowd, fairness, human};
use crate::rng::Rng;

/// How far a rehearsal has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub at_ms: u64,
    pub joined: u64,
    pub visitors: u64,
    /// Those whose waiting is over, of `visitors` plus whoever came back.
    pub done: u64,
    pub waiting: u64,
}

/// What became of a waiting ticket, in the array of admissions. Smaller values are admissions.
const WAITING: u32 = u32::MAX;
/// Gone without a word; the room does not know it yet.
const SILENT: u32 = u32::MAX - 1;
const GONE: u32 = u32::MAX - 2;

/// A ticket in four bytes: the lane in the upper four bits, the number below.
#[derive(Clone, Copy, Debug)]
struct Ticket(u32);

impl Ticket {
    fn new(lane: u8, number: u32) -> Self {
        debug_assert!(number < 1 << 28, "plans are bounded far below this");
        Ticket(u32::from(lane) << 28 | number)
    }

    fn lane(self) -> usize {
        (self.0 >> 28) as usize
    }

    fn number(self) -> u32 {
        self.0 & ((1 << 28) - 1)
    }

    fn core(self) -> waitroom_core::Ticket {
        waitroom_core::Ticket::new(self.lane() as u8, u64::from(self.number()))
    }
}

/// Somebody inside, and since when they hold their slot.
#[derive(Clone, Copy, Debug)]
struct Stay {
    ticket: Ticket,
    admitted_tick: u32,
}

#[derive(Debug, Default)]
struct LaneTickets {
    /// By number: place in the sequence of all joins.
    joins: Vec<u32>,
    /// By number: place in the sequence of all admissions, or one of the words above.
    fates: Vec<u32>,
    waits: Histogram,
}

struct Sale<'a> {
    plan: &'a Plan,
    rng: Rng,
    desk: Desk,
    estimator: Estimator,
    lanes: Vec<LaneTickets>,
    /// Joins before each tick, to find the tick of a join again.
    joined_before: Vec<u32>,
    giving_up: Calendar<Ticket>,
    lapsing: Calendar<Ticket>,
    claiming: Calendar<Stay>,
    ending: Calendar<Stay>,
    returning: Calendar<u8>,
    asking: Calendar<u32>,
    asks: Asks,
    series: Series,
    waits: Histogram,
    counts: Counts,
}

/// Runs the whole sale. `progress` is called about once per second of virtual time.
pub fn rehearse(plan: &Plan, progress: impl FnMut(Progress)) -> Result<Outcome, Vec<OutOfBounds>> {
    run(plan, None, progress).map(|(outcome, _)| outcome)
}

/// The same sale, and what a live room would have measured of its own estimates: what it exports.
pub fn rehearse_measured(plan: &Plan) -> Result<(Outcome, Judged), Vec<OutOfBounds>> {
    run(plan, Some(Onlooker::default()), |_| {})
}

fn run(
    plan: &Plan,
    onlooker: Option<Onlooker>,
    mut progress: impl FnMut(Progress),
) -> Result<(Outcome, Judged), Vec<OutOfBounds>> {
    plan.check()?;
    let started = Instant::now();
    let mut rng = Rng::new(plan.seed);
    let arrivals = arrivals::per_tick(plan, &mut rng.fork());
    let mut sale = Sale::new(plan, rng);
    sale.desk.onlooker = onlooker;
    let mut drained_ms = 0;
    let mut tick: u32 = 0;
    loop {
        let at_ms = u64::from(tick) * plan.tick_ms;
        let newcomers = arrivals.get(tick as usize).copied().unwrap_or(0);
        sale.tick(tick, at_ms, newcomers);
        let open_end = (tick as usize) < arrivals.len() || !sale.returning.is_empty();
        if sale.counts.waiting > 0 {
            drained_ms = at_ms;
        } else if !open_end && sale.counts.inside == 0 {
            break;
        }
        if at_ms >= LENGTH_MS_MAX {
            break;
        }
        if at_ms % 1_000 < plan.tick_ms {
            progress(sale.progress(at_ms));
        }
        tick += 1;
    }
    let arrivals_ms = arrivals.len() as u64 * plan.tick_ms;
    let judged = sale.desk.judged;
    Ok((sale.outcome(drained_ms, arrivals_ms, started), judged))
}

impl<'a> Sale<'a> {
    fn new(plan: &'a Plan, rng: Rng) -> Self {
        let settings = Settings {
            doors: Doors::Open,
            rate: plan.rate_per_s.map(|admissions| Rate { admissions, per_ms: 1_000 }),
            max_active: Some(plan.capacity),
            heartbeat_timeout_ms: plan.heartbeat_timeout_ms,
            lanes: LanePart::weights(plan.lanes.iter().map(|lane| lane.weight)),
        };
        Sale {
            plan,
            rng,
            desk: Desk::new(plan),
            estimator: Estimator::new(plan.tick_ms, settings),
            lanes: plan.lanes.iter().map(|_| LaneTickets::default()).collect(),
            joined_before: Vec::new(),
            giving_up: Calendar::new(),
            lapsing: Calendar::new(),
            claiming: Calendar::new(),
            ending: Calendar::new(),
            returning: Calendar::new(),
            asking: Calendar::new(),
            asks: Asks::new(plan.visitors, plan.lanes.len(), plan.tick_ms),
            series: Series::default(),
            waits: Histogram::default(),
            counts: Counts::default(),
        }
    }

    fn tick(&mut self, tick: u32, at_ms: u64, newcomers: u32) {
        self.joined_before.push(self.counts.joined as u32);
        self.desk.begin(at_ms);
        self.come(tick, at_ms, newcomers);
        self.go(tick, at_ms);
        self.use_passes(tick, at_ms);
        self.admit(tick, at_ms);
        self.estimator.advance(at_ms);
        self.ask(tick);
        self.series.level(at_ms, self.counts.waiting, self.counts.inside);
    }

    fn come(&mut self, tick: u32, at_ms: u64, newcomers: u32) {
        let returning = self.returning.take(tick as usize);
        self.counts.came_back += returning.len() as u64;
        self.series.joined(at_ms, newcomers + returning.len() as u32);
        for lane in returning {
            self.join(tick, at_ms, lane);
        }
        for _ in 0..newcomers {
            let lane = self.pick_lane();
            self.join(tick, at_ms, lane);
        }
    }

    fn pick_lane(&mut self) -> u8 {
        if self.plan.lanes.len() == 1 {
            return 0;
        }
        let total: f64 = self.plan.lanes.iter().map(|lane| lane.share).sum();
        let mut at = self.rng.unit() * total;
        for (i, lane) in self.plan.lanes.iter().enumerate() {
            at -= lane.share;
            if at <= 0.0 {
                return i as u8;
            }
        }
        (self.plan.lanes.len() - 1) as u8
    }

    fn join(&mut self, tick: u32, at_ms: u64, lane: u8) {
        let number = self.desk.join(lane);
        self.estimator.note_joined(at_ms, lane, 1);
        let tickets = &mut self.lanes[usize::from(lane)];
        tickets.joins.push(self.counts.joined as u32);
        tickets.fates.push(WAITING);
        self.counts.joined += 1;
        self.counts.waiting += 1;
        if let Some(patience_ms) = crowd::patience_ms(self.plan, &mut self.rng) {
            let due = self.ticks_from(tick, patience_ms);
            self.giving_up.put(due, Ticket::new(lane, number));
        }
        if let Some(index) = self.asks.joined(tick, lane, number) {
            self.asking.put(tick as usize, index);
        }
    }

    /// The tick that lies `ms` after `tick`, at least one later.
    fn ticks_from(&self, tick: u32, ms: u64) -> usize {
        // Beyond the longest rehearsal nothing is looked at, so everything later may share a day.
        let last = LENGTH_MS_MAX / self.plan.tick_ms + 1;
        (u64::from(tick) + (ms / self.plan.tick_ms).max(1)).min(last) as usize
    }

    fn go(&mut self, tick: u32, at_ms: u64) {
        for ticket in self.giving_up.take(tick as usize) {
            if self.fate(ticket) != WAITING {
                continue;
            }
            if self.rng.chance(self.plan.leaves_openly) {
                self.counts.left += 1;
                self.desk.leave(ticket.core());
                self.depart(tick, at_ms, ticket, Departure::Left);
            } else {
                *self.fate_mut(ticket) = SILENT;
                let due = self.ticks_from(tick, self.plan.heartbeat_timeout_ms);
                self.lapsing.put(due, ticket);
            }
        }
        let mut silent = self.lapsing.take(tick as usize);
        silent.retain(|ticket| self.fate(*ticket) == SILENT);
        self.desk.lapse(silent.iter().map(|ticket| ticket.core()));
        for ticket in silent {
            self.counts.lapsed += 1;
            self.depart(tick, at_ms, ticket, Departure::Lapsed);
        }
    }

    fn depart(&mut self, tick: u32, at_ms: u64, ticket: Ticket, how: Departure) {
        *self.fate_mut(ticket) = GONE;
        let order = u64::from(ticket.number());
        self.estimator.note_departed(at_ms, ticket.lane() as u8, order, how);
        self.series.departed(at_ms);
        self.counts.waiting -= 1;
        self.maybe_return(tick, ticket);
    }

    fn maybe_return(&mut self, tick: u32, ticket: Ticket) {
        if let Some(ms) = crowd::return_ms(self.plan, &mut self.rng) {
            let due = self.ticks_from(tick, ms);
            self.returning.put(due, ticket.lane() as u8);
        }
    }

    /// Claims and ends of sessions.
    fn use_passes(&mut self, tick: u32, at_ms: u64) {
        for stay in self.claiming.take(tick as usize) {
            self.desk.claim(stay.ticket.core());
            let session_ms = crowd::session_ms(self.plan, &mut self.rng);
            let due = self.ticks_from(tick, session_ms);
            self.ending.put(due, stay);
        }
        let ended = self.ending.take(tick as usize);
        self.counts.completed += ended.len() as u64;
        for stay in &ended {
            self.desk.complete(stay.ticket.core());
            self.estimator.note_freed(at_ms, u64::from(stay.admitted_tick) * self.plan.tick_ms);
            self.counts.inside -= 1;
        }
    }

    fn admit(&mut self, tick: u32, at_ms: u64) {
        let Ticked { admitted, no_shows } = self.desk.tick();
        for _ in 0..no_shows {
            self.counts.no_shows += 1;
            self.counts.inside -= 1;
            self.estimator.note_freed(at_ms, at_ms.saturating_sub(self.plan.hold_ms));
        }
        let mut per_lane = [0u64; super::plan::LANES_MAX];
        for &(lane, number) in &admitted {
            per_lane[usize::from(lane)] += 1;
            self.admitted(tick, at_ms, Ticket::new(lane, number));
        }
        for (lane, &n) in per_lane.iter().enumerate().filter(|&(_, &n)| n > 0) {
            let next_order = self.desk.front(lane);
            self.estimator.note_admitted(at_ms, lane as u8, n, next_order);
        }
    }

    fn admitted(&mut self, tick: u32, at_ms: u64, ticket: Ticket) {
        let (lane, number) = (ticket.lane(), ticket.number());
        let was = self.fate(ticket);
        *self.fate_mut(ticket) = self.counts.admitted as u32;
        self.counts.admitted += 1;
        self.counts.waiting -= 1;
        self.counts.inside += 1;
        let join = self.lanes[lane].joins[number as usize];
        let joined_tick = self.joined_before.partition_point(|&before| before <= join) as u32 - 1;
        let waited = u64::from(tick - joined_tick);
        self.waits.add(waited);
        self.lanes[lane].waits.add(waited);
        self.series.admitted(at_ms, waited);
        self.asks.admitted(tick, lane as u8, number, &mut self.series);
        // Who does not come is noticed by the room, when the time to claim has run out.
        if was != SILENT && !self.rng.chance(self.plan.no_show) {
            let reaction_ms = crowd::reaction_ms(self.plan, &mut self.rng);
            if reaction_ms < self.plan.hold_ms {
                let due = self.ticks_from(tick, reaction_ms);
                self.claiming.put(due, Stay { ticket, admitted_tick: tick });
            }
        }
    }

    fn ask(&mut self, tick: u32) {
        for index in self.asking.take(tick as usize) {
            let (lane, number) = self.asks.who(index);
            if self.fate(Ticket::new(lane, number)) != WAITING {
                continue;
            }
            let ahead = self.desk.ahead(lane, number);
            let answer = self.estimator.estimate(ahead, lane);
            let again = self.asks.answered(index, tick, answer, &mut self.rng);
            let last = (LENGTH_MS_MAX / self.plan.tick_ms + 1) as usize;
            if again < last {
                self.asking.put(again, index);
            }
        }
    }

    fn fate(&self, ticket: Ticket) -> u32 {
        self.lanes[ticket.lane()].fates[ticket.number() as usize]
    }

    fn fate_mut(&mut self, ticket: Ticket) -> &mut u32 {
        &mut self.lanes[ticket.lane()].fates[ticket.number() as usize]
    }

    fn progress(&self, at_ms: u64) -> Progress {
        Progress {
            at_ms,
            joined: self.counts.joined,
            visitors: self.plan.visitors,
            done: self.counts.joined - self.counts.waiting,
            waiting: self.counts.waiting,
        }
    }

    fn outcome(self, drained_ms: u64, arrivals_ms: u64, started: Instant) -> Outcome {
        let plan = self.plan;
        let rows: Vec<(&[u32], &[u32])> =
            self.lanes.iter().map(|lane| (&lane.joins[..], &lane.fates[..])).collect();
        let fairness = fairness::spearman(&rows, self.counts.admitted as u32);
        let (peak_waiting, peak_active) = self.series.peaks();
        let took_ms = started.elapsed().as_millis() as u64;
        Outcome {
            plan: PlanSaid {
                visitors: plan.visitors,
                shape: plan.shape.name().to_string(),
                over_ms: plan.over_ms,
                rate_per_s: plan.rate_per_s,
                capacity: plan.capacity,
                tick_ms: plan.tick_ms,
                patience: human::patience(plan.patience),
                no_show: plan.no_show,
                come_back: plan.come_back,
                session_ms: plan.session_ms,
                seed: plan.seed,
            },
            drained_ms,
            waits: self.waits.waits(plan.tick_ms),
            lanes: plan
                .lanes
                .iter()
                .zip(&self.lanes)
                .map(|(lane, found)| LaneFound {
                    name: lane.name.clone(),
                    weight: lane.weight,
                    joined: found.joins.len() as u64,
                    waits: found.waits.waits(plan.tick_ms),
                })
                .collect(),
            admissions: Admissions {
                limit_per_s: plan.rate_per_s,
                busiest_second: self.series.busiest(),
                while_waiting_per_s: self.series.pace_while_waiting(),
                peak_waiting,
                peak_active,
            },
            fairness,
            // A little beyond the end of the line, so that charts show how it ends.
            moments: self.series.moments(drained_ms.max(arrivals_ms) * 21 / 20, plan.tick_ms),
            estimates: self.asks.estimates(),
            counts: self.counts,
            speed: Speed {
                took_ms,
                visitors_per_s: plan.visitors as f64 * 1_000.0 / took_ms.max(1) as f64,
            },
        }
    }
}
