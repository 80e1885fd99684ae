//! The board: the picture of a room from which every answer to a visitor follows.
//!
//! The owner publishes one a few times a second, immutable; any thread answers from it without
//! touching the writer. It is a clone of the state, so it is exact.
//! The form for the public is in `public_board.rs`.

use crate::event::{Ending, Session};
use crate::lane::Note;
use crate::record::Status;
use crate::reply::Refusal;
use crate::slots::Stage;
use crate::state::State;
use crate::units::{Holder, Order, Presented, Ticket, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Board {
    state: State,
    version: u64,
    published_at: Timestamp,
}

/// All that can be told about one ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The ticket itself, or where it was moved to.
    pub ticket: Ticket,
    pub holder: Holder,
    pub status: Status,
    pub ending: Option<Ending>,
    /// Its place in the order of service, once there is one.
    pub order: Option<Order>,
    /// 1 = next; 0 once admitted; none before a draw and after the end.
    pub position: Option<u64>,
    /// How many wait behind it in its lane.
    pub behind: Option<u64>,
    pub joined_at: Option<Timestamp>,
    pub admitted_at: Option<Timestamp>,
    pub claim_by: Option<Timestamp>,
    pub session: Option<Session>,
    pub ended_at: Option<Timestamp>,
}

impl Board {
    pub fn new(state: State, version: u64, published_at: Timestamp) -> Board {
        Board { state, version, published_at }
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// The head of the log that it shows.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub fn published_at(&self) -> Timestamp {
        self.published_at
    }

    pub fn look(&self, at: Timestamp, presented: &Presented) -> Result<View, Refusal> {
        self.state.look(at, presented)
    }
}

impl State {
    /// What is known of a ticket.
    pub fn look(&self, at: Timestamp, presented: &Presented) -> Result<View, Refusal> {
        let found = self.find(at, presented)?;
        let number = found.ticket.number;
        let lane = self.lane(found.ticket.lane).expect("found tickets have a lane");
        let mut view = View {
            ticket: found.ticket,
            holder: found.record.holder(),
            status: found.status,
            ending: found.record.ending(),
            order: None,
            position: None,
            behind: None,
            joined_at: None,
            admitted_at: None,
            claim_by: None,
            session: None,
            ended_at: self.ended_at(lane, number),
        };
        match found.status {
            Status::Waiting => {
                view.joined_at = Some(self.time_of(found.record.word()));
                if !self.draws_later() {
                    view.order = lane.order_of(number, self.window());
                    let ahead = lane.ahead_of(number, self.window());
                    view.position = ahead.map(|ahead| ahead + 1);
                    view.behind = view.position.map(|at| lane.counts.waiting.saturating_sub(at));
                }
            }
            Status::Admitted | Status::Active => {
                let inside = self.slots.get(found.record.word());
                view.position = Some(0);
                view.joined_at = Some(inside.joined_at);
                view.admitted_at = Some(inside.admitted_at);
                match inside.stage {
                    Stage::Admitted { claim_by } => view.claim_by = Some(claim_by),
                    Stage::Active(session) => view.session = Some(session),
                    Stage::Held { .. } => {}
                }
            }
            _ => {}
        }
        Ok(view)
    }

    /// Where a waiting ticket stands in its lane, 1 being the next to enter; none when it does not
    /// wait, and while its draw is still to come. Never rises.
    pub fn position(&self, ticket: Ticket) -> Option<u64> {
        let lane = self.lane(ticket.lane)?;
        if ticket.number >= lane.next() || self.draws_later() {
            return None;
        }
        // The bit says as much as the record, and stands where the count is taken anyway.
        let order = lane.order_of(ticket.number, self.window());
        if !lane.line.waits(order.map_or(ticket.number.0, |order| order.0)) {
            return None;
        }
        lane.ahead_of(ticket.number, self.window()).map(|ahead| ahead + 1)
    }

    /// Before the draw has closed nobody has a position; after that the lane knows who takes part
    /// and who stands behind them.
    fn draws_later(&self) -> bool {
        self.draw_pending() && !self.draw.closed
    }

