//! What a room's exported log says about its draw, and whether a proof agrees.
//!
//! Lives here: reading the log, whose chain is computed anew from its first batch to its last, and
//! the comparison. Stays out: whether the proof holds by itself.
//! The counts are not taken from the room's word alone: the joins before the close are counted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use waitroom_core::draw::{LaneCount, Proof};
use waitroom_core::{Ticket, What, codec};
use waitroom_sim::rehearsal::human::number;
use waitroom_store::{Appended, Chain, Stored};

use super::Wrong;
use crate::exported::{self, not_whole};
use crate::failure::Failure;

#[derive(Debug)]
pub struct Testimony {
    file: PathBuf,
    room: String,
    /// Where the log begins; behind 0 the chain there is the file's word.
    base: Appended,
    end: u64,
    committed: Option<Committed>,
    closed: Option<Closed>,
    drawn: Option<Drawn>,
    /// Per lane, one more than the highest number given before the close.
    given: BTreeMap<u8, u64>,
}

#[derive(Debug)]
struct Committed {
    index: u64,
    commitment: [u8; 32],
    beacon: Option<String>,
    /// How many had a number already: a seed chosen then could have been chosen for them.
    joined_before: u64,
}

#[derive(Debug)]
struct Closed {
    index: u64,
    counts: Vec<LaneCount>,
    /// The chain of the batch that closed the draw.
    chain: Chain,
}

#[derive(Debug)]
struct Drawn {
    index: u64,
    seed: [u8; 32],
    beacon: Option<Vec<u8>>,
}

impl Testimony {
    pub fn read(path: &Path) -> Result<Testimony, Failure> {
        let mut portable = exported::open(path)?;
        let import = portable.import();
        let mut testimony = Testimony {
            file: path.to_path_buf(),
            room: import.room.to_string(),
            base: import.base,
            end: import.tip.head.0,
            committed: None,
            closed: None,
            drawn: None,
            given: BTreeMap::new(),
        };
        let bad = |why: String| not_whole(path, &why);
        while let Some(batch) = portable.next_batch().map_err(|error| bad(error.to_string()))? {
            testimony.hear(&batch).map_err(bad)?;
        }
        Ok(testimony)
    }

    fn hear(&mut self, batch: &Stored) -> Result<(), String> {
        let mut index = batch.after.0;
        let decoded = codec::decode(&batch.payload, |event| {
            index += 1;
            self.event(index, &event.what, batch.chain);
        });
        decoded.map_err(|damaged| format!("after event {}: {}", batch.after, damaged.0))
    }

    fn event(&mut self, index: u64, what: &What, chain: Chain) {
        match what {
            What::Joined(joined) => self.number_given(joined.ticket),
            What::Moved { to, .. } => self.number_given(*to),
            What::DrawCommitted { commitment, beacon, .. } if self.committed.is_none() => {
                let (commitment, beacon) = (*commitment, beacon.clone());
                let joined_before = self.given.values().sum();
                self.committed = Some(Committed { index, commitment, beacon, joined_before });
            }
            What::DrawClosed { counts } if self.closed.is_none() => {
                let counts = counts.iter().map(|(lane, n)| LaneCount { lane: lane.0, count: *n });
                self.closed = Some(Closed { index, counts: counts.collect(), chain });
            }
            What::Drawn { seed, beacon, .. } if self.drawn.is_none() => {
                self.drawn = Some(Drawn { index, seed: *seed, beacon: beacon.clone() });
            }
            _ => {}
        }
    }

    /// Those who come after the close take no part.
    fn number_given(&mut self, ticket: Ticket) {
        if self.closed.is_none() {
            let next = self.given.entry(ticket.lane.0).or_default();
            *next = (*next).max(ticket.number.0.saturating_add(1));
        }
    }

    /// Everything in which proof and log do not agree.
    pub fn contradictions(&self, proof: &Proof) -> Vec<Wrong> {
        let mut wrong = Vec::new();
        let mut differs = |code, why: String| wrong.push(Wrong { code, why });
        if self.room != proof.room {
            let why = format!("the log is of room {:?}, not {:?}", self.room, proof.room);
            differs("other_room", why);
        }
        let (Some(committed), Some(closed)) = (&self.committed, &self.closed) else {
            let why = match self.base.head.0 {
                0 => "no draw was committed to and closed in this log".into(),
                after => format!("the log begins after event {after}, and holds no whole draw"),
            };
            differs("draw_not_in_log", why);
            return wrong;
        };
        let at = committed.index;
        if committed.commitment != proof.commitment {
            differs("other_commitment", format!("event {at} commits to another seed"));
        }
        if committed.beacon != proof.beacon_round {
            let why = match &committed.beacon {
                Some(round) => format!("event {at} names the beacon round {round:?}"),
                None => format!("event {at} names no beacon round"),
            };
            differs("other_beacon_round", why);
        }
        if committed.joined_before > 0 {
            let joined = number(committed.joined_before);
            differs("committed_late", format!("{joined} had joined before event {at} committed"));
        }
        let at = closed.index;
        if closed.counts != proof.counts {
            differs("other_counts", format!("event {at} closed the draw with other counts"));
        }
        if closed.chain.0 != proof.chain_hash {
            let chain = closed.chain;
            differs("other_chain_hash", format!("with event {at} the log's chain was {chain}"));
        }
        for it in &closed.counts {
            let given = self.given.get(&it.lane).copied().unwrap_or(0);
            // Of a trimmed log the early joins may be gone; too many are wrong in any log.
            let whole = self.base.head.0 == 0;
            if given > it.count || whole && given < it.count {
                let (lane, told) = (it.lane, number(it.count));
                let why = format!("{} joined lane {lane}, event {at} says {told}", number(given));
                differs("miscounted", why);
            }
        }
        if let Some(drawn) = &self.drawn
            && (drawn.seed != proof.seed || drawn.beacon != proof.beacon_value)
        {
            let why = format!("event {} drew with another seed or beacon value", drawn.index);
            differs("other_reveal", why);
        }
        wrong
    }

