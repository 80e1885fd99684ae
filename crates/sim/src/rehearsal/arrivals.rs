//! When visitors arrive.
//!
//! Lives here: how many join in each tick, for each shape, and the reading of a CSV.
//! Stays out: who they are and what they do next.

use super::plan::{Plan, Shape};
use crate::rng::Rng;

/// Arrivals of each tick. They add up to the plan's visitors exactly; within that they scatter as
/// independent people do.
pub fn per_tick(plan: &Plan, rng: &mut Rng) -> Vec<u32> {
    let over_ms = match &plan.shape {
        Shape::Given(seconds) => seconds.len() as u64 * 1_000,
        _ => plan.over_ms,
    };
    let ticks = over_ms.div_ceil(plan.tick_ms).max(1) as usize;
    let given = match &plan.shape {
        Shape::Given(seconds) => cumulative(seconds),
        _ => Vec::new(),
    };
    let mut left = plan.visitors;
    let mut left_share = 1.0;
    let mut before = 0.0;
    (1..=ticks)
        .map(|tick| {
            let until = arrived_by(&plan.shape, &given, tick as f64 / ticks as f64);
            let share = (until - before).max(0.0);
            before = until;
            let n = if tick == ticks { left } else { rng.binomial(left, share / left_share) };
            left -= n;
            left_share = (left_share - share).max(f64::MIN_POSITIVE);
            u32::try_from(n).expect("a plan has at most VISITORS_MAX visitors")
        })
        .collect()
}

/// Share of all visitors that has arrived when `t` of the time (0 to 1) has passed.
fn arrived_by(shape: &Shape, given: &[f64], t: f64) -> f64 {
    match shape {
        Shape::Steady => t,
        // The crowd ebbs away with a twentieth of the whole time as its time constant.
        Shape::Spike => {
            let crowd = (1.0 - (-20.0 * t).exp()) / (1.0 - (-20.0f64).exp());
            0.75 * crowd + 0.25 * t
        }
        // In the last third the trickle grows linearly into the rush.
        Shape::Late => {
            let rush = ((t - 2.0 / 3.0).max(0.0) * 3.0).powi(2);
            0.25 * t + 0.75 * rush
        }
        Shape::Given(_) => {
            let at = t * (given.len() - 1) as f64;
            let i = (at as usize).min(given.len() - 2);
            given[i] + (given[i + 1] - given[i]) * (at - i as f64)
        }
    }
}

fn cumulative(seconds: &[u64]) -> Vec<f64> {
    let total: u64 = seconds.iter().sum();
    let mut sum = 0;
    let mut shares = vec![0.0];
    for n in seconds {
        sum += n;
        shares.push(sum as f64 / total.max(1) as f64);
    }
    shares
}

/// Reads lines of `second,arrivals`. Seconds ascend; missing ones had no arrivals. A first line
/// without digits is taken as a heading.
pub fn parse_csv(text: &str) -> Result<Vec<u64>, String> {
    let mut seconds: Vec<u64> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let (line, at) = (line.trim(), i + 1);
        if line.is_empty() || (i == 0 && !line.contains(|c: char| c.is_ascii_digit())) {
            continue;
        }
        let (second, arrivals) = line
            .split_once(',')
            .ok_or_else(|| format!("line {at}: \"{line}\" is not `second,arrivals`"))?;
        let second: usize = second
            .trim()
            .parse()
            .map_err(|_| format!("line {at}: \"{}\" is not a whole second", second.trim()))?;
        let arrivals: u64 = arrivals.trim().parse().map_err(|_| {
            format!("line {at}: \"{}\" is not a number of arrivals", arrivals.trim())
        })?;
        if second < seconds.len() {
            return Err(format!("line {at}: second {second} comes again or out of order"));
        }
        if second as u64 * 1_000 > super::plan::LENGTH_MS_MAX {
            return Err(format!("line {at}: second {second} lies beyond seven days"));
        }
        seconds.resize(second, 0);
        seconds.push(arrivals);
    }
    if seconds.iter().all(|&n| n == 0) {
        return Err("nobody arrives: the file has no line with arrivals above 0".into());
    }
    if seconds.iter().try_fold(0u64, |sum, &n| sum.checked_add(n)).is_none() {
        return Err("the arrivals add up to more than can be counted".into());
    }
    Ok(seconds)
}