    /// How a ticket stands, without asking who wants to know.
    pub fn status(&self, ticket: Ticket) -> Option<Status> {
        self.status_of(self.lane(ticket.lane)?, ticket.number)
    }

    /// A ticket of this room as a service would present it.
    pub fn named(&self, ticket: Ticket) -> Option<Presented> {
        let epoch = self.lane(ticket.lane)?.epoch_of(ticket.number)?;
        Some(Presented::by_service(ticket, epoch))
    }

    /// What the ticket brought along.
    pub fn note(&self, ticket: Ticket) -> Option<Arc<Note>> {
        self.lane(ticket.lane)?.notes.get(ticket.number.0).clone()
    }

    /// Calls back with every waiting ticket of a lane from a number on, in order of numbers, until
    /// told to stop. The sweeper looks for silent ones this way.
    pub fn each_waiting(
        &self,
        lane: crate::units::LaneId,
        mut each: impl FnMut(crate::units::Number) -> std::ops::ControlFlow<()>,
    ) {
        let Some(lane) = self.lane(lane) else { return };
        let from = lane.closed_below().0;
        for (block, records) in lane.records.chunks() {
            let first = block * crate::chunked::CHUNK;
            for (i, record) in records.iter().enumerate() {
                let number = first + i as u64;
                if record.is_waiting()
                    && number >= from
                    && each(crate::units::Number(number)).is_break()
                {
                    return;
                }
            }
        }
    }

    /// Calls back with every ticket that the room still remembers and whose it is, lane by lane,
    /// until told to stop. Takes as long as there are tickets: for support, not for visitors.
    pub fn each_known(
        &self,
        mut each: impl FnMut(Ticket, crate::units::Identity) -> std::ops::ControlFlow<()>,
    ) {
        for lane in &self.lanes {
            for (block, records) in lane.records.chunks() {
                let first = block * crate::chunked::CHUNK;
                for (number, record) in (first..).zip(records) {
                    let number = crate::units::Number(number);
                    let ticket = Ticket { lane: lane.id, number };
                    let whose = crate::units::Identity(lane.identity(number));
                    if record.status().is_some() && each(ticket, whose).is_break() {
                        return;
                    }
                }
            }
        }
    }

    /// How many may enter now, by slots and by pace; none while the room admits nobody.
    pub fn openings(&self, at: Timestamp) -> Option<(u64, u64)> {
        let settings = self.settings.as_ref()?;
        self.admits().ok()?;
        Some((self.slots_free(settings), self.bucket.tokens(at, settings)))
    }

    /// Slots whose time had run out by `at` and that are still taken.
    pub fn overdue_slots(&self, at: Timestamp) -> u64 {
        self.slots.iter().filter(|(_, inside)| inside.deadline() <= at).count() as u64
    }

    /// Ended sessions whose slot is still taken, because some gate may yet accept their pass: the
    /// ended-set that gates confirm.
    pub fn held(&self) -> impl Iterator<Item = Ticket> + '_ {
        let held = self.slots.iter();
        held.filter(|(_, inside)| matches!(inside.stage, Stage::Held { .. }))
            .map(|(_, inside)| inside.ticket)
    }

    /// How many blocks at the front of a lane are forgotten, and whether one is still kept.
    pub fn forgotten_blocks(&self, lane: crate::units::LaneId) -> u64 {
        self.lane(lane).map_or(0, |lane| lane.forgotten_to)
    }

    pub fn remembers(&self, block: crate::command::Block) -> bool {
        self.lane(block.lane).is_some_and(|lane| lane.records.chunk(block.index).is_some())
    }

    /// Memory held by the large structures, as if nobody shared them.
    pub fn resident_bytes(&self) -> usize {
        let lanes = self.lanes.iter().map(|lane| {
            lane.records.resident_bytes()
                + lane.identities.resident_bytes()
                + lane.keys.resident_bytes()
                + lane.notes.resident_bytes()
                + lane.windows.resident_bytes()
                + lane.block_joined.resident_bytes()
                + lane.line.drawn.resident_bytes()
                + lane.line.rest.resident_bytes()
        });
        lanes.sum::<usize>() + self.slots.entries.resident_bytes()
    }
}
