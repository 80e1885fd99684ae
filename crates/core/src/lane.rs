//! A priority class of a room: its numbers, its line, and what is kept of each ticket.
//!
//! Lives here: columns indexed by number (record, identity, join key, note), the line in order
//! space, and how number and order lead to each other (draw, shuffle windows, or equality).
//! Stays out: who may join or enter (the verbs decide that).

use crate::chunked::{CHUNK, Chunked};
use crate::draw;
use crate::line::Line;
use crate::permutation::Permutation;
use crate::record::Record;
use crate::units::{Epoch, LaneId, Number, Order, Timestamp};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub(crate) id: LaneId,
    pub(crate) records: Chunked<Record>,
    pub(crate) identities: Chunked<[u8; 16]>,
    pub(crate) keys: Chunked<[u8; 16]>,
    pub(crate) notes: Chunked<Option<Arc<Note>>>,
    pub(crate) line: Line,
    /// The lane's draw, once it was made.
    pub(crate) drawn: Option<Drawn>,
    pub(crate) windows: Chunked<Window>,
    /// Windows below this index went with their tickets.
    pub(crate) windows_from: u64,
    /// Numbers below this are in a sealed window (or in the draw).
    pub(crate) sealed_to: Number,
    /// The first number of each epoch that gave any, oldest first.
    pub(crate) epochs: Vec<(Epoch, Number)>,
    /// Ends of the sale, oldest first: waiting records below the number were closed at that time.
    pub(crate) closings: Vec<(Number, Timestamp)>,
    /// When the last ticket of each full block joined; tells when the block's keys may go.
    pub(crate) block_joined: Chunked<Timestamp>,
    /// Blocks of tickets below this are forgotten, every one.
    pub(crate) forgotten_to: u64,
    /// Blocks below this have lost their join keys.
    pub(crate) keys_forgotten: u64,
    /// Served share so far, see `admit.rs`.
    pub(crate) virtual_time: u64,
    pub(crate) counts: Counts,
}

/// What a ticket brought along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    pub metadata: Option<Arc<[u8]>>,
    pub sealed_user: Option<Arc<[u8]>>,
}

/// The permutation of a lane's draw, and the key that makes it.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) key: [u8; 16],
    pub(crate) permutation: Arc<Permutation>,
}

/// A window's permutation, kept while its neighbours are asked for.
pub(crate) type WindowCache = Option<(u64, Permutation)>;

/// A run of tickets that were shuffled among themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: u64,
    pub(crate) len: u32,
    pub(crate) seed: [u8; 16],
}

/// How many tickets stand where. Promise 13: joined is the sum of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub joined: u64,
    pub waiting: u64,
    pub admitted: u64,
    pub active: u64,
    pub completed: u64,
    pub left: u64,
    pub expired: u64,
    pub revoked: u64,
    pub moved: u64,
    pub closed: u64,
    /// Of all that were ever admitted, and of those the ones nobody claimed.
    pub admissions: u64,
    pub no_shows: u64,
}

/// What can be worked out from a lane and need not be stored: which blocks may be forgotten, and
/// where the oldest waiting ticket is.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneIndex {
    blocks: VecDeque<BlockInfo>,
    first_block: u64,
    /// Full blocks in which nobody lives, by the end of their last ticket.
    finished: BTreeSet<(Timestamp, u64)>,
    /// No waiting ticket has a lower number.
    pub(crate) oldest: u64,
    window: WindowCache,
}

#[derive(Clone, Copy, Debug, Default)]
struct BlockInfo {
    waiting: u16,
    inside: u16,
    last_end: Timestamp,
    finished_as: Option<Timestamp>,
    /// Its tickets are gone. The lane knows this too, but has to look at the tickets.
    forgotten: bool,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        let Counts {
            joined,
            waiting,
            admitted,
            active,
            completed,
            left,
            expired,
            revoked,
            moved,
            closed,
            admissions,
            no_shows,
        } = other;
        self.joined += joined;
        self.waiting += waiting;
        self.admitted += admitted;
        self.active += active;
        self.completed += completed;
        self.left += left;
        self.expired += expired;
        self.revoked += revoked;
        self.moved += moved;
        self.closed += closed;
        self.admissions += admissions;
        self.no_shows += no_shows;
    }

    /// Promise 13.
    pub fn balance(&self) -> bool {
        self.joined
            == self.waiting
                + self.admitted
                + self.active
                + self.completed
                + self.left
                + self.expired
                + self.revoked
                + self.moved
                + self.closed
    }
}

