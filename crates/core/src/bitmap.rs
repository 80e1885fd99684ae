//! The queue as a bitmap: bit `order` is one while that ticket waits.
//!
//! Lives here: bits that are counted at every level, so that a position (`rank`), the ticket at
//! a position (`select`) and the next to admit (`next_ones`) are found without a walk.
//! Stays out: tickets, lanes, why a bit is cleared.
//!
//! From small to large: a *line* is 512 bits, one cache line. A *block* is 64 lines in one shared
//! allocation with the number of ones of each. A *leaf* is 32 blocks with the number of ones of
//! each. The *directory* lists the leaves with the number of ones of each. Counting the ones
//! before a bit adds up a few numbers at each level and reads one line; at 20 million bits the
//! levels are 20, 32, 64 and 8 long. Clones share leaves and blocks (see `chunked.rs`, whose ways
//! of sharing, growing and dropping are the same here); a write after a clone copies one leaf and
//! one block of 4 KB.
//!
//! A block without ones has no storage, and leaves without ones at the front leave the directory:
//! a room that has seen a billion tickets pays for those who wait. As with the chunked array, how
//! the bits came to be what they are cannot be seen from outside.

use std::fmt;
use std::sync::Arc;

/// Bits in a block: [`Bitmap::blocks`] and [`Bitmap::same_block`] count in these.
pub const BLOCK_BITS: u64 = (LINES * LINE_BITS) as u64;

/// Blocks in a leaf. Their counts, two bytes each, are one cache line.
const FAN: u64 = 32;

const WORD_BITS: usize = 64;
const LINE_WORDS: usize = 8;
const LINE_BITS: usize = LINE_WORDS * WORD_BITS;
const LINES: usize = 64;

/// The words before a block's bits: the ones of each line, 16 bits each, four to a word.
const HEAD_WORDS: usize = LINES / 4;

/// The two counters in front of what an `Arc` holds.
const ARC_HEAD_BYTES: usize = 2 * size_of::<usize>();

/// A growable row of bits that counts its ones, with cheap clones.
///
/// Reading past the end finds zeros. Writing past the end is a mistake of ours and panics.
#[derive(Clone, Default)]
pub struct Bitmap {
    /// The full blocks before the tail, leaf by leaf, without the first `base` leaves.
    branches: Vec<Branch>,
    base: u64,
    /// The block that `len` points into, held apart so that a join reaches it at once and a small
    /// room needs no directory.
    tail: Option<Block>,
    tail_ones: u64,
    len: u64,
    ones: u64,
    /// No one stands before this bit. A hint: it follows the front as tickets are admitted, and
    /// need not be exact, because the search from it skips what is empty.
    front: u64,
}

#[derive(Clone, Default)]
struct Branch {
    ones: u64,
    /// Absent exactly when `ones` is zero.
    leaf: Option<Arc<Leaf>>,
}

#[derive(Clone)]
struct Leaf {
    ones: [u16; FAN as usize],
    /// Absent exactly where `ones` is zero.
    blocks: [Option<Block>; FAN as usize],
}

impl Bitmap {
    pub fn new() -> Self {
        Self::default()
    }

    /// How many bits there are, ones and zeros.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bits are one.
    pub fn ones(&self) -> u64 {
        self.ones
    }

    pub fn get(&self, index: u64) -> bool {
        self.block(index / BLOCK_BITS).is_some_and(|block| block.get(bit_in_block(index)))
    }

    /// Adds one bit at the end, and it is a one: somebody joined.
    pub fn push_one(&mut self) {
        self.tail.get_or_insert_default().set(bit_in_block(self.len));
        self.tail_ones += 1;
        self.ones += 1;
        self.len += 1;
        if self.len.is_multiple_of(BLOCK_BITS) {
            self.seal(self.len / BLOCK_BITS - 1);
        }
    }

    /// Grows to `len` bits, the new ones all one; does nothing to a longer bitmap.
    pub fn extend_ones(&mut self, len: u64) {
        while self.len < len {
            let block = self.len / BLOCK_BITS;
            let end = len.min((block + 1) * BLOCK_BITS);
            let added = (end - self.len) as usize;
            self.tail.get_or_insert_default().fill(bit_in_block(self.len), added);
            self.tail_ones += added as u64;
            self.ones += added as u64;
            self.len = end;
            if end.is_multiple_of(BLOCK_BITS) {
                self.seal(block);
            }
        }
    }

