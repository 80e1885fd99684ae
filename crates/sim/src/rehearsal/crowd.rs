//! What visitors are like: how long they are willing to wait, how fast they react, how long they
//! stay. Lives here: the draws. Stays out: when they are drawn and what follows.

use super::plan::{Patience, Plan};
use crate::rng::Rng;

/// The 2^-32 of people who would wait for years wait for this long instead.
const LONGEST_MS: f64 = 30.0 * 24.0 * 3_600_000.0;

/// How long this visitor waits before giving up; none: as long as it takes.
pub(super) fn patience_ms(plan: &Plan, rng: &mut Rng) -> Option<u64> {
    let ms = match plan.patience {
        Patience::Endless => return None,
        Patience::Exponential { median_ms } => {
            median_ms as f64 * rng.exponential() / std::f64::consts::LN_2
        }
        Patience::Weibull { median_ms, shape } => {
            median_ms as f64 * (rng.exponential() / std::f64::consts::LN_2).powf(1.0 / shape)
        }
        Patience::Lognormal { median_ms, spread } => {
            median_ms as f64 * (spread * rng.normal()).exp()
        }
    };
    Some(ms.min(LONGEST_MS) as u64)
}

/// How long an admitted visitor takes to claim.
pub(super) fn reaction_ms(plan: &Plan, rng: &mut Rng) -> u64 {
    let ms = plan.reaction_ms as f64 * (0.5 * rng.normal()).exp();
    // Later than the hold allows would be a no-show, and those are drawn by their own share.
    (ms as u64).min(plan.hold_ms.saturating_sub(plan.tick_ms))
}

/// How long a visitor stays inside after claiming.
pub(super) fn session_ms(plan: &Plan, rng: &mut Rng) -> u64 {
    let ms = plan.session_ms as f64 * (plan.session_spread * rng.normal()).exp();
    ms.min(LONGEST_MS) as u64
}

/// After how long somebody who gave up comes back; none: never.
pub(super) fn return_ms(plan: &Plan, rng: &mut Rng) -> Option<u64> {
    rng.chance(plan.come_back)
        .then(|| (plan.come_back_after_ms as f64 * rng.exponential()).min(LONGEST_MS) as u64)
}
