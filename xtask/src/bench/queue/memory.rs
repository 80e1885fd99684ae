//! Bytes per visitor as the kernel counts them: the whole process, with all that a room needs.
//!
//! Room, index, liveness and one published board. Boards are published while the room fills, as
//! the engine does, so that what copy-on-write leaves behind is counted too.

use std::sync::Arc;

use waitroom_core::{Board, Reply};
use waitroom_engine::liveness::Liveness;

use super::super::part::Part;
use super::super::process::resident;
use super::super::report::Measure;
use super::crowd::{BEGIN, Crowd, House, after, settings};
use crate::failure::Outcome;

/// At 500,000 joins a second and five boards a second.
const BOARD_EVERY: u64 = 100_000;

pub fn measure(crowd: Crowd, people: u64) -> Outcome<Part> {
    let mut house = House::open(settings());
    let liveness = Liveness::open(house.room.state(), BEGIN);
    let mut board = None;
    for n in 0..people {
        let reply = house.apply(after(n), &crowd.join(n));
        let Reply::Joined { ticket, .. } = reply else { panic!("{n} was answered {reply:?}") };
        liveness.joined(ticket, after(n));
        if n % BOARD_EVERY == 0 || n + 1 == people {
            board = Some(Arc::new(Board::new(house.room.state().clone(), n, after(n))));
        }
    }
    let bytes = resident()?;
    drop((house, liveness, board));
    Ok(Part::of(vec![Measure::new("bytes_per_visitor", bytes as f64 / people as f64, "bytes")]))
}
