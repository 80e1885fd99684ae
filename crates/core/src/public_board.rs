//! The board for the public: a few kilobytes, the same bytes for all, from which a browser works
//! out its own position.
//!
//! The first thousand of a lane are given one by one (as runs), everyone behind them as counts in
//! buckets. A bucket holds at most one percent of those before it, so a position read off it is
//! within one percent wherever people left. Bucket bounds are multiples of their size in order
//! space, so a bucket does not slide along as the line advances; it is cut finer from time to
//! time, and a position read off it may then rise, within the same percent. Pages therefore keep
//! the smallest that they have shown.

use crate::board::Board;
use crate::lane::Lane;
use crate::settings::PublicBoardMode;
use crate::state::{Phase, State};
use crate::units::{LaneId, Order, Timestamp};
use serde::{Deserialize, Serialize};

/// How many at the front are shown exactly.
pub const FRONT: usize = 1_000;

/// Buckets are at least this long, and the front ends on a multiple of it.
const GRAIN: u64 = 8;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicBoard {
    pub version: u64,
    pub at: Timestamp,
    pub phase: String,
    /// Why, if an operator holds the room or the sale is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the operator tells everybody; it stops nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub draw_pending: bool,
    pub lanes: Vec<PublicLane>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicLane {
    pub lane: LaneId,
    pub waiting: u64,
    /// Order of the first who waits.
    pub from: u64,
    /// The front as lengths in turn: so many waiting, so many gone, so many waiting …
    pub front: Vec<u64>,
    /// Behind the front: buckets of one size follow each other in a stretch.
    pub stretches: Vec<Stretch>,
}

/// Buckets of `1 << size` orders each, and how many are *missing* from each. Missing, because in
/// a line that nobody left all of them are zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    pub size: u32,
    pub missing: Vec<u64>,
}

impl Board {
    /// The public form, or none where the room keeps its length to itself.
    pub fn public(&self) -> Option<PublicBoard> {
        let state = self.state();
        let mode = state.settings().map_or(PublicBoardMode::Off, |it| it.public_board);
        if mode == PublicBoardMode::Off {
            return None;
        }
        let hold = state.hold().map(|hold| hold.reason().to_owned());
        let finish = state.finish().filter(|_| state.phase() == Phase::Ended);
        Some(PublicBoard {
            version: self.version(),
            at: self.published_at(),
            phase: phase_word(state).to_owned(),
            reason: finish.map(|finish| finish.reason.clone()).or(hold),
            message: state.message().map(str::to_owned),
            draw_pending: state.draw_pending(),
            lanes: state.lanes.iter().map(|lane| PublicLane::of(lane, state, mode)).collect(),
        })
    }
}

impl PublicLane {
    fn of(lane: &Lane, state: &State, mode: PublicBoardMode) -> PublicLane {
        let end = lane.ordered_to(state.window());
        let mut orders = Vec::new();
        if !state.draw_pending() {
            lane.line.first(FRONT, end, &mut orders);
        }
        let from = orders.first().copied().unwrap_or(end);
        let front_end =
            orders.last().map_or(from, |last| (last + 1).next_multiple_of(GRAIN)).min(end);
        let mut it = PublicLane {
            lane: lane.id,
            waiting: lane.counts.waiting,
            from,
            front: front_runs(lane, from, front_end),
            stretches: Vec::new(),
        };
        if !state.draw_pending() {
            // In a coarse board buckets are ten times larger, and so is what one can learn.
            let share = if mode == PublicBoardMode::Coarse { 10 } else { 100 };
            it.add_buckets(lane, front_end, end, share);
        }
        if mode == PublicBoardMode::Coarse {
            it.waiting = two_digits(it.waiting);
        }
        it
    }

    fn add_buckets(&mut self, lane: &Lane, from: u64, end: u64, share: u64) {
        let mut start = from;
        let mut before = lane.line.rank(from);
        let mut size = GRAIN.trailing_zeros();
        while start < end {
            // A bucket twice as long as the last is tried first, then shorter ones, down to the
            // grain. Bounds stay multiples of the size.
            size = (size + 1).min(start.trailing_zeros()).min(40);
            let mut ones = lane.line.rank((start + (1 << size)).min(end)) - before;
            while size > GRAIN.trailing_zeros() && ones > before / share {
                size -= 1;
                ones = lane.line.rank((start + (1 << size)).min(end)) - before;
            }
            let missing = (1 << size) - ones;
            match self.stretches.last_mut() {
                Some(stretch) if stretch.size == size => stretch.missing.push(missing),
                _ => self.stretches.push(Stretch { size, missing: vec![missing] }),
            }
            start += 1 << size;
            before += ones;
        }
    }

    /// The position of a waiting ticket of this lane at `order`: exact in the front, within one
    /// percent behind it. The page's script does the same.
    pub fn position(&self, order: Order) -> u64 {
        let mut before = 0;
        let mut at = self.from;
        for (i, run) in self.front.iter().enumerate() {
            let waits = i % 2 == 0;
            if order.0 < at + run {
                return before + if waits { order.0.saturating_sub(at) } else { 0 } + 1;
            }
            at += run;
            before += if waits { *run } else { 0 };
        }
        for stretch in &self.stretches {
            let size = 1u64 << stretch.size;
            for missing in &stretch.missing {
                let ones = size - missing;
                if order.0 < at + size {
                    let within = (order.0.saturating_sub(at)) as u128 * ones as u128 / size as u128;
                    return before + within as u64 + 1;
                }
                at += size;
                before += ones;
            }
        }
        before + 1
    }
}

/// Lengths in turn of those who wait and those who are gone, from the first who waits.
fn front_runs(lane: &Lane, from: u64, end: u64) -> Vec<u64> {
    let mut orders = Vec::new();
    // No more than the front can hold: behind a sparse front there may be millions.
    let most = (end - from).min(FRONT as u64 + GRAIN);
    lane.line.first(most as usize, end, &mut orders);
    let mut runs = Vec::new();
    let mut at = from;
    for run in orders.chunk_by(|one, next| one + 1 == *next) {
        if run[0] > at {
            runs.push(run[0] - at);
        }
        runs.push(run.len() as u64);
        at = run[0] + run.len() as u64;
    }
    if end > at {
        runs.push(end - at);
    }
    runs
}

fn phase_word(state: &State) -> &'static str {
    use crate::command::Hold;
    match (state.phase(), state.hold()) {
        (Phase::Ended, _) => "ended",
        (_, Some(Hold::Paused { .. })) => "paused",
        (_, Some(Hold::Maintenance { .. })) => "maintenance",
        (_, Some(Hold::Draining { .. })) => "draining",
        (Phase::Scheduled, _) => "scheduled",
        (Phase::Doors, _) => "held",
        (Phase::Drawing, _) => "drawing",
        (Phase::Running, _) => "running",
    }
}

fn two_digits(number: u64) -> u64 {
    let mut unit = 1;
    while number / unit >= 100 {
        unit *= 10;
    }
    number.div_ceil(unit) * unit
}
