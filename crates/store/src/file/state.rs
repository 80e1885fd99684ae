//! What the records add up to: tips, trims, cursors, leases.
//!
//! Lives here: [`State`], and [`Changes`], a thin layer over it. Staging folds records into a
//! layer; a commit merges the layer in, a failed commit drops it. Recovery folds the same records
//! through the same function, so what is read back is what was live.
//! Stays out: where batches lie (`index`), and whether a request is allowed (`journal`).

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use crate::{
    cursor::Cursor,
    file::record::{BatchRecord, Note},
    lease::EPOCH_MAX,
    log::{Appended, Chain, Head},
    name::{LeaseName, RoomName, SinkName},
};

/// Everything the journal says, summed up.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct State {
    pub rooms: HashMap<RoomName, Room>,
    pub leases: HashMap<LeaseName, Granted>,
    /// How often a room of that name was removed: tells an old snapshot from a new room's.
    pub removals: HashMap<RoomName, u32>,
}

/// One room's log, summed up. Cheap to copy: a group's layer holds a copy of each room it touches.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Room {
    pub tip: Appended,
    /// Epoch and number of the newest batch; epochs begin at 1, so the default is below all.
    pub last: (u32, u64),
    pub trimmed_to: Head,
    pub floor: Option<Head>,
    pub cursors: Arc<BTreeMap<SinkName, Cursor>>,
    /// Set while an import is under way: the room does not count until its log reaches this.
    pub adopting: Option<Head>,
}

/// The newest grant of a lease.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Granted {
    pub epoch: u32,
    pub nonce: u128,
    pub who: Arc<str>,
    pub released: bool,
}

/// What a group of records changes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// `None` is a removed room.
    rooms: HashMap<RoomName, Option<Room>>,
    leases: HashMap<LeaseName, Granted>,
    removals: HashMap<RoomName, u32>,
}

impl Changes {
    pub fn room<'a>(&'a self, base: &'a State, room: &RoomName) -> Option<&'a Room> {
        match self.rooms.get(room) {
            Some(changed) => changed.as_ref(),
            None => base.rooms.get(room),
        }
    }

    pub fn lease<'a>(&'a self, base: &'a State, name: &LeaseName) -> Option<&'a Granted> {
        self.leases.get(name).or_else(|| base.leases.get(name))
    }

    fn removals(&self, base: &State, room: &RoomName) -> u32 {
        self.removals.get(room).or_else(|| base.removals.get(room)).copied().unwrap_or(0)
    }

    /// Folds a fresh batch in. The caller saw to it that it belongs here.
    pub fn absorb_batch(&mut self, base: &State, batch: &BatchRecord<'_>, chain: Chain) {
        let room = self.room_mut(base, &batch.room);
        room.tip = Appended { head: batch.link.head(), chain };
        room.last = (batch.link.epoch, batch.link.number);
        if room.adopting == Some(room.tip.head) {
            room.adopting = None;
        }
    }

    /// Folds a note in. Touches, decides nothing.
    pub fn absorb(&mut self, base: &State, note: &Note) {
        match note {
            Note::Leased { name, epoch, nonce, who } => {
                let granted = Granted {
                    epoch: *epoch,
                    nonce: *nonce,
                    who: who.as_str().into(),
                    released: false,
                };
                self.leases.insert(name.clone(), granted);
            }
            Note::Released { name } => {
                if let Some(granted) = self.lease(base, name) {
                    let granted = Granted { released: true, ..granted.clone() };
                    self.leases.insert(name.clone(), granted);
                }
            }
            Note::Cursor { room, sink, cursor } => {
                let cursors = &mut self.room_mut(base, room).cursors;
                Arc::make_mut(cursors).insert(sink.clone(), *cursor);
            }
            Note::CursorDropped { room, sink } => {
                Arc::make_mut(&mut self.room_mut(base, room).cursors).remove(sink);
            }
            Note::Trimmed { room, to } => self.room_mut(base, room).trimmed_to = *to,
            Note::Floor { room, floor } => self.room_mut(base, room).floor = *floor,
            Note::Removed { room } => {
                self.rooms.insert(room.clone(), None);
                self.removals.insert(room.clone(), self.removals(base, room) + 1);
            }
            Note::Adopted { room, base: start, until } => {
                let adopting = (*until > start.head).then_some(*until);
                let adopted =
                    Room { tip: *start, trimmed_to: start.head, adopting, ..Room::default() };
                self.rooms.insert(room.clone(), Some(adopted));
            }
            Note::EpochsRaised { by } => {
                for (name, granted) in &base.leases {
                    self.leases.entry(name.clone()).or_insert_with(|| granted.clone());
                }
                let raise = |epoch: u32| epoch.saturating_add(*by).min(EPOCH_MAX);
                self.leases.values_mut().for_each(|granted| granted.epoch = raise(granted.epoch));
            }
        }
    }

    fn room_mut(&mut self, base: &State, room: &RoomName) -> &mut Room {
        // Looked up before `entry`, which would need a copy of the name every time.
        if !self.rooms.contains_key(room) {
            self.rooms.insert(room.clone(), base.rooms.get(room).cloned());
        }
        let slot = self.rooms.get_mut(room).expect("it was just put there");
        slot.get_or_insert_default()
    }

    /// The rooms with a new tip, for whoever follows them.
    pub fn heads(&self) -> impl Iterator<Item = (&RoomName, Head)> {
        self.rooms
            .iter()
            .map(|(name, room)| (name, room.as_ref().map_or(Head::EMPTY, |room| room.tip.head)))
    }

    pub fn clear(&mut self) {
        self.rooms.clear();
        self.leases.clear();
        self.removals.clear();
    }
}

impl State {
    /// Makes a layer part of the state, leaving it empty for the next group.
    pub fn merge(&mut self, changes: &mut Changes) {
        for (name, room) in changes.rooms.drain() {
            match room {
                Some(room) => self.rooms.insert(name, room),
                None => self.rooms.remove(&name),
            };
        }
        self.leases.extend(changes.leases.drain());
        self.removals.extend(changes.removals.drain());
    }

    pub fn incarnation(&self, room: &RoomName) -> u32 {
        self.removals.get(room).copied().unwrap_or(0)
    }
}
