//! One lane as the estimator sees it: a row of cohorts.
//!
//! Lives here: how many still wait in each run of neighbouring places, when they joined, and the
//! estimates recorded for the last place of each run (its probe).
//! Stays out: tickets; a departure is counted into its cohort by order and forgotten.

use std::collections::VecDeque;

use super::Stretch;
use super::calibration::Asks;

/// Cohorts of one lane. When there are more, neighbours are joined two by two.
pub(super) const COHORTS_MAX: usize = 256;

/// New cohorts are cut so that about this many cover the whole line.
const COHORTS_AIM: u64 = 128;

/// What was joined this long ago counts half in the pace of arrivals.
const ARRIVALS_HALF_LIFE_MS: f64 = 60_000.0;

#[derive(Clone, Debug)]
pub(super) struct Cohort {
    /// The first order behind this cohort.
    pub end: u64,
    pub joined_at: u64,
    pub waiting: u64,
    asks: Asks,
}

#[derive(Clone, Debug)]
pub(super) struct Line {
    cohorts: VecDeque<Cohort>,
    /// Orders given out so far.
    joined: u64,
    waiting: u64,
    arrived: f64,
    arrived_over_ms: f64,
    first_at: Option<u64>,
}

impl Line {
    pub fn new() -> Self {
        Line {
            cohorts: VecDeque::new(),
            joined: 0,
            waiting: 0,
            arrived: 0.0,
            arrived_over_ms: 0.0,
            first_at: None,
        }
    }

    /// A line that was there before: `orders` were given out, and these still wait.
    pub fn found(orders: u64, row: impl IntoIterator<Item = Stretch>) -> Self {
        let mut line = Line { joined: orders, ..Line::new() };
        for Stretch { end, waiting, joined_at } in row {
            line.waiting += waiting;
            line.first_at = Some(line.first_at.unwrap_or(joined_at).min(joined_at));
            let (end, asks) = (end.min(orders), Asks::default());
            line.cohorts.push_back(Cohort { end, joined_at, waiting, asks });
            if line.cohorts.len() >= COHORTS_MAX {
                line.thin();
            }
        }
        line
    }

    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    pub fn cohorts(&self) -> impl Iterator<Item = &Cohort> {
        self.cohorts.iter()
    }

    /// Joins per millisecond, lately.
    pub fn arrivals_per_ms(&self) -> f64 {
        if self.arrived_over_ms > 0.0 { self.arrived / self.arrived_over_ms } else { 0.0 }
    }

    /// How long people have been coming, at least a minute.
    pub fn open_for_ms(&self, at: u64) -> f64 {
        at.saturating_sub(self.first_at.unwrap_or(at)).max(60_000) as f64
    }

    pub fn pass(&mut self, passed_ms: u64) {
        let keep = (-(passed_ms as f64) / ARRIVALS_HALF_LIFE_MS * std::f64::consts::LN_2).exp();
        self.arrived *= keep;
        self.arrived_over_ms = self.arrived_over_ms * keep + passed_ms as f64;
    }

    pub fn joined(&mut self, at: u64, n: u64) {
        self.arrived += n as f64;
        self.first_at.get_or_insert(at);
        let mut left = n;
        while left > 0 {
            let full = (self.waiting / COHORTS_AIM).max(1);
            match self.cohorts.back_mut() {
                // A cohort stays open only within one moment's joins or while it is small; its age
                // is that of its first, so it must not span long.
                Some(open) if open.waiting < full && open.end == self.joined => {
                    let take = left.min(full - open.waiting);
                    open.end += take;
                    open.waiting += take;
                    self.joined += take;
                    self.waiting += take;
                    left -= take;
                }
                _ => {
                    if self.cohorts.len() >= COHORTS_MAX {
                        self.thin();
                    }
                    self.cohorts.push_back(Cohort {
                        end: self.joined,
                        joined_at: at,
                        waiting: 0,
                        asks: Asks::default(),
                    });
                }
            }
        }
    }