    /// Grows to `len` bits, the new ones all zero; does nothing to a longer bitmap.
    pub fn extend_zeros(&mut self, len: u64) {
        if len <= self.len {
            return;
        }
        let block = self.len / BLOCK_BITS;
        self.len = len;
        if len / BLOCK_BITS != block {
            self.seal(block);
        }
    }

    /// Makes a bit one; `false` if it was one already.
    pub fn set(&mut self, index: u64) -> bool {
        assert!(index < self.len, "bit {index} is past the end, {}", self.len);
        // Looking first keeps a shared block shared when there is nothing to do.
        if self.get(index) {
            return false;
        }
        let (block, bit) = (index / BLOCK_BITS, bit_in_block(index));
        if block == self.len / BLOCK_BITS {
            self.tail.get_or_insert_default().set(bit);
            self.tail_ones += 1;
        } else {
            let branch = self.branch_mut(block);
            branch.ones += 1;
            let leaf = Arc::make_mut(branch.leaf.get_or_insert_default());
            let slot = (block % FAN) as usize;
            leaf.ones[slot] += 1;
            leaf.blocks[slot].get_or_insert_default().set(bit);
        }
        self.ones += 1;
        self.front = self.front.min(index);
        true
    }

    /// Makes a bit zero; `false` if it was zero already.
    pub fn clear(&mut self, index: u64) -> bool {
        if !self.get(index) {
            return false;
        }
        let (block, bit) = (index / BLOCK_BITS, bit_in_block(index));
        if block == self.len / BLOCK_BITS {
            // An empty tail keeps its storage: the next join is about to use it.
            self.tail.as_mut().expect("the bit is in the tail").clear(bit);
            self.tail_ones -= 1;
        } else {
            let branch = self.branch_mut(block);
            branch.ones -= 1;
            if branch.ones == 0 {
                branch.leaf = None;
                self.drop_dead_prefix();
            } else {
                let leaf = Arc::make_mut(branch.leaf.as_mut().expect("the bit is in this leaf"));
                let slot = (block % FAN) as usize;
                leaf.ones[slot] -= 1;
                if leaf.ones[slot] == 0 {
                    leaf.blocks[slot] = None;
                } else {
                    leaf.blocks[slot].as_mut().expect("the bit is in this block").clear(bit);
                }
            }
        }
        self.ones -= 1;
        if self.front == index {
            self.front += 1;
        }
        true
    }

    /// How many ones stand strictly before `index`: a waiting ticket's number of people ahead.
    pub fn rank(&self, index: u64) -> u64 {
        if index >= self.len {
            return self.ones;
        }
        let (block, bit) = (index / BLOCK_BITS, bit_in_block(index));
        if block == self.len / BLOCK_BITS {
            let in_tail = self.tail.as_ref().map_or(0, |tail| tail.rank(bit));
            return self.ones - self.tail_ones + in_tail;
        }
        let Some(at) = (block / FAN).checked_sub(self.base).map(|at| at as usize) else {
            return 0;
        };
        let Some(branch) = self.branches.get(at) else {
            return self.ones - self.tail_ones;
        };
        let before: u64 = self.branches[..at].iter().map(|branch| branch.ones).sum();
        before + branch.leaf.as_ref().map_or(0, |leaf| leaf.rank((block % FAN) as usize, bit))
    }

    /// How many ones stand in `from..to`.
    pub fn count_range(&self, from: u64, to: u64) -> u64 {
        self.rank(to).saturating_sub(self.rank(from))
    }

