//! A place goes to another device, or an operator puts it into another lane.

use crate::command::Actor;
use crate::event::{Event, What};
use crate::record::Status;
use crate::reply::{Refusal, Reply};
use crate::room::{Decided, Room};
use crate::state::Moved;
use crate::units::{Holder, Identity, LaneId, Number, Presented, Ticket, Timestamp};

impl Room {
    /// The old device's tokens die; the new one gets the raised holder count.
    pub(crate) fn decide_hand_over(
        &self,
        at: Timestamp,
        presented: &Presented,
        out: &mut Vec<Event>,
    ) -> Decided {
        let found = self.state.find(at, presented)?;
        if !found.status.is_live() {
            return Err(Refusal::WrongStatus { status: found.status });
        }
        let holder = found.record.holder().0.checked_add(1).map(Holder);
        let holder = holder.ok_or(Refusal::HandedOverTooOften)?;
        out.push(What::HandedOver { ticket: found.ticket, holder }.at(at));
        Ok(Reply::HandedOver { ticket: found.ticket, holder })
    }

    pub(crate) fn absorb_handed_over(&mut self, ticket: Ticket, holder: Holder) {
        let place = self.state.lane_at(ticket.lane);
        let record = self.state.lanes[place].record(ticket.number);
        self.state.lanes[place].records.set(ticket.number.0, record.with_holder(holder));
    }

    pub(crate) fn decide_move(
        &self,
        at: Timestamp,
        presented: &Presented,
        to: LaneId,
        by: &Actor,
        out: &mut Vec<Event>,
    ) -> Decided {
        let settings = self.state.ready()?;
        let found = self.state.find(at, presented)?;
        if found.status != Status::Waiting {
            return Err(Refusal::WrongStatus { status: found.status });
        }
        let lane = self.state.lane(to).filter(|_| settings.lane(to));
        let lane = lane.ok_or(Refusal::UnknownLane { lane: to })?;
        let from = found.ticket;
        if from.lane == to {
            return Ok(Reply::Moved { to: from, epoch: self.named(from).epoch });
        }
        let to = Ticket { lane: to, number: lane.next() };
        if to.number > Number::MAX {
            return Err(Refusal::Full { max_waiting: Number::MAX.0 });
        }
        let joined_at = self.state.time_of(found.record.word());
        out.push(What::Moved { from, to, joined_at, by: by.clone() }.at(at));
        Ok(Reply::Moved { to, epoch: self.state.epoch })
    }

    /// The old ticket ends, a new one begins with all that the person brought; its age counts
    /// from now, so that ages in a lane follow its numbers.
    pub(crate) fn absorb_moved(&mut self, at: Timestamp, from: Ticket, to: Ticket) {
        let window = self.state.window();
        let word = self.state.word_of(at);
        let place = self.state.lane_at(from.lane);
        let lane = &mut self.state.lanes[place];
        let index = &mut self.index.lanes[place];
        let record = lane.record(from.number);
        let epoch = lane.epoch_of(from.number).expect("a waiting ticket was given in some epoch");
        let identity = Identity(lane.identity(from.number));
        let note = lane.notes.get(from.number.0).clone();
        index.take_from_line(lane, from.number, window);
        let ended = record.with_status(Status::Moved).with_word(word).mark_superseded();
        lane.records.set(from.number.0, ended);
        lane.counts.waiting -= 1;
        lane.counts.moved += 1;
        index.left_line(lane, from.number, at);

        self.add_ticket(at, to);
        let place = self.state.lane_at(to.lane);
        let lane = &mut self.state.lanes[place];
        let record = lane.record(to.number).with_holder(record.holder());
        lane.records.set(to.number.0, record);
        if note.is_some() {
            lane.notes.extend_default(to.number.0 + 1);
            lane.notes.set(to.number.0, note);
        }
        if !identity.is_nobody() {
            self.bind_identity(to, identity);
        }
        self.state.moved.insert(from, Moved { to, epoch });
    }
}
