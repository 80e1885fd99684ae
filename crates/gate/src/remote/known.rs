//! What a gate knows of a room that is elsewhere: who ended early, whom it has asked about, and
//! how far it has heard. Time is an argument.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use waitroom_core::id::TicketId;

use crate::verdict::Stand;

/// What the owner says when it is heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    pub version: u64,
    /// Sessions that ended before their passes, and whose slots are still held.
    pub ended: Vec<TicketId>,
    /// For how long a pass of somebody who ended now can be good.
    pub keep_s: u64,
    /// The public keys, as they are published.
    pub keys: String,
}

#[derive(Debug, Default)]
pub struct Known(Mutex<Inside>);

#[derive(Debug, Default)]
struct Inside {
    /// The version that every verdict goes by from now on; none before the owner was first heard.
    version: Option<u64>,
    away: bool,
    /// Until their passes are surely over.
    ended: HashMap<TicketId, u64>,
    /// About whom the owner said yes, and until when that counts.
    asked: HashMap<TicketId, u64>,
    swept_s: u64,
}

/// So many visitors are known at once; beyond it they are asked about again.
const ASKED_MAX: usize = 1_000_000;

impl Known {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What may be confirmed: whatever this gate goes by already.
    pub fn version(&self) -> Option<u64> {
        self.lock().version
    }

    pub fn heard(&self, heard: &Heard, now_s: u64) {
        let mut known = self.lock();
        for ticket in &heard.ended {
            known.ended.insert(*ticket, now_s + heard.keep_s);
            known.asked.remove(ticket);
        }
        // The last word and not the highest: an owner that was brought back from a backup begins
        // further down, and must not be told of what it has not said.
        known.version = Some(heard.version);
        if now_s > known.swept_s {
            known.swept_s = now_s;
            known.ended.retain(|_, until| *until > now_s);
            known.asked.retain(|_, until| *until > now_s);
        }
    }

    /// Says whether this is news.
    pub fn note_reach(&self, answered: bool) -> bool {
        let mut known = self.lock();
        std::mem::replace(&mut known.away, !answered) == answered
    }

    pub fn stand(&self, ticket: TicketId) -> Stand {
        match self.lock().ended.contains_key(&ticket) {
            true => Stand::Ended,
            false => Stand::Inside(None),
        }
    }

    /// Whether the owner has said yes lately, and nothing else since.
    pub fn is_known(&self, ticket: TicketId, now_s: u64) -> bool {
        let known = self.lock();
        known.asked.get(&ticket).is_some_and(|until| *until > now_s)
            && !known.ended.contains_key(&ticket)
    }

    /// The owner said yes. It may have said no since, on the other way: that is the later word.
    pub fn said_yes(&self, ticket: TicketId, until_s: u64) -> bool {
        let mut known = self.lock();
        if known.ended.contains_key(&ticket) {
            return false;
        }
        if known.asked.len() < ASKED_MAX {
            known.asked.insert(ticket, until_s);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use waitroom_core::id::IdKey;

    use super::*;

    fn ticket(number: u64) -> TicketId {
        IdKey::derive(&[7; 32]).name(0, 1, number).expect("an id")
    }

    fn heard(version: u64, ended: &[u64]) -> Heard {
        let ended = ended.iter().map(|number| ticket(*number)).collect();
        Heard { version, ended, keep_s: 60, keys: String::new() }
    }

    #[test]
    fn an_end_is_the_last_word_whichever_way_it_came_first() {
        let known = Known::default();
        assert_eq!(known.version(), None, "nothing was heard, so nothing is confirmed");
        assert!(known.said_yes(ticket(1), 70));
        assert!(known.is_known(ticket(1), 10));
        known.heard(&heard(5, &[1, 2]), 10);
        assert_eq!(known.version(), Some(5));
        assert!(!known.is_known(ticket(1), 10));
        assert_eq!(known.stand(ticket(1)), Stand::Ended);
        assert!(!known.said_yes(ticket(2), 70), "an answer that was late");
        // The owner has freed the slots and speaks of these no more; this gate remembers.
        known.heard(&heard(6, &[]), 40);
        assert_eq!(known.stand(ticket(2)), Stand::Ended);
        known.heard(&heard(4, &[]), 71);
        assert_eq!(known.version(), Some(4), "what was said last is what is confirmed");
        assert_eq!(known.stand(ticket(2)), Stand::Inside(None), "their passes are over by now");
    }

    #[test]
    fn a_yes_counts_for_a_while() {
        let known = Known::default();
        known.said_yes(ticket(1), 70);
        assert!(known.is_known(ticket(1), 69) && !known.is_known(ticket(1), 70));
        assert!(!known.is_known(ticket(2), 10));
    }
}
