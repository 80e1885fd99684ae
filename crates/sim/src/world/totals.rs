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
    pub letters: u64,
    pub letters_late: u64,
    pub letters_twice: u64,
    pub letters_lost: u64,
    pub slow_ways: u64,
    pub lapses: u64,
    pub leases_expired: u64,
    pub handovers: u64,
    pub drifting_clocks: u64,
    pub sink_troubles: u64,
    pub told_again: u64,
    pub bus_lapses: u64,
}

impl Totals {
    pub fn add(&mut self, other: &Totals) {
        for (mine, theirs) in self.fields_mut().into_iter().zip(other.fields()) {
            *mine.1 += theirs.1;
        }
    }

    /// What became of the letters between instances.
    pub(super) fn note(&mut self, letters: &super::machines::Delivered) {
        self.letters += letters.sent;
        self.letters_late += letters.late;
        self.letters_twice += letters.twice;
        self.letters_lost += letters.lost;
        self.slow_ways += letters.slow_ways;
    }

    pub fn fields(&self) -> [(&'static str, u64); 29] {
        let mut copy = *self;
        copy.fields_mut().map(|(name, value)| (name, *value))
    }

    fn fields_mut(&mut self) -> [(&'static str, &mut u64); 29] {
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
            ("letters", &mut self.letters),
            ("letters late", &mut self.letters_late),
            ("letters twice", &mut self.letters_twice),
            ("letters lost", &mut self.letters_lost),
            ("slow ways", &mut self.slow_ways),
            ("lapses", &mut self.lapses),
            ("leases expired", &mut self.leases_expired),
            ("handovers", &mut self.handovers),
            ("drifting clocks", &mut self.drifting_clocks),
            ("sink troubles", &mut self.sink_troubles),
            ("told again", &mut self.told_again),
            ("bus forgot", &mut self.bus_lapses),
        ]
    }

    /// The kinds of trouble of which there was less than one for each ten seeds: a run in which
    /// nothing went wrong proves nothing.
    ///
    /// Of the seeds, `whole` had whole instances. Those have trouble of their own, and none with
    /// disks; and an owner there that was away gives up by its own clock, so few are ever fenced.
    pub fn too_quiet(&self, seeds: u64, whole: u64) -> Vec<(&'static str, u64, u64)> {
        const OF_WHOLE: usize = 12;
        const NOT_OF_WHOLE: [&str; 5] =
            ["torn writes", "disk faults", "forgeries", "snapshots", "fencings"];
        let fields = self.fields();
        let (of_all, of_whole) = fields.split_at(fields.len() - OF_WHOLE);
        let floor_of = |name: &str| match name {
            "draws" => 0,
            name if NOT_OF_WHOLE.contains(&name) => (seeds - whole) / 10,
            _ => seeds / 10,
        };
        let of_all = of_all.iter().map(|(name, seen)| (*name, *seen, floor_of(name)));
        let of_whole = of_whole.iter().map(|(name, seen)| (*name, *seen, whole / 10));
        of_all.chain(of_whole).filter(|(_, seen, floor)| seen < floor).collect()
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
