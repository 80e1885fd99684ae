//! Who is there, who owns what, and who should: worked out from what instances said.
//!
//! Lives here: decisions, as functions of what was heard and of the time that is handed in.
//! Stays out: the store, streams, clocks.
//! The lease in the store decides who owns a room. Two instances with different views may both
//! think that a room is theirs to take; one gets the lease and the other follows.

use crate::about::About;
use crate::rendezvous::best;
use serde::Serialize;
use std::collections::BTreeMap;
use waitroom_engine::Stance;

/// How long a newcomer is there before rooms are handed to it: one that comes up and fails at once
/// should not take them along, and it has to read them first.
const SETTLED_MS: u64 = 2_000;

/// How long a room that was made here is ours to take; then whoever should have it takes it.
const FOUND_MS: u64 = 2_000;

/// An instance that has not reported for so long has lost its beats, or its way to us: nobody is
/// silent as long as it may have heard of them. Reports come once a second.
const REPORT_MS: u64 = 3_500;

/// What this instance knows of all.
#[derive(Debug)]
pub(crate) struct View {
    me: String,
    mine: About,
    others: BTreeMap<String, Known>,
    /// Rooms that were made here, and until when they are ours to take.
    founded: BTreeMap<String, u64>,
    /// Whether any newcomer was not settled at the last look.
    unsettled: bool,
}

#[derive(Debug)]
struct Known {
    about: About,
    since_ms: u64,
    reported_ms: u64,
    /// The newest version that it shows, by room.
    shown: BTreeMap<String, u64>,
}

