//! The sale over time, second by second, thinned out at the end for charts.
//! Lives here: counting per second. Stays out: drawing.

use super::outcome::Moment;

/// Points in a chart: as many as a wide screen can tell apart.
const MOMENTS_MAX: usize = 240;
/// Waits remembered per second, enough for percentiles over a chart's point.
const WAITS_KEPT: usize = 8;

#[derive(Clone, Debug, Default)]
struct Second {
    joined: u32,
    admitted: u32,
    departed: u32,
    waiting: u64,
    active: u64,
    waits: Vec<u32>,
    asked: u32,
    held: u32,
}

#[derive(Debug, Default)]
pub(super) struct Series {
    seconds: Vec<Second>,
}

impl Series {
    fn second(&mut self, at_ms: u64) -> &mut Second {
        let i = (at_ms / 1_000) as usize;
        if i >= self.seconds.len() {
            self.seconds.resize(i + 1, Second::default());
        }
        &mut self.seconds[i]
    }

    pub fn joined(&mut self, at_ms: u64, n: u32) {
        self.second(at_ms).joined += n;
    }

    pub fn departed(&mut self, at_ms: u64) {
        self.second(at_ms).departed += 1;
    }

    pub fn admitted(&mut self, at_ms: u64, wait_ticks: u64) {
        let second = self.second(at_ms);
        second.admitted += 1;
        // Every power of two keeps the sample spread over the second without chance.
        if second.waits.len() < WAITS_KEPT {
            second.waits.push(wait_ticks as u32);
        } else if second.admitted.is_power_of_two() {
            let at = second.admitted.trailing_zeros() as usize % WAITS_KEPT;
            second.waits[at] = wait_ticks as u32;
        }
    }

    pub fn asked(&mut self, asked_at_ms: u64, held: bool) {
        let second = self.second(asked_at_ms);
        second.asked += 1;
        second.held += u32::from(held);
    }

    pub fn level(&mut self, at_ms: u64, waiting: u64, active: u64) {
        let second = self.second(at_ms);
        second.waiting = waiting;
        second.active = active;
    }

    /// Most admissions within one second.
    pub fn busiest(&self) -> u64 {
        self.seconds.iter().map(|s| u64::from(s.admitted)).max().unwrap_or(0)
    }

    pub fn peaks(&self) -> (u64, u64) {
        let waiting = self.seconds.iter().map(|s| s.waiting).max().unwrap_or(0);
        let active = self.seconds.iter().map(|s| s.active).max().unwrap_or(0);
        (waiting, active)
    }

    /// Admissions per second over the seconds that ended with people still waiting.
    pub fn pace_while_waiting(&self) -> Option<f64> {
        let busy = self.seconds.iter().filter(|s| s.waiting > 0);
        let (n, seconds) = busy.fold((0u64, 0u64), |(n, s), x| (n + u64::from(x.admitted), s + 1));
        (seconds > 0).then(|| n as f64 / seconds as f64)
    }

    pub fn moments(&self, until_ms: u64, tick_ms: u64) -> Vec<Moment> {
        let end = ((until_ms / 1_000 + 1) as usize).min(self.seconds.len());
        let width = end.div_ceil(MOMENTS_MAX).max(1);
        self.seconds[..end]
            .chunks(width)
            .enumerate()
            .map(|(i, part)| {
                let per_second = |n: u64| n as f64 / part.len() as f64;
                let sum = |f: fn(&Second) -> u32| part.iter().map(|s| u64::from(f(s))).sum::<u64>();
                let mut waits: Vec<u32> = part.iter().flat_map(|s| s.waits.clone()).collect();
                waits.sort_unstable();
                let at = |p: f64| {
                    let i = (p * waits.len().saturating_sub(1) as f64).round() as usize;
                    waits.get(i).map(|&ticks| u64::from(ticks) * tick_ms)
                };
                let asked = sum(|s| s.asked);
                Moment {
                    at_s: (i * width) as u64,
                    joined_per_s: per_second(sum(|s| s.joined)),
                    admitted_per_s: per_second(sum(|s| s.admitted)),
                    admitted_in_busiest_s: part.iter().map(|s| s.admitted).max().unwrap_or(0),
                    departed_per_s: per_second(sum(|s| s.departed)),
                    waiting: part.last().map_or(0, |s| s.waiting),
                    active: part.last().map_or(0, |s| s.active),
                    wait_p10_ms: at(0.1),
                    wait_p50_ms: at(0.5),
                    wait_p90_ms: at(0.9),
                    held: (asked >= 20).then(|| sum(|s| s.held) as f64 / asked as f64),
                }
            })
            .collect()
    }
}
