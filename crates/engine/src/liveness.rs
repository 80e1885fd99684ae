//! When each waiting visitor was last heard of: soft state, outside the core and its digest.
//!
//! A beat is a store of a time into an array slot: no log, no disk, no lock, from any thread.
//! Slots are found through a directory that readers load without waiting; the writer replaces it
//! when a new block of numbers begins. It has two levels, so that replacing it in a line of twenty
//! million copies some two hundred pointers and not ten thousand. After an epoch begins everybody has a fresh grace period,
//! because nobody can be blamed for the silence of an outage.

use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use waitroom_core::chunked::CHUNK;
use waitroom_core::{Block, LaneId, Millis, Number, State, Ticket, Timestamp};

type Chunk = [AtomicU32];

/// The beats of one room. Times are whole seconds since the epoch began, rounded up, so a
/// visitor is given up to a second more, never less.
#[derive(Debug)]
pub struct Liveness {
    opened_at: Timestamp,
    /// Indexed by lane id.
    lanes: Vec<ArcSwap<Directory>>,
}

#[derive(Clone, Debug, Default)]
struct Directory {
    /// Leaves below this are gone, every one.
    first_leaf: u64,
    leaves: Vec<Option<Arc<Leaf>>>,
}

#[derive(Clone, Debug)]
struct Leaf {
    blocks: [Option<Arc<Chunk>>; FAN as usize],
}

/// Tickets of one block that were heard of: a bit each, the first in the lowest bit of the first
/// word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    pub block: Block,
    pub bits: Vec<u64>,
}

/// Up to when somebody was told of whom we heard. Beats that are kept anew have times of their own,
/// so a mark means nothing to others than those it was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    opened_at: Timestamp,
    at: Timestamp,
}

/// A beat that is being stored while somebody looks carries the time of a moment ago.
const STORED_WITHIN_MS: u64 = 100;

/// Blocks in a leaf: about as many as a line of twenty million has leaves.
const FAN: u64 = 64;

impl Liveness {
    /// Everyone who waits is heard of just now.
    pub fn open(state: &State, opened_at: Timestamp) -> Liveness {
        // One empty directory for all: most rooms have one lane, and an idle room should be small.
        let empty = Arc::<Directory>::default();
        let lanes = (0..=u8::MAX).map(|_| ArcSwap::new(empty.clone())).collect();
        let liveness = Liveness { opened_at, lanes };
        for lane in state.lane_ids() {
            let mut directory = Directory::default();
            let blocks = state.forgotten_blocks(lane)..state.issued(lane).div_ceil(CHUNK);
            for index in blocks.filter(|index| state.remembers(Block { lane, index: *index })) {
                directory.put(index, chunk());
            }
            liveness.lanes[lane.0 as usize].store(Arc::new(directory));
        }
        liveness
    }

    /// A new ticket: heard of now. Only the writer calls this.
    pub fn joined(&self, ticket: Ticket, at: Timestamp) {
        let lane = &self.lanes[ticket.lane.0 as usize];
        let block = ticket.number.0 / CHUNK;
        let directory = lane.load();
        if directory.block(block).is_none() {
            let mut grown = Directory::clone(&directory);
            drop(directory);
            grown.put(block, chunk());
            lane.store(Arc::new(grown));
        }
        self.beat(ticket, at);
    }

    /// The visitor was heard of. Unknown tickets are nobody's concern here.
    #[inline]
    pub fn beat(&self, ticket: Ticket, at: Timestamp) {
        let directory = self.lanes[ticket.lane.0 as usize].load();
        if let Some(block) = directory.block(ticket.number.0 / CHUNK) {
            let slot = &block[(ticket.number.0 % CHUNK) as usize];
            // Looked at and stored, not exchanged: an exchange would wait for memory on every
            // request of a long line. Beats of two devices that pass each other here came in the
            // same moment.
            // Zero is nobody's time: such a slot was never heard of here.
            let heard = self.seconds(at).max(1);
            if slot.load(Ordering::Relaxed) < heard {
                slot.store(heard, Ordering::Relaxed);
            }
        }
    }

