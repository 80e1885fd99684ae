//! Logs made by hand, for tests: event by event, with whatever is wrong with them.
//!
//! A room with ten admissions a second, one at once, that has been running for a second. Verbs
//! add events as the real room would, unless they are told otherwise; the judge must find what a
//! real room would not have done.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use waitroom_core::settings::Rate;
use waitroom_core::{
    Actor, AdmitWhy, Ending, Entry, Epoch, Event, Hold, Joined, Millis, Session, Settings, Status,
    Ticket, Timestamp, What, codec,
};
use waitroom_store::{Appended, Chain, Error, Head, RoomName, Snapshot, Stored};

use super::super::tell::judged;
use super::source::Source;

pub(super) use super::super::tell::KEPT;

#[derive(Debug)]
pub(super) struct Room {
    settings: Settings,
    now: u64,
    epoch: u32,
    nonce: u128,
    batch: u64,
    batches: Vec<Stored>,
    events: Vec<Event>,
    waiting: BTreeSet<u64>,
    pass_ends: Timestamp,
    snapshot: Option<Snapshot>,
    system: Vec<Stored>,
}

impl Room {
    /// Opened, configured, doors, start: the first join is the fifth event.
    pub const FIRST_JOIN: u64 = 5;

    pub fn running() -> Room {
        Room::with(|_| {})
    }

    pub fn with(set: impl FnOnce(&mut Settings)) -> Room {
        let mut room = Room::before_start_with(set);
        room.now = 0;
        let mut room = room.add(What::SaleStarted);
        room.now = 1_000;
        room
    }

    pub fn before_start() -> Room {
        Room::before_start_with(|_| {})
    }

    fn before_start_with(set: impl FnOnce(&mut Settings)) -> Room {
        let rate = Some(Rate { count: 10, per: Millis(1_000) });
        let mut settings =
            Settings { rate, burst: Some(1), queue_all: true, ..Settings::default() };
        set(&mut settings);
        let room = Room {
            settings: settings.clone(),
            now: 0,
            epoch: 1,
            nonce: 1,
            batch: 0,
            batches: Vec::new(),
            events: Vec::new(),
            waiting: BTreeSet::new(),
            pass_ends: Timestamp(0),
            snapshot: None,
            system: Vec::new(),
        };
        let configured = What::Configured { settings: Arc::new(settings), by: Actor::new("test") };
        let mut room = room.add(What::Opened { epoch: Epoch(1) }).add(configured);
        room = room.add(What::DoorsOpened);
        room.now = 1_000;
        room
    }

    pub fn wait(mut self, ms: u64) -> Room {
        self.now += ms;
        self
    }

    pub fn wait_back(mut self, ms: u64) -> Room {
        self.now -= ms;
        self
    }

    pub fn join(mut self, number: u64) -> Room {
        self.waiting.insert(number);
        let waiting = self.waiting.len() as u64;
        let ticket = Ticket::new(0, number);
        self.add(What::Joined(Joined {
            ticket,
            waiting_in_lane: waiting,
            waiting,
            ..Joined::default()
        }))
    }

    /// A join whose `waiting` is off by this much.
    pub fn miscounted(mut self, by: u64) -> Room {
        let number = self.waiting.len() as u64;
        self.waiting.insert(number);
        let waiting_in_lane = self.waiting.len() as u64;
        let (ticket, waiting) = (Ticket::new(0, number), waiting_in_lane + by);
        self.add(What::Joined(Joined { ticket, waiting_in_lane, waiting, ..Joined::default() }))
    }

    pub fn admit(self, number: u64) -> Room {
        self.enter(number, AdmitWhy::Paced)
    }

    pub fn admit_by_hand(self, number: u64) -> Room {
        let by = Actor::new("test");
        self.add(What::AdmittedNow { asked: 1, granted: 1, by }).enter(number, AdmitWhy::Manual)
    }

    fn enter(mut self, number: u64, why: AdmitWhy) -> Room {
        self.waiting.remove(&number);
        let by = Timestamp(self.now).after(self.settings.claim_within);
        let waiting = self.waiting.len() as u64;
        self.add(What::Admitted {
            ticket: Ticket::new(0, number),
            joined_at: Timestamp(1_000),
            waiting,
            why,
            entry: Entry::MustClaim { by },
            sealed_user: None,
        })
    }

    pub fn claim(mut self, number: u64) -> Room {
        let issued_at = Timestamp(self.now);
        self.pass_ends = issued_at.after(self.settings.session_timeout);
        let (expires_at, pass_expires_at) = (self.pass_ends, self.pass_ends);
        let session = Session { issued_at, expires_at, pass_expires_at };
        self.add(What::Claimed { ticket: Ticket::new(0, number), session })
    }

    /// Ends a session; its slot is held until its pass is dead, plus this many milliseconds.
    pub fn complete(self, number: u64, plus_ms: i64) -> Room {
        let until = self.pass_ends.after(self.settings.pass_leeway);
        let until = Timestamp(until.0.saturating_add_signed(plus_ms));
        self.end(number, Status::Active, Ending::Completed, Some(until))
    }

    pub fn leave(mut self, number: u64) -> Room {
        self.waiting.remove(&number);
        self.end(number, Status::Waiting, Ending::Left, None)
    }

    pub fn no_show(self, number: u64) -> Room {
        self.end(number, Status::Admitted, Ending::NoShow, None)
    }

    fn end(self, number: u64, was: Status, ending: Ending, held: Option<Timestamp>) -> Room {
        let what = ended(number, was, ending, self.waiting.len() as u64, held);
        self.add(what)
    }

    pub fn pause(self) -> Room {
        let hold = Hold::Paused { reason: "lunch".into() };
        self.add(What::Held { hold, by: Actor::new("test") })
    }

