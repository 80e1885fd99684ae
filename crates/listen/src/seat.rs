//! Seats: how many connections there may be, in all and from one address.
//!
//! A seat belongs to the socket, not to the task that serves it: it travels inside [`crate::Io`],
//! through an upgrade to whoever owns the socket then, and is free again when that is dropped.
//! The table of addresses holds only addresses with a seat taken, so the cap on seats bounds it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::net::Household;
use crate::stats::{Stats, one_more};

#[derive(Debug)]
pub(crate) struct Seats {
    seats_max: u64,
    per_address_max: usize,
    by_address: Mutex<HashMap<Household, u32>>,
    pub(crate) stats: Arc<Stats>,
    /// Rung when a seat becomes free; the drain listens.
    freed: Arc<Notify>,
}

/// One connection's right to be open. Keep it beside the socket; dropping it frees the place.
#[derive(Debug)]
pub struct Seat {
    seats: Arc<Seats>,
    household: Option<Household>,
}

impl Seats {
    pub(crate) fn new(
        seats_max: usize,
        per_address_max: usize,
        stats: Arc<Stats>,
        freed: Arc<Notify>,
    ) -> Arc<Seats> {
        Arc::new(Seats {
            seats_max: seats_max as u64,
            per_address_max,
            by_address: Mutex::new(HashMap::new()),
            stats,
            freed,
        })
    }

    /// A seat, or none when the house is full (and counted).
    pub(crate) fn take(self: &Arc<Seats>) -> Option<Seat> {
        let open = &self.stats.open;
        if open.fetch_add(1, AcqRel) >= self.seats_max {
            open.fetch_sub(1, AcqRel);
            one_more(&self.stats.refused_full);
            return None;
        }
        one_more(&self.stats.accepted);
        Some(Seat { seats: self.clone(), household: None })
    }

    pub(crate) fn open(&self) -> u64 {
        self.stats.open.load(Acquire)
    }
}

impl Seat {
    /// Counts this seat for `address`; false (and counted) when that has all it may have.
    pub(crate) fn of_address(&mut self, address: IpAddr) -> bool {
        let seats = &*self.seats;
        if seats.per_address_max == 0 {
            return true;
        }
        let household = Household::of(address);
        let mut table = seats.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = table.entry(household).or_insert(0);
        if *taken as usize >= seats.per_address_max {
            one_more(&seats.stats.refused_address);
            return false;
        }
        *taken += 1;
        self.household = Some(household);
        true
    }

    pub(crate) fn stats(&self) -> &Stats {
        &self.seats.stats
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(household) = self.household {
            let mut table = self.seats.by_address.lock().unwrap_or_else(PoisonError::into_inner);
            if let Entry::Occupied(mut taken) = table.entry(household) {
                *taken.get_mut() -= 1;
                if *taken.get() == 0 {
                    taken.remove();
                }
            }
        }
        self.seats.stats.open.fetch_sub(1, AcqRel);
        self.seats.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect(text)
    }

    #[test]
    fn a_full_house_refuses_and_a_leaving_guest_makes_room() {
        let seats = Seats::new(2, 0, Arc::default(), Arc::default());
        let first = seats.take().expect("room for one");
        let _second = seats.take().expect("room for two");
        assert!(seats.take().is_none());
        drop(first);
        let _third = seats.take().expect("a seat came free");
        let counts = seats.stats.now();
        assert_eq!((counts.open, counts.accepted, counts.refused_full), (2, 3, 1));
    }

    #[test]
    fn one_address_has_its_share_and_the_table_forgets_who_left() {
        let seats = Seats::new(100, 2, Arc::default(), Arc::default());
        let mut held = Vec::new();
        for _ in 0..2 {
            let mut seat = seats.take().expect("room");
            assert!(seat.of_address(address("10.0.0.1")));
            held.push(seat);
        }
        let mut late = seats.take().expect("room");
        assert!(!late.of_address(address("10.0.0.1")));
        drop(late);
        let mut other = seats.take().expect("room");
        assert!(other.of_address(address("10.0.0.2")));
        held.pop();
        let mut again = seats.take().expect("room");
        assert!(again.of_address(address("10.0.0.1")));
        drop((held, other, again));
        assert!(seats.by_address.lock().unwrap().is_empty());
        assert_eq!(seats.stats.now().open, 0);
    }
}