    /// When the one at `order` had joined, if the line still knows them.
    pub fn departed(&mut self, order: u64) -> Option<u64> {
        let at = self.cohorts.partition_point(|cohort| cohort.end <= order);
        // A shuffle moves people between neighbouring cohorts unseen; whoever leaves one that
        // seems empty by now is counted out of the nearest that is not.
        let near = (at..self.cohorts.len()).chain((0..at).rev());
        let at = near.into_iter().find(|&at| self.cohorts[at].waiting > 0)?;
        let cohort = &mut self.cohorts[at];
        cohort.waiting -= 1;
        self.waiting -= 1;
        Some(cohort.joined_at)
    }

    /// `n` left at the front; probes before `next_order` are passed and given to `passed`.
    pub fn admitted(&mut self, n: u64, next_order: u64, mut passed: impl FnMut(&Asks)) {
        let mut counted = 0;
        while let Some(front) = self.cohorts.front()
            && front.end <= next_order
        {
            counted += front.waiting;
            passed(&front.asks);
            self.cohorts.pop_front();
        }
        self.waiting -= counted;
        // A shuffle moves people between neighbouring cohorts unseen: some who were counted before
        // the front stand behind it, or the other way round.
        if let Some(front) = self.cohorts.front_mut() {
            let stayed = counted.saturating_sub(n);
            front.waiting += stayed;
            self.waiting += stayed;
        }
        let mut left = n.saturating_sub(counted);
        for cohort in &mut self.cohorts {
            if left == 0 {
                return;
            }
            let take = left.min(cohort.waiting);
            cohort.waiting -= take;
            self.waiting -= take;
            left -= take;
        }
    }

    /// Shows every probe to `look`, with how many stand before it. The last cohort may still grow,
    /// and with it the place of its last ticket, so it is no probe yet.
    pub fn look(&mut self, mut look: impl FnMut(u64, &mut Asks)) {
        let mut before = 0;
        let closed = self.cohorts.len().saturating_sub(1);
        for cohort in self.cohorts.iter_mut().take(closed) {
            before += cohort.waiting;
            look(before.saturating_sub(1), &mut cohort.asks);
        }
    }

    pub fn forget_asks(&mut self) {
        for cohort in &mut self.cohorts {
            cohort.asks = Asks::default();
        }
    }

    /// Everyone has a new order: one cohort of the mean age replaces the row.
    pub fn drawn(&mut self) {
        let people = self.waiting.max(1);
        let age_sum: u128 =
            self.cohorts.iter().map(|c| u128::from(c.joined_at) * u128::from(c.waiting)).sum();
        let joined_at = (age_sum / u128::from(people)) as u64;
        let waiting = self.waiting;
        self.cohorts.clear();
        let (mut placed_order, mut placed) = (0, 0);
        for i in 1..=COHORTS_AIM {
            let end = (u128::from(self.joined) * u128::from(i) / u128::from(COHORTS_AIM)) as u64;
            let upto = (u128::from(waiting) * u128::from(i) / u128::from(COHORTS_AIM)) as u64;
            if end > placed_order {
                self.cohorts.push_back(Cohort {
                    end,
                    joined_at,
                    waiting: upto - placed,
                    asks: Asks::default(),
                });
                (placed_order, placed) = (end, upto);
            }
        }
    }

    fn thin(&mut self) {
        let mut kept = VecDeque::with_capacity(COHORTS_MAX);
        let mut pending: Option<Cohort> = None;
        for mut cohort in self.cohorts.drain(..) {
            match pending.take() {
                None => pending = Some(cohort),
                Some(first) => {
                    let people = (first.waiting + cohort.waiting).max(1);
                    let sum = u128::from(first.joined_at) * u128::from(first.waiting)
                        + u128::from(cohort.joined_at) * u128::from(cohort.waiting);
                    if first.waiting + cohort.waiting > 0 {
                        cohort.joined_at = (sum / u128::from(people)) as u64;
                    }
                    cohort.waiting += first.waiting;
                    kept.push_back(cohort);
                }
            }
        }
        kept.extend(pending);
        self.cohorts = kept;
    }
}
