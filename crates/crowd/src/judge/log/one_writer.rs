//! Promise 14, by the log: epochs never go down; no append of an old lease after a newer one; no
//! number is given twice.
//!
//! Indexes without a gap are the walk's business. Here: each epoch is begun by its own `Opened`
//! and by nothing else, under one nonce; batches count up within an epoch; time never runs
//! backwards; numbers are dense in every lane.

use std::collections::BTreeMap;

use waitroom_core::{Epoch, LaneId, Timestamp, What};

use super::{Found, Logged};

#[derive(Debug, Default)]
pub(super) struct Check {
    before: Option<Before>,
    next_number: BTreeMap<LaneId, u64>,
}

#[derive(Clone, Copy, Debug)]
struct Before {
    epoch: u32,
    nonce: u128,
    batch: u64,
    at: Timestamp,
}

const PROMISE: u8 = 14;

impl super::Check for Check {
    fn take(&mut self, it: &Logged<'_>, found: &mut Found) {
        let mut broken = |said: String| {
            found.add(PROMISE, format!("event {} {said}", it.index), &[]);
        };
        self.follows(it, &mut broken);
        let given = match &it.event.what {
            What::Joined(joined) => Some(joined.ticket),
            What::Moved { to, .. } => Some(*to),
            _ => None,
        };
        if let Some(ticket) = given {
            let next = self.next_number.entry(ticket.lane).or_insert(0);
            if ticket.number.0 != *next {
                broken(format!("gives {ticket} where number {next} is next"));
            }
            *next = (*next).max(ticket.number.0.saturating_add(1));
        }
    }
}

impl Check {
    fn follows(&mut self, it: &Logged<'_>, broken: &mut impl FnMut(String)) {
        let at = it.event.at;
        let now = Before { epoch: it.epoch, nonce: it.nonce, batch: it.batch, at };
        let opened = match it.event.what {
            What::Opened { epoch } => Some(epoch),
            _ => None,
        };
        let before = self.before.replace(now);
        if let Some(before) = before.filter(|before| at < before.at) {
            broken(format!("happens at {}, after one at {}", at.0, before.at.0));
        }
        match before.filter(|before| before.epoch == it.epoch) {
            None => {
                if before.is_some_and(|before| before.epoch > it.epoch) {
                    broken(format!("of epoch {} comes after a newer one's", it.epoch));
                }
                if opened != Some(Epoch(it.epoch)) {
                    broken(format!("begins epoch {} and does not open it", it.epoch));
                }
            }
            Some(before) => {
                if opened.is_some() {
                    broken(format!("opens an epoch in the middle of epoch {}", it.epoch));
                }
                if it.nonce != before.nonce {
                    broken(format!("is written under another lease of epoch {}", it.epoch));
                }
                if it.batch < before.batch || it.batch > before.batch + 1 {
                    broken(format!("is in batch {}, after batch {}", it.batch, before.batch));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plant::{KEPT, Room};

    #[test]
    fn a_number_that_is_skipped_or_given_twice_is_found() {
        assert_eq!(Room::running().join(0).join(1).broken_among(&[14]), KEPT);
        assert_eq!(Room::running().join(0).join(2).broken_among(&[14]), [14]);
        assert_eq!(Room::running().join(0).join(0).broken_among(&[14]), [14]);
    }

    #[test]
    fn an_epoch_that_goes_down_by_one_is_found() {
        assert_eq!(Room::running().reopen().join(0).broken_among(&[14]), KEPT);
        assert_eq!(Room::running().reopen().old_epoch().join(0).broken_among(&[14]), [14]);
    }

    #[test]
    fn time_that_runs_back_a_millisecond_is_found() {
        let room = || Room::running().join(0).wait(10);
        assert_eq!(room().join(1).wait_back(1).join(2).broken_among(&[14]), [14]);
        assert_eq!(room().join(1).wait_back(0).join(2).broken_among(&[14]), KEPT);
    }

    #[test]
    fn another_lease_within_an_epoch_is_found() {
        assert_eq!(Room::running().other_lease().join(0).broken_among(&[14]), [14]);
    }
}