/// The cluster as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Picture {
    /// Who answers.
    pub instance: String,
    pub instances: Vec<MemberPicture>,
    pub rooms: Vec<RoomPicture>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemberPicture {
    pub instance: String,
    pub address: String,
    pub release: String,
    pub draining: bool,
    pub rooms: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoomPicture {
    pub room: String,
    /// None while it changes hands.
    pub owner: Option<String>,
    pub epoch: Option<u32>,
    /// Who owns it once everybody has settled.
    pub preferred: Option<String>,
}

impl View {
    pub(crate) fn new(me: &str, mine: About) -> View {
        let (others, founded) = (BTreeMap::new(), BTreeMap::new());
        View { me: me.to_owned(), mine, others, founded, unsettled: false }
    }

    pub(crate) fn mine(&self) -> &About {
        &self.mine
    }

    /// Changes what we say of ourselves.
    pub(crate) fn change_mine(&mut self, change: impl FnOnce(&mut About)) {
        let before = self.mine.clone();
        change(&mut self.mine);
        if self.mine != before {
            self.mine.seq = before.seq + 1;
        }
    }

    /// The store's list of everybody. Says whether that changes anything.
    pub(crate) fn members(&mut self, members: Vec<(String, About)>, now_ms: u64) -> bool {
        let here: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
        let before = self.others.len();
        self.others.retain(|name, _| here.contains(&name.as_str()));
        let mut changed = self.others.len() != before;
        for (name, about) in members {
            changed |= self.hear_of(name, about, now_ms);
        }
        let founded = self.founded.len();
        self.founded.retain(|_, until| *until > now_ms);
        changed |= self.founded.len() != founded;
        let settled = |known: &Known| now_ms >= known.since_ms + SETTLED_MS;
        let unsettled = !self.others.values().all(settled);
        changed |= std::mem::replace(&mut self.unsettled, unsettled) != unsettled;
        changed
    }

    /// What somebody said of themselves, directly. Only of somebody whom the store has named.
    pub(crate) fn told(&mut self, name: &str, about: About) -> bool {
        match self.others.get_mut(name) {
            Some(known) if about.seq > known.about.seq => {
                known.about = about;
                true
            }
            _ => false,
        }
    }

    fn hear_of(&mut self, name: String, about: About, now_ms: u64) -> bool {
        if name == self.me {
            return false;
        }
        if self.others.contains_key(&name) {
            return self.told(&name, about);
        }
        let shown = BTreeMap::new();
        let known = Known { about, since_ms: now_ms, reported_ms: now_ms, shown };
        self.others.insert(name, known);
        true
    }

    /// A room was made here: somebody waits for it to open.
    pub(crate) fn found(&mut self, room: &str, now_ms: u64) {
        self.founded.insert(room.to_owned(), now_ms + FOUND_MS);
    }

    pub(crate) fn stance(&self, room: &str, now_ms: u64) -> Stance {
        let best = self.best(room);
        let founded = self.founded.get(room).is_some_and(|until| *until > now_ms);
        if self.mine.rooms.contains_key(room) {
            let settled = |name: &str| {
                let known = self.others.get(name);
                // One that has reported on the room follows it, and can take it at once.
                known.is_some_and(|it| {
                    now_ms >= it.since_ms + SETTLED_MS && it.shown.contains_key(room)
                })
            };
            return match best {
                // Whoever made it has something to do there first.
                _ if founded && !self.mine.draining => Stance::Own,
                // Somebody who goes down gives rooms to whoever is there.
                Some(name) if name != self.me && (self.mine.draining || settled(name)) => {
                    Stance::Follow
                }
                _ => Stance::Own,
            };
        }
        let free = self.owner(room).is_none();
        match free && !self.mine.draining && (founded || best == Some(&self.me)) {
            true => Stance::Own,
            false => Stance::Follow,
        }
    }

    /// Who should own a room: nobody who is going down.
    pub(crate) fn best(&self, room: &str) -> Option<&str> {
        let others = self.others.iter().filter(|(_, known)| !known.about.draining);
        let others = others.map(|(name, _)| name.as_str());
        let me = (!self.mine.draining).then_some(self.me.as_str());
        best(others.chain(me), room)
    }

    /// Which of the others owns a room, as far as we heard: the one with the newest epoch.
    pub(crate) fn owner(&self, room: &str) -> Option<(&str, u32)> {
        let owners = self.others.iter().filter_map(|(name, known)| {
            let epoch = known.about.rooms.get(room)?;
            Some((name.as_str(), *epoch))
        });
        owners.max_by_key(|(_, epoch)| *epoch)
    }

    pub(crate) fn address(&self, name: &str) -> Option<&str> {
        Some(&self.others.get(name)?.about.address)
    }

    pub(crate) fn others(&self) -> impl Iterator<Item = &str> {
        self.others.keys().map(String::as_str)
    }

    /// Rooms that this one of the others owns.
    pub(crate) fn rooms_of(&self, name: &str) -> Vec<String> {
        let known = self.others.get(name);
        known.map(|known| known.about.rooms.keys().cloned().collect()).unwrap_or_default()
    }

    pub(crate) fn reported(&mut self, name: &str, now_ms: u64) {
        if let Some(known) = self.others.get_mut(name) {
            known.reported_ms = now_ms;
        }
    }

    /// Says whether it is the first word of that one about the room.
    pub(crate) fn shows(&mut self, name: &str, room: &str, version: u64) -> bool {
        let Some(known) = self.others.get_mut(name) else { return false };
        let first = !known.shown.contains_key(room);
        let shown = known.shown.entry(room.to_owned()).or_default();
        *shown = version.max(*shown);
        first
    }

    pub(crate) fn hears_all(&self, now_ms: u64) -> bool {
        self.others.values().all(|known| now_ms < known.reported_ms + REPORT_MS)
    }

    pub(crate) fn shown(&self, room: &str) -> u64 {
        let shown = |known: &Known| known.shown.get(room).copied().unwrap_or(0);
        self.others.values().map(shown).min().unwrap_or(u64::MAX)
    }

    /// All that is known, with these rooms of ours among the others'.
    pub(crate) fn picture(&self, rooms: impl Iterator<Item = String>) -> Picture {
        let member = |instance: &str, about: &About| MemberPicture {
            instance: instance.to_owned(),
            address: about.address.clone(),
            release: about.release.clone(),
            draining: about.draining,
            rooms: about.rooms.len(),
        };
        let others = self.others.iter().map(|(name, known)| member(name, &known.about));
        let mut instances: Vec<_> = others.chain([member(&self.me, &self.mine)]).collect();
        instances.sort_by(|a, b| a.instance.cmp(&b.instance));
        let room = |room: String| {
            let mine = self.mine.rooms.get(&room).map(|epoch| (self.me.as_str(), *epoch));
            let owner = mine.into_iter().chain(self.owner(&room)).max_by_key(|(_, epoch)| *epoch);
            RoomPicture {
                owner: owner.map(|(name, _)| name.to_owned()),
                epoch: owner.map(|(_, epoch)| epoch),
                preferred: self.best(&room).map(str::to_owned),
                room,
            }
        };
        Picture { instance: self.me.clone(), instances, rooms: rooms.map(room).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(seq: u64, rooms: &[(&str, u32)]) -> About {
        let rooms = rooms.iter().map(|(room, epoch)| (room.to_string(), *epoch)).collect();
        About { seq, rooms, ..About::default() }
    }

    /// A room that `a` should own of the two.
    fn room_of(a: &str, b: &str) -> String {
        let rooms = (0..).map(|at| format!("room-{at}"));
        rooms.into_iter().find(|room| best([a, b].into_iter(), room) == Some(a)).expect("some")
    }

    fn alone() -> View {
        View::new("a", About::default())
    }

    #[test]
    fn a_free_room_is_taken_by_the_one_it_hashes_to_and_by_nobody_else() {
        let mut view = alone();
        view.members(vec![("b".into(), about(1, &[]))], 0);
        assert_eq!(view.stance(&room_of("a", "b"), 0), Stance::Own);
        assert_eq!(view.stance(&room_of("b", "a"), 0), Stance::Follow);
        // Until the other is gone.
        assert!(view.members(Vec::new(), 10));
        assert_eq!(view.stance(&room_of("b", "a"), 10), Stance::Own);
    }

    #[test]
    fn a_room_that_somebody_owns_is_left_alone() {
        let (mut view, room) = (alone(), room_of("a", "b"));
        view.members(vec![("b".into(), about(1, &[(&room, 4)]))], 0);
        assert_eq!(view.stance(&room, 60_000), Stance::Follow);
        assert_eq!(view.owner(&room), Some(("b", 4)));
        // The one who said so last counts, whichever way it came.
        assert!(view.told("b", about(3, &[])));
        assert!(!view.members(vec![("b".into(), about(2, &[(&room, 4)]))], 1));
        assert_eq!(view.stance(&room, 60_000), Stance::Own);
    }

    #[test]
    fn a_newcomer_gets_its_rooms_when_it_has_settled() {
        let (mut view, room) = (alone(), room_of("b", "a"));
        view.change_mine(|mine| {
            mine.rooms.insert(room.clone(), 1);
        });
        view.members(vec![("b".into(), about(1, &[]))], 1_000);
        assert_eq!(
            view.stance(&room, 1_000 + SETTLED_MS),
            Stance::Own,
            "it does not follow it yet"
        );
        assert!(view.shows("b", &room, 1) && !view.shows("b", &room, 2));
        assert_eq!(view.stance(&room, 1_000 + SETTLED_MS - 1), Stance::Own);
        let list = || vec![("b".into(), about(1, &[]))];
        assert!(!view.members(list(), 1_000 + SETTLED_MS - 1));
        assert!(view.members(list(), 1_000 + SETTLED_MS), "settling is a change");
        assert_eq!(view.stance(&room, 1_000 + SETTLED_MS), Stance::Follow);
    }

    #[test]
    fn who_goes_down_gives_everything_away_and_takes_nothing() {
        let (mut view, room) = (alone(), room_of("a", "b"));
        view.change_mine(|mine| {
            mine.rooms.insert(room.clone(), 1);
            mine.draining = true;
        });
        assert_eq!(view.stance(&room, 0), Stance::Own, "there is nobody to give it to");
        view.members(vec![("b".into(), about(1, &[]))], 0);
        assert_eq!(view.stance(&room, 0), Stance::Follow, "newcomer or not");
        view.change_mine(|mine| mine.rooms.clear());
        assert_eq!(view.stance(&room, 0), Stance::Follow);
    }

    #[test]
    fn a_room_is_first_owned_where_it_was_made() {
        let (mut view, room) = (alone(), room_of("b", "a"));
        view.members(vec![("b".into(), about(1, &[]))], 0);
        view.found(&room, 0);
        assert_eq!(view.stance(&room, FOUND_MS - 1), Stance::Own);
        assert_eq!(view.stance(&room, FOUND_MS), Stance::Follow);
    }

    #[test]
    fn nobody_is_silent_while_an_instance_does_not_report() {
        let mut view = alone();
        assert!(view.hears_all(0), "alone");
        let list = || vec![("b".into(), about(1, &[]))];
        view.members(list(), 1_000);
        assert!(view.hears_all(1_000 + REPORT_MS - 1));
        assert!(!view.hears_all(1_000 + REPORT_MS));
        view.reported("b", 9_000);
        assert!(view.hears_all(9_000 + REPORT_MS - 1));
        assert!(!view.hears_all(90_000));
        view.members(Vec::new(), 90_000);
        assert!(view.hears_all(90_000), "it left");
    }

    #[test]
    fn what_everybody_shows_is_what_the_slowest_shows() {
        let mut view = alone();
        assert_eq!(view.shown("sale"), u64::MAX);
        view.members(vec![("b".into(), about(1, &[])), ("c".into(), about(1, &[]))], 0);
        view.shows("b", "sale", 7);
        assert_eq!(view.shown("sale"), 0, "nobody knows what c shows");
        view.shows("c", "sale", 5);
        view.shows("c", "sale", 4);
        assert_eq!(view.shown("sale"), 5);
    }
}
