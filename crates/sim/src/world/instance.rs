//! One instance of the simulated system: up or down, reachable or not, owner or not.

use crate::model::Model;
use std::collections::VecDeque;
use std::sync::Arc;
use waitroom_core::{Board, DrawJob, Reply};
use waitroom_engine::clock::RoomClock;
use waitroom_engine::draw_keeper::DrawKeeper;
use waitroom_engine::writer::{Round, Writer};
use waitroom_store::Lease;

pub(super) struct Instance<S> {
    pub(super) name: String,
    /// None while the instance is down.
    pub(super) store: Option<S>,
    /// Frozen by the operating system until then; it notices nothing.
    pub(super) paused_until: u64,
    /// Cut off from the store until then; clients still reach it.
    pub(super) cut_off_until: u64,
    pub(super) wall_offset_ms: i64,
    pub(super) renew_at: u64,
    pub(super) tenure: Option<Tenure>,
    /// The newest picture of the room that this instance can show.
    pub(super) board: Option<Arc<Board>>,
}

/// What an owner holds in memory: gone with a crash.
pub(super) struct Tenure {
    pub(super) lease: Lease,
    pub(super) writer: Writer,
    pub(super) clock: RoomClock,
    pub(super) draws: DrawKeeper,
    pub(super) job: Option<DrawJob>,
    /// The reference model, as far as this owner has decided.
    pub(super) model: Model,
    /// Answers of the open round: index of the call, and what it will hear.
    pub(super) open: Vec<(usize, Reply)>,
    pub(super) rounds: VecDeque<Pending>,
    pub(super) committed: u64,
    pub(super) chain: waitroom_store::Chain,
}

/// A round that was decided and is not yet known to be durable.
pub(super) struct Pending {
    pub(super) round: Round,
    pub(super) answers: Vec<(usize, Reply)>,
    pub(super) board: Option<Arc<Board>>,
}

impl<S> Instance<S> {
    pub(super) fn new(name: String, store: S) -> Self {
        Instance {
            name,
            store: Some(store),
            paused_until: 0,
            cut_off_until: 0,
            wall_offset_ms: 0,
            renew_at: 0,
            tenure: None,
            board: None,
        }
    }

    /// Whether it runs at all.
    pub(super) fn runs(&self, now: u64) -> bool {
        self.store.is_some() && self.paused_until <= now
    }

    pub(super) fn reaches_store(&self, now: u64) -> bool {
        self.runs(now) && self.cut_off_until <= now
    }
}
