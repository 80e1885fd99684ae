//! Who is there, who owns what, and who should: worked out from what instances said.
//!
//! Lives here: decisions, as functions of what was heard and of the time that is handed in.
//! Stays out: the store, streams, clocks.
//! The lease in the store decides who owns a room. Two instances with different views may both
//! think that a room is theirs to take; one gets the lease and the other follows.

use crate::about::About;
use crate::rendezvous::best;
use crate::told::{Envelope, Stamp, Told};
use serde::Serialize;
use std::collections::BTreeMap;
use waitroom_engine::Stance;

/// How long a newcomer is there before rooms are handed to it: one that comes up and fails at once
/// should not take them along, and it has to read them first.
const SETTLED_MS: u64 = 2_000;

/// How long a room that was made here is ours to take; then whoever should have it takes it.
const FOUND_MS: u64 = 2_000;

/// An instance of which so much is not known has lost its beats, or its way to us: nobody is silent
/// as long as it may have heard of them. Reports come once a second, and answer one that may be
/// another second old.
const REPORT_MS: u64 = 4_500;

/// How old the list may be that slots are freed by: as long as an instance relies on being in it.
const LOOKED_MS: u64 = 1_900;

/// How long an instance that could not open a room is passed over, the first time. Twice as long
/// each time after: a log that only this release cannot read stays so.
const PASSED_OVER_MS: u64 = 10_000;
const DOUBLED_MAX: u32 = 6;

/// What this instance knows of all.
#[derive(Debug)]
pub(crate) struct View {
    me: String,
    /// Another number each time that this instance comes up.
    life: u64,
    mine: About,
    others: BTreeMap<String, Known>,
    /// Rooms that were made here, and until when they are ours to take.
    founded: BTreeMap<String, u64>,
    missing: Vec<Missing>,
    /// When we first looked, or looked again after we had not for too long: whoever was here
    /// before that is not known.
    began_ms: Option<u64>,
    /// When we last asked who is there.
    looked_ms: u64,
    /// Rooms that could not be opened here.
    failures: BTreeMap<String, Failures>,
    /// Whether any newcomer was not settled at the last look.
    unsettled: bool,
}

#[derive(Debug)]
struct Known {
    about: About,
    since_ms: u64,
    told: Told,
    /// The newest version that it shows, by room, with the epoch it is of: where the log was cut,
    /// the same version means something else in another epoch.
    shown: BTreeMap<String, Shown>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) epoch: u32,
    pub(crate) version: u64,
}

/// Somebody who was here and is not listed any more, and did not say goodbye: dead, or cut off with
/// visitors at its gate.
#[derive(Debug)]
struct Missing {
    name: String,
    gone_ms: u64,
    shown: BTreeMap<String, Shown>,
    told: Told,
}

/// More are taken together: a cluster that loses so many has other troubles.
const MISSING_MAX: usize = 64;

