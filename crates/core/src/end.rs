//! Tickets that are over: left, completed, revoked, failed at the checkout, lapsed.
//!
//! An ended session keeps its slot while some gate may still accept its pass (`held_until`);
//! every gate's confirmation, or that moment, releases it.

use crate::command::{Actor, EndHow};
use crate::event::{Ending, Event, What};
use crate::record::Status;
use crate::reply::{Fresh, Refusal, Reply};
use crate::room::{Decided, Room};
use crate::settings::{NoShow, Settings};
use crate::slots::Stage;
use crate::units::{Millis, Presented, Ticket, Timestamp};

/// One decision ends at most this many, for the writer's sake.
pub(crate) const END_MAX: usize = 2_000;

impl Room {
    pub(crate) fn decide_leave(
        &self,
        at: Timestamp,
        presented: &Presented,
        out: &mut Vec<Event>,
    ) -> Decided {
        let found = self.state.find(at, presented)?;
        let ending = match found.status {
            Status::Waiting => Ending::Left,
            // Who goes from inside is done; the line has nothing to do with it any more.
            Status::Admitted | Status::Active => Ending::Completed,
            status => return over(found.ticket, status),
        };
        self.end(at, found.ticket, ending, &Actor::new("visitor"), self.state.waiting(), out);
        Ok(Reply::Over { ticket: found.ticket, status: ending.status(), fresh: Fresh::New })
    }

    pub(crate) fn decide_end(
        &self,
        at: Timestamp,
        presented: &Presented,
        how: EndHow,
        by: &Actor,
        out: &mut Vec<Event>,
    ) -> Decided {
        let found = self.state.find(at, presented)?;
        let ending = match (how, found.status) {
            (_, status) if !status.is_live() => return over(found.ticket, status),
            (EndHow::Revoked, _) => Ending::Revoked,
            (_, Status::Waiting) => return Err(Refusal::WrongStatus { status: found.status }),
            (EndHow::Completed, _) => Ending::Completed,
            // A checkout can only fail for somebody who is in it.
            (_, Status::Admitted) => return Err(Refusal::WrongStatus { status: found.status }),
            (EndHow::CheckoutFailed, _) => Ending::CheckoutFailed,
            (EndHow::CheckoutExpired, _) => Ending::CheckoutExpired,
        };
        self.end(at, found.ticket, ending, by, self.state.waiting(), out);
        Ok(Reply::Over { ticket: found.ticket, status: ending.status(), fresh: Fresh::New })
    }

    /// The silent ones, as the sweeper proposes and the engine has checked again.
    pub(crate) fn decide_lapse(
        &self,
        at: Timestamp,
        tickets: &[Ticket],
        out: &mut Vec<Event>,
    ) -> Decided {
        let mut waiting = self.state.waiting();
        let mut named: Vec<Ticket> = tickets.iter().copied().take(END_MAX).collect();
        named.sort_unstable();
        named.dedup();
        let mut count = 0;
        for ticket in named {
            if self.is_waiting(ticket) {
                self.end(at, ticket, Ending::Silent, &Actor::new("sweeper"), waiting, out);
                waiting -= 1;
                count += 1;
            }
        }
        Ok(Reply::Lapsed { count })
    }

    pub(crate) fn decide_release(
        &self,
        at: Timestamp,
        tickets: &[Ticket],
        out: &mut Vec<Event>,
    ) -> Decided {
        let mut named: Vec<Ticket> = tickets.iter().copied().take(END_MAX).collect();
        named.sort_unstable();
        named.dedup();
        let mut count = 0;
        for ticket in named {
            if self.held_slot(ticket).is_some() {
                out.push(What::Released { ticket }.at(at));
                count += 1;
            }
        }
        Ok(Reply::Released { count })
    }

    /// Deadlines inside that have come: no-shows, sessions that ran out, slots to free.
    pub(crate) fn decide_deadlines(&self, at: Timestamp, out: &mut Vec<Event>) {
        let waiting = self.state.waiting();
        for slot in self.index.slots.due(&self.state.slots, at, END_MAX) {
            let inside = self.state.slots.get(slot);
            let by = Actor::default();
            match inside.stage {
                Stage::Admitted { .. } => {
                    self.end(at, inside.ticket, Ending::NoShow, &by, waiting, out)
                }
                Stage::Active(_) => {
                    self.end(at, inside.ticket, Ending::SessionOver, &by, waiting, out)
                }
                Stage::Held { .. } => out.push(What::Released { ticket: inside.ticket }.at(at)),
            }
        }
    }

    /// Waiting tickets that have grown older than `ticket_life`.
    pub(crate) fn decide_too_old(&self, at: Timestamp, settings: &Settings, out: &mut Vec<Event>) {
        if settings.ticket_life == Millis(0) {
            return;
        }
        let mut waiting = self.state.waiting();
        let mut ended = 0;
        for (lane, index) in self.state.lanes.iter().zip(&self.index.lanes) {
            let mut number = index.oldest;
            // Numbers join in order of time: behind a young ticket there is no older one.
            while number < lane.next().0 && ended < END_MAX {
                let ticket = Ticket::new(lane.id.0, number);
                let record = lane.record(ticket.number);
                if record.is_waiting() && !lane.is_closed(ticket.number) {
                    if self.state.time_of(record.word()).after(settings.ticket_life) > at {
                        break;
                    }
                    self.end(at, ticket, Ending::TooOld, &Actor::default(), waiting, out);
                    waiting -= 1;
                    ended += 1;
                }
                number += 1;
            }
        }
    }

