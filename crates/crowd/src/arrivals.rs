//! When people come.
//!
//! Each shape says at which share of the time a share of the people has come; a visitor's own
//! moment is that curve at a random place, so the same seed gives the same crowd.

use serde::{Deserialize, Serialize};

use crate::rng::Rng;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Most come at once, and the rest trickles in.
    #[default]
    Spike,
    /// The same number every second.
    Steady,
    /// A growing rush until the end.
    Late,
    /// Three swells.
    Wave,
}

impl Shape {
    pub fn parse(text: &str) -> Result<Shape, String> {
        match text {
            "spike" => Ok(Shape::Spike),
            "steady" => Ok(Shape::Steady),
            "late" => Ok(Shape::Late),
            "wave" => Ok(Shape::Wave),
            other => Err(format!("\"{other}\" is no shape; write spike, steady, late or wave")),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Shape::Spike => "spike",
            Shape::Steady => "steady",
            Shape::Late => "late",
            Shape::Wave => "wave",
        }
    }

    /// From a share of the people to a share of the time; grows from 0 to 1.
    fn when(self, share: f64) -> f64 {
        match self {
            // Half come in the first hundredth, nine in ten in the first quarter.
            Shape::Spike => share.powi(6).max(0.02 * share),
            Shape::Steady => share,
            Shape::Late => share.powf(0.4),
            Shape::Wave => {
                let swells = 3.0;
                let turn = std::f64::consts::TAU * swells;
                // Close to the slope at which it would go backwards: nearly nobody between swells.
                share - 0.95 * (turn * share).sin() / turn
            }
        }
    }
}

/// The arrivals of everyone, in milliseconds, ascending.
pub fn arrivals(visitors: u64, over_ms: u64, shape: Shape, seed: u64) -> Vec<u64> {
    let mut rng = Rng::of(seed, u64::MAX);
    let moment = |share: f64| (shape.when(share).clamp(0.0, 1.0) * over_ms as f64) as u64;
    let mut all: Vec<u64> = (0..visitors).map(|_| moment(rng.unit())).collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_comes_within_the_time_and_in_the_shape() {
        let early = |shape: Shape| {
            let all = arrivals(10_000, 1_000, shape, 7);
            assert_eq!(all.len(), 10_000);
            assert!(all.is_sorted() && all.last().is_some_and(|last| *last <= 1_000));
            all.iter().filter(|at| **at < 250).count()
        };
        assert!(early(Shape::Spike) > 7_500);
        assert!((2_300..2_700).contains(&early(Shape::Steady)));
        assert!(early(Shape::Late) < 500);
        assert!((2_000..3_500).contains(&early(Shape::Wave)));
    }

    #[test]
    fn the_same_seed_gives_the_same_crowd() {
        let one = arrivals(100, 1_000, Shape::Wave, 7);
        assert_eq!(one, arrivals(100, 1_000, Shape::Wave, 7));
        assert_ne!(one, arrivals(100, 1_000, Shape::Wave, 8));
    }
}