    /// The one that has exactly `rank` ones before it.
    pub fn select(&self, rank: u64) -> Option<u64> {
        if rank >= self.ones {
            return None;
        }
        let mut left = rank;
        for (index, branch) in (self.base..).zip(&self.branches) {
            if left >= branch.ones {
                left -= branch.ones;
                continue;
            }
            let leaf = branch.leaf.as_ref().expect("a leaf with ones is present");
            for (slot, &ones) in leaf.ones.iter().enumerate() {
                if left >= u64::from(ones) {
                    left -= u64::from(ones);
                    continue;
                }
                let block = leaf.blocks[slot].as_ref().expect("a block with ones is present");
                return Some((index * FAN + slot as u64) * BLOCK_BITS + block.select(left));
            }
        }
        let tail = self.tail.as_ref().expect("ones that are in no leaf are in the tail");
        Some(self.len / BLOCK_BITS * BLOCK_BITS + tail.select(left))
    }

    /// The first one of all.
    pub fn first_one(&self) -> Option<u64> {
        self.ones_from(self.front).next()
    }

    /// The ones at or after `from`, in order. Empty words, lines, blocks and leaves are skipped.
    pub fn ones_from(&self, from: u64) -> Ones<'_> {
        Ones::starting_at(self, from)
    }

    /// Appends the next `count` ones at or after `from` to `out`, fewer if there are fewer.
    pub fn next_ones(&self, from: u64, count: usize, out: &mut Vec<u64>) {
        out.extend(self.ones_from(from).take(count));
    }

    /// Appends the ones that are zeros in `other` to `out`, in order: who left since the two were
    /// one. What they share is not read, the rest a word at a time.
    pub fn ones_missing_in(&self, other: &Self, out: &mut Vec<u64>) {
        let mut next = 0;
        while let Some((index, block)) = self.next_block(next) {
            next = index + 1;
            let theirs = other.block(index);
            if theirs.is_some_and(|theirs| Arc::ptr_eq(&block.0, &theirs.0)) {
                continue;
            }
            for (at, &word) in block.words().iter().enumerate() {
                let mut gone = word & !theirs.map_or(0, |theirs| theirs.word(at));
                let first = index * BLOCK_BITS + (at * WORD_BITS) as u64;
                while gone != 0 {
                    out.push(first + u64::from(gone.trailing_zeros()));
                    gone &= gone - 1;
                }
            }
        }
    }

    /// Rearranges the `count` bits from `start` on: the bit at `start + offset` goes to
    /// `start + to(offset)`. `to` must be a permutation of `0..count`; where it is seen not to
    /// be one, this panics, for a person would have lost a place.
    pub fn permute_range(&mut self, start: u64, count: u64, to: impl Fn(u64) -> u64) {
        let end = start + count;
        assert!(end <= self.len, "bits {start}..{end} are past the end, {}", self.len);
        let moving: Vec<u64> = self.ones_from(start).take_while(|&index| index < end).collect();
        for &index in &moving {
            self.clear(index);
        }
        for &index in &moving {
            let offset = to(index - start);
            assert!(offset < count, "offset {} leaves its window of {count}", index - start);
            assert!(self.set(start + offset), "two bits of a window go to offset {offset}");
        }
    }

    /// The blocks that hold ones, in order: their index and their words, the lowest bit first,
    /// without the zero words at the end. For snapshots and digests.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, &[u64])> {
        let mut next = 0;
        std::iter::from_fn(move || {
            let (index, block) = self.next_block(next)?;
            next = index + 1;
            Some((index, block.trimmed_words()))
        })
    }

    /// Puts `words` in the place of a whole block; missing ones at the end are zeros.
    /// For reading snapshots: [`Bitmap::blocks`] backwards.
    pub fn put_block(&mut self, index: u64, words: &[u64]) {
        let block = Block::from_words(words);
        let start = index * BLOCK_BITS;
        let end = start + block.last_one().map_or(0, |last| last + 1);
        assert!(end <= self.len, "block {index} ends at {end}, past the end, {}", self.len);
        let (before, after) = (self.count_range(start, start + BLOCK_BITS), block.count());
        if index == self.len / BLOCK_BITS {
            self.tail = Some(block);
            self.tail_ones = after;
        } else if before + after > 0 {
            let branch = self.branch_mut(index);
            branch.ones = branch.ones - before + after;
            let leaf = Arc::make_mut(branch.leaf.get_or_insert_default());
            let slot = (index % FAN) as usize;
            leaf.ones[slot] = after as u16;
            leaf.blocks[slot] = (after > 0).then_some(block);
            if branch.ones == 0 {
                branch.leaf = None;
                self.drop_dead_prefix();
            }
        }
        self.ones = self.ones - before + after;
        self.front = self.front.min(start);
    }

    /// Whether both bitmaps hold this block in the same memory, or both not at all.
    pub fn same_block(&self, other: &Self, index: u64) -> bool {
        match (self.block(index), other.block(index)) {
            (Some(ours), Some(theirs)) => Arc::ptr_eq(&ours.0, &theirs.0),
            (None, None) => true,
            _ => false,
        }
    }

    /// The memory held, as if no clone shared it.
    pub fn resident_bytes(&self) -> usize {
        let leaf_bytes = |leaf: &Arc<Leaf>| {
            let blocks = leaf.blocks.iter().flatten().map(Block::resident_bytes);
            ARC_HEAD_BYTES + size_of::<Leaf>() + blocks.sum::<usize>()
        };
        let leaves = self.branches.iter().filter_map(|branch| branch.leaf.as_ref());
        size_of::<Self>()
            + self.branches.capacity() * size_of::<Branch>()
            + leaves.map(leaf_bytes).sum::<usize>()
            + self.tail.as_ref().map_or(0, Block::resident_bytes)
    }

    fn block(&self, block: u64) -> Option<&Block> {
        if block == self.len / BLOCK_BITS {
            return self.tail.as_ref();
        }
        let at = (block / FAN).checked_sub(self.base)?;
        self.branches.get(at as usize)?.leaf.as_ref()?.blocks[(block % FAN) as usize].as_ref()
    }

    /// The first block with ones at or after `from`.
    fn next_block(&self, from: u64) -> Option<(u64, &Block)> {
        let leaf = (from / FAN).saturating_sub(self.base);
        for (index, branch) in (self.base..).zip(&self.branches).skip(leaf as usize) {
            let Some(leaf) = &branch.leaf else { continue };
            for (block, stored) in (index * FAN..).zip(&leaf.blocks) {
                if let Some(stored) = stored.as_ref().filter(|_| block >= from) {
                    return Some((block, stored));
                }
            }
        }
        let tail_index = self.len / BLOCK_BITS;
        let tail = self.tail.as_ref().filter(|_| self.tail_ones > 0 && tail_index >= from);
        tail.map(|tail| (tail_index, tail))
    }

    fn branch_mut(&mut self, block: u64) -> &mut Branch {
        let leaf = block / FAN;
        if self.branches.is_empty() {
            self.base = leaf;
        }
        if leaf < self.base {
            // Somebody writes where all was dead. Rare, and the list of leaves is short.
            let missing = (self.base - leaf) as usize;
            self.branches.splice(0..0, std::iter::repeat_n(Branch::default(), missing));
            self.base = leaf;
        }
        let at = (leaf - self.base) as usize;
        if at >= self.branches.len() {
            self.branches.resize(at + 1, Branch::default());
        }
        &mut self.branches[at]
    }

    /// Moves the tail into the directory, under the index it had.
    fn seal(&mut self, index: u64) {
        let (block, ones) = (self.tail.take(), std::mem::take(&mut self.tail_ones));
        if ones == 0 {
            return;
        }
        let branch = self.branch_mut(index);
        branch.ones += ones;
        let leaf = Arc::make_mut(branch.leaf.get_or_insert_default());
        leaf.ones[(index % FAN) as usize] = ones as u16;
        leaf.blocks[(index % FAN) as usize] = block;
    }

    fn drop_dead_prefix(&mut self) {
        let dead = self.branches.iter().take_while(|branch| branch.leaf.is_none()).count();
        self.branches.drain(..dead);
        self.base += dead as u64;
    }
}

