//! The estimates on trial: a sample of visitors asks "how long?", and reality answers.
//!
//! Lives here: who is asked when, and how the answers came out. Stays out: making estimates.
//! Each sampled visitor counts once, with an answer given at a uniformly random moment of their
//! wait. How long that is nobody knows beforehand, so the k-th tick of waiting replaces the
//! earlier answer with probability 1/k; whichever answer is there when they enter was drawn evenly.

use waitroom_core::estimate::{Interval, Unknown};

use super::outcome::{Estimates, EstimatesOf, UnknownShare};
use super::series::Series;
use crate::rng::Rng;

/// At most this many visitors are asked; beyond it more would not change the second digit.
const ASKED_MAX: u64 = 60_000;
/// Estimates of the first minute are not judged: nobody has been anywhere yet.
const FIRST_MS: u64 = 60_000;
/// Who waits less than this is through before they could read the answer.
const WAIT_MS_MIN: u64 = 1_000;

/// Upper ends of the classes of likely wait in the report.
const CLASSES: [(u64, &str); 6] = [
    (10_000, "under 10 s"),
    (60_000, "10 s to 1 min"),
    (300_000, "1 to 5 min"),
    (900_000, "5 to 15 min"),
    (3_600_000, "15 min to 1 h"),
    (u64::MAX, "over 1 h"),
];

#[derive(Clone, Copy, Debug)]
struct Asker {
    lane: u8,
    number: u32,
    joined_tick: u32,
    asked_tick: u32,
    /// Nobody asks on the stroke of a tick: how long after it this one did.
    after_ms: u32,
    answer: Result<Interval, Unknown>,
}

#[derive(Clone, Debug, Default)]
struct Tally {
    known: u64,
    below: u64,
    above: u64,
    too_wide: u64,
    real_over_likely: Vec<f32>,
}

impl Tally {
    fn spread(&mut self) -> [f64; 3] {
        self.real_over_likely.sort_by(f32::total_cmp);
        let last = self.real_over_likely.len().saturating_sub(1) as f64;
        [0.1, 0.5, 0.9].map(|p| {
            let at = (p * last).round() as usize;
            self.real_over_likely.get(at).map_or(1.0, |&ratio| f64::from(ratio))
        })
    }
}

#[derive(Debug)]
pub(super) struct Asks {
    tick_ms: u64,
    /// Every so many joins somebody is sampled.
    stride: u64,
    joins: u64,
    askers: Vec<Asker>,
    /// Indices of askers by lane, ascending by number: the room admits in that order.
    by_lane: Vec<std::collections::VecDeque<u32>>,
    all: Tally,
    classes: [Tally; CLASSES.len()],
    unknown: Vec<(Unknown, u64)>,
    widths: Vec<f32>,
}

impl Asks {
    pub fn new(visitors: u64, lanes: usize, tick_ms: u64) -> Self {
        Asks {
            tick_ms,
            stride: visitors.div_ceil(ASKED_MAX).max(1),
            joins: 0,
            askers: Vec::new(),
            by_lane: vec![Default::default(); lanes],
            all: Tally::default(),
            classes: Default::default(),
            unknown: Vec::new(),
            widths: Vec::new(),
        }
    }

    /// Somebody joined; if they are sampled, the index under which they will be asked.
    pub fn joined(&mut self, tick: u32, lane: u8, number: u32) -> Option<u32> {
        self.joins += 1;
        if !self.joins.is_multiple_of(self.stride) {
            return None;
        }
        let index = self.askers.len() as u32;
        let answer = Err(Unknown::NoData);
        self.askers.push(Asker {
            lane,
            number,
            joined_tick: tick,
            asked_tick: tick,
            after_ms: 0,
            answer,
        });
        self.by_lane[usize::from(lane)].push_back(index);
        Some(index)
    }

    pub fn who(&self, index: u32) -> (u8, u32) {
        let asker = &self.askers[index as usize];
        (asker.lane, asker.number)
    }