impl Lane {
    pub(crate) fn new(id: LaneId, epoch: Epoch) -> Lane {
        Lane {
            id,
            records: Chunked::default(),
            identities: Chunked::default(),
            keys: Chunked::default(),
            notes: Chunked::default(),
            line: Line::default(),
            drawn: None,
            windows: Chunked::default(),
            windows_from: 0,
            sealed_to: Number(0),
            epochs: vec![(epoch, Number(0))],
            closings: Vec::new(),
            block_joined: Chunked::default(),
            forgotten_to: 0,
            keys_forgotten: 0,
            virtual_time: 0,
            counts: Counts::default(),
        }
    }

    /// The number that the next ticket gets.
    pub(crate) fn next(&self) -> Number {
        Number(self.records.len())
    }

    pub(crate) fn record(&self, number: Number) -> Record {
        *self.records.get(number.0)
    }

    pub(crate) fn identity(&self, number: Number) -> [u8; 16] {
        *self.identities.get(number.0)
    }

    pub(crate) fn key(&self, number: Number) -> [u8; 16] {
        *self.keys.get(number.0)
    }

    pub(crate) fn sealed_user(&self, number: Number) -> Option<Arc<[u8]>> {
        self.notes.get(number.0).as_ref()?.sealed_user.clone()
    }

    /// Whether the record still says waiting although the sale ended over it.
    pub(crate) fn is_closed(&self, number: Number) -> bool {
        number < self.closed_below()
    }

    pub(crate) fn closed_below(&self) -> Number {
        self.closings.last().map_or(Number(0), |(below, _)| *below)
    }

    /// When the sale ended over a ticket that was waiting.
    pub(crate) fn closed_at(&self, number: Number) -> Option<Timestamp> {
        self.closings.iter().find(|(below, _)| number < *below).map(|(_, at)| *at)
    }

    /// In which epoch a number was given; none for a number that was never given.
    pub(crate) fn epoch_of(&self, number: Number) -> Option<Epoch> {
        if number >= self.next() {
            return None;
        }
        let after = self.epochs.partition_point(|(_, first)| *first <= number);
        self.epochs.get(after.checked_sub(1)?).map(|(epoch, _)| *epoch)
    }

    pub(crate) fn begin_epoch(&mut self, epoch: Epoch) {
        let next = self.next();
        match self.epochs.last_mut() {
            Some((last, first)) if *first == next => *last = epoch,
            _ => self.epochs.push((epoch, next)),
        }
    }

    /// The ticket's place in the order of service; none before its draw or its window's seal.
    pub(crate) fn order_of(&self, number: Number, shuffle_window: u32) -> Option<Order> {
        self.order_with(number, shuffle_window, &mut None)
    }

    #[inline]
    pub(crate) fn order_with(
        &self,
        number: Number,
        shuffle_window: u32,
        cache: &mut WindowCache,
    ) -> Option<Order> {
        if number.0 < self.line.split {
            return Some(Order(self.drawn.as_ref()?.permutation.forward(number.0)));
        }
        if shuffle_window == 1 {
            return Some(Order(number.0));
        }
        let window = self.window_around(number.0)?;
        let within = window.cached(self.id, cache).forward(number.0 - window.start);
        Some(Order(window.start + within))
    }

    /// The ticket that is served at an order at which somebody waits.
    pub(crate) fn number_at(&self, order: u64, cache: &mut WindowCache) -> Number {
        if order < self.line.split {
            let drawn = self.drawn.as_ref();
            return Number(drawn.map_or(order, |drawn| drawn.permutation.inverse(order)));
        }
        match self.window_around(order) {
            Some(window) => {
                let within = window.cached(self.id, cache).inverse(order - window.start);
                Number(window.start + within)
            }
            None => Number(order),
        }
    }

    /// How many live tickets of the lane stand before this waiting one; none before its draw.
    pub(crate) fn ahead_of(&self, number: Number, shuffle_window: u32) -> Option<u64> {
        if let Some(order) = self.order_of(number, shuffle_window) {
            return Some(self.line.rank(order.0));
        }
        if number.0 < self.line.split {
            return None;
        }
        // An open window: its tickets show its last position, counting those who may yet come,
        // so that nobody's position rises while the window fills.
        let size = shuffle_window as u64;
        let start = self.sealed_to.0 + (number.0 - self.sealed_to.0) / size * size;
        let issued_to = self.next().0.min(start + size);
        let gone = (issued_to - start) - self.line.count(start, issued_to);
        Some(self.line.rank(start) + size - gone - 1)
    }

    fn window_around(&self, index: u64) -> Option<Window> {
        if index >= self.sealed_to.0 {
            return None;
        }
        let (mut low, mut high) = (self.windows_from, self.windows.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.windows.get(middle).start <= index { low = middle + 1 } else { high = middle }
        }
        let window = *self.windows.get(low.checked_sub(1).filter(|at| *at >= self.windows_from)?);
        (index < window.start + window.len as u64).then_some(window)
    }