    /// When the oldest waiting ticket grows too old.
    pub(crate) fn next_too_old(&self, settings: &Settings) -> Option<Timestamp> {
        if settings.ticket_life == Millis(0) {
            return None;
        }
        let lanes = self.state.lanes.iter().zip(&self.index.lanes);
        let oldest = lanes
            .filter(|(lane, index)| index.oldest < lane.next().0 && lane.counts.waiting > 0)
            .map(|(lane, index)| self.state.time_of(lane.records.get(index.oldest).word()));
        oldest.min().map(|joined_at| joined_at.after(settings.ticket_life))
    }

    pub(crate) fn is_waiting(&self, ticket: Ticket) -> bool {
        self.state
            .lane(ticket.lane)
            .is_some_and(|lane| self.state.status_of(lane, ticket.number) == Some(Status::Waiting))
    }

    /// Pushes the end of a live ticket. `waiting` is how many wait before it.
    fn end(
        &self,
        at: Timestamp,
        ticket: Ticket,
        ending: Ending,
        by: &Actor,
        waiting: u64,
        out: &mut Vec<Event>,
    ) {
        let lane = self.state.lane(ticket.lane).expect("live tickets have a lane");
        let record = lane.record(ticket.number);
        let mut held_until = None;
        let (waited, waiting) = if record.is_waiting() {
            (at.since(self.state.time_of(record.word())), waiting - 1)
        } else {
            let inside = self.state.slots.get(record.word());
            if let Stage::Active(session) = inside.stage {
                let leeway = self.state.settings.as_ref().map_or(Millis(0), |s| s.pass_leeway);
                held_until =
                    Some(session.pass_expires_at.after(leeway)).filter(|until| *until > at);
            }
            (inside.admitted_at.since(inside.joined_at), waiting)
        };
        let was = record.status().expect("only live tickets end");
        let (sealed_user, by) = (lane.sealed_user(ticket.number), by.clone());
        out.push(
            What::Ended { ticket, was, ending, waited, waiting, held_until, sealed_user, by }
                .at(at),
        );
    }

    /// The slot that an ended ticket still holds.
    fn held_slot(&self, ticket: Ticket) -> Option<u64> {
        self.index.slots.held.get(&ticket).copied()
    }

    pub(crate) fn absorb_ended(
        &mut self,
        at: Timestamp,
        ticket: Ticket,
        ending: Ending,
        held_until: Option<Timestamp>,
    ) {
        let window = self.state.window();
        let word = self.state.word_of(at);
        let place = self.state.lane_at(ticket.lane);
        let lane = &mut self.state.lanes[place];
        let index = &mut self.index.lanes[place];
        let record = lane.record(ticket.number);
        let was = record.status().expect("only live tickets end");
        lane.records.set(ticket.number.0, record.with_ending(ending).with_word(word));
        match ending.status() {
            Status::Completed => lane.counts.completed += 1,
            Status::Left => lane.counts.left += 1,
            Status::Revoked => lane.counts.revoked += 1,
            _ => lane.counts.expired += 1,
        }
        match was {
            Status::Waiting => {
                index.take_from_line(lane, ticket.number, window);
                lane.counts.waiting -= 1;
                index.left_line(lane, ticket.number, at);
                return;
            }
            Status::Admitted => lane.counts.admitted -= 1,
            _ => lane.counts.active -= 1,
        }
        if ending == Ending::NoShow {
            lane.counts.no_shows += 1;
        }
        let slot = record.word();
        match held_until {
            Some(until) => {
                self.state.slots.change(&mut self.index.slots, slot, Stage::Held { until });
                self.index.slots.held.insert(ticket, slot);
            }
            None => {
                let inside = self.state.slots.free(&mut self.index.slots, slot);
                index.left_slot(lane, ticket.number, at);
                let settings = self.state.settings.clone().expect("settings came before tickets");
                if ending == Ending::NoShow && inside.paced && settings.no_show == NoShow::Return {
                    self.state.bucket.give_back(at, &settings);
                }
            }
        }
    }

    pub(crate) fn absorb_released(&mut self, at: Timestamp, ticket: Ticket) {
        let slot = self.index.slots.held.remove(&ticket).expect("only held slots are released");
        self.state.slots.free(&mut self.index.slots, slot);
        let place = self.state.lane_at(ticket.lane);
        self.index.lanes[place].left_slot(&self.state.lanes[place], ticket.number, at);
    }
}

/// Over before: an answer without events.
fn over(ticket: Ticket, status: Status) -> Decided {
    Ok(Reply::Over { ticket, status, fresh: Fresh::Repeat })
}
