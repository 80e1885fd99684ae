//! Promise 6, by the log: whoever is admitted has the lowest number of all who wait in the lane.
//!
//! Those who took part in a draw are left out, and so are rooms with shuffle windows: their order
//! is not the number.

use std::collections::BTreeMap;

use waitroom_core::{LaneId, Status, Ticket, What};

use super::statuses::Statuses;
use super::{Found, Logged};

#[derive(Debug, Default)]
pub(super) struct Check {
    statuses: Statuses,
    /// By lane: nobody waits before this number. Only ever grows, so looking for the first who
    /// waits costs each ticket one step in all.
    front: BTreeMap<LaneId, usize>,
    shuffled: bool,
}

const PROMISE: u8 = 6;

impl super::Check for Check {
    fn take(&mut self, it: &Logged<'_>, found: &mut Found) {
        match &it.event.what {
            What::Configured { settings, .. } => self.shuffled = settings.shuffle_window != 1,
            What::Joined(joined) => self.statuses.set(joined.ticket, Status::Waiting),
            What::Moved { from, to, .. } => {
                self.statuses.set(*from, Status::Moved);
                self.statuses.set(*to, Status::Waiting);
            }
            What::Ended { ticket, .. } => self.statuses.set(*ticket, Status::Left),
            What::SaleEnded { .. } | What::DrawClosed { .. } => {
                self.statuses.sweep(Status::Closed);
            }
            What::Admitted { ticket, .. } => {
                if let Some(first) = self.before(*ticket).filter(|_| !self.shuffled) {
                    let said = format!(
                        "event {}: {ticket} is admitted while number {first} of its lane waits",
                        it.index
                    );
                    found.add(PROMISE, said, &[]);
                }
                self.statuses.set(*ticket, Status::Admitted);
            }
            _ => {}
        }
    }
}

impl Check {
    /// Who waits before a ticket that waits.
    fn before(&mut self, ticket: Ticket) -> Option<usize> {
        if self.statuses.get(ticket) != Some(Status::Waiting) {
            return None;
        }
        let lane = self.statuses.lane(ticket.lane);
        let front = self.front.entry(ticket.lane).or_default();
        while lane.get(*front).is_some_and(|it| *it != Some(Status::Waiting)) {
            *front += 1;
        }
        ((*front as u64) < ticket.number.0).then_some(*front)
    }
}

#[cfg(test)]
mod tests {
    use super::super::plant::{KEPT, Room};

    #[test]
    fn one_who_is_passed_over_by_the_next_is_found() {
        let room = || Room::running().join(0).join(1).join(2).admit(0).wait(200);
        assert_eq!(room().admit(2).broken(), [6]);
        assert_eq!(room().admit(1).broken(), KEPT);
    }

    #[test]
    fn one_who_left_is_not_passed_over() {
        let room = || Room::running().join(0).join(1).wait(200);
        assert_eq!(room().leave(0).admit(1).broken(), KEPT);
        assert_eq!(room().admit(1).broken(), [6]);
    }
}
