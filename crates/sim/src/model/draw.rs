//! The draw: commit, close, reveal.

use super::{Answer, Model};
use waitroom_core::draw::{self, LaneCount};
use waitroom_core::permutation::Permutation;
use waitroom_core::{DrawRefusal, Phase, Refusal, Reply, Ticket, Timestamp};

const SEALED_SEED_MAX: usize = 512;

#[derive(Clone, Debug, Default)]
pub(super) struct Draw {
    committed: Option<Committed>,
    /// How many of each lane take part; known from the close on.
    counts: Option<Vec<LaneCount>>,
    /// Seed and chain hash.
    revealed: Option<([u8; 32], [u8; 32])>,
}

#[derive(Clone, Debug)]
struct Committed {
    hash: [u8; 32],
    beacon: Option<String>,
}

impl Draw {
    pub(super) fn is_committed(&self) -> bool {
        self.committed.is_some()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.counts.is_some()
    }

    pub(super) fn took_part(&self, ticket: Ticket) -> bool {
        let counts = self.counts.iter().flatten();
        counts.into_iter().any(|it| it.lane == ticket.lane.0 && ticket.number.0 < it.count)
    }

    pub(super) fn is_revealed(&self) -> bool {
        self.revealed.is_some()
    }
}

impl Model {
    pub(super) fn commit_draw(
        &mut self,
        at: Timestamp,
        hash: &[u8; 32],
        sealed_seed: &[u8],
        beacon: &Option<String>,
    ) -> Answer {
        let settings = self.ready()?;
        let refused = |why| Err(Refusal::Draw(why));
        let Some(announced) = &settings.draw else { return refused(DrawRefusal::NoDraw) };
        if let Some(committed) = &self.draw.committed {
            let same = committed.hash == *hash;
            return if same { Ok(Reply::Done) } else { refused(DrawRefusal::AlreadyCommitted) };
        }
        if self.phase > Phase::Doors {
            return refused(DrawRefusal::TooLate);
        }
        if announced.beacon != *beacon {
            return refused(DrawRefusal::WrongBeaconRound);
        }
        if sealed_seed.len() > SEALED_SEED_MAX {
            return refused(DrawRefusal::SealedSeedTooLarge);
        }
        self.draw.committed = Some(Committed { hash: *hash, beacon: beacon.clone() });
        self.happened(at);
        while self.next_step_of_schedule(at, false) {}
        Ok(Reply::Done)
    }

    /// Whoever has a number now takes part.
    pub(super) fn close_draw(&mut self) {
        self.phase = Phase::Drawing;
        let counts = self.lanes.iter_mut().map(|(id, lane)| {
            lane.ordered_to = lane.issued;
            LaneCount { lane: id.0, count: lane.issued }
        });
        self.draw.counts = Some(counts.collect());
    }

    pub(super) fn reveal_draw(
        &mut self,
        at: Timestamp,
        seed: &[u8; 32],
        chain: &[u8; 32],
        beacon: Option<&[u8]>,
        waive_beacon: bool,
    ) -> Answer {
        self.ready()?;
        let refused = |why| Err(Refusal::Draw(why));
        let Some(committed) = &self.draw.committed else { return refused(DrawRefusal::NoDraw) };
        if let Some(revealed) = self.draw.revealed {
            let same = revealed == (*seed, *chain);
            return if same { Ok(Reply::Done) } else { refused(DrawRefusal::AlreadyDrawn) };
        }
        let Some(counts) = self.draw.counts.clone() else {
            return refused(DrawRefusal::NotClosed);
        };
        if draw::commitment(seed) != committed.hash {
            return refused(DrawRefusal::WrongSeed);
        }
        // A beacon that said nothing is a missing one: no proof with it would ever check.
        let said = beacon.is_some_and(|value| !value.is_empty());
        match committed.beacon {
            None if beacon.is_some() => return refused(DrawRefusal::BeaconNotAsked),
            Some(_) if !said && !waive_beacon => return refused(DrawRefusal::BeaconMissing),
            _ => {}
        }
        let key = draw::final_key(seed, &counts, chain, beacon.filter(|_| said));
        for LaneCount { lane, count } in counts {
            let shuffle = Permutation::new(draw::lane_key(&key, lane), count);
            for number in 0..count {
                self.person(Ticket::new(lane, number)).order = Some(shuffle.forward(number));
            }
        }
        self.draw.revealed = Some((*seed, *chain));
        if self.phase == Phase::Drawing {
            self.phase = Phase::Running;
            self.empty_bucket(at);
        }
        self.happened(at);
        Ok(Reply::Done)
    }
}
