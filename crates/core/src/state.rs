//! All that a room is, as one value that is cheap to copy.
//!
//! Lives here: the fields, and questions about them that many verbs ask (`find`, `slots_free`).
//! The board that readers use and the snapshot that the store keeps are both a clone of this:
//! everything large sits in copy-on-write chunks, so a clone copies directories, not tickets.
//! Stays out: what can be worked out from it (`room::Index`), and every decision (the verbs).

use crate::bucket::Bucket;
use crate::command::{FinishCause, Hold};
use crate::lane::{Counts, Lane};
use crate::record::{Record, Status};
use crate::reply::Refusal;
use crate::settings::Settings;
use crate::slots::Slots;
use crate::units::{Epoch, LaneId, Number, Presented, Ticket, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct State {
    /// The time of the first event; records count from here.
    pub(crate) founded_at: Timestamp,
    pub(crate) epoch: Epoch,
    pub(crate) opened_at: Timestamp,
    /// The time of the newest event.
    pub(crate) last_at: Timestamp,
    pub(crate) settings: Option<Arc<Settings>>,
    pub(crate) phase: Phase,
    pub(crate) hold: Option<Hold>,
    pub(crate) finish: Option<Finish>,
    pub(crate) draw: DrawState,
    /// In order of id. Only ever grows: a lane that gave numbers never gives them again.
    pub(crate) lanes: Vec<Lane>,
    pub(crate) slots: Slots,
    pub(crate) bucket: Bucket,
    pub(crate) virtual_time: u64,
    /// Tickets that an operator moved, and where to.
    pub(crate) moved: BTreeMap<Ticket, Moved>,
}

/// Where a moved ticket went, and the epoch its old id names. Kept as long as the new ticket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) to: Ticket,
    pub(crate) epoch: Epoch,
}

/// Where the room is in its schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Before `opens_at`: nobody can join.
    #[default]
    Scheduled,
    /// Open, and held until `starts_at`.
    Doors,
    /// The start has come; the order is being drawn. People go on joining behind the draw.
    Drawing,
    Running,
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    pub cause: FinishCause,
    pub reason: String,
    /// When the sale ended, or when it was reopened after that.
    pub at: Timestamp,
    /// Where the sale was when it ended.
    pub from: Phase,
}

/// How far the draw is. Each step keeps what the last one published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawState {
    pub commitment: Option<Commitment>,
    /// How many of each lane take part; fixed when the draw closed.
    pub counts: Vec<(LaneId, u64)>,
    pub closed: bool,
    pub revealed: Option<Revealed>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commitment {
    pub hash: [u8; 32],
    pub sealed_seed: Vec<u8>,
    pub beacon: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revealed {
    pub seed: [u8; 32],
    pub chain: [u8; 32],
    pub beacon: Option<Vec<u8>>,
    pub waived: bool,
}

/// A ticket that was found: still where it was, or where it was moved to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) ticket: Ticket,
    pub(crate) record: Record,
    pub(crate) status: Status,
}

impl State {
    pub fn settings(&self) -> Option<&Arc<Settings>> {
        self.settings.as_ref()
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn hold(&self) -> Option<&Hold> {
        self.hold.as_ref()
    }

    /// What the operator tells every visitor, if anything.
    pub fn message(&self) -> Option<&str> {
        let message = self.settings.as_ref().map(|settings| settings.message.as_str());
        message.filter(|message| !message.is_empty())
    }

    pub fn finish(&self) -> Option<&Finish> {
        self.finish.as_ref()
    }

    pub fn draw(&self) -> &DrawState {
        &self.draw
    }

    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Room time of the newest event; the next one is not earlier.
    pub fn last_at(&self) -> Timestamp {
        self.last_at
    }

    pub fn lane_ids(&self) -> impl Iterator<Item = LaneId> + '_ {
        self.lanes.iter().map(|lane| lane.id)
    }

    /// How many tickets a lane has given; the next number.
    pub fn issued(&self, lane: LaneId) -> u64 {
        self.lane(lane).map_or(0, |lane| lane.next().0)
    }

