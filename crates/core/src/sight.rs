//! A room as those see it who watch it without deciding anything: the estimates of waits.
//!
//! Lives here: questions about lines and slots that name no visitor. Each costs a few counts in the
//! bitmap, whatever the size of the room.
//! Stays out: the estimator (`estimate`), which is fed from this by the engine.

use crate::estimate::Stretch;
use crate::lane::Lane;
use crate::room::Room;
use crate::state::State;
use crate::units::{LaneId, Order, Ticket, Timestamp};

/// Somebody who waits at a place that is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub ticket: Ticket,
    pub order: Order,
    pub ahead: u64,
}

impl State {
    /// The first place of a lane at which somebody waits, or the next to be given when nobody does.
    pub fn front(&self, lane: LaneId) -> Order {
        Order(self.lane(lane).map_or(0, |lane| lane.line.select(0).unwrap_or(lane.next().0)))
    }

    /// Where a ticket stands in its lane's line: its order, or its number while that is not known
    /// yet. Holds for tickets that have left the line, too.
    pub fn place(&self, ticket: Ticket) -> Option<Order> {
        let lane = self.lane(ticket.lane).filter(|lane| ticket.number < lane.next())?;
        let order = lane.order_of(ticket.number, self.window());
        Some(order.unwrap_or(Order(ticket.number.0)))
    }

    /// Who has `ahead` people before them; none when fewer wait, or when the place may still be
    /// shuffled or drawn.
    pub fn standing(&self, lane: LaneId, ahead: u64) -> Option<Standing> {
        let lane = self.lane(lane)?;
        let order = lane.line.select(ahead)?;
        let drawn = order >= lane.line.split || lane.drawn.is_some();
        if !drawn || order >= lane.ordered_to(self.window()) {
            return None;
        }
        let ticket = Ticket { lane: lane.id, number: lane.number_at(order, &mut None) };
        Some(Standing { ticket, order: Order(order), ahead })
    }

    /// The line of a lane in at most `count` stretches of equally many people.
    pub fn stretches(&self, lane: LaneId, count: u64) -> Vec<Stretch> {
        let Some(lane) = self.lane(lane) else { return Vec::new() };
        let people = lane.line.ones();
        let cut = |i: u64| (people as u128 * i as u128 / count.max(1) as u128) as u64;
        let mut stretches = Vec::new();
        for (from, to) in (0..count).map(|i| (cut(i), cut(i + 1))).filter(|(from, to)| from < to) {
            let Some(last) = lane.line.select(to - 1) else { break };
            let sample = [from, (from + to) / 2, to - 1];
            let ages = sample.iter().filter_map(|&rank| self.joined_at_rank(lane, rank));
            let (sum, n) = ages.fold((0, 0), |(sum, n), at| (sum + at.0 as u128, n + 1));
            let joined_at = (sum / n.max(1)) as u64;
            stretches.push(Stretch { end: last + 1, waiting: to - from, joined_at });
        }
        stretches
    }

    fn joined_at_rank(&self, lane: &Lane, rank: u64) -> Option<Timestamp> {
        let number = lane.number_at(lane.line.select(rank)?, &mut None);
        Some(self.time_of(lane.record(number).word()))
    }
}

impl Room {
    /// Since when a ticket holds its slot, ended or not; none when it holds none.
    pub fn slot_since(&self, ticket: Ticket) -> Option<Timestamp> {
        let lane = self.state.lane(ticket.lane)?;
        let live = || {
            let status = self.state.status_of(lane, ticket.number)?;
            (status.is_live() && !lane.record(ticket.number).is_waiting())
                .then(|| lane.record(ticket.number).word())
        };
        let slot = live().or_else(|| self.index.slots.held.get(&ticket).copied())?;
        Some(self.state.slots.get(slot).admitted_at)
    }

    /// Since when the slots are held, earliest first, and how many each stands for: one where no
    /// more than `samples` slots were ever used at once, several beyond that. They add up to all.
    pub fn inside_since(&self, samples: u64) -> Vec<(Timestamp, u64)> {
        let slots = &self.state.slots;
        let step = slots.entries.len().div_ceil(samples.max(1)).max(1);
        let seen = (0..slots.entries.len()).step_by(step as usize);
        let mut since: Vec<Timestamp> =
            seen.filter_map(|slot| Some(slots.entries.get(slot).as_ref()?.admitted_at)).collect();
        since.sort_unstable();
        let mut left = slots.taken;
        let mut kept = since.len() as u64;
        let each = since.into_iter().map(|at| {
            let people = left.div_ceil(kept);
            (left, kept) = (left - people, kept - 1);
            (at, people)
        });
        each.collect()
    }
}
