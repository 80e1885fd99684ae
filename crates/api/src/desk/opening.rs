//! How a room comes to the desk: opened, and listed for everybody.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, MutexGuard, PoisonError};

use waitroom_store::RoomName;

use super::{Desk, RoomDesk};
use crate::live::Hub;
use crate::problem::Problem;
use crate::pulse::Pulse;
use crate::told::Newest;

impl Desk {
    /// Opens a room, or finds it open.
    pub async fn open(&self, name: &RoomName, who: &str) -> Result<Arc<RoomDesk>, Problem> {
        let room = self.open_unlisted(name, who).await?;
        self.list(&room);
        Ok(room)
    }

    /// The same, but nobody finds a new one until it is [listed](Desk::list): while the doors are
    /// open, a room must not be entered before it has its settings.
    pub async fn open_unlisted(
        &self,
        name: &RoomName,
        who: &str,
    ) -> Result<Arc<RoomDesk>, Problem> {
        if let Ok(room) = self.room(name.as_str()) {
            return Ok(room);
        }
        // One at a time: a room that is opened twice would be two owners of one lease.
        let _opening = self.opening.lock().await;
        if let Ok(room) = self.room(name.as_str()) {
            return Ok(room);
        }
        if let Some(room) = self.unlisted().get(name) {
            return Ok(room.clone());
        }
        let kit = self.installation.open_room(name, who).await?;
        let passes = &self.signatures.passes;
        let verifier = passes.verifier(name.as_str());
        let verifier_anywhere = passes.verifier_anywhere(name.as_str());
        let hub = Hub::new(self.draining.subscribe());
        let salt = RandomState::new().hash_one(name.as_str());
        let room = Arc::new(RoomDesk {
            kit,
            verifier,
            verifier_anywhere,
            told: self.told.clone(),
            newest_told: Newest::default(),
            salt,
            hub,
            pulse: Pulse::default(),
            alarm: self.alarm.clone(),
            acting: tokio::sync::Mutex::new(false),
        });
        self.unlisted().insert(name.clone(), room.clone());
        Ok(room)
    }

    fn unlisted(&self) -> MutexGuard<'_, BTreeMap<RoomName, Arc<RoomDesk>>> {
        self.unlisted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on everybody finds the room.
    pub fn list(&self, room: &Arc<RoomDesk>) {
        let name = room.name();
        self.unlisted().remove(name);
        self.rooms.rcu(|rooms| {
            let mut rooms = Vec::clone(rooms);
            match rooms.binary_search_by(|it| it.name().as_str().cmp(name.as_str())) {
                Ok(at) => rooms[at] = room.clone(),
                Err(at) => rooms.insert(at, room.clone()),
            }
            rooms
        });
        self.unopened.forget(name);
    }
}
