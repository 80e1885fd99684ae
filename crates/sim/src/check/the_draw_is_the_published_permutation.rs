//! Promise 7: a draw is the published permutation, nothing else.
//!
//! What was published fits together: the seed is the committed one, the counts are those of the
//! log at the close, the chain is the one of the batch that closed the draw, a beacon went in if
//! and only if one was named, or an operator waived it. Then every place follows, and whoever is
//! admitted is the first of all who wait in the lane by that order; those who came later come
//! later. Nobody who is in the draw is admitted before it was made.
//! Shuffle windows are small draws with a seed of their own in the log: the same holds for them.

use std::collections::{BTreeMap, BTreeSet};

use waitroom_core::draw::{self, LaneCount};
use waitroom_core::permutation::{N_MAX, Permutation};
use waitroom_core::{LaneId, Number, Order, Ticket, What};

use super::quick::Map;
use crate::history::{History, Violation};

const PROMISE: u8 = 7;

pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut draw = Draw::default();
    let mut lanes: Map<LaneId, Lane> = Map::default();
    let mut window = 1;
    for it in &history.log {
        let index = it.index;
        let mut broken = |said: String| {
            found.push(Violation::new(PROMISE, format!("event {index}: {said}")));
        };
        match &it.event.what {
            What::Configured { settings, .. } => window = u64::from(settings.shuffle_window),
            What::Joined(joined) => {
                lanes.entry(joined.ticket.lane).or_default().join(joined.ticket.number, window);
            }
            What::Moved { from, to, .. } => {
                lanes.entry(from.lane).or_default().gone(from.number);
                lanes.entry(to.lane).or_default().join(to.number, window);
            }
            What::Ended { ticket, .. } => lanes.entry(ticket.lane).or_default().gone(ticket.number),
            What::SaleEnded { .. } => {
                for lane in lanes.values_mut() {
                    lane.waiting.clear();
                    lane.unordered.clear();
                }
            }
            What::DrawCommitted { commitment, beacon, .. } => {
                if draw.committed.is_some() {
                    broken("a second commitment".into());
                }
                draw.committed = Some(Committed { hash: *commitment, beacon: beacon.is_some() });
            }
            What::DrawClosed { counts } => draw.close(counts, it.chain, &mut lanes, &mut broken),
            What::Drawn { seed, chain, beacon, waived, .. } => {
                let revealed = Revealed { seed, chain, beacon: beacon.as_deref(), waived: *waived };
                draw.make(&revealed, &mut lanes, &mut broken);
            }
            What::Sealed { lane, start, len, seed } => {
                let state = lanes.entry(*lane).or_default();
                let fits = start.0 == state.sealed_to
                    && (1..=window).contains(&u64::from(*len))
                    && start.0.saturating_add(u64::from(*len)) <= state.issued;
                if !fits {
                    broken(format!(
                        "a window of lane {lane} from {} with {len} tickets, where {} is next and \
                         {} were given",
                        start.0, state.sealed_to, state.issued
                    ));
                    continue;
                }
                let key = draw::window_key(seed, lane.0, start.0);
                state.place(start.0, &Permutation::new(key, u64::from(*len)));
                state.sealed_to = start.0 + u64::from(*len);
            }
            What::Admitted { ticket, .. } => {
                draw.too_early.get_or_insert(*ticket);
                lanes.entry(ticket.lane).or_default().admit(*ticket, &mut broken);
            }
            _ => {}
        }
    }
    found
}

#[derive(Default)]
struct Draw {
    committed: Option<Committed>,
    closed: Option<Closed>,
    made: bool,
    /// Somebody who was admitted; if a draw closes after that, it was too early.
    too_early: Option<Ticket>,
}

struct Committed {
    hash: [u8; 32],
    /// Whether a beacon was named with it.
    beacon: bool,
}

struct Closed {
    counts: Vec<LaneCount>,
    /// The chain of the batch that holds the close, by the log and not by the draw's word.
    chain: [u8; 32],
}

struct Revealed<'a> {
    seed: &'a [u8; 32],
    chain: &'a [u8; 32],
    beacon: Option<&'a [u8]>,
    waived: bool,
}