    pub fn lane_counts(&self, lane: LaneId) -> Counts {
        self.lane(lane).map_or(Counts::default(), |lane| lane.counts)
    }

    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for lane in &self.lanes {
            sum.add(&lane.counts);
        }
        sum
    }

    pub fn waiting(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.counts.waiting).sum()
    }

    /// Slots taken: admitted, active, and ended ones whose pass a gate may still accept.
    pub fn slots_taken(&self) -> u64 {
        self.slots.taken
    }

    pub(crate) fn slots_free(&self, settings: &Settings) -> u64 {
        settings.max_active.saturating_sub(self.slots.taken)
    }

    /// Whether positions are unknown because the draw is still to come.
    pub fn draw_pending(&self) -> bool {
        self.draw.revealed.is_none()
            && (self.draw.closed
                || self.phase <= Phase::Doors
                    && self.settings.as_ref().is_some_and(|settings| settings.draw.is_some()))
    }

    pub(crate) fn lane(&self, id: LaneId) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.id == id)
    }

    pub(crate) fn lane_at(&self, id: LaneId) -> usize {
        self.lanes.iter().position(|lane| lane.id == id).expect("tickets live in lanes that exist")
    }

    pub(crate) fn window(&self) -> u32 {
        self.settings.as_ref().map_or(1, |settings| settings.shuffle_window)
    }

    /// Record times are counted from the founding, to fit their 40 bits.
    pub(crate) fn word_of(&self, at: Timestamp) -> u64 {
        at.since(self.founded_at).0.min(crate::record::WORD_MAX)
    }

    pub(crate) fn time_of(&self, word: u64) -> Timestamp {
        Timestamp(self.founded_at.0 + word)
    }

    /// What a ticket's record says, closing of the sale included; none when it was forgotten.
    pub(crate) fn status_of(&self, lane: &Lane, number: Number) -> Option<Status> {
        match lane.record(number).status()? {
            Status::Waiting if lane.is_closed(number) => Some(Status::Closed),
            status => Some(status),
        }
    }

    /// When a ticket ended, if it did and is not forgotten. Moved ones are not timed.
    pub(crate) fn ended_at(&self, lane: &Lane, number: Number) -> Option<Timestamp> {
        match self.status_of(lane, number)? {
            Status::Waiting | Status::Admitted | Status::Active => None,
            Status::Closed => lane.closed_at(number),
            _ => Some(self.time_of(lane.record(number).word())),
        }
    }

    /// The ticket behind what somebody presents, followed to where it was moved.
    pub(crate) fn find(&self, at: Timestamp, presented: &Presented) -> Result<Found, Refusal> {
        let mut ticket = presented.ticket;
        let lane = self.lane(ticket.lane).ok_or(Refusal::UnknownTicket)?;
        let moved = self.moved.get(&ticket);
        match moved.map(|moved| moved.epoch).or_else(|| lane.epoch_of(ticket.number)) {
            Some(epoch) if epoch == presented.epoch => {}
            // It ended so long ago that nothing else is known of it.
            _ if ticket.number < lane.next() && self.is_forgotten(at, lane, ticket.number) => {
                return Err(Refusal::Forgotten);
            }
            // The id is genuine, but the log that gave the number was lost, and perhaps somebody
            // else holds it by now.
            _ => return Err(Refusal::PlaceLost),
        }
        while let Some(moved) = self.moved.get(&ticket) {
            ticket = moved.to;
        }
        let lane = self.lane(ticket.lane).ok_or(Refusal::UnknownTicket)?;
        // Before anything is said of its holder: once the bytes are gone nobody could say it.
        if self.is_forgotten(at, lane, ticket.number) {
            return Err(Refusal::Forgotten);
        }
        let record = lane.record(ticket.number);
        let status = self.status_of(lane, ticket.number).ok_or(Refusal::Forgotten)?;
        if presented.holder.is_some_and(|holder| holder != record.holder()) {
            return Err(Refusal::MovedElsewhere);
        }
        Ok(Found { ticket, record, status })
    }

    /// Whether a ticket that was given has been over for longer than the room remembers.
    fn is_forgotten(&self, at: Timestamp, lane: &Lane, number: Number) -> bool {
        if self.status_of(lane, number).is_none() {
            return true;
        }
        let memory = self.settings.as_ref().map(|settings| settings.memory);
        match (self.ended_at(lane, number), memory) {
            (Some(ended_at), Some(memory)) => ended_at.after(memory) <= at,
            _ => false,
        }
    }

    /// Settings, or the refusal of a room that has none.
    pub(crate) fn ready(&self) -> Result<&Arc<Settings>, Refusal> {
        self.settings.as_ref().filter(|_| self.epoch > Epoch(0)).ok_or(Refusal::NotReady)
    }

    /// Whether anybody may be admitted now, slots and pace aside.
    pub(crate) fn admits(&self) -> Result<(), Refusal> {
        match (&self.phase, &self.hold) {
            (Phase::Ended, _) => Err(self.finished()),
            (_, Some(Hold::Paused { reason })) => Err(Refusal::Paused { reason: reason.clone() }),
            (_, Some(Hold::Maintenance { reason })) => {
                Err(Refusal::Maintenance { reason: reason.clone() })
            }
            (Phase::Scheduled | Phase::Doors, Some(Hold::Draining { .. }) | None) => {
                Err(Refusal::NotStarted)
            }
            (Phase::Drawing, Some(Hold::Draining { .. }) | None) => Err(Refusal::DrawPending),
            (Phase::Running, Some(Hold::Draining { .. }) | None) => Ok(()),
        }
    }

    pub(crate) fn finished(&self) -> Refusal {
        let reason = self.finish.as_ref().map_or(String::new(), |finish| finish.reason.clone());
        Refusal::Finished { reason }
    }

    /// During maintenance that closes the site for those inside too, their time stands still.
    pub fn frozen(&self) -> bool {
        matches!(self.hold, Some(Hold::Maintenance { .. }))
            && self.settings.as_ref().is_some_and(|settings| !settings.keep_inside)
    }
}