impl Leaf {
    fn rank(&self, slot: usize, bit: usize) -> u64 {
        let before: u64 = self.ones[..slot].iter().map(|&ones| u64::from(ones)).sum();
        before + self.blocks[slot].as_ref().map_or(0, |block| block.rank(bit))
    }
}

impl Default for Leaf {
    fn default() -> Self {
        Self { ones: [0; FAN as usize], blocks: [const { None }; FAN as usize] }
    }
}

impl PartialEq for Bitmap {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.ones == other.ones && self.blocks().eq(other.blocks())
    }
}

impl Eq for Bitmap {}

// Shape only: twenty million bits help nobody who reads a log.
impl fmt::Debug for Bitmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bitmap")
            .field("len", &self.len)
            .field("ones", &self.ones)
            .finish_non_exhaustive()
    }
}

/// The ones of a bitmap from some bit on: see [`Bitmap::ones_from`].
#[derive(Clone, Debug)]
pub struct Ones<'a> {
    bitmap: &'a Bitmap,
    /// The block that `word` is in, and its index.
    block: Option<(u64, &'a Block)>,
    word: usize,
    /// What is left of that word.
    bits: u64,
}

impl<'a> Ones<'a> {
    fn starting_at(bitmap: &'a Bitmap, from: u64) -> Self {
        let block = bitmap.next_block(from / BLOCK_BITS);
        let bit = match block {
            Some((index, _)) if index == from / BLOCK_BITS => bit_in_block(from),
            _ => 0,
        };
        let word = bit / WORD_BITS;
        let bits = block.map_or(0, |(_, block)| block.word(word) & (!0 << (bit % WORD_BITS)));
        Self { bitmap, block, word, bits }
    }
}

