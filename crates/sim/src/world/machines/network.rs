//! The network between instances: letters on their way, late, twice, never, and out of order.

use super::super::bug::Bug;
use super::tray::{Letter, Posted};
use crate::rng::Rng;
use std::collections::BTreeMap;
use waitroom_core::Command;
use waitroom_engine::Commands;

/// What became of the letters.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::world) struct Delivered {
    pub(in crate::world) sent: u64,
    pub(in crate::world) late: u64,
    pub(in crate::world) twice: u64,
    pub(in crate::world) lost: u64,
    pub(in crate::world) slow_ways: u64,
}

pub(super) struct Network {
    rng: Rng,
    /// By the time of arrival and, within one millisecond, the order of sending.
    on_the_way: BTreeMap<(u64, u64), Posted>,
    posted: u64,
    /// By sender and receiver: everything takes so much longer, until then.
    slow: BTreeMap<(usize, usize), (u64, u64)>,
    pub(super) delivered: Delivered,
    pub(super) calm: bool,
    /// How often each kind of trouble meets a letter.
    trouble: f64,
    bug: Option<Bug>,
}

/// What the network did with a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Arrives,
    Twice,
    Lost,
}

impl Network {
    pub(super) fn new(rng: Rng, trouble: f64, bug: Option<Bug>) -> Network {
        Network {
            rng,
            on_the_way: BTreeMap::new(),
            posted: 0,
            slow: BTreeMap::new(),
            delivered: Delivered::default(),
            calm: false,
            trouble,
            bug,
        }
    }

    /// Takes a letter. `cut` says that one of the two can be reached by nobody.
    pub(super) fn take(&mut self, now: u64, posted: Posted, cut: bool) -> Fate {
        self.delivered.sent += 1;
        let trouble = if self.calm { 0.0 } else { self.trouble };
        // A bug of reports shows where many of them are lost.
        let lost = match self.bug {
            Some(Bug::LostReportsUnnoticed | Bug::OneReportTooFar) if posted.letter.is_report() => {
                0.25
            }
            Some(Bug::ReportsNeverOld) if posted.letter.is_report() => 0.7,
            _ => trouble / 2.0,
        };
        if cut || self.rng.chance(lost) {
            self.delivered.lost += 1;
            return Fate::Lost;
        }
        if self.rng.chance(trouble / 50.0) {
            let (until, longer) = (now + 5_000 + self.rng.below(20_000), self.rng.below(6_000));
            self.slow.insert((posted.from, posted.to), (until, longer));
            self.delivered.slow_ways += 1;
        }
        let twice = self.rng.chance(trouble);
        if twice {
            self.delivered.twice += 1;
            self.put(now, self.copy(&posted), trouble);
        }
        self.put(now, posted, trouble);
        if twice { Fate::Twice } else { Fate::Arrives }
    }

    fn copy(&self, posted: &Posted) -> Posted {
        let mut copy = posted.clone();
        if self.bug == Some(Bug::SecondCopyWithoutKey)
            && let Letter::Request { commands: Commands::One(Command::Join(join)), .. } =
                &mut copy.letter
        {
            (join.key, join.identity, join.holding) = (None, None, None);
        }
        copy
    }

    fn put(&mut self, now: u64, posted: Posted, trouble: f64) {
        let late = self.rng.chance(2.0 * trouble);
        self.delivered.late += u64::from(late);
        let takes = match late {
            // Long enough for a lease to end, and for whoever asked to give up.
            true => 100 + self.rng.below(6_000),
            false => 1 + self.rng.below(20),
        };
        let way = self.slow.get(&(posted.from, posted.to)).filter(|_| !self.calm);
        let longer = way.filter(|(until, _)| now < *until).map_or(0, |(_, longer)| *longer);
        self.posted += 1;
        self.on_the_way.insert((now + takes + longer, self.posted), posted);
    }

    /// What has arrived by now.
    pub(super) fn arrived(&mut self, now: u64) -> Vec<Posted> {
        let later = self.on_the_way.split_off(&(now + 1, 0));
        std::mem::replace(&mut self.on_the_way, later).into_values().collect()
    }
}

impl Letter {
    fn is_report(&self) -> bool {
        matches!(self, Letter::Report { .. })
    }

    /// The one command of a visitor that a request carries.
    pub(super) fn command(&self) -> Option<&Command> {
        match self {
            Letter::Request { commands: Commands::One(command), .. } => Some(command),
            _ => None,
        }
    }
}