    /// Takes the answer given at `tick`; returns the tick at which to ask again.
    pub fn answered(
        &mut self,
        index: u32,
        tick: u32,
        answer: Result<Interval, Unknown>,
        rng: &mut Rng,
    ) -> usize {
        let asker = &mut self.askers[index as usize];
        (asker.asked_tick, asker.answer) = (tick, answer);
        asker.after_ms = rng.below(self.tick_ms) as u32;
        // The first tick of waiting is number one.
        let lived = f64::from(tick - asker.joined_tick) + 1.0;
        let next = (lived / rng.unit()).floor() + 1.0;
        (f64::from(asker.joined_tick) + next - 1.0).min(u32::MAX as f64) as usize
    }

    /// Somebody entered. Judges their answer if they were sampled.
    pub fn admitted(&mut self, tick: u32, lane: u8, number: u32, series: &mut Series) {
        let row = &mut self.by_lane[usize::from(lane)];
        while let Some(&front) = row.front() {
            let asker = self.askers[front as usize];
            if asker.number > number {
                return;
            }
            row.pop_front();
            if asker.number == number {
                return self.judge(tick, asker, series);
            }
            // A smaller number: that visitor had left.
        }
    }

    fn judge(&mut self, tick: u32, asker: Asker, series: &mut Series) {
        let ms = |ticks: u32| u64::from(ticks) * self.tick_ms;
        if ms(tick - asker.joined_tick) < WAIT_MS_MIN || ms(asker.asked_tick) < FIRST_MS {
            return;
        }
        let actual = ms(tick - asker.asked_tick).saturating_sub(u64::from(asker.after_ms));
        match asker.answer {
            Err(reason) => match self.unknown.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, n)) => *n += 1,
                None => self.unknown.push((reason, 1)),
            },
            Ok(interval) => {
                let width = (interval.high_ms - interval.low_ms) as f64;
                let relative = width / interval.likely_ms.max(1) as f64;
                self.widths.push(relative as f32);
                let class = CLASSES
                    .iter()
                    .position(|&(end, _)| interval.likely_ms < end)
                    .unwrap_or(CLASSES.len() - 1);
                for tally in [&mut self.all, &mut self.classes[class]] {
                    tally.known += 1;
                    tally.real_over_likely.push(actual as f32 / interval.likely_ms.max(1) as f32);
                    tally.below += u64::from(actual < interval.low_ms);
                    tally.above += u64::from(actual > interval.high_ms);
                    // Both ends are rounded to whole milliseconds.
                    tally.too_wide += u64::from(width > 2.0 * interval.likely_ms as f64 + 2.0);
                }
                let held = (interval.low_ms..=interval.high_ms).contains(&actual);
                series.asked(ms(asker.asked_tick), held);
            }
        }
    }

    pub fn estimates(mut self) -> Estimates {
        let unknown: u64 = self.unknown.iter().map(|&(_, n)| n).sum();
        let asked = unknown + self.all.known;
        let share = |n: u64, of: u64| (of > 0).then(|| n as f64 / of as f64);
        self.widths.sort_by(f32::total_cmp);
        let width = |p: f64| {
            let i = (p * self.widths.len().saturating_sub(1) as f64).round() as usize;
            self.widths.get(i).map(|&w| f64::from(w))
        };
        Estimates {
            asked,
            held: share(self.all.known - self.all.below - self.all.above, self.all.known),
            below: share(self.all.below, self.all.known),
            above: share(self.all.above, self.all.known),
            width_median: width(0.5),
            width_p90: width(0.9),
            wider_than_twice: share(self.all.too_wide, self.all.known),
            unknown: share(unknown, asked),
            unknown_because: self
                .unknown
                .iter()
                .map(|&(reason, n)| UnknownShare {
                    reason: reason.code().to_string(),
                    share: n as f64 / asked as f64,
                })
                .collect(),
            by_wait: CLASSES
                .iter()
                .zip(&mut self.classes)
                .filter(|(_, tally)| tally.known > 0)
                .map(|(&(_, name), tally)| EstimatesOf {
                    likely: name.to_string(),
                    asked: tally.known,
                    held: (tally.known - tally.below - tally.above) as f64 / tally.known as f64,
                    below: tally.below as f64 / tally.known as f64,
                    above: tally.above as f64 / tally.known as f64,
                    real_over_likely: tally.spread(),
                })
                .collect(),
        }
    }
}
