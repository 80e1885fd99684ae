//! A growable array in copy-on-write chunks: the one type under everything large in a room.
//!
//! Lives here: storage and sharing. Join times, states, identities, tables of buckets are columns
//! of this type; the board, a snapshot and the digest hold clones of them.
//! Stays out: what an entry means.
//!
//! Three needs shape it. *A clone must cost next to nothing*, for the board is published several
//! times a second: so entries sit in shared chunks, and chunks hang in shared leaves; cloning
//! 20 million entries touches 153 leaves. A write after a clone copies one chunk and at most one
//! leaf. *Growing must not stall the writer*: chunks never move, and only the list of leaves ever
//! doubles. *Nothing must be paid for what is not there*: a chunk of defaults has no storage, dead
//! chunks at the front leave the directory, and the last chunk, held apart from the directory,
//! grows by doubling, so that a room with three tickets pays for four entries.
//!
//! How an array came to its content cannot be seen from outside: dropped, never written and
//! written with defaults all read alike, compare alike and come out of [`Chunked::chunks`] alike.
//! Digests lean on this, since a room read from a snapshot has a shorter history than a live one.

use std::fmt;
use std::sync::Arc;

/// Entries in a chunk. For eight-byte entries this is 16 KB: a copy takes about a microsecond,
/// and one pointer for each 2,048 entries keeps the directory small.
pub const CHUNK: u64 = 2048;

/// Chunks in a leaf. A shared leaf is copied by raising 64 counts; with fewer the clone of the
/// whole array would touch more leaves, with more a first write after it more counts.
const FAN: u64 = 64;

/// The smallest allocation of a chunk, in entries.
const CHUNK_START: usize = 4;

/// The two counters in front of what an `Arc` holds.
const ARC_HEAD_BYTES: usize = 2 * size_of::<usize>();

/// A chunk may be shorter than [`CHUNK`]; the entries past its end are defaults.
type Chunk<T> = Option<Arc<[T]>>;

/// A growable array whose clones share what neither side has changed since.
///
/// Entries that were never written, were dropped, or lie past the end read as `T::default()`:
/// reading is total, so a number from outside needs no bounds check of its own. Writing past the
/// end is a mistake of ours and panics.
#[derive(Clone)]
pub struct Chunked<T> {
    /// The full chunks before the tail, leaf by leaf, without the first `base` leaves.
    leaves: Vec<Option<Arc<Leaf<T>>>>,
    /// How many leaves at the front hold nothing and have left the directory.
    base: u64,
    /// The chunk that `len` points into. Held apart because most writes are pushes: they reach it
    /// without the directory, and a small array needs no directory at all.
    tail: Chunk<T>,
    len: u64,
    /// What an absent entry reads as.
    blank: T,
}

struct Leaf<T> {
    chunks: [Chunk<T>; FAN as usize],
}

