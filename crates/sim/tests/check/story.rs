//! Small histories by hand: a room that is told, not run.
//!
//! Everything that happens goes to the log, to the client and to the sink, with counts that are
//! right; tests then spoil one thing. Stays out: the core. What a story says happens, happens.

use std::collections::BTreeMap;
use std::sync::Arc;

use waitroom_core::settings::Rate;
use waitroom_core::{
    Actor, AdmitWhy, Command, Ending, Entry, Epoch, Event, Fresh, Holder, Identity, Join, JoinKey,
    Joined, LaneId, Millis, Presented, Refusal, Reply, Session, Settings, Status, Ticket,
    Timestamp, What,
};
use waitroom_sim::history::{Call, Chance, History, How, Logged, Moment, Outcome, Reached, Seen};

#[derive(Clone)]
pub struct Story {
    pub history: History,
    pub now: Timestamp,
    pub settings: Settings,
    epoch: Epoch,
    batch: u64,
    moment: u64,
    next: BTreeMap<LaneId, u64>,
    waiting: BTreeMap<LaneId, u64>,
}

impl Story {
    /// A running room, with as much pace as a story needs unless it says otherwise.
    pub fn new(change: impl FnOnce(&mut Settings)) -> Story {
        let mut story = Story::closed(change);
        story.push(What::DoorsOpened);
        story.push(What::SaleStarted);
        story.wait(1_000);
        story
    }

    /// A room that has settings and has not opened its doors.
    pub fn closed(change: impl FnOnce(&mut Settings)) -> Story {
        let mut settings = Settings {
            rate: Some(Rate { count: 1_000, per: Millis(1) }),
            burst: Some(1_000_000),
            ..Settings::default()
        };
        change(&mut settings);
        let mut story = Story {
            history: History::default(),
            now: Timestamp(1_000_000),
            settings: settings.clone(),
            epoch: Epoch(0),
            batch: 0,
            moment: 0,
            next: BTreeMap::new(),
            waiting: BTreeMap::new(),
        };
        story.reopen_by_another_owner();
        story.configure(|_| {});
        story
    }

    pub fn wait(&mut self, ms: u64) {
        self.now = self.now.after(Millis(ms));
    }

    /// One event in a batch of its own. Returns its index.
    pub fn push(&mut self, what: What) -> u64 {
        let index = self.head() + 1;
        let mut chain = [7; 32];
        chain[..8].copy_from_slice(&index.to_be_bytes());
        self.history.log.push(Logged {
            index,
            epoch: self.epoch,
            nonce: u128::from(self.epoch.0) * 1_000,
            batch: self.batch,
            chain,
            event: Event { at: self.now, what },
        });
        self.batch += 1;
        index
    }

    pub fn head(&self) -> u64 {
        self.history.log.len() as u64
    }

    pub fn reopen_by_another_owner(&mut self) {
        self.epoch.0 += 1;
        self.batch = 0;
        let epoch = self.epoch;
        self.push(What::Opened { epoch });
    }