impl Iterator for Ones<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        while self.bits == 0 {
            let (index, block) = self.block?;
            match block.next_word(self.word + 1) {
                Some((word, bits)) => (self.word, self.bits) = (word, bits),
                None => {
                    self.block = self.bitmap.next_block(index + 1);
                    self.word = 0;
                    self.bits = self.block.map_or(0, |(_, block)| block.word(0));
                }
            }
        }
        let (index, _) = self.block?;
        let bit = self.word * WORD_BITS + self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        Some(index * BLOCK_BITS + bit as u64)
    }
}

fn bit_in_block(index: u64) -> usize {
    (index % BLOCK_BITS) as usize
}

/// Counts and bits in one allocation: the head, then as many lines as are needed. Lines past the
/// end are zeros, so that the tail of a small room takes 192 bytes and not 4 KB.
#[derive(Clone)]
struct Block(Arc<[u64]>);

impl Block {
    fn with_lines(lines: usize) -> Self {
        Self(std::iter::repeat_n(0, HEAD_WORDS + lines * LINE_WORDS).collect())
    }

    fn from_words(words: &[u64]) -> Self {
        let lines = words.len().div_ceil(LINE_WORDS);
        assert!(lines <= LINES, "{} words are more than a block", words.len());
        let mut block = Self::with_lines(lines);
        let stored = Arc::get_mut(&mut block.0).expect("nobody else has seen the new block");
        stored[HEAD_WORDS..][..words.len()].copy_from_slice(words);
        for (line, words) in words.chunks(LINE_WORDS).enumerate() {
            let ones: u32 = words.iter().map(|word| word.count_ones()).sum();
            stored[line / 4] += u64::from(ones) << (line % 4 * 16);
        }
        block
    }

    fn words(&self) -> &[u64] {
        &self.0[HEAD_WORDS..]
    }

    fn trimmed_words(&self) -> &[u64] {
        let words = self.words();
        let used = words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
        &words[..used]
    }

    fn word(&self, word: usize) -> u64 {
        self.words().get(word).copied().unwrap_or(0)
    }

    fn get(&self, bit: usize) -> bool {
        self.word(bit / WORD_BITS) >> (bit % WORD_BITS) & 1 == 1
    }

    fn line_ones(&self, line: usize) -> u64 {
        self.0[line / 4] >> (line % 4 * 16) & 0xFFFF
    }

    /// The ones of all lines before `line`. The head is added up four lines at a time: 16 times
    /// 512 fits in 16 bits, and so does the whole block, 32,768.
    fn ones_before_line(&self, line: usize) -> u64 {
        let whole: u64 = self.0[..line / 4].iter().sum();
        let part = if line < LINES { self.0[line / 4] & !(!0 << (line % 4 * 16)) } else { 0 };
        (whole + part).wrapping_mul(0x0001_0001_0001_0001) >> 48
    }

