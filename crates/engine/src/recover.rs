//! A room from the store: the newest snapshot, then everything after it.

use crate::error::OpenError;
use waitroom_core::{Room, What, codec};
use waitroom_store::{Chain, Head, RoomName, Store};

/// A room as the log has it.
#[derive(Debug)]
pub struct Recovered {
    pub room: Room,
    pub head: u64,
    pub chain: Chain,
    /// The chain at the close of a draw that is not made yet; the draw needs it.
    pub draw_chain: Option<Chain>,
    pub from_snapshot: u64,
}

/// How much of the log is in memory at once while it is replayed.
const READ_BYTES: usize = 4 << 20;

/// Reads a room up to the end of its log. Whoever wants to own it holds the lease first, so that
/// nobody else appends behind the end that was read.
pub async fn recover<S: Store>(store: &S, name: &RoomName) -> Result<Recovered, OpenError> {
    let mut recovered = match store.latest_snapshot(name).await? {
        Some(snapshot) => {
            // Each part goes as soon as it was read: the snapshot is never beside the whole room.
            let room = Room::restore(snapshot.chunks)
                .map_err(|what| OpenError::Damaged { at: snapshot.at.0, what })?;
            let (head, chain) = (snapshot.at.0, snapshot.chain);
            Recovered { room, head, chain, draw_chain: None, from_snapshot: head }
        }
        None => Recovered {
            room: Room::new(),
            head: 0,
            chain: Chain::START,
            draw_chain: None,
            from_snapshot: 0,
        },
    };
    loop {
        let batches = store.read(name, Head(recovered.head), READ_BYTES).await?;
        if batches.is_empty() {
            return Ok(recovered);
        }
        for batch in batches {
            let mut closes_draw = false;
            codec::decode(&batch.payload, |event| {
                closes_draw |= matches!(event.what, What::DrawClosed { .. });
                recovered.room.absorb(&event);
            })
            .map_err(|what| OpenError::Damaged { at: batch.after.0, what })?;
            recovered.head = batch.head.0;
            recovered.chain = batch.chain;
            if closes_draw {
                recovered.draw_chain = Some(batch.chain);
            }
        }
    }
}
