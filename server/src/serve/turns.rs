//! Operators act on a room one at a time, also where several instances serve it.
//!
//! A turn is a lease of its own, besides the one of the room's owner: whoever has it looks, acts,
//! and writes the audit entry before anybody else does. An instance that dies in its turn leaves an
//! act without an entry at most; the next one finds that others had turns, and writes it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use waitroom_api::desk::Turn;
use waitroom_api::{Code, Problem};
use waitroom_store::{Error, LeaseName, RoomName, Store};

/// An act takes milliseconds; one that takes longer than this gives up its turn.
const TURN: Duration = Duration::from_secs(3);
/// How long somebody waits for theirs: as long as one that was left behind lasts.
const WITHIN: Duration = Duration::from_secs(4);
const PAUSE: Duration = Duration::from_millis(20);

/// The newest turn of ours in each room.
#[derive(Debug, Default)]
pub struct Turns(Mutex<BTreeMap<RoomName, u32>>);

impl Turns {
    pub async fn begin<S: Store>(
        &self,
        store: &S,
        who: &str,
        room: &RoomName,
    ) -> Result<Turn, Problem> {
        let name = LeaseName::parse(&format!("act/{room}")).expect("room names are plain");
        let deadline = Instant::now() + WITHIN;
        let refused = |detail: String| Err(Problem::new(Code::Unavailable, detail).in_room(room));
        loop {
            let asked = Instant::now();
            match store.lease(&name, who, TURN.as_millis() as u64).await {
                Ok(lease) => {
                    let ours = self.newest().insert(room.clone(), lease.epoch);
                    let others_acted = ours.is_none_or(|ours| lease.epoch != ours + 1);
                    let until = Some(asked + TURN);
                    return Ok(Turn { others_acted, until, lease: Some(lease) });
                }
                Err(Error::Held { .. }) if Instant::now() < deadline => {}
                Err(Error::Held { .. }) => {
                    return refused("another instance acts on this room; nothing was done".into());
                }
                Err(error) => return refused(format!("the store cannot be asked: {error}")),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub async fn end<S: Store>(&self, store: &S, _room: &RoomName, turn: Turn) {
        if let Some(lease) = turn.lease {
            // Otherwise it runs out by itself.
            let _ = store.release(&lease).await;
        }
    }

    fn newest(&self) -> std::sync::MutexGuard<'_, BTreeMap<RoomName, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
