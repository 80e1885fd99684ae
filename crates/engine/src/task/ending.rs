//! How a tenure ends in order: what is on its way arrives, the lease is given back.

use super::{Ended, Followed, Tenure, keep_snapshot, next};
use crate::recover::Recovered;
use waitroom_core::{Board, Phase};
use waitroom_store::{Appended, Head, Store};

impl<S: Store> Tenure<'_, S> {
    /// The queue is closed and empty: waits for what is on its way and gives the lease back.
    pub(super) async fn finish(&mut self) -> Ended {
        if let Err(ended) = self.land().await {
            return ended;
        }
        if let Some(snapshot) = self.snapshot.take() {
            let _ = snapshot.await;
        }
        // A restart then begins where this ended, without a replay.
        if self.committed > self.snapshot_head + self.task.config.snapshot_every / 100
            && self.writer.state().phase() != Phase::Drawing
        {
            let tip = Appended { head: Head(self.committed), chain: self.chain };
            let state = self.writer.state().clone();
            keep_snapshot(&*self.task.store, &self.task.shared.name, tip, state).await;
        }
        let _ = self.task.store.release(&self.lease).await;
        Ended::Stopped
    }

    /// Another instance should own the room: the same without closing the queue, and without a
    /// snapshot, for which people would have to wait. Whoever is in the queue goes with the room.
    pub(super) async fn give(&mut self) -> Ended {
        if let Err(ended) = self.land().await {
            return ended;
        }
        match self.task.store.release(&self.lease).await {
            Ok(()) => Ended::Given,
            // It runs out by itself, and then another takes it.
            Err(error) => Ended::Failed(format!("the lease could not be given back: {error}")),
        }
    }

    /// Waits for every append that is on its way, and shows the room as it then is.
    async fn land(&mut self) -> Result<(), Ended> {
        while !self.in_flight.is_empty() {
            let appended = next(&mut self.in_flight).await;
            self.appended(appended)?;
        }
        let board = Board::new(self.writer.state().clone(), self.committed, self.board_at);
        self.task.shared.publish(board);
        Ok(())
    }

    /// The room as it was given away, to be followed from there.
    pub(super) fn into_followed(self) -> Followed {
        let (head, chain, draw_chain) = (self.committed, self.chain, self.draws.chain);
        let (room, waits) = self.writer.into_parts();
        Followed {
            recovered: Recovered { room, head, chain, draw_chain, from_snapshot: head },
            waits,
        }
    }
}
