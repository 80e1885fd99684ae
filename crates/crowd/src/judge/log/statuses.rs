//! The status of every ticket, a byte each, from events alone.

use std::collections::BTreeMap;

use waitroom_core::{LaneId, Status, Ticket};

#[derive(Debug, Default)]
pub(super) struct Statuses {
    lanes: BTreeMap<LaneId, Vec<Option<Status>>>,
}

impl Statuses {
    pub fn get(&self, ticket: Ticket) -> Option<Status> {
        let number = usize::try_from(ticket.number.0).ok()?;
        self.lanes.get(&ticket.lane)?.get(number).copied().flatten()
    }

    pub fn set(&mut self, ticket: Ticket, status: Status) {
        let lane = self.lanes.entry(ticket.lane).or_default();
        let number = ticket.number.0 as usize;
        if lane.len() <= number {
            lane.resize(number + 1, None);
        }
        lane[number] = Some(status);
    }

    /// All that wait become `status`; how many that were.
    pub fn sweep(&mut self, status: Status) -> u64 {
        let mut swept = 0;
        for one in self.lanes.values_mut().flatten().flatten() {
            if *one == Status::Waiting {
                *one = status;
                swept += 1;
            }
        }
        swept
    }

    pub fn lane(&self, lane: LaneId) -> &[Option<Status>] {
        self.lanes.get(&lane).map_or(&[], Vec::as_slice)
    }
}
