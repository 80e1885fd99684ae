//! From a projected wait to an interval that holds four times out of five.
//!
//! Lives here: estimates recorded for probes, and how they came out.
//! Stays out: how the projection is made; whatever it gets wrong shows up here as error.
//!
//! - [`drift`]: moves a projection on the way it has been moving;
//! - [`class`]: estimates that err alike, their errors, and how often their intervals held;
//! - [`fit`]: from errors to quantiles;
//! - [`voice`]: what was learned so far, and the interval it makes of a projection.
//!
//! The measure of an error is the logarithm of real over projected wait. What was learned from it
//! holds for whoever asks next only if they ask in the same way; so the estimates recorded here
//! are, like real ones, asked at random moments, not on the stroke of a tick.

mod class;
mod drift;
mod fit;
mod length;
mod voice;

pub(super) use self::voice::Voice;

use self::class::{Class, Learned, Said};
use self::fit::Miss;
use self::length::LENGTHS;
use self::voice::CLASSES;
use super::projection::Projected;

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
    voice: Voice,
    luck: u64,
    /// Beside what the voice has learned of each.
    classes: Vec<Class>,
}

impl Calibration {
    pub fn new(tick_ms: u64) -> Self {
        Calibration {
            voice: Voice::new(tick_ms as f64),
            luck: 0,
            classes: vec![Class::new(); CLASSES],
        }
    }

    pub fn voice(&self) -> &Voice {
        &self.voice
    }

    /// A probe is not reached yet; its wait is now projected anew.
    pub fn look(&mut self, at: u64, projected: Projected, asks: &mut Asks) {
        if let Some((then, wait_ms)) = asks.last
            && at > then
        {
            let passed = (at - then) as f64;
            let revised = (projected.wait_ms + passed - f64::from(wait_ms)) / passed;
            let length = self.voice.lengths.class(projected.wait_ms);
            self.voice.drifts.add(length, revised);
        }
        asks.last = Some((at, projected.wait_ms as f32));
        let projected = self.voice.drifted(projected);
        for ask in &asks.asks {
            self.revised(at, ask, projected.wait_ms);
        }
        let length = self.voice.lengths.class(projected.wait_ms);
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
            let class = usize::from(ask.class);
            self.classes[class].resolved(miss, ask.said, &mut self.voice.learned[class]);
        }
    }

    /// Takes up what was seen while `passed_ms` went by.
    pub fn refresh(&mut self, passed_ms: u64) {
        let Voice { lengths, drifts, learned } = &mut self.voice;
        drifts.settle(passed_ms, *lengths);
        for (class, learned) in self.classes.iter_mut().zip(learned.iter_mut()) {
            class.refresh(passed_ms, learned);
        }
        let (lengths, doubts) = self.classes.split_at(LENGTHS);
        let (of_lengths, of_doubts) = learned.split_at_mut(LENGTHS);
        for (kind, learned) in [(lengths, of_lengths), (doubts, of_doubts)] {
            // A class that has seen nothing yet takes over what the next smaller one has learned.
            let mut smaller = Learned::NOTHING;
            for (class, learned) in kind.iter().zip(learned) {
                if !class.known() {
                    *learned = smaller;
                }
                smaller = *learned;
            }
        }
    }

    fn ask(&mut self, at: u64, length: usize, projected: Projected) -> Ask {
        let after_ms = self.voice.lengths.tick_ms * self.luck();
        let (noise, doubt) = self.voice.relative(projected);
        let class = self.voice.class(projected.wait_ms, noise, doubt);
        let (low, high) = self.voice.learned[class].expected(noise, doubt);
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
        let phase = (self.luck() + self.luck() - 1.0) * self.voice.lengths.tick_ms;
        let miss = self.miss(wait_ms + (total - wait_ms) / share + phase, share, ask);
        self.classes[usize::from(ask.class)].revised(miss, ask.said, wait_ms);
    }

    fn miss(&self, actual_ms: f64, share: f64, ask: &Ask) -> Miss {
        let shift = self.voice.shift();
        let base = f64::from(ask.wait_ms) + shift;
        let error = ((actual_ms + shift).max(1.0) / base).ln() as f32;
        Miss { error, noise: ask.noise, doubt: ask.doubt, share: share as f32 }
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
