//! Who is inside, by how long already, and when their slots will come back.
//!
//! Lives here: cohorts of slots by the moment they were taken, and the forecast of admissions
//! while the slots bind. Stays out: tickets and passes.
//! When a room fills at once, its slots come back in a wave, and the wave returns as an echo each
//! time the slots turn over. A mean would be wrong for most of the first hour, so the forecast
//! follows ages: what share of each age ends in the next step, and who takes their slots.

use std::collections::VecDeque;

use super::ageing::{Ageing, Belief, Hazard, Lean};

const COHORTS_MAX: usize = 96;

/// Steps of the forecast, and how many of them make a mean stay. After four stays the echoes have
/// died away and the last pace is kept.
const STEPS: usize = 96;
const STEPS_PER_STAY: f64 = 24.0;

/// Every session ends, most after a few minutes: until some have, that much is assumed.
const BELIEF: Belief = Belief {
    trend_max: 2.0,
    trend_doubt: 0.15,
    faster_ms: 4.0 * 60_000.0,
    even_ms: 8.0 * 60_000.0,
    rise_max: None,
};

#[derive(Clone, Debug)]
pub(super) struct Inside {
    cohorts: VecDeque<(u64, u64)>,
    active: u64,
    ending: Ageing,
}

/// Admissions per millisecond over the time to come.
#[derive(Clone, Debug)]
pub(super) struct PaceAhead {
    step_ms: f64,
    steps: Vec<f64>,
    /// Slots, not the rate, set the pace in this step: it is measured, not known.
    pub slots_bind: bool,
}

impl PaceAhead {
    pub fn constant(per_ms: f64) -> Self {
        PaceAhead { step_ms: 1.0, steps: vec![per_ms], slots_bind: false }
    }

    pub fn at(&self, t_ms: f64) -> f64 {
        let at = (t_ms / self.step_ms) as usize;
        self.steps[at.min(self.steps.len() - 1)]
    }
}

impl Inside {
    pub fn new() -> Self {
        Inside { cohorts: VecDeque::new(), active: 0, ending: Ageing::new(BELIEF) }
    }

    pub fn active(&self) -> u64 {
        self.active
    }

    pub fn entered(&mut self, at: u64, n: u64) {
        self.active += n;
        match self.cohorts.back_mut() {
            Some((since, people)) if *since + 1_000 > at => *people += n,
            _ => {
                if self.cohorts.len() >= COHORTS_MAX {
                    self.thin();
                }
                self.cohorts.push_back((at, n));
            }
        }
    }

    /// A slot taken at `since` came back.
    pub fn freed(&mut self, at: u64, since: u64) {
        self.active = self.active.saturating_sub(1);
        let behind = self.cohorts.partition_point(|&(start, _)| start <= since);
        if let Some((start, people)) = self.cohorts.get_mut(behind.saturating_sub(1)) {
            *people = people.saturating_sub(1);
            self.ending.departed(at.saturating_sub(*start));
        }
        while self.cohorts.front().is_some_and(|&(_, people)| people == 0) {
            self.cohorts.pop_front();
        }
    }

    pub fn pass(&mut self, at: u64, passed_ms: u64) {
        self.ending.decay(passed_ms);
        for &(since, people) in &self.cohorts {
            self.ending.exposed(at.saturating_sub(since), people, passed_ms);
        }
    }

