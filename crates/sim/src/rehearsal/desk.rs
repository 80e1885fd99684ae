//! The desk of a rehearsal: the real room, with its real bytes, before a store that keeps nothing.
//!
//! Lives here: commands in, decisions absorbed, one batch per tick encoded as the log would have
//! it. Stays out: who the people are and what they do (`drive`, `crowd`).

use super::plan::Plan;
use waitroom_core::settings::{LaneSettings, RATE_PER_SECOND_MAX, Rate};
use waitroom_core::{
    Actor, Command, EndHow, Ending, Epoch, Event, Join, LaneId, Millis, Presented, Reply, Room,
    Settings, Ticket, Timestamp, What, codec,
};
use waitroom_engine::{Judged, Onlooker};

/// When a rehearsal begins, on the room's clock.
const BEGIN: Timestamp = Timestamp(1_700_000_000_000);

/// Lapses in one command at most, as the engine proposes them.
const LAPSE_MAX: usize = 1_000;

#[derive(Debug)]
pub(super) struct Desk {
    room: Room,
    at: Timestamp,
    decided: Vec<Event>,
    /// The events of this tick, until they are encoded.
    round: Vec<Event>,
    batch: Vec<u8>,
    /// Bytes that the log would have.
    pub(super) log_bytes: u64,
    /// Behind the last who was admitted, per lane.
    fronts: Vec<u64>,
    /// Measures as a live room does, if that was asked for.
    pub(super) onlooker: Option<Onlooker>,
    pub(super) judged: Judged,
}

/// What a tick brought.
#[derive(Debug, Default)]
pub(super) struct Ticked {
    pub(super) admitted: Vec<(u8, u32)>,
    pub(super) no_shows: u64,
}

impl Desk {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut desk = Desk {
            room: Room::new(),
            at: BEGIN,
            decided: Vec::new(),
            round: Vec::new(),
            batch: Vec::new(),
            log_bytes: 0,
            fronts: vec![0; plan.lanes.len()],
            onlooker: None,
            judged: Judged::default(),
        };
        desk.ask(&Command::Open { epoch: Epoch(1) });
        let by = Actor::new("rehearsal");
        let settings = Box::new(settings(plan));
        let reply = desk.ask(&Command::Configure { settings, by });
        assert_eq!(reply, Reply::Done, "a plan within its bounds makes a room");
        desk
    }

    pub(super) fn begin(&mut self, at_ms: u64) {
        self.at = Timestamp(BEGIN.0 + at_ms);
    }

    pub(super) fn join(&mut self, lane: u8) -> u32 {
        let join = Join { lane: LaneId(lane), ..Join::default() };
        match self.ask(&Command::Join(join)) {
            Reply::Joined { ticket, .. } => ticket.number.0 as u32,
            other => unreachable!("an open room without a limit takes everybody: {other:?}"),
        }
    }

    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.ask(&Command::Leave(presented(ticket)));
    }

    pub(super) fn lapse(&mut self, tickets: impl Iterator<Item = Ticket>) {
        let tickets: Vec<Ticket> = tickets.collect();
        for some in tickets.chunks(LAPSE_MAX) {
            self.ask(&Command::Lapse { tickets: some.to_vec() });
        }
    }

    pub(super) fn claim(&mut self, ticket: Ticket) {
        self.ask(&Command::Claim(presented(ticket)));
    }

    pub(super) fn complete(&mut self, ticket: Ticket) {
        let by = Actor::new("origin");
        self.ask(&Command::End { ticket: presented(ticket), how: EndHow::Completed, by });
    }

    pub(super) fn ahead(&self, lane: u8, number: u32) -> u64 {
        let ticket = Ticket::new(lane, u64::from(number));
        self.room.state().position(ticket).map_or(0, |position| position - 1)
    }

    /// Does what is due, then closes the batch as the writer would.
    pub(super) fn tick(&mut self) -> Ticked {
        let before = self.round.len();
        // Nothing is shuffled here, so the entropy is never looked at.
        while self.ask(&Command::Tick { entropy: [0; 16] }) == (Reply::Ticked { again: true }) {}
        let mut ticked = Ticked::default();
        for event in &self.round[before..] {
            match &event.what {
                What::Admitted { ticket, .. } => {
                    let (lane, number) = (ticket.lane.0, ticket.number.0);
                    ticked.admitted.push((lane, number as u32));
                    self.fronts[lane as usize] = number + 1;
                }
                What::Ended { ending: Ending::NoShow, .. } => ticked.no_shows += 1,
                _ => {}
            }
        }
        self.batch.clear();
        codec::encode(&self.round, &mut self.batch);
        self.log_bytes += self.batch.len() as u64;
        self.round.clear();
        if let Some(onlooker) = &mut self.onlooker
            && let Some(outlook) = onlooker.advance(self.at, &self.room)
        {
            self.judged = *outlook.judged();
        }
        ticked
    }

    pub(super) fn front(&self, lane: usize) -> u64 {
        self.fronts[lane]
    }

    fn ask(&mut self, command: &Command) -> Reply {
        let reply = self.room.decide(self.at, command, &mut self.decided);
        for event in self.decided.drain(..) {
            if let Some(onlooker) = &mut self.onlooker {
                onlooker.note(&event, &self.room);
            }
            self.room.absorb(&event);
            self.round.push(event);
        }
        reply
    }
}

fn presented(ticket: Ticket) -> Presented {
    Presented::by_service(ticket, Epoch(1))
}

fn settings(plan: &Plan) -> Settings {
    // Without a rate only the slots limit; the largest rate there is comes to the same.
    let per_second = plan.rate_per_s.unwrap_or(RATE_PER_SECOND_MAX).min(RATE_PER_SECOND_MAX);
    let lanes = plan.lanes.iter();
    Settings {
        title: "rehearsal".into(),
        lanes: lanes
            .map(|lane| LaneSettings { name: lane.name.clone(), weight: lane.weight })
            .collect(),
        max_active: plan.capacity,
        rate: Some(Rate { count: per_second as u32, per: Millis(1_000) }),
        tick: Millis(plan.tick_ms),
        queue_all: true,
        claim_within: Millis(plan.hold_ms),
        // People stay as long as the plan says; the room does not hurry them.
        session_timeout: Millis::from_secs(7 * 24 * 3_600),
        // Passes that the gates renew: a slot is free as soon as its session is over.
        pass_life: Millis(1_000),
        pass_leeway: Millis(0),
        heartbeat_timeout: Millis(plan.heartbeat_timeout_ms.max(3_000)),
        ..Settings::default()
    }
}
