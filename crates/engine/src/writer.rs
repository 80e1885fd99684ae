//! The writer of one room, without any I/O: commands in, batches out, replies when told.
//!
//! Lives here: what a room's owner does between two appends. Stays out: waiting, sockets, the
//! store; the task (`task.rs`) and the simulator both drive this same struct.
//! A round is what was decided between two cuts: its replies wait until its batch is durable, and
//! rounds are answered in order, so nobody hears of anything that a crash could take back.

use crate::figures::Tally;
use crate::liveness::Liveness;
use crate::waits::{Outlook, Waits};
use std::sync::Arc;
use waitroom_core::{
    Command, Epoch, Event, Presented, Reply, Room, State, Timestamp, View, What, codec,
};

#[derive(Debug)]
pub struct Writer {
    room: Room,
    liveness: Arc<Liveness>,
    /// Index of the newest event decided, durable or not.
    head: u64,
    /// Counts up within the epoch; names a batch for retries.
    next_number: u64,
    events: Vec<Event>,
    /// Events of the open round, encoded at the cut.
    round: Vec<Event>,
    /// Counts of the open round, for operators.
    tally: Tally,
    /// Whether the open round holds the close of a draw: its chain hash will be needed.
    closes_draw: bool,
    /// Looks on and learns how long people wait; no decision looks at it.
    waits: Option<Waits>,
}

/// One batch to append, and where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    pub expected: u64,
    pub head: u64,
    pub number: u64,
    pub events: u32,
    pub payload: Vec<u8>,
    pub closes_draw: bool,
    /// What is counted once this is durable.
    pub tally: Tally,
}

/// Ticks of one call at most; what is left over comes with the next, after new commands.
const TICKS_MAX: usize = 64;

impl Writer {
    /// Takes over a recovered room. The first round holds `Opened`; everybody has fresh grace.
    pub fn open(room: Room, head: u64, epoch: Epoch, at: Timestamp) -> Writer {
        let at = at.max(room.state().last_at());
        let liveness = Arc::new(Liveness::open(room.state(), at));
        let mut writer = Writer {
            room,
            liveness,
            head,
            next_number: 0,
            events: Vec::new(),
            round: Vec::new(),
            tally: Tally::default(),
            closes_draw: false,
            waits: None,
        };
        writer.apply(at, &Command::Open { epoch });
        writer
    }

    /// From now on it learns how long people wait; see [`Writer::outlook`].
    pub fn watch_waits(&mut self) {
        self.learn_on(Waits::default());
    }

    /// The same for whoever has learned something of this room already.
    pub(crate) fn learn_on(&mut self, waits: Waits) {
        self.waits = Some(waits);
    }

    /// The room, for whoever goes on with it, and what was learned of waits.
    pub(crate) fn into_parts(self) -> (Room, Waits) {
        (self.room, self.waits.unwrap_or_default())
    }

    /// Decides one command and folds its events in, so that the next one of the batch sees its
    /// effect. The reply must not leave before the round is durable.
    pub fn apply(&mut self, at: Timestamp, command: &Command) -> Reply {
        // The sweeper proposed these a moment ago; who was heard of since stays.
        let looked_at;
        let command = match command {
            Command::Lapse { tickets } => {
                looked_at = self.still_silent(at, tickets);
                &looked_at
            }
            command => command,
        };
        let reply = self.room.decide(at, command, &mut self.events);
        for event in self.events.drain(..) {
            if let Some(waits) = &mut self.waits {
                waits.note(&event, &self.room);
            }
            self.tally.note(&event);
            self.room.absorb(&event);
            match &event.what {
                What::Joined(joined) => self.liveness.joined(joined.ticket, event.at),
                What::Moved { to, .. } => self.liveness.joined(*to, event.at),
                What::ForgotTickets(block) => self.liveness.forgot(*block),
                What::DrawClosed { .. } => self.closes_draw = true,
                _ => {}
            }
            self.round.push(event);
        }
        reply
    }