    /// The first number whose ticket may still be remembered.
    pub(crate) fn kept_from(&self) -> u64 {
        self.forgotten_to * CHUNK
    }

    /// When the last ticket joined of the oldest full block that still has join keys.
    pub(crate) fn keys_due(&self) -> Option<(u64, Timestamp)> {
        // Asked before every wait, so it must not walk over blocks that have none: after a billion
        // anonymous tickets that were half a million.
        let (block, _) = self.keys.chunks().next()?;
        (block < self.block_joined.len()).then(|| (block, *self.block_joined.get(block)))
    }

    /// Drops what only forgotten tickets needed.
    pub(crate) fn forget_block(&mut self, block: u64) {
        self.records.drop_chunk(block);
        self.identities.drop_chunk(block);
        self.notes.drop_chunk(block);
        let full = self.next().0 / CHUNK;
        while self.forgotten_to < full && self.records.chunk(self.forgotten_to).is_none() {
            forget_entry(&mut self.block_joined, self.forgotten_to);
            self.forgotten_to += 1;
        }
        let kept = self.kept_from();
        self.closings.retain(|(below, _)| below.0 > kept);
        while self.windows_from < self.windows.len() {
            let window = self.windows.get(self.windows_from);
            if window.start + window.len as u64 > kept {
                break;
            }
            forget_entry(&mut self.windows, self.windows_from);
            self.windows_from += 1;
        }
    }
}

/// Forgets an entry of a column that is forgotten from the front; with the last one of a chunk its
/// storage goes, or an always-on room would keep a few bytes for every block it ever had.
fn forget_entry<T: Clone + Default + PartialEq>(column: &mut Chunked<T>, index: u64) {
    column.set(index, T::default());
    if index % CHUNK == CHUNK - 1 {
        column.drop_chunk(index / CHUNK);
    }
}

impl Window {
    pub(crate) fn permutation(&self, lane: LaneId) -> Permutation {
        Permutation::new(draw::window_key(&self.seed, lane.0, self.start), self.len as u64)
    }

    fn cached<'a>(&self, lane: LaneId, cache: &'a mut WindowCache) -> &'a Permutation {
        if cache.as_ref().is_none_or(|(start, _)| *start != self.start) {
            *cache = Some((self.start, self.permutation(lane)));
        }
        &cache.as_ref().expect("filled above").1
    }
}

impl LaneIndex {
    pub(crate) fn of(lane: &Lane, founded_at: Timestamp, slots: &crate::slots::Slots) -> LaneIndex {
        let mut index = LaneIndex { first_block: lane.forgotten_to, ..LaneIndex::default() };
        let blocks = lane.next().0.div_ceil(CHUNK);
        index.blocks.resize((blocks - index.first_block) as usize, BlockInfo::default());
        for block in index.first_block..blocks {
            let info = &mut index.blocks[(block - index.first_block) as usize];
            let Some(records) = lane.records.chunk(block) else {
                info.forgotten = true;
                continue;
            };
            for (i, record) in records.iter().enumerate() {
                match record.status() {
                    None => {}
                    Some(_) if record.is_waiting() => {
                        if let Some(at) = lane.closed_at(Number(block * CHUNK + i as u64)) {
                            info.last_end = info.last_end.max(at);
                        } else {
                            info.waiting += 1;
                        }
                    }
                    Some(status) if status.is_live() => info.inside += 1,
                    Some(_) => {
                        info.last_end = info.last_end.max(Timestamp(founded_at.0 + record.word()))
                    }
                }
            }
        }
        // Ended sessions whose slot is still held keep their block as if they lived.
        for (_, inside) in slots.iter() {
            if inside.ticket.lane == lane.id
                && matches!(inside.stage, crate::slots::Stage::Held { .. })
            {
                index.info(inside.ticket.number).inside += 1;
            }
        }
        for block in index.first_block..blocks {
            index.consider(lane, block);
        }
        index.oldest = index.first_block * CHUNK;
        index.skip_to_oldest(lane);
        index
    }

    fn info(&mut self, number: Number) -> &mut BlockInfo {
        let at = (number.0 / CHUNK - self.first_block) as usize;
        if at >= self.blocks.len() {
            self.blocks.resize(at + 1, BlockInfo::default());
        }
        &mut self.blocks[at]
    }

    #[inline]
    pub(crate) fn joined(&mut self, number: Number) {
        self.info(number).waiting += 1;
    }

    pub(crate) fn entered(&mut self, lane: &Lane, number: Number) {
        let info = self.info(number);
        info.waiting -= 1;
        info.inside += 1;
        self.skip_to_oldest(lane);
    }

    pub(crate) fn left_line(&mut self, lane: &Lane, number: Number, at: Timestamp) {
        let info = self.info(number);
        info.waiting -= 1;
        info.last_end = at;
        self.consider(lane, number.0 / CHUNK);
        self.skip_to_oldest(lane);
    }