    pub fn words(&self) -> String {
        let mut words = format!("{} agrees: ", self.file.display());
        let parts = [
            ("seed committed at event", self.committed.as_ref().map(|it| it.index)),
            ("closed at event", self.closed.as_ref().map(|it| it.index)),
            ("drawn at event", self.drawn.as_ref().map(|it| it.index)),
        ];
        let parts =
            parts.iter().filter_map(|(what, index)| Some(format!("{what} {}", number((*index)?))));
        words += &parts.collect::<Vec<_>>().join(", ");
        words += &format!(", {} events in all", number(self.end));
        if self.base.head.0 > 0 {
            words += &format!("; it begins after event {}, ", number(self.base.head.0));
            words += "and its chain up to there is its own word";
        }
        words
    }

    pub fn json(&self) -> Value {
        json!({
            "file": self.file,
            "after": self.base.head.0,
            "head": self.end,
            "committed_at": self.committed.as_ref().map(|it| it.index),
            "closed_at": self.closed.as_ref().map(|it| it.index),
            "drawn_at": self.drawn.as_ref().map(|it| it.index),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitroom_core::draw::{self, Format};
    use waitroom_core::{Joined, LaneId};

    const SEED: [u8; 32] = [9; 32];
    const CLOSE: Chain = Chain([3; 32]);

    fn join(lane: u8, number: u64) -> What {
        What::Joined(Joined { ticket: Ticket::new(lane, number), ..Joined::default() })
    }

    fn commit() -> What {
        let commitment = draw::commitment(&SEED);
        What::DrawCommitted { commitment, sealed_seed: vec![], beacon: None }
    }

    fn close(counts: &[u64]) -> What {
        let counts = counts.iter().enumerate().map(|(lane, n)| (LaneId(lane as u8), *n));
        What::DrawClosed { counts: counts.collect() }
    }

    fn proof(counts: &[u64]) -> Proof {
        let counts = counts.iter().enumerate();
        let counts: Vec<_> =
            counts.map(|(lane, n)| LaneCount { lane: lane as u8, count: *n }).collect();
        Proof {
            format: Format::V1,
            room: "r".into(),
            commitment: draw::commitment(&SEED),
            beacon_round: None,
            chain_hash: CLOSE.0,
            seed: SEED,
            beacon_value: None,
            final_key: draw::final_key(&SEED, &counts, &CLOSE.0, None),
            counts,
        }
    }

    /// What a log with these events, begun after event `base`, has against a proof.
    fn against(proof: &Proof, base: u64, events: &[What]) -> Vec<&'static str> {
        let base = Appended { head: waitroom_store::Head(base), chain: Chain::START };
        let mut testimony = Testimony {
            file: "r.wrroom".into(),
            room: "r".into(),
            base,
            end: 0,
            committed: None,
            closed: None,
            drawn: None,
            given: BTreeMap::new(),
        };
        for (index, what) in events.iter().enumerate() {
            let chain = if matches!(what, What::DrawClosed { .. }) { CLOSE } else { Chain::START };
            testimony.event(index as u64 + 1, what, chain);
        }
        testimony.contradictions(proof).iter().map(|it| it.code).collect()
    }

    #[test]
    fn those_who_joined_before_the_close_are_those_who_took_part() {
        let log = [commit(), join(0, 0), join(1, 0), join(0, 1), close(&[2, 1]), join(0, 2)];
        assert!(against(&proof(&[2, 1]), 0, &log).is_empty());
    }

    #[test]
    fn a_close_that_counts_one_more_or_one_less_than_joined_is_wrong() {
        for told in [[1, 1], [3, 1], [2, 0], [2, 2]] {
            let log = [commit(), join(0, 0), join(1, 0), join(0, 1), close(&told)];
            assert_eq!(against(&proof(&told), 0, &log), ["miscounted"], "{told:?}");
        }
    }

    #[test]
    fn a_seed_that_was_fixed_after_somebody_joined_is_wrong() {
        let log = [join(0, 0), commit(), close(&[1])];
        assert_eq!(against(&proof(&[1]), 0, &log), ["committed_late"]);
    }

    #[test]
    fn a_trimmed_log_may_lack_early_joins_but_not_the_draw() {
        let log = [commit(), join(0, 7), close(&[9])];
        assert!(against(&proof(&[9]), 5, &log).is_empty());
        assert_eq!(against(&proof(&[9]), 5, &log[1..]), ["draw_not_in_log"]);
        let log = [commit(), join(0, 9), close(&[9])];
        assert_eq!(against(&proof(&[9]), 5, &log), ["miscounted"]);
    }
}