    /// How long a visitor has been silent.
    pub fn silence(&self, ticket: Ticket, at: Timestamp) -> Millis {
        let directory = self.lanes[ticket.lane.0 as usize].load();
        let heard = directory
            .block(ticket.number.0 / CHUNK)
            .map_or(0, |block| block[(ticket.number.0 % CHUNK) as usize].load(Ordering::Relaxed));
        at.since(Timestamp(self.opened_at.0 + heard as u64 * 1_000))
    }

    /// Who was heard of since that mark, as bitmaps, and the mark for the next time. Beats are known
    /// to the second, so somebody may be told again, and nobody is left out. Without a mark, and
    /// with one of other beats or of a time that has not come, it is everybody.
    pub fn heard_since(&self, since: Option<Mark>, now: Timestamp) -> (Vec<Heard>, Mark) {
        let ours = since.filter(|it| it.opened_at == self.opened_at && it.at <= now);
        let mark = ours.map_or(0, |it| self.seconds(it.at));
        let next = Timestamp(now.0.saturating_sub(STORED_WITHIN_MS));
        let next = Mark { opened_at: self.opened_at, at: next };
        let mut heard = Vec::new();
        for (lane, directory) in (0..=u8::MAX).map(LaneId).zip(&self.lanes) {
            directory.load().each_block(|block, slots| {
                let mut bits = vec![0u64; (CHUNK / 64) as usize];
                for (at, slot) in slots.iter().enumerate() {
                    let when = slot.load(Ordering::Relaxed);
                    bits[at / 64] |= u64::from(when > 0 && when >= mark) << (at % 64);
                }
                if bits.iter().any(|word| *word != 0) {
                    heard.push(Heard { block: Block { lane, index: block }, bits });
                }
            });
        }
        (heard, next)
    }

    /// Whoever was heard of by those beats is heard of here, now: some of them nobody may have been
    /// told of yet.
    pub fn hear_of_all(&self, before: &Liveness, now: Timestamp) {
        before.heard_since(None, now).0.iter().for_each(|heard| self.hear(heard, now));
    }

    /// These were heard of elsewhere, a moment ago.
    pub fn hear(&self, heard: &Heard, now: Timestamp) {
        let first = heard.block.first().0;
        for (at, word) in heard.bits.iter().enumerate() {
            let mut left = *word;
            while left != 0 {
                let number = first + at as u64 * 64 + u64::from(left.trailing_zeros());
                self.beat(Ticket { lane: heard.block.lane, number: Number(number) }, now);
                left &= left - 1;
            }
        }
    }

    /// Whole block gone. Only the writer calls this.
    pub fn forgot(&self, block: Block) {
        let lane = &self.lanes[block.lane.0 as usize];
        let mut rest = Directory::clone(&lane.load());
        rest.take(block.index);
        lane.store(Arc::new(rest));
    }

    /// Up to `most` waiting tickets of a lane that have been silent for longer than `timeout`.
    /// Reads a published state; whether they are still silent is looked at again by the writer.
    pub fn silent(
        &self,
        state: &State,
        lane: LaneId,
        at: Timestamp,
        timeout: Millis,
        most: usize,
    ) -> Vec<Ticket> {
        let mut found = Vec::new();
        let limit = at.since(self.opened_at).0.saturating_sub(timeout.0) / 1_000;
        if at.since(self.opened_at) <= timeout {
            return found;
        }
        let directory = self.lanes[lane.0 as usize].load();
        let mut current: Option<(u64, Option<&Arc<Chunk>>)> = None;
        state.each_waiting(lane, |Number(number)| {
            let block = number / CHUNK;
            if current.is_none_or(|(at, _)| at != block) {
                current = Some((block, directory.block(block)));
            }
            let heard = current
                .and_then(|(_, chunk)| chunk)
                .map_or(0, |chunk| chunk[(number % CHUNK) as usize].load(Ordering::Relaxed));
            if (heard as u64) < limit {
                found.push(Ticket { lane, number: Number(number) });
            }
            match found.len() >= most {
                true => std::ops::ControlFlow::Break(()),
                false => std::ops::ControlFlow::Continue(()),
            }
        });
        found
    }

