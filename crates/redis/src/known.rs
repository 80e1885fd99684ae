//! What this instance knows of rooms because it wrote them itself.
//!
//! An append needs the chain before it, and a reader on the same instance must see what was
//! acknowledged there although it was not told to all yet. Both are only hints: scripts check the
//! one, and the other counts only while the lease of that epoch is the newest.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};

use tokio::sync::watch;
use waitroom_store::{Appended, Head, RoomName};

use crate::value::digits;

#[derive(Debug, Default)]
pub struct Known(Mutex<HashMap<RoomName, Room>>);

#[derive(Debug)]
struct Room {
    tip: Option<Appended>,
    durable: Option<(u32, Head)>,
    /// Wakes who follows this room on this instance.
    told: watch::Sender<Head>,
}

impl Default for Room {
    fn default() -> Room {
        Room { tip: None, durable: None, told: watch::channel(Head::EMPTY).0 }
    }
}

impl Known {
    fn rooms(&self) -> MutexGuard<'_, HashMap<RoomName, Room>> {
        self.0.lock().expect("nobody panics while holding it")
    }

    pub fn tip(&self, room: &RoomName) -> Option<Appended> {
        self.rooms().get(room)?.tip
    }

    /// Where the log is to be looked up again, `None` if that is not known any more.
    pub fn set_tip(&self, room: &RoomName, tip: Option<Appended>) {
        self.rooms().entry(room.clone()).or_default().tip = tip;
    }

    /// The log up to `head` is durable at our level, says the holder of `epoch`.
    pub fn durable_to(&self, room: &RoomName, epoch: u32, head: Head) {
        let mut rooms = self.rooms();
        let known = rooms.entry(room.clone()).or_default();
        let before = known.durable.filter(|(before, _)| *before == epoch).map(|(_, head)| head);
        let head = before.map_or(head, |before| before.max(head));
        known.durable = Some((epoch, head));
        known.told.send_replace(head);
    }

    pub fn removed(&self, room: &RoomName) {
        if let Some(known) = self.rooms().get_mut(room) {
            known.tip = None;
            known.durable = None;
            known.told.send_replace(Head::EMPTY);
        }
    }

    /// What scripts that read are told: the epoch, and how far this instance knows the log durable.
    pub fn durable(&self, room: &RoomName) -> (String, String) {
        let durable = self.rooms().get(room).and_then(|room| room.durable);
        match durable {
            Some((epoch, head)) => (epoch.to_string(), digits(head.0)),
            None => (String::new(), digits(0)),
        }
    }

    pub fn follow(&self, room: &RoomName) -> watch::Receiver<Head> {
        self.rooms().entry(room.clone()).or_default().told.subscribe()
    }
}