#[derive(Debug, Default)]
struct Failures {
    times: u32,
    until_ms: u64,
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
    pub(crate) fn new(me: &str, mine: About, life: u64) -> View {
        View {
            me: me.to_owned(),
            life,
            mine,
            others: BTreeMap::new(),
            founded: BTreeMap::new(),
            missing: Vec::new(),
            began_ms: None,
            looked_ms: 0,
            failures: BTreeMap::new(),
            unsettled: false,
        }
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

    /// Whoever is there is asked for. Between two looks that are further apart than one is listed,
    /// somebody may have come, let people in and gone unseen.
    pub(crate) fn looked(&mut self, asked_ms: u64) {
        if self.began_ms.is_none() || self.looks_away(asked_ms) {
            self.began_ms = Some(asked_ms);
        }
        self.looked_ms = asked_ms;
    }

    fn looks_away(&self, now_ms: u64) -> bool {
        now_ms >= self.looked_ms + LOOKED_MS
    }

    /// The store's list of everybody. Says whether that changes anything.
    pub(crate) fn members(&mut self, members: Vec<(String, About)>, now_ms: u64) -> bool {
        let (left, here): (Vec<_>, Vec<_>) = members.into_iter().partition(|(_, it)| it.left);
        let listed = |name: &str, list: &[(String, About)]| list.iter().any(|it| it.0 == name);
        let gone: Vec<String> =
            self.others().filter(|it| !listed(it, &here)).map(Into::into).collect();
        let mut changed = !gone.is_empty();
        for name in gone {
            let known = self.others.remove(&name).expect("it was just looked at");
            if !listed(&name, &left) {
                let Known { shown, told, .. } = known;
                self.miss(Missing { name, gone_ms: now_ms, shown, told });
            }
        }
        self.missing.retain(|it| !listed(&it.name, &left));
        for (name, about) in here {
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

    fn miss(&mut self, missing: Missing) {
        if self.missing.len() == MISSING_MAX {
            // The two that went first are as one that went with the later of them, and showed
            // nothing: what is waited for, is waited for longer.
            self.missing.remove(0);
            self.missing[0].shown.clear();
            self.missing[0].told = Told::default();
        }
        self.missing.push(missing);
    }

    /// What somebody said of themselves, directly. Only of somebody whom the store has named.
    pub(crate) fn told(&mut self, name: &str, about: About) -> bool {
        match self.others.get_mut(name) {
            Some(known) if about.left && about.seq > known.about.seq => {
                self.others.remove(name);
                true
            }
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
        // Whoever was only late with its word has told what it has told.
        let missing = self.missing.extract_if(.., |it| it.name == name);
        let told = missing.last().map(|it| it.told).unwrap_or_default();
        let shown = BTreeMap::new();
        let known = Known { about, since_ms: now_ms, told, shown };
        self.others.insert(name, known);
        true
    }

    /// A room was made here: somebody waits for it to open.
    pub(crate) fn found(&mut self, room: &str, now_ms: u64) {
        self.founded.insert(room.to_owned(), now_ms + FOUND_MS);
    }

    /// A room could not be opened here: whoever is next should have it, and we try again later. Says
    /// whether that is news: what fails again before its time was not tried in earnest.
    pub(crate) fn failed(&mut self, room: &str, now_ms: u64) -> bool {
        let failures = self.failures.entry(room.to_owned()).or_default();
        if now_ms < failures.until_ms {
            return false;
        }
        let doubled = failures.times.min(DOUBLED_MAX);
        *failures = Failures {
            times: failures.times.saturating_add(1),
            until_ms: now_ms + (PASSED_OVER_MS << doubled),
        };
        self.change_mine(|mine| {
            mine.unable.insert(room.to_owned());
        });
        true
    }

    /// A room was opened here, whatever was before.
    pub(crate) fn opened(&mut self, room: &str, epoch: u32) {
        self.failures.remove(room);
        self.change_mine(|mine| {
            mine.unable.remove(room);
            mine.rooms.insert(room.to_owned(), epoch);
        });
    }

    /// Whether there are rooms that should be tried again here.
    pub(crate) fn try_again(&mut self, now_ms: u64) -> bool {
        let over = |room: &str| self.failures.get(room).is_none_or(|it| it.until_ms <= now_ms);
        let again: Vec<String> = self.mine.unable.iter().filter(|it| over(it)).cloned().collect();
        self.change_mine(|mine| mine.unable.retain(|room| !again.contains(room)));
        !again.is_empty()
    }

    pub(crate) fn stance(&self, room: &str, now_ms: u64) -> Stance {
        let founded = self.founded.get(room).is_some_and(|until| *until > now_ms);
        if self.mine.rooms.contains_key(room) {
            let settled = |name: &str| {
                let known = self.others.get(name);
                // One that has reported on the room follows it, and can take it at once.
                known.is_some_and(|it| {
                    now_ms >= it.since_ms + SETTLED_MS && it.shown.contains_key(room)
                })
            };
            return match self.best(room) {
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
        match free && !self.mine.draining && (founded || self.taker(room) == Some(&self.me)) {
            true => Stance::Own,
            false => Stance::Follow,
        }
    }

    /// Who should own a room: nobody who is going down, and nobody who could not open it as long as
    /// there is anybody else.
    pub(crate) fn best(&self, room: &str) -> Option<&str> {
        self.best_of(room, |about| !about.unable.contains(room)).or(self.best_of(room, |_| true))
    }

    /// Who should take a room that nobody owns: the best of those who are ready for it now.
    fn taker(&self, room: &str) -> Option<&str> {
        let ready = |about: &About| !about.starting && !about.unable.contains(room);
        self.best_of(room, ready).or_else(|| self.best(room))
    }

    fn best_of(&self, room: &str, fits: impl Fn(&About) -> bool) -> Option<&str> {
        let others = self.others.iter().map(|(name, known)| (name.as_str(), &known.about));
        let all = others.chain([(self.me.as_str(), &self.mine)]);
        let fit = all.filter(|(_, about)| !about.draining && fits(about));
        best(fit.map(|(name, _)| name), room)
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

    /// Those who are there, and those who may be back in a moment.
    pub(crate) fn remembered(&self) -> Vec<String> {
        self.others()
            .chain(self.missing.iter().map(|it| it.name.as_str()))
            .map(Into::into)
            .collect()
    }

    pub(crate) fn others(&self) -> impl Iterator<Item = &str> {
        self.others.keys().map(String::as_str)
    }

    /// Which of the others writes live tickets under that name.
    pub(crate) fn writer(&self, writer: u32) -> Option<&str> {
        let mut others = self.others.iter();
        Some(others.find(|(_, known)| known.about.writer == Some(writer))?.0)
    }

    /// Rooms that this one of the others owns.
    pub(crate) fn rooms_of(&self, name: &str) -> Vec<String> {
        let known = self.others.get(name);
        known.map(|known| known.about.rooms.keys().cloned().collect()).unwrap_or_default()
    }

    /// What is on the outside of a report to that one which is written now.
    pub(crate) fn envelope(&self, to: &str, now_ms: u64) -> Envelope {
        let written = Stamp { life: self.life, at_ms: now_ms };
        Envelope { written, answers: self.others.get(to).and_then(|known| known.told.newest()) }
    }

    /// When we wrote the newest report that this one is known to have.
    pub(crate) fn arrived_ms(&self, name: &str) -> Option<u64> {
        self.others.get(name)?.told.arrived_ms()
    }

    /// All that it tells of these rooms was taken in.
    pub(crate) fn reported<'a>(
        &mut self,
        name: &str,
        envelope: Envelope,
        rooms: impl Iterator<Item = &'a str>,
    ) {
        if let Some(known) = self.others.get_mut(name) {
            known.told.take(self.life, envelope, rooms);
        }
    }

    /// Says whether it is the first word of that one about the room. The last word counts: a log
    /// that was cut is shown with a smaller version than before.
    pub(crate) fn shows(&mut self, name: &str, room: &str, shown: Shown) -> bool {
        let Some(known) = self.others.get_mut(name) else { return false };
        known.shown.insert(room.to_owned(), shown).is_none()
    }

    pub(crate) fn hears_all(&self, room: &str, now_ms: u64) -> bool {
        self.unheard_ms(room, now_ms) < REPORT_MS
    }

    /// How long ago the oldest of the last reports about a room was written, at most. Whoever is not
    /// listed any more may be late with its word and back in a moment, so it counts for a while.
    pub(crate) fn unheard_ms(&self, room: &str, now_ms: u64) -> u64 {
        let lately = |it: &&Missing| now_ms < it.gone_ms + REPORT_MS;
        let missing = self.missing.iter().filter(lately).map(|it| &it.told);
        let all = self.others.values().map(|known| &known.told).chain(missing);
        let age = |at_ms: u64| now_ms.saturating_sub(at_ms);
        all.map(|told| told.known_ms(room).map_or(u64::MAX, age)).max().unwrap_or(0)
    }

    /// What everybody shows of a room that is ours; of another's nobody tells us.
    pub(crate) fn shown(&self, room: &str) -> u64 {
        let shown = |known: &Known| self.in_our_epoch(room, &known.shown);
        self.others.values().map(shown).min().unwrap_or(u64::MAX)
    }

    /// The same, with those who went missing within that time. Whoever went before we came would be
    /// unknown to us, so until then nobody shows anything.
    pub(crate) fn shown_lately(&self, room: &str, within_ms: u64, now_ms: u64) -> u64 {
        let lately = |at_ms: u64| now_ms < at_ms.saturating_add(within_ms);
        if self.began_ms.is_none_or(lately) || self.looks_away(now_ms) {
            return 0;
        }
        let missing = self.missing.iter().filter(|it| lately(it.gone_ms));
        let missing = missing.map(|it| self.in_our_epoch(room, &it.shown));
        missing.min().unwrap_or(u64::MAX).min(self.shown(room))
    }

    fn in_our_epoch(&self, room: &str, shown: &BTreeMap<String, Shown>) -> u64 {
        let (ours, shown) = (self.mine.rooms.get(room), shown.get(room));
        shown.filter(|it| ours == Some(&it.epoch)).map_or(0, |it| it.version)
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
        View::new("a", About::default(), 1)
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
        let shown = |version| Shown { epoch: 1, version };
        assert!(view.shows("b", &room, shown(1)) && !view.shows("b", &room, shown(2)));
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
    fn whoever_cannot_open_a_room_is_passed_over_until_it_tries_again() {
        let (mut view, room) = (alone(), room_of("b", "a"));
        let mut theirs = about(1, &[]);
        view.members(vec![("b".into(), theirs.clone())], 0);
        assert_eq!(view.stance(&room, 0), Stance::Follow);
        theirs.seq += 1;
        theirs.unable.insert(room.clone());
        assert!(view.told("b", theirs.clone()));
        assert_eq!(view.stance(&room, 0), Stance::Own);
        // And when we cannot either, it is whoever it was at first: somebody has to try.
        view.failed(&room, 0);
        assert_eq!(view.stance(&room, 0), Stance::Follow);
        theirs.seq += 1;
        theirs.unable.clear();
        view.told("b", theirs);
        assert!(!view.failed(&room, PASSED_OVER_MS - 1), "it is passed over as it is");
        assert!(!view.try_again(PASSED_OVER_MS - 1) && view.mine().unable.contains(&room));
        assert!(view.try_again(PASSED_OVER_MS) && view.mine().unable.is_empty());
        view.failed(&room, 20_000);
        assert!(!view.try_again(20_000 + 2 * PASSED_OVER_MS - 1), "longer each time");
        assert!(view.try_again(20_000 + 2 * PASSED_OVER_MS));
        view.failed(&room, 90_000);
        view.opened(&room, 3);
        assert!(view.mine().unable.is_empty());
        view.failed(&room, 100_000);
        assert!(view.try_again(100_000 + PASSED_OVER_MS), "from the beginning");
    }

    #[test]
    fn a_free_room_does_not_wait_for_somebody_who_is_still_starting() {
        let (mut view, room) = (alone(), room_of("b", "a"));
        let mut theirs = About { starting: true, ..about(1, &[]) };
        view.members(vec![("b".into(), theirs.clone())], 0);
        assert_eq!(view.stance(&room, 0), Stance::Own);
        assert_eq!(view.best(&room), Some("b"), "it gets it later");
        // Where all of them start, somebody has to begin.
        view.change_mine(|mine| mine.starting = true);
        assert_eq!(view.stance(&room, 0), Stance::Follow);
        view.change_mine(|mine| mine.starting = false);
        theirs.seq += 1;
        theirs.starting = false;
        view.told("b", theirs);
        assert_eq!(view.stance(&room, 0), Stance::Follow);
    }

    #[test]
    fn nobody_is_silent_while_an_instance_does_not_report() {
        let mut view = alone();
        assert!(view.hears_all("sale", 0) && view.unheard_ms("sale", 0) == 0, "alone");
        let list = || vec![("b".into(), about(1, &[]))];
        view.members(list(), 1_000);
        assert!(!view.hears_all("sale", 1_000), "whom it has heard of nobody knows");
        // It comes at any time; what counts is which of our reports it answers.
        let answers = Some(view.envelope("b", 9_000).written);
        let envelope = Envelope { written: Stamp { life: 5, at_ms: 70 }, answers };
        view.reported("b", envelope, ["sale"].into_iter());
        assert_eq!(view.unheard_ms("sale", 11_000), 2_000);
        assert!(view.hears_all("sale", 9_000 + REPORT_MS - 1));
        assert!(!view.hears_all("sale", 9_000 + REPORT_MS));
        assert!(!view.hears_all("fair", 9_000), "of another room it said nothing");
        assert_eq!(view.envelope("b", 9_500).answers, Some(envelope.written));
        assert_eq!(view.arrived_ms("b"), Some(9_000));
        view.members(Vec::new(), 90_000);
        assert!(!view.hears_all("sale", 90_000 + REPORT_MS - 1), "it may be late");
        assert!(view.hears_all("sale", 90_000 + REPORT_MS), "it is gone");
        view.members(list(), 91_000);
        assert!(!view.hears_all("sale", 91_000), "it is back, and may have heard of anybody");
        assert_eq!(view.arrived_ms("b"), Some(9_000), "what was told before is not told again");
        view.told("b", About { left: true, ..about(2, &[]) });
        assert!(view.hears_all("sale", 91_000), "it said goodbye");
    }

    #[test]
    fn what_everybody_shows_is_what_the_slowest_shows() {
        let mut view = alone();
        let shown = |version| Shown { epoch: 4, version };
        assert_eq!(view.shown("sale"), u64::MAX);
        view.opened("sale", 4);
        view.members(vec![("b".into(), about(1, &[])), ("c".into(), about(1, &[]))], 0);
        view.shows("b", "sale", shown(7));
        assert_eq!(view.shown("sale"), 0, "nobody knows what c shows");
        view.shows("c", "sale", Shown { epoch: 3, version: 9 });
        assert_eq!(view.shown("sale"), 0, "of a log that may have been cut since");
        view.shows("c", "sale", shown(5));
        assert_eq!(view.shown("sale"), 5);
        view.shows("c", "sale", shown(4));
        assert_eq!(view.shown("sale"), 4, "its last word, not its highest");
    }

    #[test]
    fn whoever_disappears_without_goodbye_counts_as_long_as_a_pass_lives() {
        const LIFE: u64 = 60_000;
        let mut view = alone();
        view.opened("sale", 4);
        let b = || ("b".to_string(), about(1, &[]));
        let c = || ("c".to_string(), about(1, &[]));
        // It looks all the time: what happens where it does not is another test's.
        let look = |view: &mut View, members, now_ms: u64| {
            (view.looked_ms..now_ms).step_by(250).for_each(|at_ms| view.looked(at_ms));
            view.looked(now_ms);
            view.members(members, now_ms)
        };
        let lately = |view: &mut View, now_ms: u64| {
            (view.looked_ms..now_ms).step_by(250).for_each(|at_ms| view.looked(at_ms));
            view.shown_lately("sale", LIFE, now_ms)
        };
        look(&mut view, vec![b(), c()], 0);
        view.shows("b", "sale", Shown { epoch: 4, version: 7 });
        view.shows("c", "sale", Shown { epoch: 4, version: 9 });
        assert_eq!(lately(&mut view, LIFE - 1), 0, "who was here before us?");
        assert_eq!(lately(&mut view, LIFE), 7);
        // Cut off, or dead: nobody can tell.
        look(&mut view, vec![c()], 100_000);
        assert_eq!(view.shown("sale"), 9);
        assert_eq!(lately(&mut view, 100_000 + LIFE - 1), 7);
        assert_eq!(lately(&mut view, 100_000 + LIFE), 9);
        // It is back, and has not said what it shows.
        look(&mut view, vec![b(), c()], 101_000);
        assert_eq!(lately(&mut view, 101_000), 0);
        view.shows("b", "sale", Shown { epoch: 4, version: 9 });
        assert_eq!(lately(&mut view, 101_000), 9);
        // Whoever says goodbye lets nobody in any more, whichever way we hear of it.
        let bye = About { left: true, ..about(2, &[]) };
        look(&mut view, vec![("b".into(), bye.clone()), c()], 102_000);
        assert_eq!((view.others().count(), lately(&mut view, 102_000)), (1, 9));
        assert!(view.told("c", bye));
        assert_eq!(lately(&mut view, 102_000), u64::MAX);
        look(&mut view, Vec::new(), 103_000);
        assert_eq!(lately(&mut view, 103_000), u64::MAX);
        // However many go missing, the memory of them is bounded and forgets no time.
        for who in 0..3 * MISSING_MAX {
            look(&mut view, vec![(format!("n{who}"), about(1, &[]))], 200_000 + who as u64);
        }
        look(&mut view, Vec::new(), 200_000 + 3 * MISSING_MAX as u64);
        assert!(view.missing.len() <= MISSING_MAX);
        assert_eq!(lately(&mut view, 200_000 + LIFE), 0);
        assert_eq!(lately(&mut view, 300_000 + LIFE), u64::MAX);
    }
    #[test]
    fn an_owner_that_did_not_look_does_not_know_who_went_meanwhile() {
        const LIFE: u64 = 60_000;
        let mut view = alone();
        view.opened("sale", 4);
        (0..=LIFE).step_by(250).for_each(|at_ms| view.looked(at_ms));
        assert_eq!(view.shown_lately("sale", LIFE, LIFE), u64::MAX, "alone, and for long");
        // It was frozen, or the list could not be read.
        let again = LIFE + LOOKED_MS;
        assert_eq!(view.shown_lately("sale", LIFE, again), 0, "somebody may have come");
        view.looked(again);
        assert_eq!(view.shown_lately("sale", LIFE, again), 0, "and have gone");
        (again..=again + LIFE).step_by(250).for_each(|at_ms| view.looked(at_ms));
        assert_eq!(view.shown_lately("sale", LIFE, again + LIFE), u64::MAX);
    }
}
