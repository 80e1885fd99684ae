//! How far the log had come, at the least, when somebody asked something.
//!
//! Nothing is told before it is durable. So whatever version anybody had heard of by a moment was
//! in the log at that moment, and a command that was sent later was decided behind it. Together
//! with the version of its own answer this tells between which two points of the log a command
//! was decided.

use crate::history::{History, Moment, Outcome};

pub(super) struct Horizon {
    /// Moments of answers, ascending, each with the newest version heard of so far.
    heard: Vec<(Moment, u64)>,
}

impl Horizon {
    pub(super) fn of(history: &History) -> Horizon {
        // After a store lost data, versions of before say nothing about the log of today.
        if history.store_lost_data {
            return Horizon { heard: Vec::new() };
        }
        let answers = history.calls.iter().filter_map(|call| match call.outcome {
            Outcome::Answered { at, version, .. } => Some((at, version)),
            _ => None,
        });
        let mut heard: Vec<(Moment, u64)> = answers.collect();
        heard.sort_unstable();
        let mut newest = 0;
        for (_, version) in &mut heard {
            newest = newest.max(*version);
            *version = newest;
        }
        Horizon { heard }
    }

    /// The newest version that anybody had heard of before this moment.
    pub(super) fn before(&self, moment: Moment) -> u64 {
        let earlier = self.heard.partition_point(|(at, _)| *at < moment);
        earlier.checked_sub(1).map_or(0, |last| self.heard[last].1)
    }
}
