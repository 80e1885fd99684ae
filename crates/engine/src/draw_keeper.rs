//! Sees a room's draw through: commits to a seed, waits for the close and the beacon, has the
//! order worked out beside the writer, and reveals.
//!
//! The seed is sealed in the log, so whoever owns the room next can go on where this one stopped.

use crate::config::Vault;
use crate::handle::Beacon;
use std::sync::Arc;
use waitroom_core::{Actor, Command, DrawJob, Phase, PreparedDraw, Room, draw};
use waitroom_store::{Chain, Entropy, RoomName};

#[derive(Debug, Default)]
pub struct DrawKeeper {
    /// The chain hash of the batch that closed the draw.
    pub chain: Option<Chain>,
    pub beacon: Option<Beacon>,
    working: Option<Reveal>,
}

#[derive(Clone, Debug)]
struct Reveal {
    seed: [u8; 32],
    chain: [u8; 32],
    beacon: Option<Vec<u8>>,
    waived: Option<Actor>,
}

impl DrawKeeper {
    /// The commitment that a room with a draw still lacks.
    pub fn commitment(
        &self,
        room: &Room,
        name: &RoomName,
        vault: &Arc<dyn Vault>,
        entropy: &Arc<dyn Entropy>,
    ) -> Option<Command> {
        let state = room.state();
        let draw = state.settings()?.draw.as_ref()?;
        if state.draw().commitment.is_some() || state.phase() > Phase::Doors {
            return None;
        }
        let mut seed = [0; 32];
        seed[..16].copy_from_slice(&entropy.next_u128().to_be_bytes());
        seed[16..].copy_from_slice(&entropy.next_u128().to_be_bytes());
        Some(Command::CommitDraw {
            commitment: draw::commitment(&seed),
            sealed_seed: vault.seal(&context(name), &seed),
            beacon: draw.beacon.clone(),
        })
    }

    /// The work to do now that the draw has closed and nothing is missing. Asked again it says
    /// nothing until [`DrawKeeper::reveal`] has taken the result.
    pub fn job(&mut self, room: &Room, name: &RoomName, vault: &Arc<dyn Vault>) -> Option<DrawJob> {
        let draw = room.state().draw();
        if self.working.is_some() || !draw.closed || draw.revealed.is_some() {
            return None;
        }
        let commitment = draw.commitment.as_ref()?;
        let chain = self.chain?.0;
        let (beacon, waived) = match (&commitment.beacon, &self.beacon) {
            (None, _) => (None, None),
            (Some(_), Some(Beacon::Value(value))) => (Some(value.clone()), None),
            (Some(_), Some(Beacon::Waived { by })) => (None, Some(by.clone())),
            (Some(_), None) => return None,
        };
        let seed = vault.open(&context(name), &commitment.sealed_seed)?.try_into().ok()?;
        let job = room.draw_job(&seed, &chain, beacon.as_deref());
        self.working = Some(Reveal { seed, chain, beacon, waived });
        Some(job)
    }

    /// The order is worked out: offers it to the room and says the command that swaps it in.
    pub fn reveal(&mut self, room: &mut Room, prepared: PreparedDraw) -> Option<Command> {
        let Reveal { seed, chain, beacon, waived } = self.working.take()?;
        room.offer_draw(prepared);
        let waive_beacon = waived.is_some();
        let by = waived.unwrap_or_else(|| Actor::new("engine"));
        Some(Command::Draw { seed, chain, beacon, waive_beacon, by })
    }
}

fn context(name: &RoomName) -> String {
    format!("draw seed of {name}")
}
