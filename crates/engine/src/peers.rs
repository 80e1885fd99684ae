//! The other instances on the same store, as a room's task sees them.
//!
//! Lives here: what a task asks of the cluster, as a trait. A room has one owner; its task on every
//! other instance follows the log, and hands requests on through [`Peers::carry`].
//! Stays out: who is alive, who should own what, and how requests travel (`waitroom-cluster`).

use crate::error::Unanswered;
use crate::handle::{Answers, Commands, Shared};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{oneshot, watch};
use waitroom_store::RoomName;

/// What this instance should be to a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stance {
    /// Its owner: take it if it is free, keep it if it is ours.
    Own,
    /// Somebody who follows: leave it alone, hand it over if it is ours.
    Follow,
}

/// The other instances.
pub trait Peers: Send + Sync + 'static {
    fn stance(&self, room: &RoomName) -> Stance;

    /// Rings when a stance or an owner may have changed.
    fn changes(&self) -> watch::Receiver<u64>;

    /// This instance owns the room from now on.
    fn owned(&self, room: &RoomName, epoch: u32);

    /// It does not any more. `head` is where it was handed over, if that was planned: whoever is
    /// next can take it at once.
    fn parted(&self, room: &RoomName, head: Option<u64>);

    /// The room cannot be opened here, whoever should own it.
    fn failed(&self, _room: &RoomName) {}

    /// Whether an owner is known to whom requests could go.
    fn has_owner(&self, room: &RoomName) -> bool;

    /// The owner that is known, and its epoch. Where either changes, the log may be another one than
    /// was followed: a store that lost its end has a new owner soon, and may give an epoch twice.
    fn owner(&self, _room: &RoomName) -> Option<(String, u32)> {
        None
    }

    /// Sends a request to the owner and hands its answer on. Never waits.
    fn carry(&self, room: &RoomName, commands: Commands, hops: u8, answer: Answering);

    /// Whether every instance has told lately whom it heard of in the room. Until then nobody is
    /// silent.
    fn hears_all(&self, room: &RoomName) -> bool;

    /// The newest version that every other instance shows.
    fn shown(&self, room: &RoomName) -> u64;

    /// The same, counting also those who went within that time without saying goodbye: they may be
    /// cut off, and still go by what they showed last.
    fn shown_lately(&self, room: &RoomName, _within_ms: u64) -> u64 {
        self.shown(room)
    }

    /// Whether the others count with this instance for certain, by its own clock, and since which
    /// time in a row; each time has a greater number. If they do not, it must not rely on having
    /// seen what they decided. When they do again, it has seen that only once it has read a log
    /// from then on.
    fn listed(&self) -> Option<u64> {
        Some(0)
    }

    /// How long ago the last report about the room of whoever is most behind with them was written,
    /// at most: whom it has heard of since is not known here.
    fn unheard_ms(&self, room: &RoomName) -> u64 {
        if self.hears_all(room) { 0 } else { u64::MAX }
    }
}

/// Where the answer to a request goes that was sent on.
#[derive(Debug)]
pub struct Answering {
    pub(crate) to: oneshot::Sender<Result<Answers, Unanswered>>,
    pub(crate) shared: Arc<Shared>,
}

impl Answering {
    pub fn give(self, answer: Result<Answers, Unanswered>) {
        if let Ok(answers) = &answer {
            let version = match answers {
                Answers::One(answer) => answer.version,
                Answers::Many(answers) => answers.iter().map(|it| it.version).max().unwrap_or(0),
            };
            // Before anybody hears of it: whoever was told of a version can ask for its board.
            self.shared.committed.fetch_max(version, Ordering::AcqRel);
        }
        // Whoever gave up waiting has still been served; a repeat finds out.
        let _ = self.to.send(answer);
    }
}
