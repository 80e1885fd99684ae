//! What the errors of one class have in common.
//!
//! Lives here: how far the doubt of the projection came true, and the quantiles of what remains.
//! Stays out: where the errors come from and what is made of them.
//! An error has two sources of unlike nature. *Noise* is chance and always there. *Doubt* is what
//! the projection could not know; it may come out one-sided, scattered, or not at all. The fit
//! finds how much of the doubt came true, so that an estimate with other doubt can be judged too.

/// How wrong an estimate was, and how wrong it might have been expected to be. All are logarithms
/// of ratios: half as long and twice as long are equally wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Miss {
    pub error: f32,
    pub noise: f32,
    pub doubt: f32,
    /// How much of the wait had passed when this was judged; 1 once the probe was reached.
    pub share: f32,
}

/// Left out at each end of the interval.
const TAIL: f64 = 0.10;

/// Where a tenth of a normal's draws lie beyond.
const NORMAL_TENTH: f64 = 1.28;

/// Five draws of a normal, evenly spaced: what is expected before much was seen. They keep a short
/// row of like errors from shrinking the interval to nothing.
const NORMAL: [f32; 5] = [-1.28, -0.52, 0.0, 0.52, 1.28];

/// So much of the doubt is kept whatever was seen, up to one part in a hundred of the wait: that
/// people stayed so far is no proof that they will.
const DOUBT_KEPT: f64 = 0.8;
const DOUBT_KEPT_MAX: f64 = 0.012;

#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    /// The doubt came out one-sided by this much of it, and scattered by that much.
    lean: f64,
    scatter: f64,
    /// Quantiles of what remains, in units of noise and scattered doubt together.
    low: f64,
    middle: f64,
    high: f64,
}

/// The error to expect: the middle, and how far the interval reaches down and up from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub middle: f64,
    pub down: f64,
    pub up: f64,
}

impl Fit {
    /// Before anything came back: the doubt is taken at its word.
    pub const BLANK: Fit =
        Fit { lean: 0.0, scatter: 0.5, low: -NORMAL_TENTH, middle: 0.0, high: NORMAL_TENTH };

    /// `misses` must not be empty.
    pub fn of(misses: &[Miss]) -> Fit {
        let mean = |f: fn(&Miss) -> f32| {
            misses.iter().map(|m| f64::from(f(m))).sum::<f64>() / misses.len() as f64
        };
        // Half a wait that went as projected does not prove the other half.
        let (share, doubt) = (mean(|m| m.share), mean(|m| m.doubt));
        let kept = (DOUBT_KEPT * doubt).min(DOUBT_KEPT_MAX) / doubt.max(DOUBT_KEPT_MAX);
        let floor = (1.0 - share).max(kept);
        let mut fit = Fit { lean: lean(misses) * share, ..Fit::BLANK };
        fit.scatter = fit.least_scatter(misses);
        let proven = if fit.scatter < floor { fit.scatter / floor } else { 1.0 };
        fit.scatter = fit.scatter.max(floor);
        let mut rest: Vec<f32> = misses.iter().map(|m| fit.standard(m) as f32).collect();
        rest.extend(NORMAL);
        rest.sort_by(f32::total_cmp);
        let trust = share.min(proven);
        let blend = |seen: f64, blank: f64| trust * seen + (1.0 - trust) * blank;
        fit.low = blend(quantile(&rest, TAIL), Fit::BLANK.low);
        fit.middle = blend(quantile(&rest, 0.5), Fit::BLANK.middle);
        fit.high = blend(quantile(&rest, 1.0 - TAIL), Fit::BLANK.high);
        fit
    }

    pub fn expected(&self, noise: f64, doubt: f64) -> Expected {
        let spread = self.spread(noise, doubt);
        Expected {
            middle: self.lean * doubt + self.middle * spread,
            down: (self.middle - self.low) * spread,
            up: (self.high - self.middle) * spread,
        }
    }

