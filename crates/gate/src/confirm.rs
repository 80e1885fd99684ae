//! Which ended sessions every gate refuses by now, so that their slots are free early.
//!
//! A slot is free only when no gate can accept its pass. The core frees it when the pass is over
//! for everybody (its end and the leeway). It may be free earlier, once every gate has the board
//! that shows the session ended: each gate says which version it goes by, and what is held in the
//! oldest of those boards is refused by all. A gate that is cut off says nothing new, so nothing
//! ended since is freed early; its visitors' slots wait for their passes to end, as without it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use waitroom_core::{Board, Epoch, Ticket};

/// The gates of one room, and how far each of them is.
#[derive(Debug, Default)]
pub struct Confirmations {
    gates: Mutex<BTreeMap<String, u64>>,
    /// Boards with something held that not all have confirmed yet: oldest first, a handful.
    pending: Mutex<Vec<Arc<Board>>>,
    epoch: Mutex<Epoch>,
}

/// More would mean that a gate has been silent for long; then the newest take the place of the
/// ones before them, which they contain.
const PENDING_MAX: usize = 8;

impl Confirmations {
    /// A gate begins to check passes of this room. From now on its word is needed; it has seen
    /// nothing yet.
    pub fn register(&self, gate: &str) {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.entry(gate.to_owned()).or_insert(0);
    }

    /// A gate that will check no pass any more. An operator's word: one that was only cut off
    /// still lets people in.
    pub fn retire(&self, gate: &str) {
        self.gates.lock().unwrap_or_else(PoisonError::into_inner).remove(gate);
    }

    /// The room is in this epoch. In a new one nobody has confirmed anything: the log may have been
    /// cut before it, and then the same versions mean something else.
    pub fn in_epoch(&self, epoch: Epoch) {
        let mut known = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *known, epoch) != epoch {
            let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
            gates.values_mut().for_each(|version| *version = 0);
            self.pending.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// The gate goes by a board of this version, or a newer one, on every request from now on.
    pub fn confirm(&self, gate: &str, version: u64) {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = gates.get_mut(gate) {
            *known = version.max(*known);
        }
    }

    /// What everybody has confirmed. Without any gate nobody has: passes are checked elsewhere.
    pub fn by_all(&self) -> u64 {
        let gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.values().copied().min().unwrap_or(0)
    }

    /// The newest board; says which tickets' slots are free because every gate refuses them.
    pub fn released(&self, newest: &Arc<Board>) -> Vec<Ticket> {
        let all = self.by_all();
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.last().is_none_or(|last| last.version() < newest.version()) {
            if pending.len() == PENDING_MAX {
                // Keep the oldest, which is confirmed first, and the newest.
                pending.pop();
            }
            pending.push(newest.clone());
        }
        let confirmed = pending.iter().rposition(|board| board.version() <= all);
        let Some(at) = confirmed else { return Vec::new() };
        let board = pending[at].clone();
        pending.drain(..at);
        board.state().held().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_new_epoch_nobody_has_confirmed_anything() {
        let confirmations = Confirmations::default();
        confirmations.register("here");
        confirmations.in_epoch(Epoch(3));
        confirmations.confirm("here", 90);
        confirmations.in_epoch(Epoch(3));
        assert_eq!(confirmations.by_all(), 90);
        // The log may have been cut: what is version 90 now was never seen.
        confirmations.in_epoch(Epoch(4));
        assert_eq!(confirmations.by_all(), 0);
        confirmations.confirm("here", 40);
        assert_eq!(confirmations.by_all(), 40);
    }
}
