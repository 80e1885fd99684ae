//! Forgetting: whole blocks of finished tickets go, and join keys after ten minutes.
//!
//! A finished ticket answers "forgotten" once `memory` has passed; its bytes go when all of its
//! block have finished and been remembered long enough. So an always-on room stays flat.

use crate::chunked::CHUNK;
use crate::command::Block;
use crate::event::{Event, What};
use crate::room::{Room, padded};
use crate::settings::Settings;
use crate::units::{JoinKey, Millis, Number, Ticket, Timestamp};

/// How long an `Idempotency-Key` is remembered at the least. Settings bound `memory` from below by
/// this, so no block goes before its keys may.
pub const KEY_MEMORY: Millis = Millis::from_secs(600);

/// Blocks dropped in one decision at most.
const FORGET_MAX: usize = 16;

impl Room {
    pub(crate) fn decide_forget(&self, at: Timestamp, settings: &Settings, out: &mut Vec<Event>) {
        let before = out.len();
        for (lane, index) in self.state.lanes.iter().zip(&self.index.lanes) {
            let due = index.finished().take_while(|(ended, _)| ended.after(settings.memory) <= at);
            for (_, index) in due.take(FORGET_MAX) {
                out.push(What::ForgotTickets(Block { lane: lane.id, index }).at(at));
            }
        }
        if out.len() == before {
            for lane in &self.state.lanes {
                if let Some((index, joined)) = lane.keys_due()
                    && joined.after(KEY_MEMORY) <= at
                {
                    out.push(What::ForgotKeys(Block { lane: lane.id, index }).at(at));
                }
            }
        }
    }

    pub(crate) fn next_forget(&self, settings: &Settings) -> Option<Timestamp> {
        let tickets = self.index.lanes.iter().filter_map(|index| index.finished().next());
        let tickets = tickets.map(|(ended, _)| ended.after(settings.memory)).min();
        let keys =
            self.state.lanes.iter().filter_map(|lane| lane.keys_due()).map(|(_, at)| at).min();
        [tickets, keys.map(|joined| joined.after(KEY_MEMORY))].into_iter().flatten().min()
    }

    pub(crate) fn absorb_forgot_tickets(&mut self, block: Block) {
        self.drop_keys(block);
        let place = self.state.lane_at(block.lane);
        let first = block.first().0;
        for number in first..first + CHUNK {
            let ticket = Ticket { lane: block.lane, number: Number(number) };
            let identity = self.state.lanes[place].identity(ticket.number);
            // Where a newer ticket took the identity over, the table says so and keeps it.
            if identity != [0; 16] {
                self.index.identities.remove(&identity, ticket.packed());
            }
        }
        // An old id leads to the new place as long as there is one.
        self.state.moved.retain(|_, moved| Block::of(moved.to) != block);
        let lane = &mut self.state.lanes[place];
        lane.forget_block(block.index);
        self.index.lanes[place].forgot(lane, block.index);
    }

    pub(crate) fn absorb_forgot_keys(&mut self, block: Block) {
        self.drop_keys(block);
        let place = self.state.lane_at(block.lane);
        let lane = &mut self.state.lanes[place];
        lane.keys_forgotten = lane.keys_forgotten.max(block.index + 1);
    }

    fn drop_keys(&mut self, block: Block) {
        let place = self.state.lane_at(block.lane);
        if self.state.lanes[place].keys.chunk(block.index).is_none() {
            return;
        }
        let first = block.first().0;
        for number in first..first + CHUNK {
            let bytes = self.state.lanes[place].key(Number(number));
            if bytes != [0; 16] {
                let packed = Ticket::new(block.lane.0, number).packed();
                let hash = padded(&JoinKey::from_bytes(bytes).key);
                self.index.keys.remove(&hash, packed);
            }
        }
        self.state.lanes[place].keys.drop_chunk(block.index);
    }
}