    /// The pace to come when at most `limit_per_ms` may enter and `max` may be inside.
    pub fn ahead(&self, at: u64, limit_per_ms: f64, max: u64, lean: Lean) -> PaceAhead {
        let curve = self.ending.curve(lean);
        let stay_ms = mean_stay(&curve);
        // Where the rate can never fill the slots, the rate alone sets the pace.
        let filled = limit_per_ms * stay_ms;
        if filled < max as f64 * 0.7 && (self.active as f64) < max as f64 * 0.7 {
            return PaceAhead::constant(limit_per_ms);
        }
        let step_ms = stay_ms / STEPS_PER_STAY;
        // Those inside by age in steps; the last entry gathers everyone older.
        let mut ages = vec![0.0; STEPS * 2];
        let last = ages.len() - 1;
        for &(since, people) in &self.cohorts {
            let age = at.saturating_sub(since) as f64 / step_ms;
            ages[(age as usize).min(last)] += people as f64;
        }
        let ends: Vec<f64> = (0..=last)
            .map(|age| 1.0 - curve.survival((age as f64 + 0.5) * step_ms, step_ms))
            .collect();
        let mut active = self.active as f64;
        let mut slots_bind = false;
        let steps = (0..STEPS)
            .map(|_| {
                let mut freed = 0.0;
                for (people, ends) in ages.iter_mut().zip(&ends) {
                    let gone = *people * ends;
                    *people -= gone;
                    freed += gone;
                }
                active -= freed;
                let room = (max as f64 - active).max(0.0);
                let entering = room.min(limit_per_ms * step_ms);
                slots_bind |= room <= limit_per_ms * step_ms;
                active += entering;
                ages[last] += ages[last - 1];
                ages.copy_within(0..last - 1, 1);
                ages[0] = entering;
                entering / step_ms
            })
            .collect();
        PaceAhead { step_ms, steps, slots_bind }
    }

    fn thin(&mut self) {
        let mut kept: VecDeque<(u64, u64)> = VecDeque::with_capacity(COHORTS_MAX);
        for (i, (since, people)) in self.cohorts.drain(..).enumerate() {
            match kept.back_mut() {
                Some(before) if i % 2 == 1 => before.1 += people,
                _ => kept.push_back((since, people)),
            }
        }
        self.cohorts = kept;
    }
}

/// The mean stay that follows from the curve, within what a forecast can use.
fn mean_stay(curve: &Hazard) -> f64 {
    // Steps that grow with age: the curve itself is drawn over log age.
    let (mut age, mut sum, mut alive) = (0.0, 0.0, 1.0f64);
    while age < 6.0 * 3_600_000.0 && alive > 1e-3 {
        let step = (age * 0.1_f64).max(1_000.0);
        let next = curve.survival(0.0, age + step);
        sum += (alive + next) * 0.5 * step;
        alive = next;
        age += step;
    }
    sum.clamp(10_000.0, 3.0 * 3_600_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_comes_back_to_those_who_came_with_it() {
        let mut inside = Inside::new();
        [0, 10_000, 20_000].into_iter().for_each(|at| inside.entered(at, 10));
        inside.freed(30_000, 10_000);
        inside.freed(30_000, 19_999);
        inside.freed(30_000, 25_000);
        assert_eq!(inside.cohorts, [(0, 10), (10_000, 8), (20_000, 9)]);
        (0..10).for_each(|_| inside.freed(40_000, 500));
        assert_eq!((inside.cohorts.len(), inside.active()), (2, 17));
    }

    #[test]
    fn thinning_loses_nobody() {
        let mut inside = Inside::new();
        for second in 0..1_000 {
            inside.entered(second * 1_000, 3);
        }
        assert!(inside.cohorts.len() <= COHORTS_MAX);
        assert_eq!(inside.cohorts.iter().map(|(_, people)| people).sum::<u64>(), 3_000);
        assert!(inside.cohorts.iter().is_sorted());
    }

    #[test]
    fn a_full_house_lets_in_as_many_as_leave() {
        let (mut inside, mut slots, mut looked_at) = (Inside::new(), Vec::new(), 0_u64);
        // Ten enter every three seconds, and one in a hundred of those inside leaves: about a
        // thousand are inside, for five minutes each.
        for at in (0..1_000).map(|step| step * 3_000) {
            inside.entered(at, 10);
            slots.extend([at; 10]);
            slots.retain(|&since| {
                looked_at += 1;
                let stays = looked_at % 100 != 0;
                if !stays {
                    inside.freed(at, since);
                }
                stays
            });
            inside.pass(at, 3_000);
        }
        let (at, slots_max) = (1_000 * 3_000, 1_000);
        let ahead = inside.ahead(at, 1.0, slots_max, Lean::Even);
        assert!(ahead.slots_bind, "{ahead:?}");
        let per_second = ahead.at(60_000.0) * 1_000.0;
        assert!((2.5..4.2).contains(&per_second), "{per_second}");
        // A rate far below what the slots allow is the whole of it.
        let ahead = inside.ahead(at, 0.000_5, slots_max * 10, Lean::Even);
        assert!(!ahead.slots_bind && ahead.at(60_000.0) == 0.000_5);
    }
}
