//! All connections of a listener, and the sweep that ends those that are late.
//!
//! One pass over 20,000 lines is some hundred microseconds, a few times a second: far less than
//! a timer for each request would cost. A limit is therefore kept to within one round, never
//! early.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::line::{Clock, Line, Order, Stage};
use crate::settings::Timeouts;
use crate::stats::{Stats, one_more};

/// Every connection that a task of ours serves. Bounded by the seats.
#[derive(Debug)]
pub(crate) struct Lines {
    slots: Mutex<Slots>,
    /// Rung when one is over; the drain listens.
    left: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Slots {
    lines: Vec<Option<Arc<Line>>>,
    free: Vec<usize>,
}

/// Keeps a line listed; dropping it takes the line off.
#[derive(Debug)]
pub(crate) struct Listed {
    lines: Arc<Lines>,
    slot: usize,
}

#[derive(Debug)]
pub(crate) struct Sweep {
    lines: Arc<Lines>,
    clock: Arc<Clock>,
    stats: Arc<Stats>,
    limits: LimitsMs,
    pub(crate) every: Duration,
}

#[derive(Debug)]
struct LimitsMs {
    handshake: u64,
    header: u64,
    idle: u64,
    write: u64,
    park: u64,
}

impl Lines {
    pub(crate) fn new(left: Arc<Notify>) -> Arc<Lines> {
        Arc::new(Lines { slots: Mutex::default(), left })
    }

    pub(crate) fn list(self: &Arc<Lines>, line: Arc<Line>) -> Listed {
        let mut slots = self.slots();
        let slot = match slots.free.pop() {
            Some(slot) => {
                slots.lines[slot] = Some(line);
                slot
            }
            None => {
                slots.lines.push(Some(line));
                slots.lines.len() - 1
            }
        };
        Listed { lines: self.clone(), slot }
    }

    /// Tells everybody; how many heard it for the first time.
    pub(crate) fn order_all(&self, order: Order) -> u64 {
        self.slots().lines.iter().flatten().filter(|line| line.give(order)).count() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        let slots = self.slots();
        slots.free.len() == slots.lines.len()
    }

    fn slots(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut slots = self.lines.slots();
        slots.lines[self.slot] = None;
        slots.free.push(self.slot);
        drop(slots);
        self.lines.left.notify_waiters();
    }
}

impl Sweep {
    pub(crate) fn new(
        lines: Arc<Lines>,
        clock: Arc<Clock>,
        stats: Arc<Stats>,
        timeouts: &Timeouts,
    ) -> Sweep {
        let Timeouts { handshake, header, idle, write, park, drain: _ } = *timeouts;
        let shortest = handshake.min(header).min(idle).min(write);
        // An eighth of the shortest limit keeps every limit to within that eighth; half a second
        // is precise enough for limits of many seconds. When a buffer is given back hardly matters.
        let every = (shortest / 8)
            .min(park / 2)
            .clamp(Duration::from_millis(2), Duration::from_millis(500));
        // A stamp may be one round older than its event: one round more, and nobody is cut early.
        let ms = |limit: Duration| (limit + every).as_millis() as u64;
        let limits = LimitsMs {
            handshake: ms(handshake),
            header: ms(header),
            idle: ms(idle),
            write: ms(write),
            park: ms(park),
        };
        Sweep { lines, clock, stats, limits, every }
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(self) {
        let mut rounds = tokio::time::interval(self.every);
        rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            rounds.tick().await;
            self.round();
        }
    }

    fn round(&self) {
        let now = self.clock.advance();
        for line in self.lines.slots().lines.iter().flatten() {
            self.look_at(line, now);
        }
    }

    fn look_at(&self, line: &Line, now: u64) {
        let limits = &self.limits;
        let past = |since: u64, limit: u64| now.saturating_sub(since) > limit;
        if line.stalled_since().is_some_and(|since| past(since, limits.write)) {
            return self.end(line, Order::Cut, &self.stats.late_write);
        }
        // First the count, then the stage: a request that ends stamps first and counts down after,
        // so a count of zero means that the stage read next is not from before that request.
        if line.busy() {
            return;
        }
        let (stage, since) = line.stage();
        match stage {
            Stage::Handshake if past(since, limits.handshake) => {
                self.end(line, Order::Cut, &self.stats.late_handshake);
            }
            Stage::Greeting | Stage::First | Stage::Header if past(since, limits.header) => {
                self.end(line, Order::Cut, &self.stats.late_header);
            }
            Stage::Idle if past(since, limits.idle) => {
                // HTTP/2 says goodbye first, and has the time of a header to hear it.
                if !line.multiplexed() {
                    self.end(line, Order::Cut, &self.stats.late_idle);
                } else if past(since, limits.idle + limits.header) {
                    line.give(Order::Cut);
                } else {
                    self.end(line, Order::Finish, &self.stats.late_idle);
                }
            }
            Stage::Idle if !line.multiplexed() && past(since, limits.park) => line.ask_to_park(),
            _ => {}
        }
    }

    fn end(&self, line: &Line, order: Order, counter: &AtomicU64) {
        if line.give(order) {
            one_more(counter);
        }
    }
}