    pub(crate) fn left_slot(&mut self, lane: &Lane, number: Number, at: Timestamp) {
        let info = self.info(number);
        info.inside -= 1;
        info.last_end = at;
        self.consider(lane, number.0 / CHUNK);
    }

    /// The sale ended: nobody waits in any block, and those who did ended now.
    pub(crate) fn closed(&mut self, lane: &Lane, at: Timestamp) {
        for info in &mut self.blocks {
            if info.waiting > 0 {
                info.waiting = 0;
                info.last_end = at;
            }
        }
        for block in self.first_block..self.first_block + self.blocks.len() as u64 {
            self.consider(lane, block);
        }
        self.oldest = lane.next().0;
    }

    /// Full blocks in which nobody lives, and when their last ticket ended, earliest first.
    pub(crate) fn finished(&self) -> impl Iterator<Item = (Timestamp, u64)> + '_ {
        self.finished.iter().copied()
    }

    /// Clears the bit of a ticket that waits no more.
    #[inline]
    pub(crate) fn take_from_line(&mut self, lane: &mut Lane, number: Number, shuffle_window: u32) {
        let order = lane.order_with(number, shuffle_window, &mut self.window);
        lane.line.clear(order.map_or(number.0, |order| order.0));
    }

    pub(crate) fn forgot(&mut self, lane: &Lane, block: u64) {
        let info = self.blocks[(block - self.first_block) as usize];
        if let Some(at) = info.finished_as {
            self.finished.remove(&(at, block));
        }
        let gone = BlockInfo { forgotten: true, ..BlockInfo::default() };
        self.blocks[(block - self.first_block) as usize] = gone;
        while self.first_block < lane.forgotten_to && !self.blocks.is_empty() {
            self.blocks.pop_front();
            self.first_block += 1;
        }
    }

    /// Puts the block among the finished ones when it is full and nobody in it lives.
    fn consider(&mut self, lane: &Lane, block: u64) {
        let end = Number((block + 1) * CHUNK);
        let at = (block - self.first_block) as usize;
        let info = self.blocks[at];
        if info.forgotten || end > lane.next() || info.inside > 0 || info.waiting > 0 {
            return;
        }
        let ended = info.last_end;
        if let Some(before) = info.finished_as {
            self.finished.remove(&(before, block));
        }
        self.finished.insert((ended, block));
        self.blocks[at].finished_as = Some(ended);
    }

    fn skip_to_oldest(&mut self, lane: &Lane) {
        let end = lane.next().0;
        self.oldest = self.oldest.max(lane.closed_below().0).max(lane.kept_from());
        while self.oldest < end {
            let block = self.oldest / CHUNK;
            let nobody = self
                .blocks
                .get((block - self.first_block) as usize)
                .is_none_or(|info| info.waiting == 0);
            if nobody {
                self.oldest = ((block + 1) * CHUNK).min(end);
            } else if lane.records.get(self.oldest).is_waiting() {
                return;
            } else {
                self.oldest += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_per_block_and_per_window_goes_with_them() {
        let mut lane = Lane::new(LaneId(0), Epoch(1));
        let blocks = 3 * CHUNK;
        // Tickets that are all forgotten but for the last block, and what was noted of their blocks.
        lane.records.extend_default(blocks * CHUNK);
        lane.block_joined.extend((0..blocks).map(|block| Timestamp(block + 1)));
        let len = (blocks * CHUNK / (4 * CHUNK)) as u32;
        let window = |at: u64| Window { start: at * len as u64, len, seed: [1; 16] };
        lane.windows.extend((0..4 * CHUNK).map(window));
        lane.forget_block(0);
        assert_eq!((lane.forgotten_to, lane.windows_from), (blocks, 4 * CHUNK));
        assert!(lane.block_joined.resident_bytes() < 1_000, "{:?}", lane.block_joined);
        assert!(lane.windows.resident_bytes() < 1_000, "{:?}", lane.windows);
    }

    #[test]
    fn join_keys_are_due_by_their_own_block_however_many_came_without() {
        let mut lane = Lane::new(LaneId(0), Epoch(1));
        lane.block_joined.extend((0..10).map(|block| Timestamp(100 + block)));
        assert_eq!(lane.keys_due(), None);
        lane.keys.extend_default(7 * CHUNK + 5);
        lane.keys.set(7 * CHUNK + 4, [1; 16]);
        assert_eq!(lane.keys_due(), Some((7, Timestamp(107))));
        lane.keys.drop_chunk(7);
        lane.keys.extend_default(10 * CHUNK + 1);
        lane.keys.set(10 * CHUNK, [1; 16]);
        assert_eq!(lane.keys_due(), None, "the block is not full yet");
    }
}