impl Draw {
    fn close(
        &mut self,
        counts: &[(LaneId, u64)],
        chain: [u8; 32],
        lanes: &mut Map<LaneId, Lane>,
        broken: &mut impl FnMut(String),
    ) {
        if self.committed.is_none() || self.closed.is_some() {
            broken("a draw closes without a commitment, or for the second time".into());
        }
        if let Some(ticket) = self.too_early {
            broken(format!("{ticket} was admitted before the draw closed"));
        }
        let issued: BTreeMap<LaneId, u64> = lanes
            .iter()
            .map(|(id, lane)| (*id, lane.issued))
            .filter(|(_, issued)| *issued > 0)
            .collect();
        let published: BTreeMap<LaneId, u64> =
            counts.iter().copied().filter(|(_, count)| *count > 0).collect();
        if issued != published {
            broken(format!("{issued:?} take part, and {published:?} was published"));
        }
        lanes.values_mut().for_each(Lane::close);
        let counts = counts.iter().map(|(lane, count)| LaneCount { lane: lane.0, count: *count });
        self.closed = Some(Closed { counts: counts.collect(), chain });
    }

    fn make(
        &mut self,
        revealed: &Revealed<'_>,
        lanes: &mut Map<LaneId, Lane>,
        broken: &mut impl FnMut(String),
    ) {
        let Revealed { seed, chain, beacon, waived } = *revealed;
        let (Some(committed), Some(closed)) = (&self.committed, &self.closed) else {
            broken("a draw that was not committed to and closed".into());
            return;
        };
        if std::mem::replace(&mut self.made, true) {
            broken("the draw is made a second time".into());
            return;
        }
        if draw::commitment(seed) != committed.hash {
            broken("the seed is not the one committed to".into());
        }
        if *chain != closed.chain {
            broken("the chain is not the one at the close".into());
        }
        let fits = match (committed.beacon, beacon) {
            (false, None) | (true, Some(_)) => !waived,
            (true, None) => waived,
            (false, Some(_)) => false,
        };
        if !fits {
            let (named, used) = (committed.beacon, beacon.is_some());
            broken(format!("beacon named: {named}, used: {used}, waived: {waived}"));
        }
        let counts = &closed.counts;
        if !counts.is_sorted_by(|a, b| a.lane < b.lane) || counts.iter().any(|it| it.count > N_MAX)
        {
            broken(
                "the published counts name lanes twice, out of order, or too many people".into(),
            );
            return;
        }
        let key = draw::final_key(seed, counts, &closed.chain, beacon);
        for LaneCount { lane, count } in counts {
            let permutation = Permutation::new(draw::lane_key(&key, *lane), *count);
            lanes.entry(LaneId(*lane)).or_default().place(0, &permutation);
        }
    }
}

#[derive(Default)]
struct Lane {
    issued: u64,
    sealed_to: u64,
    /// Those who wait and know their order, first one first.
    waiting: BTreeSet<(Order, Number)>,
    orders: Map<Number, Order>,
    /// Those who wait for a draw or for their window's seal.
    unordered: BTreeSet<Number>,
}

impl Lane {
    fn join(&mut self, number: Number, window: u64) {
        self.issued = self.issued.max(number.0.saturating_add(1));
        self.unordered.insert(number);
        if window == 1 {
            self.give(number, Order(number.0));
        }
    }

    fn give(&mut self, number: Number, order: Order) {
        if self.unordered.remove(&number) {
            self.orders.insert(number, order);
            self.waiting.insert((order, number));
        }
    }

    fn gone(&mut self, number: Number) {
        self.unordered.remove(&number);
        if let Some(order) = self.orders.remove(&number) {
            self.waiting.remove(&(order, number));
        }
    }

    /// Whoever is here takes part: no order counts any more.
    fn close(&mut self) {
        self.unordered.extend(self.waiting.iter().map(|(_, number)| *number));
        self.waiting.clear();
        self.orders.clear();
        self.sealed_to = self.issued;
    }

    /// Those who still wait, from `start` on, go to their places.
    fn place(&mut self, start: u64, permutation: &Permutation) {
        let range = Number(start)..Number(start + permutation.n());
        let numbers: Vec<Number> = self.unordered.range(range).copied().collect();
        let mut orders: Vec<u64> = numbers.iter().map(|number| number.0 - start).collect();
        permutation.forward_many(&mut orders);
        for (number, order) in numbers.into_iter().zip(orders) {
            self.give(number, Order(start + order));
        }
    }

    fn admit(&mut self, ticket: Ticket, broken: &mut impl FnMut(String)) {
        if self.unordered.contains(&ticket.number) {
            broken(format!("{ticket} is admitted before its place was drawn"));
        } else if let Some(order) = self.orders.get(&ticket.number)
            && let Some((first, number)) = self.waiting.first().filter(|(first, _)| first < order)
        {
            broken(format!(
                "{ticket} at order {} is admitted while number {} waits at order {}",
                order.0, number.0, first.0
            ));
        }
        self.gone(ticket.number);
    }
}
