//! When the front will reach whom.
//!
//! Lives here: one walk forward in time over all lanes together, and the table it leaves.
//! Stays out: learning from error; that is the calibration's part.
//!
//! With `x` people before somebody, of whom the share `S` is still there when the front comes to
//! them, the front moves through today's line at `dx/dt = pace / S`. Departures therefore need no
//! second equation: they are the people the front does not have to stop for. Lanes share the pace
//! by weight while they have people; an emptied lane takes only what newly arrives in it.
//!
//! The walk is made three times, leaning towards a faster line, evenly, and towards a slower one
//! where nothing was seen yet. How far the three part is one half of the spread; the other is the
//! chance that lies in counting people.

use super::Unknown;
use super::ageing::Lean;
use super::giving_up::Staying;
use super::inside::PaceAhead;
use super::line::Line;
use super::settings::Takes;

/// Nobody is told a wait beyond two days.
pub(super) const HORIZON_MS: f64 = 48.0 * 3_600_000.0;

/// Steps grow with the time walked; at 2 % of it the error of the midpoint rule is far below the
/// calibrated width.
const STEP_SHARE: f64 = 0.02;

/// No projection is believed to be better than this share of the wait, before it has shown to be.
const MODEL_ERROR: f64 = 0.0015;

/// A wait before calibration: the middle, and how far it may be off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Projected {
    pub wait_ms: f64,
    /// What lies in chance: how ticks fall and how counts scatter.
    pub noise_ms: f64,
    /// What lies in not knowing: how far the leaning walks part.
    pub doubt_ms: f64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Projection {
    tick_ms: f64,
    faster: Walk,
    even: Walk,
    slower: Walk,
    slots_bind: bool,
}

#[derive(Clone, Debug, Default)]
struct Walk {
    lanes: Vec<Vec<Point>>,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    /// People of today's line passed by the front, and how many of them entered.
    before: f64,
    entered: f64,
    wait_ms: f64,
}

struct Walker<'a> {
    line: &'a Line,
    takes: Takes,
    /// What that comes to beside those who are busy now.
    weight: f64,
    ages: Vec<(f64, f64)>,
    cohort: usize,
    x: f64,
    entered: f64,
    end: f64,
    points: Vec<Point>,
}

impl Projection {
    pub fn make(
        at: u64,
        tick_ms: u64,
        lines: &[(Takes, &Line)],
        ahead: impl Fn(Lean) -> (Staying, Option<PaceAhead>),
    ) -> Self {
        let walk = |lean| {
            let (staying, pace) = ahead(lean);
            let bind = pace.as_ref().is_some_and(|pace| pace.slots_bind);
            (Walk::make(at, tick_ms, lines, &staying, pace, lean), bind)
        };
        let (even, slots_bind) = walk(Lean::Even);
        Projection {
            tick_ms: tick_ms as f64,
            faster: walk(Lean::Faster).0,
            even,
            slower: walk(Lean::Slower).0,
            slots_bind,
        }
    }

    pub fn wait(&self, ahead: u64, row: usize) -> Result<Projected, Unknown> {
        let (wait_ms, ms_per_person, entered) = self.even.reached(ahead, row)?;
        if wait_ms > HORIZON_MS {
            return Err(Unknown::TooFar);
        }
        let faster = self.faster.reached(ahead, row).map_or(wait_ms, |w| w.0);
        let slower = self.slower.reached(ahead, row).map_or(wait_ms, |w| w.0);
        let left = (ahead as f64 + 1.0 - entered).max(0.0);
        let counted = if self.slots_bind { left + entered } else { left };
        let chance = counted.sqrt() * ms_per_person;
        // Four of five asks fall within 0.55 ticks of the mean; in units of a normal spread: 0.43.
        let tick = self.tick_ms * 0.43;
        let model = wait_ms * MODEL_ERROR;
        let noise_ms = (chance * chance + tick * tick + model * model).sqrt();
        let doubt_ms = ((slower - faster) * 0.5).clamp(0.0, wait_ms * 3.0);
        Ok(Projected { wait_ms, noise_ms, doubt_ms })
    }
}

