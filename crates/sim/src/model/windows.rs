//! Shuffle windows: sealed when full, or when their first person could enter now.

use super::Model;
use sha2::{Digest, Sha256};
use waitroom_core::permutation::Permutation;
use waitroom_core::{LaneId, Settings, Status, Ticket, Timestamp, draw};

impl Model {
    /// The last position of the window that this ticket stands in while it is not sealed: behind
    /// all before the window, as if everybody came for whom there is room in it.
    pub(super) fn end_of_open_window(&self, ticket: Ticket) -> u64 {
        let size = self.settings.as_ref().map_or(1, |settings| settings.shuffle_window) as u64;
        let from = self.lanes[&ticket.lane].ordered_to;
        let start = from + (ticket.number.0 - from) / size * size;
        let before = self.waiting_in(ticket.lane).filter(|(it, _)| it.number.0 < start).count();
        let window = self.people_in(ticket.lane);
        let window = window.filter(|(it, _)| (start..start + size).contains(&it.number.0));
        let gone = window.filter(|(_, person)| person.status() != Status::Waiting).count();
        before as u64 + size - gone as u64
    }

    pub(super) fn seal_windows(
        &mut self,
        at: Timestamp,
        settings: &Settings,
        entropy: &[u8; 16],
    ) -> bool {
        if settings.shuffle_window == 1 || self.draw_pending() {
            return false;
        }
        let somebody_may_enter =
            self.admits().is_ok() && self.slots_free(settings) > 0 && self.tokens(at, settings) > 0;
        let lanes: Vec<LaneId> = self.lanes.keys().copied().collect();
        let mut sealed = false;
        for id in lanes {
            let full = settings.shuffle_window as u64;
            let open = |model: &Model| model.lanes[&id].issued - model.lanes[&id].ordered_to;
            while open(self) >= full {
                self.seal(id, full, entropy);
                sealed = true;
            }
            let from = self.lanes[&id].ordered_to;
            let first = self.waiting_in(id).map(|(ticket, _)| ticket.number.0).min();
            if somebody_may_enter && first.is_some_and(|first| first >= from) {
                self.seal(id, open(self), entropy);
                sealed = true;
            }
        }
        sealed
    }

    /// Lanes whose every waiting person stands in the open window get their order at once.
    pub(super) fn seal_for_an_operator(&mut self, settings: &Settings, entropy: &[u8; 16]) {
        let window = settings.shuffle_window as u64;
        let lanes: Vec<LaneId> = self.lanes.keys().copied().collect();
        for id in lanes {
            let somebody = self.waiting_in(id).next().is_some();
            while somebody && self.waiting_in(id).all(|(_, person)| person.order.is_none()) {
                let open = self.lanes[&id].issued - self.lanes[&id].ordered_to;
                self.seal(id, open.min(window), entropy);
            }
        }
    }

    fn seal(&mut self, id: LaneId, len: u64, entropy: &[u8; 16]) {
        let lane = self.lanes.get_mut(&id).expect("only lanes that exist are sealed");
        let start = lane.ordered_to;
        lane.ordered_to += len;
        let key = draw::window_key(&seed(entropy, id, start), id.0, start);
        let shuffle = Permutation::new(key, len);
        for offset in 0..len {
            self.person(Ticket::new(id.0, start + offset)).order =
                Some(start + shuffle.forward(offset));
        }
    }
}

/// Each window's own seed from the tick's entropy.
fn seed(entropy: &[u8; 16], lane: LaneId, start: u64) -> [u8; 16] {
    let mut text = b"waitroom window seed v1".to_vec();
    text.extend(entropy);
    text.push(lane.0);
    text.extend(start.to_be_bytes());
    let hash = Sha256::digest(&text);
    hash[..16].try_into().expect("half of 32 bytes")
}