    pub fn resume(self) -> Room {
        self.add(What::Resumed { by: Actor::new("test") })
    }

    /// The next owner.
    pub fn reopen(mut self) -> Room {
        self.epoch += 1;
        self.nonce += 1;
        self.batch = 0;
        let epoch = Epoch(self.epoch);
        self.add(What::Opened { epoch })
    }

    /// What follows is written by the owner before.
    pub fn old_epoch(mut self) -> Room {
        self.epoch -= 1;
        self
    }

    pub fn other_lease(mut self) -> Room {
        self.nonce += 1;
        self
    }

    pub fn snapshot(self) -> Room {
        let events = self.events.clone();
        self.snapshot_of(&events)
    }

    pub fn snapshot_without_last(self) -> Room {
        let events = self.events[..self.events.len() - 1].to_vec();
        self.snapshot_of(&events)
    }

    /// A snapshot in which this one has left, which the log does not say.
    pub fn snapshot_with_one_more(self, number: u64) -> Room {
        let mut events = self.events.clone();
        let waiting = self.waiting.len() as u64 - 1;
        let left = ended(number, Status::Waiting, Ending::Left, waiting, None);
        events.push(left.at(Timestamp(self.now)));
        self.snapshot_of(&events)
    }

    fn snapshot_of(mut self, events: &[Event]) -> Room {
        let mut room = waitroom_core::Room::new();
        events.iter().for_each(|event| room.absorb(event));
        let Appended { head: at, chain } = tip(&self.batches);
        let (chunks, passed_over) = (room.state().snapshot().collect(), Vec::new());
        self.snapshot = Some(Snapshot { at, chain, chunks, passed_over });
        self
    }

    /// Changes a bit of the newest batch's chain.
    pub fn broken_chain(mut self) -> Room {
        self.batches.last_mut().expect("a room has events").chain.0[7] ^= 1;
        self
    }

    pub fn system(mut self, payload: &str) -> Room {
        let room = RoomName::system();
        let stored = stored(&room, &self.system, (1, 1, 1), payload.as_bytes().to_vec());
        self.system.push(stored);
        self
    }

    fn add(mut self, what: What) -> Room {
        let event = what.at(Timestamp(self.now));
        let mut payload = Vec::new();
        codec::encode(std::slice::from_ref(&event), &mut payload);
        let name = (self.epoch, self.nonce, self.batch);
        let stored = stored(&room_name(), &self.batches, name, payload);
        self.batch += 1;
        self.batches.push(stored);
        self.events.push(event);
        self
    }

    /// The promises that this log breaks by itself.
    pub fn broken(&self) -> Vec<u8> {
        self.broken_with("")
    }

    pub fn broken_among(&self, promises: &[u8]) -> Vec<u8> {
        self.broken().into_iter().filter(|promise| promises.contains(promise)).collect()
    }

    /// Together with what clients saw.
    pub fn broken_with(&self, story: &str) -> Vec<u8> {
        let verdict = self.verdict(story);
        verdict.found.first().for_each(|it| println!("{it}"));
        verdict.found.counts().map(|(promise, _)| promise).collect()
    }

    pub fn said_with(&self, story: &str) -> String {
        self.verdict(story).found.first().map(|it| format!("{it}\n")).collect()
    }

    fn verdict(&self, story: &str) -> super::Verdict {
        let mut verdict = judged(&[story]);
        {
            let judging = pin!(super::judge_source(self, &mut verdict));
            let ready = judging.poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(ready, Poll::Ready(Ok(_))), "planted logs are readable at once");
        }
        verdict
    }

    fn log(&self, room: &RoomName) -> &[Stored] {
        if *room == RoomName::system() { &self.system } else { &self.batches }
    }
}

/// The room that stories speak of.
fn room_name() -> RoomName {
    RoomName::parse("r").expect("a name")
}

fn ended(
    number: u64,
    was: Status,
    ending: Ending,
    waiting: u64,
    held_until: Option<Timestamp>,
) -> What {
    What::Ended {
        ticket: Ticket::new(0, number),
        was,
        ending,
        waited: Millis(0),
        waiting,
        held_until,
        sealed_user: None,
        by: Actor::new("test"),
    }
}

fn tip(batches: &[Stored]) -> Appended {
    batches
        .last()
        .map_or(Appended::default(), |last| Appended { head: last.head, chain: last.chain })
}

fn stored(
    room: &RoomName,
    before: &[Stored],
    (epoch, nonce, number): (u32, u128, u64),
    payload: Vec<u8>,
) -> Stored {
    let Appended { head: after, chain } = tip(before);
    let head = Head(after.0 + 1);
    let chain0 = Chain::default();
    let mut stored =
        Stored { after, head, epoch, nonce, number, events: 1, at_ms: 0, payload, chain: chain0 };
    stored.chain = chain.next(room, &stored.link(), &stored.payload);
    stored
}

impl Source for Room {
    async fn rooms(&self) -> Result<Vec<RoomName>, Error> {
        Ok(vec![room_name()])
    }

    async fn tip(&self, room: &RoomName) -> Result<Appended, Error> {
        Ok(tip(self.log(room)))
    }

    async fn trimmed_to(&self, _: &RoomName) -> Result<Head, Error> {
        Ok(Head::EMPTY)
    }

    async fn read(&self, room: &RoomName, from: Head) -> Result<Vec<Stored>, Error> {
        Ok(self.log(room).iter().filter(|it| it.head > from).cloned().collect())
    }

    async fn latest_snapshot(&self, _: &RoomName) -> Result<Option<Snapshot>, Error> {
        Ok(self.snapshot.clone())
    }
}
