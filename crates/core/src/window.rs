//! Shuffle windows: tickets that came close together are served in a random order.
//!
//! A window is sealed when it is full, or earlier when it has come to the front and somebody
//! could enter: a room never waits for people who may never come. The seed is drawn at that
//! moment and logged, so the order can be worked out again but not ahead.

use crate::event::{Event, What};
use crate::lane::{Lane, Window};
use crate::room::Room;
use crate::settings::Settings;
use crate::units::{LaneId, Number, Ticket, Timestamp};
use sha2::{Digest, Sha256};

/// Windows sealed in one decision at most; each costs a permutation of up to 65,536.
const SEAL_MAX: usize = 4;

impl Room {
    pub(crate) fn decide_seal(
        &self,
        at: Timestamp,
        settings: &Settings,
        entropy: &[u8; 16],
        out: &mut Vec<Event>,
    ) {
        if settings.shuffle_window == 1 || self.state.draw_pending() {
            return;
        }
        let before = out.len();
        for lane in &self.state.lanes {
            let mut start = lane.sealed_to.0;
            while out.len() - before < SEAL_MAX {
                let len = match lane.next().0 - start {
                    issued if issued >= settings.shuffle_window as u64 => settings.shuffle_window,
                    issued if self.seals_early(at, lane, start, settings) => issued as u32,
                    _ => break,
                };
                let seed = window_seed(entropy, lane.id, start);
                let start_number = Number(start);
                out.push(What::Sealed { lane: lane.id, start: start_number, len, seed }.at(at));
                start += len as u64;
            }
        }
    }

    /// Whether the open window is all that is left of the lane, and one of it could enter now.
    fn seals_early(&self, at: Timestamp, lane: &Lane, start: u64, settings: &Settings) -> bool {
        self.state.admits().is_ok()
            && start == lane.sealed_to.0
            && lane.line.rank(start) == 0
            && lane.line.count(start, lane.next().0) > 0
            && self.state.slots_free(settings) > 0
            && self.state.bucket.tokens(at, settings) > 0
    }

    pub(crate) fn next_seal(&self, now: Timestamp, settings: &Settings) -> Option<Timestamp> {
        if settings.shuffle_window == 1 || self.state.draw_pending() {
            return None;
        }
        let full = |lane: &Lane| lane.next().0 - lane.sealed_to.0 >= settings.shuffle_window as u64;
        self.state.lanes.iter().any(full).then_some(now)
    }

    pub(crate) fn absorb_sealed(&mut self, lane: LaneId, start: Number, len: u32, seed: [u8; 16]) {
        let place = self.state.lane_at(lane);
        let lane = &mut self.state.lanes[place];
        let window = Window { start: start.0, len, seed };
        let permutation = window.permutation(lane.id);
        lane.line.shuffle(start.0, len as u64, |offset| permutation.forward(offset));
        lane.windows.push(window);
        lane.sealed_to = Number(start.0 + len as u64);
    }
}

impl Lane {
    /// Orders below this are known and can be served.
    pub(crate) fn ordered_to(&self, shuffle_window: u32) -> u64 {
        if shuffle_window == 1 { self.next().0 } else { self.sealed_to.0 }
    }

    /// The tickets at these orders, which ascend.
    pub(crate) fn tickets_at(&self, orders: &[u64]) -> Vec<Ticket> {
        let mut cache = None;
        orders
            .iter()
            .map(|order| Ticket { lane: self.id, number: self.number_at(*order, &mut cache) })
            .collect()
    }
}

/// Each window's own seed from the tick's entropy, so that two windows never share an order.
pub(crate) fn window_seed(entropy: &[u8; 16], lane: LaneId, start: u64) -> [u8; 16] {
    let mut hash = Sha256::new();
    hash.update(b"waitroom window seed v1");
    hash.update(entropy);
    hash.update([lane.0]);
    hash.update(start.to_be_bytes());
    let mut seed = [0; 16];
    seed.copy_from_slice(&hash.finalize()[..16]);
    seed
}
