//! The draw of a room: commit, close, reveal.
//!
//! The order of 20 million people takes seconds to work out. [`DrawJob`] does that beside the
//! writer from a snapshot of the line while people go on joining behind it; the result is offered
//! to the room, and `Drawn` swaps it in, after clearing those who left meanwhile. A replay has no
//! such help and builds the same line in place: the log cannot tell the two apart.

use crate::bitmap::Bitmap;
use crate::command::Actor;
use crate::draw::{self, LaneCount};
use crate::event::{Event, What};
use crate::lane::Drawn;
use crate::permutation::Permutation;
use crate::reply::{DrawRefusal, Refusal, Reply};
use crate::room::{Decided, Room};
use crate::state::{Commitment, DrawState, Phase, Revealed, State};
use crate::units::{LaneId, Number, Timestamp};
use std::sync::Arc;

const SEALED_SEED_MAX: usize = 512;

/// The drawn line of every lane, worked out beside the writer.
#[derive(Debug)]
pub struct PreparedDraw {
    final_key: [u8; 32],
    lanes: Vec<PreparedLane>,
}

#[derive(Debug)]
struct PreparedLane {
    lane: LaneId,
    /// The line by number, as it was when the work began.
    source: Bitmap,
    drawn: Bitmap,
    permutation: Arc<Permutation>,
}

/// A draw to be worked out; run it anywhere.
#[derive(Debug)]
pub struct DrawJob {
    final_key: [u8; 32],
    lanes: Vec<(LaneId, Bitmap)>,
}

impl DrawJob {
    pub fn run(self) -> PreparedDraw {
        let final_key = self.final_key;
        let lanes = self.lanes.into_iter().map(|(lane, source)| {
            let key = draw::lane_key(&final_key, lane.0);
            let permutation = Arc::new(Permutation::new(key, source.len()));
            let drawn = draw_line(&source, &permutation);
            PreparedLane { lane, source, drawn, permutation }
        });
        PreparedDraw { final_key, lanes: lanes.collect() }
    }
}

impl DrawState {
    /// The key of the whole draw from what is published at its end.
    pub fn final_key(&self, seed: &[u8; 32], chain: &[u8; 32], beacon: Option<&[u8]>) -> [u8; 32] {
        let counts: Vec<LaneCount> = self
            .counts
            .iter()
            .map(|(lane, count)| LaneCount { lane: lane.0, count: *count })
            .collect();
        draw::final_key(seed, &counts, chain, beacon)
    }
}

impl State {
    /// Everything that anybody needs to check the draw, once it was made.
    pub fn proof(&self, room: &str) -> Option<draw::Proof> {
        let commitment = self.draw.commitment.as_ref()?;
        let revealed = self.draw.revealed.as_ref()?;
        let counts = self.draw.counts.iter();
        let counts = counts.map(|(lane, count)| LaneCount { lane: lane.0, count: *count });
        let beacon = revealed.beacon.as_deref();
        Some(draw::Proof {
            format: draw::Format::V1,
            room: room.to_owned(),
            commitment: commitment.hash,
            beacon_round: commitment.beacon.clone(),
            counts: counts.collect(),
            chain_hash: revealed.chain,
            seed: revealed.seed,
            beacon_value: revealed.beacon.clone(),
            final_key: self.draw.final_key(&revealed.seed, &revealed.chain, beacon),
        })
    }
}

impl Room {
    /// The work that the reveal with these values will need.
    pub fn draw_job(&self, seed: &[u8; 32], chain: &[u8; 32], beacon: Option<&[u8]>) -> DrawJob {
        let lanes = self.state.lanes.iter().map(|lane| (lane.id, lane.line.drawn.clone()));
        let final_key = self.state.draw.final_key(seed, chain, beacon);
        DrawJob { final_key, lanes: lanes.collect() }
    }

    /// Work done ahead for the next `Drawn`; changes nothing that can be seen.
    pub fn offer_draw(&mut self, prepared: PreparedDraw) {
        self.index.prepared = Some(prepared);
    }

    pub(crate) fn decide_commit_draw(
        &self,
        at: Timestamp,
        commitment: &[u8; 32],
        sealed_seed: &[u8],
        beacon: &Option<String>,
        out: &mut Vec<Event>,
    ) -> Decided {
        let settings = self.state.ready()?;
        let refused = |why| Err(Refusal::Draw(why));
        let Some(draw) = &settings.draw else { return refused(DrawRefusal::NoDraw) };
        match &self.state.draw.commitment {
            Some(old) if old.hash == *commitment => return Ok(Reply::Done),
            Some(_) => return refused(DrawRefusal::AlreadyCommitted),
            None => {}
        }
        if self.state.phase > Phase::Doors {
            return refused(DrawRefusal::TooLate);
        }
        if draw.beacon != *beacon {
            return refused(DrawRefusal::WrongBeaconRound);
        }
        if sealed_seed.len() > SEALED_SEED_MAX {
            return refused(DrawRefusal::SealedSeedTooLarge);
        }
        let (sealed_seed, beacon) = (sealed_seed.to_vec(), beacon.clone());
        out.push(What::DrawCommitted { commitment: *commitment, sealed_seed, beacon }.at(at));
        // The doors waited for this.
        self.push_steps(at, settings, true, out);
        Ok(Reply::Done)
    }