impl Walk {
    fn make(
        at: u64,
        tick_ms: u64,
        lines: &[(Takes, &Line)],
        staying: &Staying,
        pace: Option<PaceAhead>,
        lean: Lean,
    ) -> Self {
        let Some(pace) = pace else { return Walk::default() };
        let mut walkers: Vec<Walker<'_>> =
            lines.iter().map(|&(takes, line)| Walker::new(at, line, takes)).collect();
        // Nobody knows how long people will keep coming into the other lanes. The best guess is
        // that it lasts about as long as it has lasted.
        let (newcomers, lasting) = match lean {
            Lean::Faster => (0.8, 1.0),
            Lean::Even => (1.0, 1.0),
            Lean::Slower => (1.0, 0.3),
        };
        let mut t = 0.0;
        while t < HORIZON_MS && walkers.iter().any(Walker::busy) {
            let step = (t * STEP_SHARE).max(tick_ms as f64);
            let mut rate = pace.at(t + step * 0.5);
            let weights = weigh(&mut walkers);
            for walker in walkers.iter().filter(|w| !w.busy()) {
                let share = rate * walker.weight / (weights + walker.weight).max(1e-9);
                let since = walker.line.open_for_ms(at);
                let fading = since / (since + lasting * t);
                rate -= (walker.line.arrivals_per_ms() * newcomers * fading).min(share);
            }
            for walker in walkers.iter_mut().filter(|w| w.busy()) {
                walker.step(t, step, rate * walker.weight / weights.max(1e-9), staying);
            }
            t += step;
        }
        Walk { lanes: walkers.into_iter().map(|w| w.points).collect() }
    }

    /// When whoever has `ahead` people before them is reached; how long the front takes for one
    /// person there; and how many entered by then.
    fn reached(&self, ahead: u64, row: usize) -> Result<(f64, f64, f64), Unknown> {
        let points = self.lanes.get(row).ok_or(Unknown::NoData)?;
        // The one asking must be reached too.
        let before = ahead as f64 + 1.0;
        let i = points.partition_point(|point| point.before < before);
        let (a, b) = match (i, points.len()) {
            (_, 0 | 1) => return Err(Unknown::NoData),
            (0, _) => (points[0], points[1]),
            (i, n) if i == n => (points[n - 2], points[n - 1]),
            (i, _) => (points[i - 1], points[i]),
        };
        let people = (b.before - a.before).max(1e-9);
        let slope = (b.wait_ms - a.wait_ms) / people;
        let wait = a.wait_ms + slope * (before - a.before);
        let entered = a.entered + (b.entered - a.entered) * (before - a.before) / people;
        if wait.is_finite() { Ok((wait.max(0.0), slope, entered)) } else { Err(Unknown::TooFar) }
    }
}

/// Gives every lane its weight of the moment, as the room's turns would, and adds up the busy ones.
fn weigh(walkers: &mut [Walker<'_>]) -> f64 {
    let busy = |walkers: &[Walker<'_>]| -> f64 {
        walkers.iter().filter(|w| w.busy()).map(|w| w.weight).sum()
    };
    for walker in walkers.iter_mut() {
        walker.weight = match walker.takes {
            Takes::Weight(weight) => f64::from(weight),
            Takes::Share(_) => 0.0,
        };
    }
    let ordinary = busy(walkers).max(1.0);
    for walker in walkers.iter_mut() {
        if let Takes::Share(share) = walker.takes {
            let share = f64::from(share.min(99));
            walker.weight = ordinary * share / (100.0 - share);
        }
    }
    if busy(walkers) == 0.0 {
        // Only those wait who take what the others leave, and that is everything.
        for walker in walkers.iter_mut().filter(|w| w.busy()) {
            walker.weight = 1.0;
        }
    }
    busy(walkers)
}

impl<'a> Walker<'a> {
    fn new(at: u64, line: &'a Line, takes: Takes) -> Self {
        let mut end = 0.0;
        let ages = line
            .cohorts()
            .map(|cohort| {
                end += cohort.waiting as f64;
                (end, at.saturating_sub(cohort.joined_at) as f64)
            })
            .collect();
        let points = vec![Point { before: 0.0, entered: 0.0, wait_ms: 0.0 }];
        Walker { line, takes, weight: 0.0, ages, cohort: 0, x: 0.0, entered: 0.0, end, points }
    }

    /// A little beyond today's line, so that whoever joins before the next walk finds a place.
    fn busy(&self) -> bool {
        self.x < self.end + 2.0 || self.points.len() < 2
    }

    fn step(&mut self, t: f64, step: f64, rate: f64, staying: &Staying) {
        if rate > 0.0 {
            let first = rate * step * 0.5 / self.survival(self.x, t, staying);
            let survival = self.survival(self.x + first, t + step * 0.5, staying);
            self.x += rate * step / survival;
            self.entered += rate * step;
        }
        let point = Point { before: self.x, entered: self.entered, wait_ms: t + step };
        let n = self.points.len();
        if n > 1 && self.points[n - 1].before >= self.x {
            // While nothing moves only the last point of the standstill matters.
            self.points[n - 1] = point;
        } else {
            self.points.push(point);
        }
    }

    fn survival(&mut self, x: f64, t: f64, staying: &Staying) -> f64 {
        while self.cohort + 1 < self.ages.len() && self.ages[self.cohort].0 < x {
            self.cohort += 1;
        }
        let age = self.ages.get(self.cohort).map_or(0.0, |&(_, age)| age);
        staying.share(age, t).max(1e-6)
    }
}
