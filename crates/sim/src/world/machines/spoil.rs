//! What planted bugs make of batches on their way to the store.

use super::tray::Tray;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use waitroom_core::{Event, What, codec};
use waitroom_store::{
    AppendError, Appended, Batch, Chain, Head, Lease, Link, MemoryStore, RoomName, Store,
};

/// The log as somebody sees it who did not wait for its last batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short {
    pub(super) epoch: u32,
    pub(super) tip: Appended,
    pub(super) missing: u64,
    /// Whether the new epoch is not written yet.
    pub(super) opening: bool,
}

impl Short {
    pub(super) async fn of(store: &MemoryStore, lease: &Lease) -> Option<Short> {
        let room = store.rooms().await.ok()?.into_iter().find(|room| lease.name.is_of(room))?;
        let begins = store.trimmed_to(&room).await.ok()?;
        let batches = store.read(&room, begins, usize::MAX).await.ok()?;
        let [.., before, last] = &batches[..] else { return None };
        // Only the last admission is worth forgetting.
        let mut admits = false;
        let see = |event: Event| admits |= matches!(event.what, What::Admitted { .. });
        codec::decode(&last.payload, see).ok()?;
        let (head, chain) = (before.head, before.chain);
        let missing = u64::from(last.events);
        let tip = Appended { head, chain };
        admits.then_some(Short { epoch: lease.epoch, tip, missing, opening: true })
    }
}

/// Appends for the owner of today whatever anybody sends who was one, wherever the log ends.
pub(super) async fn take_anyhow(
    store: &MemoryStore,
    tray: &Tray,
    room: &RoomName,
    lease: &Lease,
    expected: Head,
    batch: Batch,
) -> Result<Appended, AppendError> {
    let said = store.append(room, lease, expected, batch.clone()).await;
    let current = tray.pile().lease.clone();
    let (Err(_), Some(current)) = (&said, current) else { return said };
    let Ok(tip) = store.tip(room).await else { return said };
    // A number that the owner of today has not come to.
    let number = (1 << 40) + tip.head.0;
    let events = u64::from(batch.events);
    let landed = store.append(room, &current, tip.head, Batch { number, ..batch }).await?;
    tray.pile().spoiled = true;
    Ok(Appended { head: Head(expected.0 + events), ..landed })
}

/// Batches that were acknowledged and are not in the store yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Late(Arc<Mutex<Option<Appended>>>);

/// Long enough for a room to be given away meanwhile.
const LATE: Duration = Duration::from_millis(150);

impl Late {
    pub(super) async fn take(
        &self,
        store: &MemoryStore,
        room: &RoomName,
        lease: &Lease,
        expected: Head,
        batch: Batch,
    ) -> Result<Appended, AppendError> {
        let known = self.0.lock().expect("one thread").filter(|tip| tip.head == expected);
        let tip = match known {
            Some(tip) => tip,
            None => store.tip(room).await.unwrap_or_default(),
        };
        // The first batch of a tenure settles what came before, so it is not taken on trust.
        if batch.number == 0 || tip.head != expected {
            return store.append(room, lease, expected, batch).await;
        }
        let Lease { epoch, nonce, .. } = *lease;
        let link =
            Link { epoch, nonce, number: batch.number, after: expected, events: batch.events };
        let chain: Chain = tip.chain.next(room, &link, &batch.payload);
        let tip = Appended { head: link.head(), chain };
        *self.0.lock().expect("one thread") = Some(tip);
        let (store, room, lease) = (store.clone(), room.clone(), lease.clone());
        tokio::spawn(async move {
            tokio::time::sleep(LATE).await;
            let _ = store.append(&room, &lease, expected, batch).await;
        });
        Ok(tip)
    }
}