impl<T: Clone + Default + PartialEq> Chunked<T> {
    pub fn new() -> Self {
        Self { leaves: Vec::new(), base: 0, tail: None, len: 0, blank: T::default() }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of chunks that hold `len` entries, written or not.
    pub fn chunk_count(&self) -> u64 {
        self.len.div_ceil(CHUNK)
    }

    pub fn get(&self, index: u64) -> &T {
        self.stored(index / CHUNK)
            .and_then(|chunk| chunk.get((index % CHUNK) as usize))
            .unwrap_or(&self.blank)
    }

    pub fn push(&mut self, value: T) {
        let offset = (self.len % CHUNK) as usize;
        // Behind the end all is blank already.
        if value != self.blank {
            writable(&mut self.tail, offset, &self.blank)[offset] = value;
        }
        self.len += 1;
        if self.len.is_multiple_of(CHUNK) {
            self.seal(self.len / CHUNK - 1);
        }
    }

    /// Takes the last entry off. An array that shrinks gives back whole chunks only.
    pub fn pop(&mut self) -> Option<T> {
        let last = self.len.checked_sub(1)?;
        if self.len.is_multiple_of(CHUNK) {
            self.tail = self.take_from_directory(last / CHUNK);
        }
        self.len = last;
        let offset = (last % CHUNK) as usize;
        match &self.tail {
            Some(chunk) if offset < chunk.len() => {
                Some(std::mem::take(&mut writable(&mut self.tail, offset, &self.blank)[offset]))
            }
            _ => Some(self.blank.clone()),
        }
    }

    /// Writes one entry. Writing a default where nothing is stored stores nothing.
    pub fn set(&mut self, index: u64, value: T) {
        if value == self.blank && self.get(index) == &self.blank {
            assert!(index < self.len, "entry {index} is past the end, {}", self.len);
            return;
        }
        *self.get_mut(index) = value;
    }

    /// The entry to change in place; its chunk gets storage and is no longer shared. Prefer
    /// [`Chunked::set`] where the new value may well be the old one.
    pub fn get_mut(&mut self, index: u64) -> &mut T {
        assert!(index < self.len, "entry {index} is past the end, {}", self.len);
        let offset = (index % CHUNK) as usize;
        let blank = self.blank.clone();
        &mut writable(self.slot_mut(index / CHUNK), offset, &blank)[offset]
    }

    /// Grows the array to `len` entries without storing any; does nothing to a longer one.
    pub fn extend_default(&mut self, len: u64) {
        if len <= self.len {
            return;
        }
        let tail_index = self.len / CHUNK;
        self.len = len;
        if len / CHUNK != tail_index {
            self.seal(tail_index);
        }
    }

    /// Makes all entries of a chunk defaults and frees their storage. Leaves at the front that
    /// hold nothing any more leave the directory, so a room that has seen a billion tickets keeps
    /// a short one.
    pub fn drop_chunk(&mut self, chunk: u64) {
        if chunk == self.len / CHUNK {
            self.tail = None;
        } else {
            self.take_from_directory(chunk);
        }
    }

    /// Puts `entries` in the place of a whole chunk; missing ones at the end are defaults.
    /// For reading snapshots: [`Chunked::chunks`] backwards.
    pub fn put_chunk(&mut self, chunk: u64, entries: &[T]) {
        let entries = trimmed(entries, &self.blank);
        if entries.is_empty() {
            return self.drop_chunk(chunk);
        }
        assert!(
            entries.len() as u64 <= CHUNK && chunk * CHUNK + entries.len() as u64 <= self.len,
            "chunk {chunk} with {} entries is past the end, {}",
            entries.len(),
            self.len
        );
        *self.slot_mut(chunk) = Some(Arc::from(entries));
    }

    /// The entries of one chunk without the defaults at its end; `None` if all are defaults.
    pub fn chunk(&self, chunk: u64) -> Option<&[T]> {
        self.stored(chunk).map(|entries| trimmed(entries, &self.blank)).filter(|e| !e.is_empty())
    }

    /// All chunks that hold anything but defaults, in order, as [`Chunked::chunk`] shows them.
    pub fn chunks(&self) -> impl Iterator<Item = (u64, &[T])> {
        let leaves = (self.base..).zip(&self.leaves);
        leaves
            .filter_map(|(index, leaf)| leaf.as_deref().map(|leaf| (index * FAN, leaf)))
            .flat_map(|(first, leaf)| (first..).zip(&leaf.chunks))
            .chain([(self.len / CHUNK, &self.tail)])
            .filter_map(|(index, chunk)| {
                let entries = trimmed(chunk.as_deref()?, &self.blank);
                (!entries.is_empty()).then_some((index, entries))
            })
    }

    /// All entries in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.chunk_count()).flat_map(|chunk| {
            let entries = self.chunk(chunk).unwrap_or_default();
            let used = CHUNK.min(self.len - chunk * CHUNK) as usize;
            entries.iter().chain(std::iter::repeat_n(&self.blank, used - entries.len()))
        })
    }

    /// Whether both arrays hold this chunk in the same memory, or both not at all. `true` means
    /// equal; `false` means that one side has written to it since they were one.
    pub fn same_chunk(&self, other: &Self, chunk: u64) -> bool {
        match (self.stored(chunk), other.stored(chunk)) {
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            (None, None) => true,
            _ => false,
        }
    }

    /// The memory held, as if no clone shared it. What entries themselves point to is not counted.
    pub fn resident_bytes(&self) -> usize {
        let chunk_bytes = |chunk: &Chunk<T>| {
            chunk.as_ref().map_or(0, |entries| ARC_HEAD_BYTES + size_of_val::<[T]>(entries))
        };
        let leaf_bytes = |leaf: &Arc<Leaf<T>>| {
            ARC_HEAD_BYTES
                + size_of::<Leaf<T>>()
                + leaf.chunks.iter().map(chunk_bytes).sum::<usize>()
        };
        size_of::<Self>()
            + self.leaves.capacity() * size_of::<Option<Arc<Leaf<T>>>>()
            + self.leaves.iter().flatten().map(leaf_bytes).sum::<usize>()
            + chunk_bytes(&self.tail)
    }

    fn stored(&self, chunk: u64) -> Option<&Arc<[T]>> {
        if chunk == self.len / CHUNK {
            return self.tail.as_ref();
        }
        let leaf = (chunk / FAN).checked_sub(self.base)?;
        self.leaves.get(leaf as usize)?.as_ref()?.chunks[(chunk % FAN) as usize].as_ref()
    }

    fn slot_mut(&mut self, chunk: u64) -> &mut Chunk<T> {
        if chunk == self.len / CHUNK { &mut self.tail } else { self.directory_slot_mut(chunk) }
    }

    fn directory_slot_mut(&mut self, chunk: u64) -> &mut Chunk<T> {
        let leaf = chunk / FAN;
        if self.leaves.is_empty() {
            self.base = leaf;
        }
        if leaf < self.base {
            // Somebody writes where all was dropped. Rare, and the list of leaves is short.
            let missing = (self.base - leaf) as usize;
            self.leaves.splice(0..0, std::iter::repeat_n(None, missing));
            self.base = leaf;
        }
        let at = (leaf - self.base) as usize;
        if at >= self.leaves.len() {
            self.leaves.resize(at + 1, None);
        }
        let leaf = self.leaves[at].get_or_insert_with(|| Arc::new(Leaf::default()));
        &mut Arc::make_mut(leaf).chunks[(chunk % FAN) as usize]
    }

    /// Moves the tail into the directory, under the index it had.
    fn seal(&mut self, index: u64) {
        if let Some(chunk) = self.tail.take() {
            *self.directory_slot_mut(index) = Some(chunk);
        }
    }

    /// Takes a chunk out of the directory, and with the last one of a leaf the leaf. Leaves at
    /// the front that hold nothing leave the directory, and those at the end with them.
    fn take_from_directory(&mut self, chunk: u64) -> Chunk<T> {
        self.stored(chunk)?;
        let taken = self.directory_slot_mut(chunk).take();
        let leaf = &mut self.leaves[(chunk / FAN - self.base) as usize];
        if leaf.as_ref().is_some_and(|leaf| leaf.chunks.iter().all(Option::is_none)) {
            *leaf = None;
            let used = self.leaves.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
            self.leaves.truncate(used);
            let dead = self.leaves.iter().take_while(|leaf| leaf.is_none()).count();
            self.leaves.drain(..dead);
            self.base += dead as u64;
        }
        taken
    }
}