    /// The ticket that a reply is about, as it stands now; none when the reply is about no single
    /// one. Like the reply, it must not leave before the round is durable.
    pub fn view_of(&self, at: Timestamp, reply: &Reply) -> Option<View> {
        let presented = match *reply {
            Reply::Joined { ticket, epoch, .. } | Reply::Moved { to: ticket, epoch } => {
                Presented::by_service(ticket, epoch)
            }
            Reply::Claimed { ticket, .. }
            | Reply::Renewed { ticket, .. }
            | Reply::Over { ticket, .. }
            | Reply::HandedOver { ticket, .. } => self.state().named(ticket)?,
            _ => return None,
        };
        // Who presented it was checked when the command was decided.
        self.state().look(at, &presented).ok()
    }

    /// Does all that is due. Returns whether something is left for the next call.
    pub fn tick(&mut self, at: Timestamp, mut entropy: impl FnMut() -> [u8; 16]) -> bool {
        if self.room.next_deadline(at).is_none_or(|due| due > at) {
            return false;
        }
        // Once something is due, all that can be done now is done: a freed place belongs to the
        // next in this same tick.
        for _ in 0..TICKS_MAX {
            let reply = self.apply(at, &Command::Tick { entropy: entropy() });
            if reply != (Reply::Ticked { again: true }) {
                return false;
            }
        }
        true
    }

    /// What visitors can be told of their waits, if that is new. To be called when a round is
    /// over, or when [`Writer::outlook_due`] has come; like a reply it must not leave before the
    /// round is durable.
    pub fn outlook(&mut self, at: Timestamp) -> Option<Outlook> {
        let at = at.max(self.room.state().last_at());
        self.waits.as_mut()?.advance(at, &self.room)
    }

    /// When to ask for an outlook although nothing has happened; none while nobody waits.
    pub fn outlook_due(&self) -> Option<Timestamp> {
        self.waits.as_ref()?.next_due()
    }

    /// Closes the round and hands out its batch; none when nothing happened.
    pub fn cut(&mut self) -> Option<Round> {
        if self.round.is_empty() {
            return None;
        }
        let mut payload = Vec::with_capacity(64 + self.round.len().min(4096) * 8);
        codec::encode(&self.round, &mut payload);
        let events = self.round.len() as u32;
        let expected = self.head;
        self.head += events as u64;
        let number = self.next_number;
        self.next_number += 1;
        self.round.clear();
        // A burst must not leave its buffers behind for an idle room's life.
        self.round.shrink_to(4_096);
        self.events.shrink_to(4_096);
        let closes_draw = std::mem::take(&mut self.closes_draw);
        let tally = std::mem::take(&mut self.tally);
        Some(Round { expected, head: self.head, number, events, payload, closes_draw, tally })
    }

    /// What the open round holds so far.
    pub fn round_events(&self) -> &[Event] {
        &self.round
    }

    pub fn next_deadline(&self, now: Timestamp) -> Option<Timestamp> {
        self.room.next_deadline(now)
    }

    pub fn head(&self) -> u64 {
        self.head
    }

    pub fn state(&self) -> &State {
        self.room.state()
    }

    pub fn room(&self) -> &Room {
        &self.room
    }

    pub fn room_mut(&mut self) -> &mut Room {
        &mut self.room
    }

    pub fn liveness(&self) -> &Arc<Liveness> {
        &self.liveness
    }

    fn still_silent(&self, at: Timestamp, tickets: &[waitroom_core::Ticket]) -> Command {
        let timeout = self.state().settings().map(|settings| settings.heartbeat_timeout);
        let silent = |ticket: &&waitroom_core::Ticket| {
            timeout.is_some_and(|timeout| self.liveness.silence(**ticket, at) > timeout)
        };
        Command::Lapse { tickets: tickets.iter().filter(silent).copied().collect() }
    }
}
