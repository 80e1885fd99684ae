//! The checkers: one file per promise of the design (section 7), named after it.
//!
//! Lives here: the table of promises, and what several checkers need (`told.rs`, `heard.rs`, `horizon.rs`,
//! `quick.rs`).
//! Each checker takes a history and returns what is wrong with it; it folds the log by itself,
//! with plain maps, and never asks the core to decide or absorb anything, so a mistake of the
//! core cannot excuse itself. Only the published arithmetic of a draw is shared, because that
//! one is pinned by test vectors of a second implementation.
//! To add a promise: a file here, a row in [`PROMISES`], two planted bugs in `tests/check/`.

mod heard;
mod horizon;
mod quick;
mod told;

pub mod a_paused_room_admits_nobody;
pub mod a_room_never_sticks;
pub mod never_above_the_pace;
pub mod never_over_capacity;
pub mod no_acknowledged_join_is_lost;
pub mod no_forged_id_is_accepted;
pub mod nobody_admitted_twice;
pub mod one_live_ticket_per_identity;
pub mod one_writer;
pub mod order_kept_in_lane;
pub mod outbox_has_no_gap;
pub mod positions_never_rise;
pub mod snapshot_plus_tail_is_replay;
pub mod the_draw_is_the_published_permutation;
pub mod tickets_are_conserved;

use crate::history::{History, Violation};

/// A promise and who judges it.
#[derive(Clone, Copy, Debug)]
pub struct Promise {
    /// As the design counts them.
    pub number: u8,
    pub name: &'static str,
    pub check: fn(&History) -> Vec<Violation>,
}

macro_rules! promises {
    ($($number:literal $name:ident),* $(,)?) => {
        [$(Promise { number: $number, name: stringify!($name), check: $name::check }),*]
    };
}

pub const PROMISES: [Promise; 15] = promises![
    1 no_acknowledged_join_is_lost,
    2 one_live_ticket_per_identity,
    3 nobody_admitted_twice,
    4 never_over_capacity,
    5 never_above_the_pace,
    6 order_kept_in_lane,
    7 the_draw_is_the_published_permutation,
    8 positions_never_rise,
    9 a_paused_room_admits_nobody,
    10 outbox_has_no_gap,
    11 no_forged_id_is_accepted,
    12 a_room_never_sticks,
    13 tickets_are_conserved,
    14 one_writer,
    15 snapshot_plus_tail_is_replay,
];

/// Everything that is wrong with a history, in the order of the promises.
pub fn check_all(history: &History) -> Vec<Violation> {
    PROMISES.iter().flat_map(|promise| (promise.check)(history)).collect()
}