/// The chunk's own storage, long enough to hold `offset`.
fn writable<'a, T: Clone>(chunk: &'a mut Chunk<T>, offset: usize, blank: &T) -> &'a mut [T] {
    let stored = chunk.as_deref().unwrap_or_default();
    if offset >= stored.len() {
        let longer = (offset + 1).next_power_of_two().max(CHUNK_START);
        let blanks = std::iter::repeat_n(blank, longer - stored.len());
        *chunk = Some(stored.iter().chain(blanks).cloned().collect());
    }
    Arc::make_mut(chunk.as_mut().expect("a chunk too short for the offset was just replaced"))
}

fn trimmed<'a, T: PartialEq>(entries: &'a [T], blank: &T) -> &'a [T] {
    let used = entries.iter().rposition(|entry| entry != blank).map_or(0, |last| last + 1);
    &entries[..used]
}

impl<T> Default for Leaf<T> {
    fn default() -> Self {
        Self { chunks: [const { None }; FAN as usize] }
    }
}

// Written by hand because a derived one would ask for `T: Clone`, which sharing does not need.
impl<T> Clone for Leaf<T> {
    fn clone(&self) -> Self {
        Self { chunks: self.chunks.clone() }
    }
}

impl<T: Clone + Default + PartialEq> Default for Chunked<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone + Default + PartialEq> PartialEq for Chunked<T> {
    fn eq(&self, other: &Self) -> bool {
        let mut theirs = other.chunks();
        let mut next_is_equal = |(index, ours): (u64, &[T])| {
            theirs.next().is_some_and(|(at, theirs)| {
                // Clones share most of their memory, which need not be read to be equal.
                at == index && (std::ptr::eq(ours, theirs) || ours == theirs)
            })
        };
        self.len == other.len && self.chunks().all(&mut next_is_equal) && theirs.next().is_none()
    }
}

impl<T: Clone + Default + Eq> Eq for Chunked<T> {}

impl<T: Clone + Default + PartialEq> Extend<T> for Chunked<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl<T: Clone + Default + PartialEq> FromIterator<T> for Chunked<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut array = Self::new();
        array.extend(values);
        array
    }
}

// Shape only: twenty million entries help nobody who reads a log.
impl<T> fmt::Debug for Chunked<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunked").field("len", &self.len).finish_non_exhaustive()
    }
}
