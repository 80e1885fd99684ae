//! From a projected wait to an interval that holds four times out of five.
//!
//! Lives here: estimates recorded for probes, and how they came out.
//! Stays out: how the projection is made; whatever it gets wrong shows up here as error.
//!
//! - [`drift`]: moves a projection on the way it has been moving;
//! - [`class`]: estimates that err alike, their errors, and how often their intervals held;
//! - [`fit`]: from errors to quantiles.
//!
//! The measure of an error is the logarithm of real over projected wait. What was learned from it
//! holds for whoever asks next only if they ask in the same way; so the estimates recorded here
//! are, like real ones, asked at random moments, not on the stroke of a tick.

mod class;
mod drift;
mod fit;
mod length;

use self::class::{Class, Learned, Said};
use self::drift::Drifts;
use self::fit::Miss;
use self::length::{LENGTHS, Lengths};
use super::projection::Projected;
use super::{Interval, Unknown, WIDTH_GIVEN_UP, WIDTH_MAX};

/// One class of doubt per doubling of its share of the wait, from a thousandth up.
const DOUBTS: usize = 9;
const DOUBT_FIRST: f64 = 0.001;

/// Where doubt is less than this share of the noise, noise decides.
const DOUBT_SLIGHT: f64 = 0.5;

/// Before a quarter of a wait has passed nothing can be said about how it goes.
const SHARE_MIN: f64 = 0.25;

/// An estimate recorded for a probe.
#[derive(Clone, Copy, Debug)]
struct Ask {
    tick_at: u64,
    /// How long after the tick it was asked.
    after_ms: f32,
    wait_ms: f32,
    /// On the scale of [`Miss`].
    noise: f32,
    doubt: f32,
    said: Said,
    length: u8,
    class: u8,
}

/// The estimates recorded for one probe: one for each class of length it has come through, taken
/// at a random moment of its time there.
#[derive(Clone, Debug, Default)]
pub(super) struct Asks {
    length: usize,
    looks: u32,
    asks: Vec<Ask>,
    /// The last look: when, and the wait projected then.
    last: Option<(u64, f32)>,
}

#[derive(Clone, Debug)]
pub(super) struct Calibration {
    lengths: Lengths,
    luck: u64,
    drifts: Drifts,
    /// First by length, then by doubt.
    classes: Vec<Class>,
}

impl Calibration {
    pub fn new(tick_ms: u64) -> Self {
        Calibration {
            lengths: Lengths { tick_ms: tick_ms as f64 },
            luck: 0,
            drifts: Drifts::default(),
            classes: vec![Class::new(); LENGTHS + DOUBTS],
        }
    }

    /// The interval for a projected wait.
    pub fn interval(&self, projected: Projected) -> Result<Interval, Unknown> {
        let projected = self.drifts.applied(projected, self.lengths);
        let (noise, doubt) = self.relative(projected);
        let class = &self.classes[self.class(projected.wait_ms, noise, doubt)];
        let base = projected.wait_ms + self.shift();
        let likely = projected.wait_ms;
        // Beyond twenty times as long or short nothing is said anyway.
        let at = |error: f64| (base * error.clamp(-3.0, 3.0).exp() - self.shift()).max(0.0);
        let width = |low: f64, high: f64| (high - low) / likely.max(1.0);
        // Within a few ticks of the front the ticks themselves are wider than the rule.
        let near = likely < 5.0 * self.lengths.tick_ms;
        let (low, high) = class.fitted(noise, doubt);
        if !near && width(at(low), at(high)) > WIDTH_GIVEN_UP {
            return Err(Unknown::TooWide);
        }
        let (low, high) = class.expected(noise, doubt);
        let (low, high) = (at(low), at(high));
        // Too wide is drawn in: less often right, but still of use.
        let keep = (WIDTH_MAX / width(low, high).max(1e-9)).min(1.0);
        let (low, high) = (likely - (likely - low) * keep, likely + (high - likely) * keep);
        Ok(Interval {
            low_ms: low.round() as u64,
            likely_ms: likely.round() as u64,
            high_ms: high.round() as u64,
        })
    }

