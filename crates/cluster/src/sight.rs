//! The view of one instance in the hands of somebody else: the simulator, whose messages travel
//! over no streams.
//!
//! Lives here: the same decisions, word for word, by forwarding. Stays out: any of its own.

use crate::about::About;
use crate::told::Envelope;
use crate::view::{Shown, View};
use waitroom_engine::Stance;

/// What one instance knows of all, and what follows from it. Time is handed in.
#[derive(Debug)]
pub struct Sight(View);

impl Sight {
    /// `life` is another number each time that the instance comes up.
    pub fn new(me: &str, mine: About, life: u64) -> Sight {
        Sight(View::new(me, mine, life))
    }

    /// What we say of ourselves.
    pub fn mine(&self) -> &About {
        self.0.mine()
    }

    pub fn change_mine(&mut self, change: impl FnOnce(&mut About)) {
        self.0.change_mine(change);
    }

    /// The store's list of everybody. Says whether that changes anything.
    pub fn members(&mut self, members: Vec<(String, About)>, now_ms: u64) -> bool {
        self.0.looked(now_ms);
        self.0.members(members, now_ms)
    }

    /// What somebody said of themselves, directly.
    pub fn told(&mut self, name: &str, about: About) -> bool {
        self.0.told(name, about)
    }

    pub fn stance(&self, room: &str, now_ms: u64) -> Stance {
        self.0.stance(room, now_ms)
    }

    /// Which of the others owns a room, as far as we heard, and in which epoch.
    pub fn owner(&self, room: &str) -> Option<(&str, u32)> {
        self.0.owner(room)
    }

    /// The room cannot be opened here.
    pub fn failed(&mut self, room: &str, now_ms: u64) {
        self.0.failed(room, now_ms);
    }

    pub fn others(&self) -> Vec<String> {
        self.0.others().map(str::to_owned).collect()
    }

    /// Rooms that this one of the others owns.
    pub fn rooms_of(&self, name: &str) -> Vec<String> {
        self.0.rooms_of(name)
    }

    /// What is on the outside of a report to that one which is written now.
    pub fn envelope(&self, to: &str, now_ms: u64) -> Envelope {
        self.0.envelope(to, now_ms)
    }

    /// When we wrote the newest report that this one is known to have.
    pub fn arrived_ms(&self, name: &str) -> Option<u64> {
        self.0.arrived_ms(name)
    }

    pub fn reported(&mut self, name: &str, envelope: Envelope, rooms: &[&str]) {
        self.0.reported(name, envelope, rooms.iter().copied());
    }

    /// Says whether it is the first word of that one about the room.
    pub fn shows(&mut self, name: &str, room: &str, epoch: u32, version: u64) -> bool {
        self.0.shows(name, room, Shown { epoch, version })
    }

    pub fn hears_all(&self, room: &str, now_ms: u64) -> bool {
        self.0.hears_all(room, now_ms)
    }

    pub fn shown(&self, room: &str) -> u64 {
        self.0.shown(room)
    }

    pub fn shown_lately(&self, room: &str, within_ms: u64, now_ms: u64) -> u64 {
        self.0.shown_lately(room, within_ms, now_ms)
    }

    pub fn unheard_ms(&self, room: &str, now_ms: u64) -> u64 {
        self.0.unheard_ms(room, now_ms)
    }
}
