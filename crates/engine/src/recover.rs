//! A room from the store: the newest snapshot, then everything after it.

use crate::error::OpenError;
use waitroom_core::{Event, Room, What, codec};
use waitroom_store::{Appended, Chain, Head, RoomName, Store};

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
    recovered.go_on(store, name, |_, _| ()).await?;
    Ok(recovered)
}

impl Recovered {
    /// Folds in what was appended since, and shows each event before it is absorbed. The chain is
    /// followed as well: a log that lost its end and grew again is another log, and what was
    /// absorbed of the old one would be shown to people for ever.
    pub(crate) async fn go_on<S: Store>(
        &mut self,
        store: &S,
        name: &RoomName,
        mut see: impl FnMut(&Event, &Room),
    ) -> Result<(), OpenError> {
        loop {
            let batches = store.read(name, Head(self.head), READ_BYTES).await?;
            if batches.is_empty() {
                return Ok(());
            }
            for batch in batches {
                let chain = self.chain.next(name, &batch.link(), &batch.payload);
                if batch.after.0 != self.head || batch.chain != chain {
                    return Err(OpenError::Diverged { at: self.head });
                }
                let mut closes_draw = false;
                codec::decode(&batch.payload, |event| {
                    closes_draw |= matches!(event.what, What::DrawClosed { .. });
                    see(&event, &self.room);
                    self.room.absorb(&event);
                })
                .map_err(|what| OpenError::Damaged { at: batch.after.0, what })?;
                self.head = batch.head.0;
                self.chain = batch.chain;
                if closes_draw {
                    self.draw_chain = Some(batch.chain);
                }
            }
        }
    }

    /// Whether this is a part of the log that ends so; what is missing can then be read.
    pub(crate) fn fits(&self, tip: Appended) -> bool {
        self.head < tip.head.0 || (self.head == tip.head.0 && self.chain == tip.chain)
    }
}