    fn count(&self) -> u64 {
        self.ones_before_line(LINES)
    }

    fn rank(&self, bit: usize) -> u64 {
        let (line, word) = (bit / LINE_BITS, bit / WORD_BITS);
        let words = self.words();
        let whole = words.get(line * LINE_WORDS..word).unwrap_or_default();
        let whole: u32 = whole.iter().map(|word| word.count_ones()).sum();
        let part = (self.word(word) & !(!0 << (bit % WORD_BITS))).count_ones();
        self.ones_before_line(line) + u64::from(whole + part)
    }

    /// The bit with `left` ones before it, which the caller knows to be in this block.
    fn select(&self, mut left: u64) -> u64 {
        let mut line = 0;
        while left >= self.line_ones(line) {
            left -= self.line_ones(line);
            line += 1;
        }
        let mut word = line * LINE_WORDS;
        while left >= u64::from(self.word(word).count_ones()) {
            left -= u64::from(self.word(word).count_ones());
            word += 1;
        }
        let mut bits = self.word(word);
        for _ in 0..left {
            bits &= bits - 1;
        }
        (word * WORD_BITS) as u64 + u64::from(bits.trailing_zeros())
    }

    fn last_one(&self) -> Option<u64> {
        let words = self.trimmed_words();
        let last = words.last()?;
        Some((words.len() * WORD_BITS) as u64 - 1 - u64::from(last.leading_zeros()))
    }

    /// The first word with ones at or after `from`.
    fn next_word(&self, from: usize) -> Option<(usize, u64)> {
        let words = self.words();
        let mut word = from;
        while word < words.len() {
            if word.is_multiple_of(LINE_WORDS) && self.line_ones(word / LINE_WORDS) == 0 {
                word += LINE_WORDS;
            } else if words[word] != 0 {
                return Some((word, words[word]));
            } else {
                word += 1;
            }
        }
        None
    }

    /// Makes a zero one.
    fn set(&mut self, bit: usize) {
        let line = bit / LINE_BITS;
        let stored = self.writable(line);
        stored[HEAD_WORDS + bit / WORD_BITS] |= 1 << (bit % WORD_BITS);
        stored[line / 4] += 1 << (line % 4 * 16);
    }

    /// Makes a one zero.
    fn clear(&mut self, bit: usize) {
        let line = bit / LINE_BITS;
        let stored = self.writable(line);
        stored[HEAD_WORDS + bit / WORD_BITS] &= !(1 << (bit % WORD_BITS));
        stored[line / 4] -= 1 << (line % 4 * 16);
    }

    /// Makes `count` zeros from `bit` on ones.
    fn fill(&mut self, bit: usize, count: usize) {
        let end = bit + count;
        let stored = self.writable((end - 1) / LINE_BITS);
        let mut at = bit;
        while at < end {
            let word = at / WORD_BITS;
            let next = end.min((word + 1) * WORD_BITS);
            let ones = (!0 >> (WORD_BITS - (next - at))) << (at % WORD_BITS);
            stored[HEAD_WORDS + word] |= ones;
            let line = at / LINE_BITS;
            stored[line / 4] += ((next - at) as u64) << (line % 4 * 16);
            at = next;
        }
    }

    /// The block's own storage, long enough to hold `line`.
    fn writable(&mut self, line: usize) -> &mut [u64] {
        if HEAD_WORDS + line * LINE_WORDS >= self.0.len() {
            let longer = HEAD_WORDS + (line + 1).next_power_of_two() * LINE_WORDS;
            let zeros = std::iter::repeat_n(0, longer - self.0.len());
            self.0 = self.0.iter().copied().chain(zeros).collect();
        }
        Arc::make_mut(&mut self.0)
    }

    fn resident_bytes(&self) -> usize {
        ARC_HEAD_BYTES + size_of_val::<[u64]>(&self.0)
    }
}

impl Default for Block {
    fn default() -> Self {
        Self::with_lines(0)
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} ones)", self.count())
    }
}
