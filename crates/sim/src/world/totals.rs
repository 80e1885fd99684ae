//! What a run did and suffered, so that a quiet simulator cannot pass for a good one.

use std::fmt;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub commands: u64,
    pub events: u64,
    pub answered: u64,
    pub unknown: u64,
    pub crashes: u64,
    pub torn_writes: u64,
    pub fencings: u64,
    pub unknown_appends: u64,
    pub takeovers: u64,
    pub pauses: u64,
    pub partitions: u64,
    pub clock_jumps: u64,
    pub disk_faults: u64,
    pub snapshots: u64,
    pub admissions: u64,
    pub draws: u64,
    pub forgeries: u64,
}

impl Totals {
    pub fn add(&mut self, other: &Totals) {
        for (mine, theirs) in self.fields_mut().into_iter().zip(other.fields()) {
            *mine.1 += theirs.1;
        }
    }

    pub fn fields(&self) -> [(&'static str, u64); 17] {
        let mut copy = *self;
        copy.fields_mut().map(|(name, value)| (name, *value))
    }

    fn fields_mut(&mut self) -> [(&'static str, &mut u64); 17] {
        [
            ("commands", &mut self.commands),
            ("events", &mut self.events),
            ("answered", &mut self.answered),
            ("unknown outcomes", &mut self.unknown),
            ("crashes", &mut self.crashes),
            ("torn writes", &mut self.torn_writes),
            ("fencings", &mut self.fencings),
            ("unknown appends", &mut self.unknown_appends),
            ("takeovers", &mut self.takeovers),
            ("pauses", &mut self.pauses),
            ("partitions", &mut self.partitions),
            ("clock jumps", &mut self.clock_jumps),
            ("disk faults", &mut self.disk_faults),
            ("snapshots", &mut self.snapshots),
            ("admissions", &mut self.admissions),
            ("draws", &mut self.draws),
            ("forgeries", &mut self.forgeries),
        ]
    }

    /// The kinds of trouble of which there was less than one for each ten seeds: a run in which
    /// nothing went wrong proves nothing.
    pub fn too_quiet(&self, seeds: u64) -> Vec<(&'static str, u64, u64)> {
        let floor = seeds / 10;
        let trouble = self.fields().into_iter().filter(|(name, _)| *name != "draws");
        trouble.map(|(name, seen)| (name, seen, floor)).filter(|it| it.1 < it.2).collect()
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.fields() {
            writeln!(f, "  {name:<18} {value:>12}")?;
        }
        Ok(())
    }
}