    /// A probe is not reached yet; its wait is now projected anew.
    pub fn look(&mut self, at: u64, projected: Projected, asks: &mut Asks) {
        if let Some((then, wait_ms)) = asks.last
            && at > then
        {
            let passed = (at - then) as f64;
            let revised = (projected.wait_ms + passed - f64::from(wait_ms)) / passed;
            self.drifts.add(self.lengths.class(projected.wait_ms), revised);
        }
        asks.last = Some((at, projected.wait_ms as f32));
        let projected = self.drifts.applied(projected, self.lengths);
        for ask in &asks.asks {
            self.revised(at, ask, projected.wait_ms);
        }
        let length = self.lengths.class(projected.wait_ms);
        if asks.length != length {
            (asks.length, asks.looks) = (length, 0);
        }
        asks.looks += 1;
        // The k-th look replaces the earlier ones with chance 1/k: an even draw of all.
        if self.luck() * f64::from(asks.looks) <= 1.0 {
            let ask = self.ask(at, length, projected);
            match asks.asks.iter_mut().find(|known| usize::from(known.length) == length) {
                Some(known) => *known = ask,
                None => asks.asks.push(ask),
            }
        }
    }

    /// The front has passed a probe.
    pub fn resolved(&mut self, at: u64, asks: &Asks) {
        for ask in &asks.asks {
            let waited = at.saturating_sub(ask.tick_at) as f64 - f64::from(ask.after_ms);
            let miss = self.miss(waited, 1.0, ask);
            self.classes[usize::from(ask.class)].resolved(miss, ask.said);
        }
    }

    /// Takes up what was seen while `passed_ms` went by.
    pub fn refresh(&mut self, passed_ms: u64) {
        self.drifts.settle(passed_ms, self.lengths);
        for class in &mut self.classes {
            class.refresh(passed_ms);
        }
        let (lengths, doubts) = self.classes.split_at_mut(LENGTHS);
        for kind in [lengths, doubts] {
            let mut smaller = Learned::NOTHING;
            for class in kind {
                smaller = class.or_borrow(smaller);
            }
        }
    }

    fn ask(&mut self, at: u64, length: usize, projected: Projected) -> Ask {
        let after_ms = self.lengths.tick_ms * self.luck();
        let (noise, doubt) = self.relative(projected);
        let class = self.class(projected.wait_ms, noise, doubt);
        let (low, high) = self.classes[class].expected(noise, doubt);
        Ask {
            tick_at: at,
            after_ms: after_ms as f32,
            wait_ms: projected.wait_ms as f32,
            noise: noise as f32,
            doubt: doubt as f32,
            said: Said { low: low as f32, high: high as f32 },
            length: length as u8,
            class: class as u8,
        }
    }

    /// How an earlier estimate looks by now, drawn on to the end of the wait.
    fn revised(&mut self, at: u64, ask: &Ask, left_ms: f64) {
        let passed = at.saturating_sub(ask.tick_at) as f64;
        let total = passed + left_ms;
        let share = passed / total.max(1.0);
        if share < SHARE_MIN {
            return;
        }
        let wait_ms = f64::from(ask.wait_ms);
        // The ticks at both ends fall at random; a probe on its way has not met the second yet.
        let phase = (self.luck() + self.luck() - 1.0) * self.lengths.tick_ms;
        let miss = self.miss(wait_ms + (total - wait_ms) / share + phase, share, ask);
        self.classes[usize::from(ask.class)].revised(miss, ask.said, wait_ms);
    }

    fn miss(&self, actual_ms: f64, share: f64, ask: &Ask) -> Miss {
        let base = f64::from(ask.wait_ms) + self.shift();
        let error = ((actual_ms + self.shift()).max(1.0) / base).ln() as f32;
        Miss { error, noise: ask.noise, doubt: ask.doubt, share: share as f32 }
    }

    fn relative(&self, projected: Projected) -> (f64, f64) {
        let base = projected.wait_ms + self.shift();
        (projected.noise_ms / base, projected.doubt_ms / base)
    }

    /// Added to both sides of a ratio, to keep it sane for waits of a tick or two.
    fn shift(&self) -> f64 {
        self.lengths.tick_ms * 2.0
    }

    /// Where noise rules, estimates of like length err alike; where doubt rules, those of like
    /// doubt do.
    fn class(&self, wait_ms: f64, noise: f64, doubt: f64) -> usize {
        if doubt < noise * DOUBT_SLIGHT {
            return self.lengths.class(wait_ms);
        }
        let octaves = (doubt / DOUBT_FIRST).max(1.0).log2() as usize;
        LENGTHS + octaves.min(DOUBTS - 1)
    }

    /// Even in 0..1, always the same sequence: the same events make the same estimator.
    fn luck(&mut self) -> f64 {
        self.luck = self.luck.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.luck;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
