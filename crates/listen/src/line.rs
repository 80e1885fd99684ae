//! Where one connection stands in time, in a few atomics.
//!
//! The connection writes down what it is at ([`Stage`] and since when, requests in progress,
//! a write that does not move on); the sweep reads it and may give an [`Order`]. The clock is
//! coarse: the sweep sets it once a round, so stamping costs one load and no system call.
//! Waking works through one waker kept from the task's first poll: a line is the root of its own
//! task, and every waker of a task wakes that task.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::Instant;

/// Milliseconds since the listener began, as of the last round of the sweep.
#[derive(Debug)]
pub(crate) struct Clock {
    start: Instant,
    coarse_ms: AtomicU64,
}

/// What the connection does when no request is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// PROXY header and TLS.
    Handshake,
    /// Nothing said yet, so that even the protocol is not known.
    Greeting,
    /// Nothing asked yet.
    First,
    /// Has begun to send a request. Only HTTP/1 comes here: in HTTP/2, bytes may be anything.
    Header,
    /// Between requests.
    Idle,
}

/// What the sweep or the drain wants of the connection. Orders only grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    Go,
    /// Finish what is in progress, then close.
    Finish,
    /// Close now.
    Cut,
}

#[derive(Debug)]
pub(crate) struct Line {
    clock: Arc<Clock>,
    /// Stage in the upper 8 bits, since when (ms) in the lower 56: read and written as one.
    stage: AtomicU64,
    requests: AtomicU32,
    /// When a write first could not move on; 0 while they do.
    stalled_since: AtomicU64,
    multiplexed: AtomicBool,
    order: AtomicU8,
    /// Asked for by the sweep, done by the connection: buffers given back until the next byte.
    park: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

/// A request in progress; ends when dropped, wherever that happens.
#[derive(Debug)]
pub(crate) struct InProgress(Arc<Line>);

const STAGE_SHIFT: u32 = 56;

const AWAKE: u8 = 0;
const ASKED: u8 = 1;
const PARKED: u8 = 2;

impl Clock {
    pub(crate) fn new() -> Arc<Clock> {
        // Begins at 1, so that 0 can mean "never".
        Arc::new(Clock { start: Instant::now(), coarse_ms: AtomicU64::new(1) })
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.coarse_ms.load(Relaxed)
    }

    pub(crate) fn advance(&self) -> u64 {
        let now = self.start.elapsed().as_millis() as u64 + 1;
        self.coarse_ms.store(now, Relaxed);
        now
    }
}

impl Line {
    pub(crate) fn new(clock: Arc<Clock>) -> Arc<Line> {
        let line = Line {
            clock,
            stage: AtomicU64::new(0),
            requests: AtomicU32::new(0),
            stalled_since: AtomicU64::new(0),
            multiplexed: AtomicBool::new(false),
            order: AtomicU8::new(Order::Go as u8),
            park: AtomicU8::new(AWAKE),
            waker: Mutex::new(None),
        };
        line.enter(Stage::Handshake);
        Arc::new(line)
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.store((stage as u64) << STAGE_SHIFT | self.clock.now_ms(), Release);
    }

    /// The next stage on the same time: a new one would let each step be slow in turn.
    pub(crate) fn move_on_to(&self, stage: Stage) {
        self.stage.store((stage as u64) << STAGE_SHIFT | self.stage().1, Release);
    }

    pub(crate) fn stage(&self) -> (Stage, u64) {
        let word = self.stage.load(Acquire);
        let stage = match word >> STAGE_SHIFT {
            0 => Stage::Handshake,
            1 => Stage::Greeting,
            2 => Stage::First,
            3 => Stage::Header,
            _ => Stage::Idle,
        };
        (stage, word & ((1 << STAGE_SHIFT) - 1))
    }

    /// From here on bytes that arrive say nothing about a request having begun.
    pub(crate) fn set_multiplexed(&self) {
        self.multiplexed.store(true, Release);
    }

    pub(crate) fn multiplexed(&self) -> bool {
        self.multiplexed.load(Acquire)
    }

    pub(crate) fn begin_request(self: &Arc<Line>) -> InProgress {
        self.requests.fetch_add(1, AcqRel);
        InProgress(self.clone())
    }

    pub(crate) fn busy(&self) -> bool {
        self.requests.load(Acquire) > 0
    }

    /// Between requests, and every answer is with the client.
    pub(crate) fn is_at_rest(&self) -> bool {
        !self.busy() && self.stage().0 == Stage::Idle && self.stalled_since().is_none()
    }

    /// Bytes came in.
    pub(crate) fn heard(&self) {
        if !self.busy() && self.stage().0 == Stage::Idle && !self.multiplexed() {
            self.enter(Stage::Header);
        }
    }

    /// A write went through, or could not.
    pub(crate) fn wrote(&self, moved: bool) {
        let stalled = self.stalled_since.load(Relaxed) != 0;
        if moved && stalled {
            self.stalled_since.store(0, Relaxed);
        } else if !moved && !stalled {
            self.stalled_since.store(self.clock.now_ms(), Relaxed);
        }
    }

    pub(crate) fn stalled_since(&self) -> Option<u64> {
        Some(self.stalled_since.load(Relaxed)).filter(|since| *since != 0)
    }

    pub(crate) fn order(&self) -> Order {
        match self.order.load(Acquire) {
            0 => Order::Go,
            1 => Order::Finish,
            _ => Order::Cut,
        }
    }

    /// Gives an order; false if it, or a stronger one, was given before.
    pub(crate) fn give(&self, order: Order) -> bool {
        let before = self.order.fetch_max(order as u8, AcqRel);
        // Also for a repeated order: waking once too often is harmless, once too few is not.
        self.wake();
        before < order as u8
    }

    /// Asks once; a connection that is asked or parked already is left to sleep.
    pub(crate) fn ask_to_park(&self) {
        if self.park.compare_exchange(AWAKE, ASKED, AcqRel, Relaxed).is_ok() {
            self.wake();
        }
    }

    pub(crate) fn asked_to_park(&self) -> bool {
        self.park.load(Acquire) == ASKED
    }

    pub(crate) fn set_parked(&self, parked: bool) {
        self.park.store(if parked { PARKED } else { AWAKE }, Release);
    }

    /// Keeps the task's waker. Must come before the first look at the order: whoever gives one
    /// stores it, then looks for a waker, so that one of the two always sees the other.
    pub(crate) fn keep_waker(&self, waker: &Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
    }

    fn wake(&self) {
        if let Some(waker) = &*self.waker.lock().unwrap_or_else(PoisonError::into_inner) {
            waker.wake_by_ref();
        }
    }
}

impl InProgress {
    pub(crate) fn line(&self) -> &Line {
        &self.0
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        // Stamp first, count down after: in between the sweep must not see a connection without
        // a request that has been idle since before this one began.
        self.0.enter(Stage::Idle);
        self.0.requests.fetch_sub(1, AcqRel);
    }
}