    fn seconds(&self, at: Timestamp) -> u32 {
        at.since(self.opened_at).0.div_ceil(1_000).min(u32::MAX as u64) as u32
    }
}

impl Directory {
    fn block(&self, block: u64) -> Option<&Arc<Chunk>> {
        let at = (block / FAN).checked_sub(self.first_leaf)?;
        self.leaves.get(at as usize)?.as_ref()?.blocks[(block % FAN) as usize].as_ref()
    }

    fn each_block(&self, mut see: impl FnMut(u64, &Chunk)) {
        let leaves = (self.first_leaf..).zip(&self.leaves);
        for (at, leaf) in leaves.filter_map(|(at, leaf)| Some((at, leaf.as_ref()?))) {
            for (block, slots) in (at * FAN..).zip(&leaf.blocks) {
                if let Some(slots) = slots {
                    see(block, slots);
                }
            }
        }
    }

    fn put(&mut self, block: u64, chunk: Arc<Chunk>) {
        if self.leaves.is_empty() {
            self.first_leaf = block / FAN;
        }
        let at = (block / FAN - self.first_leaf) as usize;
        self.leaves.resize(self.leaves.len().max(at + 1), None);
        let leaf = self.leaves[at].get_or_insert_default();
        Arc::make_mut(leaf).blocks[(block % FAN) as usize] = Some(chunk);
    }

    fn take(&mut self, block: u64) {
        let Some(at) = (block / FAN).checked_sub(self.first_leaf) else { return };
        let Some(Some(leaf)) = self.leaves.get_mut(at as usize) else { return };
        let stored = Arc::make_mut(leaf);
        stored.blocks[(block % FAN) as usize] = None;
        if stored.blocks.iter().all(Option::is_none) {
            self.leaves[at as usize] = None;
            let dead = self.leaves.iter().take_while(|leaf| leaf.is_none()).count();
            self.leaves.drain(..dead);
            self.first_leaf += dead as u64;
        }
    }
}

impl Default for Leaf {
    fn default() -> Self {
        Self { blocks: [const { None }; FAN as usize] }
    }
}