    /// The smallest scatter with which four of five errors are within a normal's four fifths.
    fn least_scatter(self, misses: &[Miss]) -> f64 {
        let (mut from, mut to) = (0.0, 3.0);
        let mut scatter = 1.5;
        // Eight halvings leave a hundredth of the doubt, finer than sixty errors can tell.
        for _ in 0..8 {
            scatter = (from + to) * 0.5;
            let tried = Fit { scatter, ..self };
            let within = misses.iter().filter(|m| tried.standard(m).abs() <= NORMAL_TENTH).count();
            if within * 5 >= misses.len() * 4 { to = scatter } else { from = scatter }
        }
        scatter
    }

    fn standard(&self, miss: &Miss) -> f64 {
        let (noise, doubt) = (f64::from(miss.noise), f64::from(miss.doubt));
        (f64::from(miss.error) - self.lean * doubt) / self.spread(noise, doubt)
    }

    fn spread(&self, noise: f64, doubt: f64) -> f64 {
        noise.hypot(self.scatter * doubt).max(1e-9)
    }
}

/// The middle of error over doubt, where doubt is most of what there is; zero where it is not.
fn lean(misses: &[Miss]) -> f64 {
    let mut leans: Vec<f32> =
        misses.iter().filter(|m| m.doubt > m.noise).map(|m| m.error / m.doubt).collect();
    if leans.len() * 2 <= misses.len() {
        return 0.0;
    }
    leans.sort_by(f32::total_cmp);
    quantile(&leans, 0.5)
}

fn quantile(sorted: &[f32], q: f64) -> f64 {
    // The conformal rank: one more than there are, so that few errors give a wider interval.
    let n = sorted.len() as f64;
    let at = if q < 0.5 {
        (q * (n + 1.0)).floor() - 1.0
    } else if q > 0.5 {
        (q * (n + 1.0)).ceil() - 1.0
    } else {
        (n - 1.0) / 2.0
    };
    f64::from(sorted[(at.max(0.0) as usize).min(sorted.len() - 1)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_of_few_errors_is_further_out_than_of_many() {
        let nine: Vec<f32> = (1..=9).map(|n| n as f32).collect();
        let tails = |sorted: &[f32]| [0.1, 0.5, 0.9].map(|q| quantile(sorted, q));
        assert_eq!(tails(&nine), [1.0, 5.0, 9.0]);
        let hundred: Vec<f32> = (1..=100).map(|n| n as f32).collect();
        assert_eq!(tails(&hundred), [10.0, 50.0, 91.0]);
        assert_eq!(tails(&[7.0]), [7.0; 3]);
    }

    #[test]
    fn doubt_that_never_came_true_is_not_forgotten_altogether() {
        let miss = |doubt| Miss { error: 0.0, noise: 0.000_1, doubt, share: 1.0 };
        for doubt in [0.002, 0.01, 0.5] {
            let fit = Fit::of(&[miss(doubt); 60]);
            let kept = (DOUBT_KEPT * f64::from(doubt)).min(DOUBT_KEPT_MAX);
            let share = kept / f64::from(doubt).max(DOUBT_KEPT_MAX);
            assert!((fit.scatter - share).abs() < 1e-9, "{doubt}: {fit:?}");
            assert!(fit.lean == 0.0);
        }
    }

    #[test]
    fn half_a_wait_that_went_as_projected_does_not_prove_the_other_half() {
        let miss = |share| Miss { error: 0.0, noise: 0.001, doubt: 0.2, share };
        let (half, whole) = (Fit::of(&[miss(0.5); 60]), Fit::of(&[miss(1.0); 60]));
        assert!((half.scatter - 0.5).abs() < 1e-9, "{half:?}");
        let width = |fit: Fit| {
            let Expected { down, up, .. } = fit.expected(0.001, 0.2);
            down + up
        };
        assert!(width(half) > 5.0 * width(whole), "{half:?}, {whole:?}");
    }

    #[test]
    fn a_doubt_that_always_comes_out_one_way_moves_the_middle_there() {
        let misses = [Miss { error: 0.1, noise: 0.001, doubt: 0.2, share: 1.0 }; 60];
        let Expected { middle, down, up } = Fit::of(&misses).expected(0.001, 0.4);
        assert!((middle - 0.2).abs() < 0.01, "{middle}");
        assert!(down > 0.0 && up > 0.0 && down < 0.1 && up < 0.1, "{down}, {up}");
    }
}
