//! Trouble: crashes, pauses, partitions, clocks that jump, disks that fail.

use super::*;
impl<S: Store + Clone> World<S> {
    pub(super) fn trouble(&mut self) {
        if !self.rng.chance(self.profile.fault_chance) {
            return;
        }
        let i = self.rng.below(self.instances.len() as u64) as usize;
        match (self.profile.weather, self.rng.below(10)) {
            (_, 0..3) => self.crash(i),
            (_, 3) => self.clock_jumps(i),
            (Weather::Cluster | Weather::Machines, 4..7) => {
                // Long enough for another to take over.
                self.instances[i].paused_until = self.now + 500 + self.rng.below(20_000);
                self.totals.pauses += 1;
            }
            (Weather::Cluster | Weather::Machines, _) => {
                self.instances[i].cut_off_until = self.now + 500 + self.rng.below(20_000);
                self.totals.partitions += 1;
            }
            (Weather::Disk, _) => self.disk_fails(i),
        }
    }

    pub(super) fn crash(&mut self, i: usize) {
        self.totals.crashes += 1;
        self.drop_tenure(i);
        self.instances[i].board = None;
        if self.profile.weather == Weather::Disk {
            self.instances[i].store = None;
            let seed = self.rng.next_u64();
            self.instances[i].store = Some((self.reopen)(Some(seed)));
            let store = self.instances[i].store.as_ref().expect("just opened");
            self.sink.restart(store, &self.room, self.bug);
        } else if self.rng.chance(0.5) {
            let store = self.instances[i].store.as_ref().expect("instances keep their handle");
            self.sink.restart(store, &self.room, self.bug);
        }
    }

    pub(super) fn clock_jumps(&mut self, i: usize) {
        let jump = self.rng.below(2_000_000) as i64 - 1_000_000;
        self.instances[i].wall_offset_ms += jump;
        self.totals.clock_jumps += 1;
    }

    /// The disk fills up, refuses a sync, or the power goes in the middle of something.
    pub(super) fn disk_fails(&mut self, i: usize) {
        let Some(disk) = &self.disk else { return };
        match self.rng.below(4) {
            0 => disk.set_free_bytes(Some(self.rng.below(200))),
            1 => disk.fail_next_syncs(1),
            2 => disk.fail_next_writes(1),
            _ => disk.power_fails_after(1 + self.rng.below(5)),
        }
        self.totals.disk_faults += 1;
        // Something is written into the trouble, then the machine goes down.
        self.cut(i);
        self.append(i);
        let disk = self.disk.as_ref().expect("checked above");
        disk.set_free_bytes(None);
        self.crash(i);
    }

    /// Memory is gone; what was not answered stays unknown to its clients.
    pub(super) fn drop_tenure(&mut self, i: usize) {
        if let Some(tenure) = self.instances[i].tenure.take() {
            let waiting = tenure.rounds.iter().map(|it| it.answers.len()).sum::<usize>();
            self.totals.unknown += (waiting + tenure.open.len()) as u64;
        }
    }
}