fn chunk() -> Arc<Chunk> {
    (0..CHUNK).map(|_| AtomicU32::new(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Directory {
        /// The same places, none of which was heard of.
        fn emptied(&self) -> Arc<Directory> {
            let mut emptied = Directory::default();
            self.each_block(|block, _| emptied.put(block, chunk()));
            Arc::new(emptied)
        }
    }

    const OPENED: Timestamp = Timestamp(1_000_000);
    /// Two leaves and a bit, a ticket in each block.
    const BLOCKS: u64 = 2 * FAN + 3;

    fn first_of(block: u64) -> Ticket {
        Ticket::new(0, block * CHUNK)
    }

    fn later(seconds: u64) -> Timestamp {
        Timestamp(OPENED.0 + seconds * 1_000)
    }

    fn crowded() -> Liveness {
        let liveness = Liveness::open(&State::default(), OPENED);
        (0..BLOCKS).for_each(|block| liveness.joined(first_of(block), later(block)));
        liveness
    }

    #[test]
    fn everybody_is_heard_of_when_they_join_and_when_they_beat() {
        let liveness = crowded();
        for block in 0..BLOCKS {
            // Whoever comes in the first second is given all of it.
            let silent = Millis((500 - block.max(1)) * 1_000);
            assert_eq!(liveness.silence(first_of(block), later(500)), silent);
        }
        liveness.beat(first_of(FAN), later(400));
        liveness.beat(first_of(FAN), later(300));
        assert_eq!(liveness.silence(first_of(FAN), later(500)), Millis(100_000));
        assert_eq!(liveness.silence(first_of(FAN + 1), later(500)), Millis((499 - FAN) * 1_000));
    }

    #[test]
    fn who_was_heard_of_here_is_heard_of_by_the_owner_and_nobody_else() {
        let (here, owner) = (crowded(), crowded());
        let heard = [first_of(3), Ticket::new(0, 3 * CHUNK + 77), first_of(FAN + 2)];
        heard.iter().for_each(|ticket| here.beat(*ticket, later(600)));
        let (_, mark) = here.heard_since(None, later(500));
        let (told, _) = here.heard_since(Some(mark), later(600));
        assert_eq!(told.len(), 2, "two blocks, two bitmaps: {told:?}");
        told.iter().for_each(|told| owner.hear(told, later(602)));
        for ticket in heard {
            assert_eq!(owner.silence(ticket, later(700)), Millis(98_000));
        }
        assert_eq!(owner.silence(first_of(4), later(700)), Millis(696_000), "a neighbour");
        let (_, mark) = here.heard_since(Some(mark), later(602));
        assert_eq!(here.heard_since(Some(mark), later(603)).0, [], "told once");
    }

    #[test]
    fn beats_that_are_kept_anew_are_told_whatever_was_told_of_those_before() {
        let (before, ticket) = (crowded(), first_of(3));
        before.beat(ticket, later(600));
        let (_, mark) = before.heard_since(None, later(700));
        // The clock of whoever follows was set back meanwhile.
        let anew = Liveness::open(&State::default(), later(90));
        anew.joined(first_of(4), later(90));
        (0..4).for_each(|block| anew.joined(first_of(block), later(90)));
        let (told, mark_anew) = anew.heard_since(Some(mark), later(91));
        assert_eq!(told.len(), 5, "the mark is of other beats: {told:?}");
        let (told, _) = anew.heard_since(Some(mark_anew), later(80));
        assert_eq!(told.len(), 5, "the mark is of a time that has not come: {told:?}");
    }

    #[test]
    fn whoever_was_heard_of_before_is_heard_of_anew() {
        let (before, owner) = (crowded(), crowded());
        let anew = Liveness::open(&State::default(), later(600));
        anew.lanes[0].store(before.lanes[0].load_full().emptied());
        anew.hear_of_all(&before, later(600));
        let (told, _) = anew.heard_since(None, later(600));
        told.iter().for_each(|told| owner.hear(told, later(601)));
        for block in 0..BLOCKS {
            assert_eq!(owner.silence(first_of(block), later(701)), Millis(100_000));
        }
    }

    #[test]
    fn forgotten_blocks_give_their_memory_back_and_the_others_stay() {
        let liveness = crowded();
        let leaves = |liveness: &Liveness| liveness.lanes[0].load().leaves.len();
        assert_eq!(leaves(&liveness), 3);
        // One stays at the end of the first leaf; then it goes too, and the leaf with it.
        for index in 0..FAN - 1 {
            liveness.forgot(Block { lane: LaneId(0), index });
        }
        assert_eq!(leaves(&liveness), 3);
        assert_eq!(liveness.silence(first_of(FAN - 1), later(FAN)), Millis(1_000));
        liveness.forgot(Block { lane: LaneId(0), index: FAN - 1 });
        assert_eq!(leaves(&liveness), 2);
        // A beat for a ticket that is gone is nobody's concern.
        liveness.beat(first_of(0), later(900));
        liveness.forgot(Block { lane: LaneId(0), index: 0 });
        for block in FAN..BLOCKS {
            assert_eq!(
                liveness.silence(first_of(block), later(500)),
                Millis((500 - block) * 1_000)
            );
        }
        liveness.joined(first_of(BLOCKS), later(501));
        assert_eq!(liveness.silence(first_of(BLOCKS), later(501)), Millis(0));
    }
}
