//! What a relay has read of a log, so that it notices when the log is not the same any more.
//!
//! A store that acknowledges before its replicas have it (`redis-async`) can come back shorter
//! after a fail-over, and what is written then takes heads that other events had. Whoever was told
//! of those would take the new ones for repeats: an event is known by its place in the log.
//! Lives here: the newest batches by head and chain, how far events were sent, and the verdict.
//! Stays out: what to do about it (`relay.rs`).
//! Promise: no false alarm. A log that is shorter and otherwise as it was may be one whose newest
//! batches are not shown yet; only another batch in the place of one that was read is a proof.

use std::collections::VecDeque;

use waitroom_store::{Appended, Head, RoomName, Stored};

/// Batches that are remembered: more than any replica that is still in touch is behind. A log that
/// went back further is noticed as well, by what is not among them.
const BATCHES_MAX: usize = 1_024;

#[derive(Debug, Default)]
pub struct Trail {
    /// Events up to here were sent, or may have been.
    sent: Head,
    read: VecDeque<Appended>,
    /// The log was written anew up to here: these places mean two things by now.
    twice: Option<Head>,
}

impl Trail {
    /// Something up to here is about to be sent.
    pub fn sends(&mut self, to: Head) {
        self.sent = self.sent.max(to);
    }

    /// Events up to here must not be told, because others were told under their names.
    pub fn twice(&self) -> Option<Head> {
        self.twice
    }

    /// The log is another one. From now on what was read is of no more use.
    pub fn broke(&mut self) -> Head {
        self.read.clear();
        *self.twice.insert(self.sent)
    }

    /// What had two meanings is behind us.
    pub fn is_over(&mut self) {
        self.twice = None;
    }

    /// Whether a batch continues, or repeats, what was read; it is remembered if so.
    pub fn fits(&mut self, room: &RoomName, stored: &Stored) -> bool {
        let new = Appended { head: stored.head, chain: stored.chain };
        let fits = match self.read.back() {
            None => true,
            Some(last) if stored.after == last.head => {
                last.chain.next(room, &stored.link(), &stored.payload) == stored.chain
            }
            // After a gap that was given up there is nothing to compare with.
            Some(last) if stored.after > last.head => true,
            // Batches are read whole, so none can begin before the newest one's end and go beyond.
            Some(last) if stored.head > last.head => false,
            Some(_) => return !self.contradicts(new),
        };
        if fits {
            self.read.push_back(new);
            if self.read.len() > BATCHES_MAX {
                self.read.pop_front();
            }
        }
        fits
    }

    /// Whether a log that ends like this cannot be the one that was read.
    pub fn contradicts(&self, tip: Appended) -> bool {
        let (Some(first), Some(last)) = (self.read.front(), self.read.back()) else { return false };
        if tip.head > last.head {
            return false;
        }
        // What came before the oldest that is remembered cannot be judged; a whole log that ends
        // there is judged by the next batch that is written.
        tip.head >= first.head && !self.read.contains(&tip)
    }
}

#[cfg(test)]
mod tests {
    use waitroom_store::{Chain, Link};

    use super::*;

    fn room() -> RoomName {
        RoomName::parse("r").expect("a name")
    }

    /// A log of batches of two events whose payloads are these.
    fn log(payloads: &[u8]) -> Vec<Stored> {
        let (mut chain, mut after) = (Chain::START, Head::EMPTY);
        let mut number = 0;
        let batch = |payload: &u8| {
            let link = Link { epoch: 1, nonce: 7, number, after, events: 2 };
            chain = chain.next(&room(), &link, &[*payload]);
            let head = Head(after.0 + 2);
            let Link { epoch, nonce, number: this, after: before, events } = link;
            (after, number) = (head, number + 1);
            let payload = vec![*payload];
            Stored {
                after: before,
                head,
                epoch,
                nonce,
                number: this,
                events,
                at_ms: 0,
                payload,
                chain,
            }
        };
        payloads.iter().map(batch).collect()
    }

    fn tip(log: &[Stored]) -> Appended {
        log.last().map(|it| Appended { head: it.head, chain: it.chain }).unwrap_or_default()
    }

    fn after_reading(log: &[Stored]) -> Trail {
        let mut trail = Trail::default();
        for stored in log {
            assert!(trail.fits(&room(), stored));
            trail.sends(stored.head);
        }
        trail
    }

    #[test]
    fn a_log_that_goes_on_and_one_that_is_read_again_fit() {
        let whole = log(&[1, 2, 3, 4]);
        let mut trail = after_reading(&whole[..2]);
        assert!(whole[1..].iter().all(|stored| trail.fits(&room(), stored)));
        assert!(whole.iter().all(|stored| trail.fits(&room(), stored)), "and once more");
    }

    #[test]
    fn a_log_that_is_only_shorter_is_no_proof() {
        let whole = log(&[1, 2, 3]);
        let trail = after_reading(&whole);
        assert!((1..=3).all(|length| !trail.contradicts(tip(&whole[..length]))));
    }

    #[test]
    fn another_batch_in_the_place_of_one_that_was_read_is_noticed() {
        let (old, new) = (log(&[1, 2, 3]), log(&[1, 9, 8, 7]));
        let trail = after_reading(&old);
        assert!(trail.contradicts(tip(&new[..2])), "while it is shorter");
        assert!(trail.contradicts(tip(&new[..3])), "when it is as long");
        assert!(!after_reading(&old).fits(&room(), &new[3]), "and when it is longer");
        assert!(!after_reading(&old).fits(&room(), &new[1]), "where it is read again");
    }

    #[test]
    fn what_was_sent_stays_known_when_the_log_is_another_one() {
        let mut trail = after_reading(&log(&[1, 2, 3]));
        assert_eq!((trail.broke(), trail.twice()), (Head(6), Some(Head(6))));
        assert!(trail.fits(&room(), &log(&[1, 9])[1]), "the new log is read like any other");
        trail.is_over();
        assert_eq!(trail.twice(), None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let long = log(&vec![5; BATCHES_MAX + 10]);
        let trail = after_reading(&long);
        assert_eq!(trail.read.len(), BATCHES_MAX);
        assert!(!trail.contradicts(tip(&long[..5])), "older than all: not judged");
    }
}
