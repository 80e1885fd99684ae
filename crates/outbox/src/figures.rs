//! What a sink counts of itself, for operators.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use waitroom_store::{Gap, RoomName};
use waitroom_watch::Counter;

/// One sink on this instance.
#[derive(Debug, Default)]
pub struct SinkFigures {
    /// Messages that the other side acknowledged, repeats included.
    pub delivered: Counter,
    /// Deliveries that failed and were tried again.
    pub failures: Counter,
    /// Gaps: what was given up because the sink did not keep up.
    pub gaps: Counter,
    rooms: Mutex<BTreeMap<RoomName, Arc<RoomFigures>>>,
    trouble: Mutex<Option<String>>,
}

/// Where a sink stands in the log of one room.
#[derive(Debug, Default)]
pub struct RoomFigures {
    /// The newest event of the log that the relay knows of.
    head: AtomicU64,
    /// Everything up to here is acknowledged.
    at: AtomicU64,
    /// When the oldest event that is not acknowledged was appended (wall clock, ms); 0: none.
    since_ms: AtomicU64,
}

/// A sink in one room, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lag {
    pub room: RoomName,
    pub at: u64,
    pub events: u64,
    pub ms: u64,
}

impl SinkFigures {
    pub(crate) fn room(&self, room: &RoomName) -> Arc<RoomFigures> {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.entry(room.clone()).or_default().clone()
    }

    /// How far it is behind in each room that it reads here.
    pub fn lags(&self, now_ms: u64) -> Vec<Lag> {
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.iter().map(|(room, figures)| figures.lag(room, now_ms)).collect()
    }

    /// Why the last delivery failed; none since one went well.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_trouble(&self, why: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    pub(crate) fn gap(&self, room: &RoomName, sink: &str, gap: Gap) {
        self.gaps.one();
        let (after, to) = (gap.after.0, gap.to.0);
        tracing::error!(%room, sink, after, to, "events were given up for a sink that did not keep up");
    }
}

impl RoomFigures {
    /// The oldest event behind `at` waits since then.
    pub(crate) fn waits_since(&self, ms: u64) {
        self.since_ms.store(ms, Relaxed);
    }

    /// The log reaches up to `head`.
    pub(crate) fn grows(&self, head: u64) {
        self.head.fetch_max(head, Relaxed);
    }

    pub(crate) fn acknowledged(&self, at: u64) {
        self.at.store(at, Relaxed);
        if at >= self.head.fetch_max(at, Relaxed) {
            self.since_ms.store(0, Relaxed);
        }
    }

    fn lag(&self, room: &RoomName, now_ms: u64) -> Lag {
        let (at, since) = (self.at.load(Relaxed), self.since_ms.load(Relaxed));
        let events = self.head.load(Relaxed).saturating_sub(at);
        let ms = if since == 0 || events == 0 { 0 } else { now_ms.saturating_sub(since) };
        Lag { room: room.clone(), at, events, ms }
    }
}

/// Every sink of this instance, by name.
#[derive(Clone, Debug, Default)]
pub struct Figures(Arc<Mutex<BTreeMap<String, Arc<SinkFigures>>>>);

impl Figures {
    pub fn sink(&self, name: &str) -> Arc<SinkFigures> {
        let mut sinks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sinks.entry(name.to_owned()).or_default().clone()
    }

    pub fn all(&self) -> Vec<(String, Arc<SinkFigures>)> {
        let sinks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sinks.iter().map(|(name, figures)| (name.clone(), figures.clone())).collect()
    }
}