    #[expect(clippy::too_many_arguments, reason = "one field of the command each")]
    pub(crate) fn decide_draw(
        &self,
        at: Timestamp,
        seed: &[u8; 32],
        chain: &[u8; 32],
        beacon: Option<&[u8]>,
        waive_beacon: bool,
        by: &Actor,
        out: &mut Vec<Event>,
    ) -> Decided {
        self.state.ready()?;
        let refused = |why| Err(Refusal::Draw(why));
        let Some(commitment) = &self.state.draw.commitment else {
            return refused(DrawRefusal::NoDraw);
        };
        if let Some(revealed) = &self.state.draw.revealed {
            let same = revealed.seed == *seed && revealed.chain == *chain;
            return if same { Ok(Reply::Done) } else { refused(DrawRefusal::AlreadyDrawn) };
        }
        if !self.state.draw.closed {
            return refused(DrawRefusal::NotClosed);
        }
        if draw::commitment(seed) != commitment.hash {
            return refused(DrawRefusal::WrongSeed);
        }
        let waived = match (&commitment.beacon, beacon) {
            (None, None) => false,
            (None, Some(_)) => return refused(DrawRefusal::BeaconNotAsked),
            // A beacon that said nothing is a missing one: no proof with it would ever check.
            (Some(_), None | Some([])) if waive_beacon => true,
            (Some(_), None | Some([])) => return refused(DrawRefusal::BeaconMissing),
            (Some(_), Some(_)) => false,
        };
        let beacon = beacon.filter(|value| !value.is_empty()).map(<[u8]>::to_vec);
        let by = by.clone();
        out.push(What::Drawn { seed: *seed, chain: *chain, beacon, waived, by }.at(at));
        Ok(Reply::Done)
    }

    pub(crate) fn absorb_draw_committed(
        &mut self,
        commitment: &[u8; 32],
        sealed_seed: &[u8],
        beacon: &Option<String>,
    ) {
        self.state.draw.commitment = Some(Commitment {
            hash: *commitment,
            sealed_seed: sealed_seed.to_vec(),
            beacon: beacon.clone(),
        });
    }

    pub(crate) fn absorb_draw_closed(&mut self, counts: &[(LaneId, u64)]) {
        self.state.phase = Phase::Drawing;
        self.state.draw.closed = true;
        self.state.draw.counts = counts.to_vec();
        for lane in &mut self.state.lanes {
            lane.line.split_here();
            lane.sealed_to = Number(lane.line.split);
        }
    }

    pub(crate) fn absorb_drawn(
        &mut self,
        at: Timestamp,
        seed: &[u8; 32],
        chain: &[u8; 32],
        beacon: Option<&[u8]>,
        waived: bool,
    ) {
        let final_key = self.state.draw.final_key(seed, chain, beacon);
        let prepared = self.index.prepared.take().filter(|it| it.final_key == final_key);
        let prepared = prepared.unwrap_or_else(|| self.draw_job(seed, chain, beacon).run());
        for PreparedLane { lane, source, mut drawn, permutation } in prepared.lanes {
            let place = self.state.lane_at(lane);
            let line = &mut self.state.lanes[place].line;
            clear_who_left(&source, &line.drawn, &permutation, &mut drawn);
            line.drawn = drawn;
            let key = draw::lane_key(&final_key, lane.0);
            self.state.lanes[place].drawn = Some(Drawn { key, permutation });
        }
        self.state.draw.revealed = Some(Revealed {
            seed: *seed,
            chain: *chain,
            beacon: beacon.map(<[u8]>::to_vec),
            waived,
        });
        if self.state.phase == Phase::Drawing {
            self.state.phase = Phase::Running;
            self.empty_bucket(at);
        }
    }
}

/// The line by number turned into the line by order.
fn draw_line(source: &Bitmap, permutation: &Permutation) -> Bitmap {
    let mut drawn = Bitmap::new();
    drawn.extend_zeros(source.len());
    let mut numbers = Vec::with_capacity(1024);
    let mut next = source.first_one();
    while let Some(from) = next {
        numbers.clear();
        source.next_ones(from, 1024, &mut numbers);
        next = numbers.last().map(|last| last + 1).filter(|_| numbers.len() == 1024);
        permutation.forward_many(&mut numbers);
        for order in &numbers {
            drawn.set(*order);
        }
    }
    drawn
}

/// Those who left between the snapshot and now lose their bit in the drawn line too. The writer
/// waits for this, so it must cost by those who left, not by those who stayed.
fn clear_who_left(source: &Bitmap, now: &Bitmap, permutation: &Permutation, drawn: &mut Bitmap) {
    let mut gone = Vec::new();
    source.ones_missing_in(now, &mut gone);
    permutation.forward_many(&mut gone);
    for order in gone {
        drawn.clear(order);
    }
}