    pub fn configure(&mut self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings);
        let settings = Arc::new(self.settings.clone());
        self.push(What::Configured { settings, by: Actor::default() });
    }

    /// A client asks, and is answered by the newest version.
    pub fn call(&mut self, client: u32, command: Command, reply: Reply) {
        let outcome =
            Outcome::Answered { at: Moment(self.moment + 2), reply, version: self.head() };
        self.history.calls.push(Call { client, sent: Moment(self.moment + 1), command, outcome });
        self.moment += 2;
    }

    pub fn join(&mut self, client: u32) -> Ticket {
        self.join_as(client, Join::default())
    }

    pub fn join_as(&mut self, client: u32, join: Join) -> Ticket {
        let ticket = self.log_join(&join);
        self.tell_join(client, join, ticket, Fresh::New);
        ticket
    }

    /// The event of a join without anybody who hears of it.
    pub fn log_join(&mut self, join: &Join) -> Ticket {
        let ticket = self.next_ticket(join.lane);
        self.push(What::Joined(Joined {
            ticket,
            waiting_in_lane: self.waiting[&join.lane],
            waiting: self.all_waiting(),
            identity: join.identity,
            key: join.key,
            metadata: join.metadata.clone(),
            sealed_user: join.sealed_user.clone(),
            returns: None,
        }));
        ticket
    }

    /// The answer to a join without an event.
    pub fn tell_join(&mut self, client: u32, join: Join, ticket: Ticket, fresh: Fresh) {
        let epoch = self.given_in(ticket);
        let reply = Reply::Joined { ticket, epoch, holder: Holder(0), fresh };
        self.call(client, Command::Join(join), reply);
    }

    pub fn admit(&mut self, ticket: Ticket) -> u64 {
        let entry = Entry::MustClaim { by: self.now.after(self.settings.claim_within) };
        self.admit_by(ticket, AdmitWhy::Paced, entry)
    }

    pub fn admit_by(&mut self, ticket: Ticket, why: AdmitWhy, entry: Entry) -> u64 {
        *self.waiting.get_mut(&ticket.lane).expect("somebody joined in this lane") -= 1;
        let (joined_at, waiting) = (self.now, self.all_waiting());
        let sealed_user = None;
        self.push(What::Admitted { ticket, joined_at, waiting, why, entry, sealed_user })
    }

    pub fn session(&self) -> Session {
        let end = self.now.after(self.settings.session_timeout);
        Session { issued_at: self.now, expires_at: end, pass_expires_at: end }
    }

    pub fn claim(&mut self, client: u32, ticket: Ticket) -> Session {
        let session = self.session();
        self.push(What::Claimed { ticket, session });
        self.tell_claim(client, ticket, session, Fresh::New);
        session
    }

    pub fn tell_claim(&mut self, client: u32, ticket: Ticket, session: Session, fresh: Fresh) {
        let shown = self.shown(ticket);
        self.call(client, Command::Claim(shown), Reply::Claimed { ticket, session, fresh });
    }

    /// Somebody inside leaves; the slot stays taken until the pass is dead everywhere.
    pub fn leave(&mut self, client: u32, ticket: Ticket) -> Timestamp {
        let pass_ends = self.history.log.iter().rev().find_map(|it| match &it.event.what {
            What::Claimed { ticket: of, session } if *of == ticket => Some(session.pass_expires_at),
            _ => None,
        });
        let until = pass_ends.expect("it was claimed").after(self.settings.pass_leeway);
        self.end(ticket, Ending::Completed, Some(until));
        let shown = self.shown(ticket);
        let reply = Reply::Over { ticket, status: Status::Completed, fresh: Fresh::New };
        self.call(client, Command::Leave(shown), reply);
        until
    }

    pub fn no_show(&mut self, ticket: Ticket) -> u64 {
        self.end(ticket, Ending::NoShow, None)
    }

    /// Somebody who waits is gone.
    pub fn lapse(&mut self, ticket: Ticket) -> u64 {
        *self.waiting.get_mut(&ticket.lane).expect("somebody joined in this lane") -= 1;
        self.end(ticket, Ending::Silent, None)
    }

    pub fn end(&mut self, ticket: Ticket, ending: Ending, until: Option<Timestamp>) -> u64 {
        let (waited, waiting, by) = (Millis(0), self.all_waiting(), Actor::default());
        let was = match ending {
            Ending::NoShow => Status::Admitted,
            Ending::Left | Ending::Silent | Ending::TooOld => Status::Waiting,
            _ => Status::Active,
        };
        let (held_until, sealed_user) = (until, None);
        self.push(What::Ended { ticket, was, ending, waited, waiting, held_until, sealed_user, by })
    }

    pub fn move_to(&mut self, from: Ticket, lane: LaneId) -> Ticket {
        *self.waiting.get_mut(&from.lane).expect("somebody joined in this lane") -= 1;
        let to = self.next_ticket(lane);
        self.push(What::Moved { from, to, joined_at: self.now, by: Actor::default() });
        to
    }

    pub fn see(&mut self, client: u32, ticket: Ticket, version: u64, position: u64) {
        self.moment += 1;
        let (at, position) = (Moment(self.moment), Some(position));
        self.history.seen.push(Seen { client, at, ticket, version, position });
    }

    /// As its visitor presents it.
    pub fn shown(&self, ticket: Ticket) -> Presented {
        Presented { ticket, epoch: self.given_in(ticket), holder: Some(Holder(0)) }
    }

    /// The story is over: the sink has everything, and the last state was reached in three ways.
    pub fn told(mut self) -> History {
        for Logged { index, event, .. } in self.history.log.clone() {
            self.history.publish(index, &event);
        }
        for how in [How::Live, How::Replay, How::SnapshotAndTail] {
            self.history.states.push(Reached { head: self.head(), how, digest: [9; 32] });
        }
        self.history.chances.push(Chance {
            at: self.now,
            version: self.head(),
            waiting: self.all_waiting(),
            slots_free: 0,
            tokens: 1,
            admits: true,
            overdue_slots: 0,
        });
        self.history
    }

    /// The history up to here, as if the story were over.
    pub fn history_for_now(&self) -> History {
        self.clone().told()
    }

    /// Nobody waits any more; returns how many did.
    pub fn close_everybody(&mut self) -> u64 {
        let closed = self.all_waiting();
        self.waiting.values_mut().for_each(|waiting| *waiting = 0);
        closed
    }

    fn all_waiting(&self) -> u64 {
        self.waiting.values().sum()
    }

    fn next_ticket(&mut self, lane: LaneId) -> Ticket {
        let next = self.next.entry(lane).or_default();
        *next += 1;
        *self.waiting.entry(lane).or_default() += 1;
        Ticket::new(lane.0, *next - 1)
    }

    fn given_in(&self, ticket: Ticket) -> Epoch {
        let given = self.history.log.iter().find(|it| match &it.event.what {
            What::Joined(joined) => joined.ticket == ticket,
            What::Moved { to, .. } => *to == ticket,
            _ => false,
        });
        given.map_or(self.epoch, |it| it.epoch)
    }
}

pub fn known(person: u8) -> Join {
    Join { identity: Some(Identity([person; 16])), ..Join::default() }
}

pub fn keyed(key: u8) -> Join {
    Join { key: Some(JoinKey { key: [key; 12], body: [0; 4] }), ..Join::default() }
}

pub fn refused() -> Reply {
    Reply::Refused(Refusal::Full { max_waiting: 1 })
}

/// The reply of an answered call, to be spoiled.
pub fn reply_of(call: &mut Call) -> &mut Reply {
    match &mut call.outcome {
        Outcome::Answered { reply, .. } => reply,
        _ => panic!("the call was not answered"),
    }
}

pub fn version_of(call: &mut Call) -> &mut u64 {
    match &mut call.outcome {
        Outcome::Answered { version, .. } => version,
        _ => panic!("the call was not answered"),
    }
}

/// The event with this index, to be spoiled.
pub fn what_of(history: &mut History, index: u64) -> &mut What {
    &mut history.log[index as usize - 1].event.what
}
