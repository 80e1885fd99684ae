//! Follows a hash chain: each batch must be what its link says, behind the one before.

use std::fmt;

use waitroom_store::{Appended, Chain, Head, RoomName, Stored};

/// How far a log was followed.
#[derive(Debug)]
pub struct Walk {
    room: RoomName,
    at: Appended,
    /// The log was trimmed and its first batch is yet to come: nothing says what its chain was.
    given: bool,
}

/// The batch after this event is not the one that was appended there.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken(Head);

impl Walk {
    pub fn new(room: &RoomName, trimmed_to: Head) -> Walk {
        let at = Appended { head: trimmed_to, chain: Chain::START };
        Walk { room: room.clone(), at, given: trimmed_to > Head::EMPTY }
    }

    pub fn step(&mut self, batch: &Stored) -> Result<(), Broken> {
        let chain = if self.given {
            batch.chain
        } else {
            self.at.chain.next(&self.room, &batch.link(), &batch.payload)
        };
        // The first batch of a trimmed log may hold events from before the trim.
        let follows = batch.after == self.at.head || self.given && batch.after < self.at.head;
        if !follows || batch.chain != chain {
            return Err(Broken(self.at.head));
        }
        self.at = Appended { head: batch.head, chain };
        self.given = false;
        Ok(())
    }

    pub fn at(&self) -> Appended {
        self.at
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the chain breaks after event {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitroom_store::Link;

    fn room() -> RoomName {
        RoomName::parse("spring-sale").expect("a plain name")
    }

    fn log() -> Vec<Stored> {
        let mut at = Appended::default();
        let batch = |number: u64| {
            let link = Link { epoch: 1, nonce: 7, number, after: at.head, events: 2 };
            let payload = vec![number as u8; 3];
            let chain = at.chain.next(&room(), &link, &payload);
            at = Appended { head: link.head(), chain };
            Stored {
                after: link.after,
                head: link.head(),
                epoch: 1,
                nonce: 7,
                number,
                events: 2,
                at_ms: 0,
                payload,
                chain,
            }
        };
        (0..3).map(batch).collect()
    }

    fn walked(trimmed_to: u64, log: &[Stored]) -> Result<Appended, Broken> {
        let mut walk = Walk::new(&room(), Head(trimmed_to));
        log.iter().try_for_each(|batch| walk.step(batch))?;
        Ok(walk.at())
    }

    #[test]
    fn a_whole_log_ends_in_its_chain() {
        let log = log();
        assert_eq!(walked(0, &log), Ok(Appended { head: Head(6), chain: log[2].chain }));
    }

    #[test]
    fn a_batch_altered_exchanged_or_left_out_breaks_the_chain_where_it_was() {
        let mut altered = log();
        altered[1].payload[0] ^= 1;
        assert_eq!(walked(0, &altered), Err(Broken(Head(2))));
        let mut exchanged = log();
        exchanged.swap(0, 1);
        assert_eq!(walked(0, &exchanged), Err(Broken(Head(0))));
        let mut shorter = log();
        shorter.remove(1);
        assert_eq!(walked(0, &shorter), Err(Broken(Head(2))));
        let mut other_chain = log();
        other_chain[2].chain.0[0] ^= 1;
        assert_eq!(walked(0, &other_chain), Err(Broken(Head(4))));
    }

    #[test]
    fn a_trimmed_log_is_checked_from_its_second_batch_on() {
        let log = log();
        for trimmed_to in [2, 3] {
            assert_eq!(walked(trimmed_to, &log[1..]).expect("whole").chain, log[2].chain);
            let mut altered = log.clone();
            altered[2].payload[0] ^= 1;
            assert_eq!(walked(trimmed_to, &altered[1..]), Err(Broken(Head(4))));
        }
        assert_eq!(walked(3, &log[2..]), Err(Broken(Head(3))), "an event is missing");
    }
}
