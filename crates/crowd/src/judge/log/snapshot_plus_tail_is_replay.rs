//! Promise 15: snapshot + tail = full replay.
//!
//! The room is made twice, from the newest snapshot and the events behind it, and from the first
//! event on. One head, one digest. Whether the live state was the same is what clients' looks say
//! (`what_clients_saw_is_there.rs`).

use waitroom_core::{Event, Room, codec};
use waitroom_store::{Error, Head, RoomName};

use super::{Found, Source};

pub(super) const PROMISE: u8 = 15;

pub(super) async fn check(
    store: &impl Source,
    room: &RoomName,
    found: &mut Found,
) -> Result<(), Error> {
    let Some(snapshot) = store.latest_snapshot(room).await? else { return Ok(()) };
    let from = snapshot.at;
    let mut by_snapshot = match Room::restore(snapshot.chunks) {
        Ok(restored) => restored,
        Err(damaged) => {
            let said = format!("room \"{room}\": its snapshot at event {from}: {}", damaged.0);
            found.add(PROMISE, said, &[]);
            return Ok(());
        }
    };
    let mut by_replay = Room::new();
    let mut at = Head::EMPTY;
    loop {
        let batches = store.read(room, at).await?;
        let Some(last) = batches.last() else { break };
        at = last.head;
        for batch in &batches {
            let mut index = batch.after.0;
            let absorb = |event: Event| {
                index += 1;
                by_replay.absorb(&event);
                if index > from.0 {
                    by_snapshot.absorb(&event);
                }
            };
            // What cannot be read was told by the walk.
            let _ = codec::decode(&batch.payload, absorb);
        }
    }
    if by_snapshot.state().digest() != by_replay.state().digest() {
        let said = format!(
            "room \"{room}\": at event {at} the snapshot of event {from} and its tail do not make \
             the room that the whole log makes"
        );
        found.add(PROMISE, said, &[]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::plant::{KEPT, Room};

    #[test]
    fn a_true_snapshot_is_fine() {
        let room = Room::running().join(0).snapshot().join(1).admit(0);
        assert_eq!(room.broken(), KEPT);
    }

    #[test]
    fn a_snapshot_that_lacks_one_event_or_has_one_too_many_is_found() {
        let room = || Room::running().join(0).join(1).leave(0);
        assert_eq!(room().snapshot().join(2).broken(), KEPT);
        assert_eq!(room().snapshot_without_last().join(2).broken(), [15]);
        assert_eq!(room().snapshot_with_one_more(1).join(2).broken(), [15]);
    }
}
