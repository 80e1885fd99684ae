//! What whole instances leave for the world to pick up: letters, answers, what the store did.
//!
//! Tasks run on one thread and in turn; the lock is there because tasks must be able to move.

use super::super::Trace;
use crate::history::{Grant, Moment, Seen};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use waitroom_cluster::{About, Envelope};
use waitroom_core::Epoch;
use waitroom_engine::{Answer, Answers, Commands, Heard, Unanswered};
use waitroom_store::Lease;

/// What instances tell each other.
#[derive(Clone, Debug)]
pub(super) enum Letter {
    /// A request for the owner, and by which number its answer is known.
    Request {
        id: u64,
        commands: Commands,
        hops: u8,
    },
    Answer {
        id: u64,
        answer: Result<Answers, Unanswered>,
    },
    /// How the sender is now: which rooms it owns, whether it goes down. Says that a room was
    /// taken, and that it was given away.
    About(About),
    /// Whom the sender has heard of, and which version it shows; of no room where the receiver owns
    /// nothing.
    Report {
        envelope: Envelope,
        told: Option<Told>,
    },
}

/// A report about a room that the receiver owns.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) epoch: u32,
    pub(super) version: u64,
    pub(super) heard: Vec<Heard>,
}

#[derive(Clone, Debug)]
pub(super) struct Posted {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) letter: Letter,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tray(Arc<Mutex<Pile>>);

#[derive(Debug, Default)]
pub(super) struct Pile {
    moment: u64,
    pub(super) letters: Vec<Posted>,
    /// By the index of the call.
    pub(super) answered: Vec<(usize, Moment, Result<Answer, Unanswered>)>,
    pub(super) seen: Vec<Seen>,
    pub(super) grants: Vec<Grant>,
    pub(super) took: u64,
    pub(super) gave: u64,
    pub(super) fenced: u64,
    pub(super) unknown: u64,
    pub(super) expired: u64,
    /// The lease of before, if it was given back.
    released: Option<u32>,
    /// The store's time.
    pub(super) now: u64,
    /// When each batch was sent to the store for the first time, by epoch and number.
    pub(super) sent: BTreeMap<(u32, u64), u64>,
    pub(super) spoiled: bool,
    pub(super) spoiled_at: Option<u64>,
    /// The newest lease of the room.
    pub(super) lease: Option<Lease>,
    /// What happened so far.
    pub(super) trace: Trace,
}

impl Tray {
    pub(super) fn pile(&self) -> MutexGuard<'_, Pile> {
        self.0.lock().expect("one thread, and nobody panics while holding it")
    }

    pub(super) fn post(&self, from: usize, to: usize, letter: Letter) {
        self.pile().letters.push(Posted { from, to, letter });
    }

    pub(super) fn moment(&self) -> Moment {
        self.pile().next()
    }
}

impl Pile {
    pub(super) fn next(&mut self) -> Moment {
        self.moment += 1;
        Moment(self.moment)
    }

    /// Keeps for the comparison of two runs that this happened now.
    pub(super) fn note(&mut self, what: impl std::fmt::Debug) {
        self.trace.note((self.now, what));
    }

    /// The store granted the room's lease.
    pub(super) fn granted(&mut self, lease: &Lease) {
        let (at, epoch) = (self.next(), lease.epoch);
        self.lease = Some(lease.clone());
        if epoch > 1 && self.released != Some(epoch - 1) {
            self.expired += 1;
        }
        self.grants.push(Grant { at, epoch: Epoch(epoch) });
    }

    /// A round was decided just now.
    pub(super) fn sends(&mut self, epoch: u32, number: u64) {
        let now = self.now;
        self.sent.entry((epoch, number)).or_insert(now);
    }

    pub(super) fn released(&mut self, epoch: u32) {
        self.released = Some(epoch);
    }
}
