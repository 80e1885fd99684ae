//! Promise 13: joined = waiting + admitted + active + completed + left + expired + revoked +
//! moved + closed, at every point of the log.
//!
//! Every ticket has one status, and only the steps of the lifecycle lead from one to another. The
//! counts that events carry for the world (`waiting`, `closed`, `granted`) are those of this fold
//! at that point.

use std::collections::BTreeMap;

use waitroom_core::{AdmitWhy, Ending, Entry, Joined, LaneId, Status, Ticket, What};

use super::statuses::Statuses;
use super::{Found, Logged};

#[derive(Debug, Default)]
pub(super) struct Check {
    statuses: Statuses,
    joined: u64,
    counts: [u64; 16],
    waiting_in_lane: BTreeMap<LaneId, u64>,
    /// Admissions of an operator that must come next.
    owed: u64,
}

const PROMISE: u8 = 13;

impl super::Check for Check {
    fn take(&mut self, it: &Logged<'_>, found: &mut Found) {
        let mut wrong = Vec::new();
        self.owe(&it.event.what, &mut wrong);
        self.fold(&it.event.what, &mut wrong);
        let counted: u64 = self.counts.iter().sum();
        if counted != self.joined {
            wrong.push(format!("{} joined, and {counted} are somewhere", self.joined));
            // Told once; what comes after is judged by itself.
            self.joined = counted;
        }
        for wrong in wrong {
            found.add(PROMISE, format!("event {}: {wrong}", it.index), &[]);
        }
    }

    fn finish(&mut self, found: &mut Found) {
        if self.owed > 0 {
            let said = format!("{} admissions that an operator was granted never came", self.owed);
            found.add(PROMISE, said, &[]);
        }
    }
}

impl Check {
    fn owe(&mut self, what: &What, wrong: &mut Vec<String>) {
        let manual = matches!(what, What::Admitted { why: AdmitWhy::Manual, .. });
        match (manual, self.owed) {
            (true, 0) => wrong.push("an operator's admission that no operator was granted".into()),
            (true, _) => self.owed -= 1,
            (false, 0) => {}
            (false, owed) => {
                wrong
                    .push(format!("{owed} admissions that an operator was granted did not follow"));
                self.owed = 0;
            }
        }
    }

    fn fold(&mut self, what: &What, wrong: &mut Vec<String>) {
        use Status::*;
        match what {
            What::Joined(joined) => self.join(joined, wrong),
            What::Admitted { ticket, waiting, entry, .. } => {
                let to = match entry {
                    Entry::MustClaim { .. } => Admitted,
                    Entry::Claimed(_) => Active,
                };
                self.step(*ticket, &[Waiting], to, wrong);
                self.said_to_wait(*waiting, wrong);
            }
            What::Claimed { ticket, .. } => self.step(*ticket, &[Admitted], Active, wrong),
            What::Renewed { ticket, .. } => self.step(*ticket, &[Active], Active, wrong),
            What::Ended { ticket, ending, waiting, .. } => {
                let (from, to): (&[Status], Status) = match ending {
                    Ending::Completed => (&[Admitted, Active], Completed),
                    Ending::Left => (&[Waiting], Left),
                    Ending::Silent | Ending::TooOld => (&[Waiting], Expired),
                    Ending::NoShow => (&[Admitted], Expired),
                    Ending::SessionOver | Ending::CheckoutFailed | Ending::CheckoutExpired => {
                        (&[Active], Expired)
                    }
                    Ending::Revoked => (&[Waiting, Admitted, Active], Revoked),
                };
                self.step(*ticket, from, to, wrong);
                self.said_to_wait(*waiting, wrong);
            }
            What::Moved { from, to, .. } => {
                self.step(*from, &[Waiting], Moved, wrong);
                self.enter(*to, wrong);
            }
            What::SaleEnded { closed, .. } => {
                let swept = self.statuses.sweep(Closed);
                self.counts[Waiting as usize] -= swept;
                self.counts[Closed as usize] += swept;
                self.waiting_in_lane.clear();
                if swept != *closed {
                    wrong.push(format!("{closed} are said to be closed out, and {swept} waited"));
                }
            }
            What::AdmittedNow { granted, .. } => self.owed = *granted,
            _ => {}
        }
    }

    fn join(&mut self, joined: &Joined, wrong: &mut Vec<String>) {
        self.enter(joined.ticket, wrong);
        let in_lane = self.waiting_in_lane.get(&joined.ticket.lane).copied().unwrap_or(0);
        if joined.waiting_in_lane != in_lane {
            let said = joined.waiting_in_lane;
            wrong.push(format!("{said} are said to wait in the lane, and {in_lane} do"));
        }
        self.said_to_wait(joined.waiting, wrong);
    }

    fn enter(&mut self, ticket: Ticket, wrong: &mut Vec<String>) {
        self.joined += 1;
        if let Some(was) = self.statuses.get(ticket) {
            wrong.push(format!("{ticket} is given a second time"));
            self.counts[was as usize] -= 1;
            self.joined -= 1;
        }
        self.statuses.set(ticket, Status::Waiting);
        self.counts[Status::Waiting as usize] += 1;
        *self.waiting_in_lane.entry(ticket.lane).or_default() += 1;
    }

    fn step(&mut self, ticket: Ticket, from: &[Status], to: Status, wrong: &mut Vec<String>) {
        let Some(was) = self.statuses.get(ticket) else {
            wrong.push(format!("{ticket} becomes {to:?} and never joined"));
            return;
        };
        if !from.contains(&was) {
            wrong.push(format!("{ticket} becomes {to:?} and was {was:?}"));
        }
        self.statuses.set(ticket, to);
        self.counts[was as usize] -= 1;
        self.counts[to as usize] += 1;
        if was == Status::Waiting {
            let lane = self.waiting_in_lane.entry(ticket.lane).or_default();
            *lane = lane.saturating_sub(1);
        }
    }

    fn said_to_wait(&self, said: u64, wrong: &mut Vec<String>) {
        let counted = self.counts[Status::Waiting as usize];
        if said != counted {
            wrong.push(format!("{said} are said to wait, and {counted} do"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plant::{KEPT, Room};

    #[test]
    fn a_whole_life_balances() {
        let room = Room::running().join(0).join(1).admit(0).claim(0).wait(500).complete(0, 0);
        assert_eq!(room.leave(1).broken(), KEPT);
    }

    #[test]
    fn a_count_that_is_one_off_is_found() {
        assert_eq!(Room::running().join(0).miscounted(1).broken(), [13]);
        assert_eq!(Room::running().join(0).miscounted(0).broken(), KEPT);
    }

    #[test]
    fn a_second_admission_is_found() {
        let room = Room::running().join(0).admit(0).wait(1_000).admit(0);
        assert_eq!(room.broken_among(&[13]), [13]);
    }

    #[test]
    fn an_end_that_leads_nowhere_from_there_is_found() {
        assert_eq!(Room::running().join(0).leave(0).leave(0).broken_among(&[13]), [13]);
    }
}
