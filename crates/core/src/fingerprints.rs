//! Who holds which ticket: from the keyed hash of an identity to a value of 48 bits.
//!
//! Lives here: a set of values found by a hash that the table does not store. The hashes stand in
//! the identity column already; whoever asks passes `key_of`, which reads them there.
//! Stays out: how an identity is hashed, what a value packs. The hash is keyed, so its bits are
//! as good as random to anyone outside and are used as they are.
//!
//! The table is a row of small buckets that grows by one bucket at a time (*linear hashing*).
//! Bucket `n` is born when the table is full enough, and takes from bucket `n - 2^k`, the largest
//! power of two that fits, those entries whose hash has bit `k` set. So there is no moment when
//! everything moves and no directory that doubles; the buckets not yet split in this round are
//! about twice as long as the others, and the mean stays the same. When the table empties, the
//! last bucket goes back where it came from.
//!
//! A bucket has no gaps: an entry is a value with 16 bits of its hash, the *tag*, above it, and
//! the entries stand sorted. Tags are spread evenly, so a search begins where its tag should be
//! and ends some entries further: one or two lines of memory, then the one far read of the
//! identity itself. In return for shifting entries on arrival a bucket is dense and grows by a line at a
//! time; an entry costs little more than its eight bytes. The tag also holds the bits that decide
//! who moves once the table is large, so that splitting a bucket reads no identities then.
//!
//! A table that is made whole, after a snapshot was read, is not filled entry by entry: twenty
//! million arrivals in random buckets would each wait for memory. [`Fingerprints::gathered`]
//! goes through all entries several times instead and each time fills one stretch of buckets, so
//! that what it writes to stays in the caches and what it needs besides stays small.
//!
//! Should hashes ever come that agree in all the bits that are looked at, their bucket grows long
//! and slow; nothing loops and no other bucket pays.

use crate::chunked::Chunked;
use std::fmt;
use std::sync::Arc;

/// The keyed hash of an identity. Equal hashes are equal identities.
pub type Fingerprint = [u8; 16];

/// The largest value that can be held. One more, with a tag of all ones, marks a free slot.
pub const VALUE_MAX: u64 = (1 << VALUE_BITS) - 2;

const VALUE_BITS: u32 = 48;

/// Sorts after every entry.
const FREE: u64 = u64::MAX;

/// Which bits of the hash the tag holds: those from this one on. A table of more than 2^16
/// buckets finds in it the bit that splits the next one; the bits above that stay different
/// within a bucket and tell its entries apart.
const TAG_SHIFT: u32 = 16;
const TAG_BITS: u32 = u64::BITS - VALUE_BITS;

/// Entries per bucket, on average, at which the table grows by a bucket. A shorter bucket would
/// pay more for its allocation (40 bytes, so less than one for each entry), a longer one more for
/// each arrival.
const MEAN_MAX: u64 = 48;

/// And at which it gives one back. Far enough below that joining and leaving in turns does not
/// split and merge in turns.
const MEAN_MIN: u64 = 24;

/// Buckets that are filled in one go when a table is made whole: about four million entries, 90 MB
/// on the way. Fewer would be nearer to the processor, but going through all entries is what
/// takes the time.
const GATHER_BUCKETS: usize = 81_920;

/// Slots by which a bucket grows: one cache line.
const STEP: usize = 8;

/// The two counters in front of what an `Arc` holds.
const ARC_HEAD_BYTES: usize = 2 * size_of::<usize>();

/// Entries in order, free slots after them. Absent when there are no entries.
type Bucket = Option<Arc<[u64]>>;

/// A set of values found by their fingerprint.
///
/// Every call that takes `key_of` may ask it for the fingerprint of any value in the set, so a
/// value must be removed before its identity is forgotten.
#[derive(Clone)]
pub struct Fingerprints {
    /// Never empty.
    buckets: Chunked<Bucket>,
    len: u64,
}

impl Fingerprints {
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// A table that takes `entries` without growing on the way.
    pub fn with_capacity(entries: u64) -> Self {
        let mut buckets = Chunked::new();
        buckets.extend_default(entries.div_ceil(MEAN_MAX).max(1));
        Self { buckets, len: 0 }
    }

    /// The table that all these entries make; of several under one fingerprint the largest value
    /// is held. `entries` is asked several times and must give the same each time.
    pub fn gathered<I: Iterator<Item = (Fingerprint, u64)>>(
        entries: impl Fn() -> I,
        key_of: impl Fn(u64) -> Fingerprint,
    ) -> Self {
        let mut table = Self::with_capacity(entries().count() as u64);
        let mut gathered = Vec::new();
        let mut sorted = Vec::new();
        for first in (0..table.buckets.len()).step_by(GATHER_BUCKETS) {
            let stretch = first..table.buckets.len().min(first + GATHER_BUCKETS as u64);
            gathered.clear();
            entries().for_each(|(hash, value)| {
                let bucket = table.bucket_of(&hash);
                if stretch.contains(&bucket) {
                    assert!(value <= VALUE_MAX, "{value} takes more than 48 bits");
                    gathered.push(((bucket - first) as u32, entry(&hash, value)));
                }
            });
            by_bucket(&gathered, (stretch.end - first) as usize, &mut sorted, |bucket, entries| {
                entries.sort_unstable();
                let held = without_older(entries, &key_of);
                table.len += held as u64;
                table.buckets.set(first + bucket as u64, packed(&entries[..held]));
            });
        }
        table
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value held under this fingerprint.
    pub fn find(&self, hash: &Fingerprint, key_of: impl Fn(u64) -> Fingerprint) -> Option<u64> {
        let bucket = self.buckets.get(self.bucket_of(hash)).as_deref()?;
        slot_of(bucket, hash, key_of).map(|slot| value(bucket[slot]))
    }

    /// Holds `new` under this fingerprint, and returns the value that stood there before, if any.
    /// `key_of` need not know `new` yet.
    pub fn insert(
        &mut self,
        hash: &Fingerprint,
        new: u64,
        key_of: impl Fn(u64) -> Fingerprint,
    ) -> Option<u64> {
        assert!(new <= VALUE_MAX, "{new} takes more than 48 bits");
        let bucket = self.bucket_of(hash);
        let stored = self.buckets.get(bucket).as_deref().unwrap_or_default();
        let before = slot_of(stored, hash, &key_of).map(|slot| (slot, value(stored[slot])));
        if let Some((slot, _)) = before {
            take(self.buckets.get_mut(bucket), slot);
        } else {
            // Room is made before the new entry is there, because `key_of` may not know it.
            if self.len >= self.buckets.len() * MEAN_MAX {
                self.grow(&key_of);
            }
            self.len += 1;
        }
        add(self.buckets.get_mut(self.bucket_of(hash)), entry(hash, new));
        before.map(|(_, value)| value)
    }

    /// Forgets a value held under this fingerprint; `false` if it is not, for instance because
    /// another value has taken its place.
    pub fn remove(&mut self, hash: &Fingerprint, old: u64) -> bool {
        if old > VALUE_MAX {
            return false;
        }
        let old = entry(hash, old);
        let bucket = self.bucket_of(hash);
        let stored = self.buckets.get(bucket).as_deref().unwrap_or_default();
        let slot = first_at_least(stored, old);
        if stored.get(slot) != Some(&old) {
            return false;
        }
        take(self.buckets.get_mut(bucket), slot);
        self.len -= 1;
        if self.len < (self.buckets.len() - 1) * MEAN_MIN {
            self.shrink();
        }
        true
    }

    /// The memory held, as if no clone shared it.
    pub fn resident_bytes(&self) -> usize {
        let buckets = self.buckets.chunks().flat_map(|(_, buckets)| buckets).flatten();
        let slots = buckets.map(|bucket| ARC_HEAD_BYTES + size_of_val::<[u64]>(bucket));
        size_of::<Self>() - size_of::<Chunked<Bucket>>()
            + self.buckets.resident_bytes()
            + slots.sum::<usize>()
    }

    fn bucket_of(&self, hash: &Fingerprint) -> u64 {
        let buckets = self.buckets.len();
        let mask = buckets.next_power_of_two() - 1;
        let bucket = address_bits(hash) & mask;
        // A bucket that is not yet born is still part of the one it will come from.
        if bucket < buckets { bucket } else { bucket & (mask >> 1) }
    }

    /// Adds a bucket and moves to it what belongs there now.
    fn grow(&mut self, key_of: impl Fn(u64) -> Fingerprint) {
        let born = self.buckets.len();
        let bit = born.ilog2();
        let parent = born - (1 << bit);
        let in_tag = (TAG_SHIFT..TAG_SHIFT + TAG_BITS).contains(&bit);
        let moves = |&&entry: &&u64| {
            let bits = if in_tag {
                entry >> VALUE_BITS << TAG_SHIFT
            } else {
                address_bits(&key_of(value(entry)))
            };
            bits >> bit & 1 == 1
        };
        let stored = self.buckets.get(parent).as_deref().unwrap_or_default();
        let (moving, staying): (Vec<u64>, Vec<u64>) = entries(stored).iter().partition(moves);
        self.buckets.set(parent, packed(&staying));
        self.buckets.push(packed(&moving));
    }

    /// Gives the last bucket back to the one it came from.
    fn shrink(&mut self) {
        let Some(last) = self.buckets.pop() else { return };
        let index = self.buckets.len();
        let parent = index - (1 << index.ilog2());
        let stored = self.buckets.get(parent).as_deref().unwrap_or_default();
        let last = last.as_deref().unwrap_or_default();
        let mut joined = [entries(stored), entries(last)].concat();
        joined.sort_unstable();
        self.buckets.set(parent, packed(&joined));
    }
}

/// The bits that choose a bucket, the lowest first.
fn address_bits(hash: &Fingerprint) -> u64 {
    u64::from_le_bytes(*hash.first_chunk().expect("a fingerprint is longer than a word"))
}

fn entry(hash: &Fingerprint, value: u64) -> u64 {
    address_bits(hash) >> TAG_SHIFT << VALUE_BITS | value
}

fn value(entry: u64) -> u64 {
    entry & ((1 << VALUE_BITS) - 1)
}

fn slot_of(
    bucket: &[u64],
    hash: &Fingerprint,
    key_of: impl Fn(u64) -> Fingerprint,
) -> Option<usize> {
    let (first, last) = (entry(hash, 0), entry(hash, VALUE_MAX));
    let start = first_at_least(bucket, first);
    let alike = bucket[start..].iter().take_while(|&&stored| stored <= last);
    alike.zip(start..).find(|&(&stored, _)| key_of(value(stored)) == *hash).map(|(_, slot)| slot)
}

/// The slot of the first entry that is not smaller than `wanted`. Looks first where it should be
/// if tags are spread evenly, and goes on from there.
fn first_at_least(bucket: &[u64], wanted: u64) -> usize {
    // Half a line on average is free at the end; the guess leaves it out.
    let spread = bucket.len().saturating_sub(STEP / 2) as u64;
    let mut slot = (((wanted >> VALUE_BITS) * spread) >> TAG_BITS) as usize;
    while slot > 0 && bucket[slot - 1] >= wanted {
        slot -= 1;
    }
    while slot < bucket.len() && bucket[slot] < wanted {
        slot += 1;
    }
    slot
}

fn entries(bucket: &[u64]) -> &[u64] {
    let used = bucket.iter().rposition(|&entry| entry != FREE).map_or(0, |last| last + 1);
    &bucket[..used]
}

/// A bucket with these entries and free slots up to the next step. A bucket that has grown far
/// too long grows by an eighth, so that filling it does not copy it once for each line.
fn packed(entries: &[u64]) -> Bucket {
    if entries.is_empty() {
        return None;
    }
    let step = STEP.max((entries.len() / 8).next_multiple_of(STEP));
    let slots = entries.len().next_multiple_of(step);
    let free = std::iter::repeat_n(FREE, slots - entries.len());
    Some(entries.iter().copied().chain(free).collect())
}

/// Puts entries that come in any order beside those of their bucket, and shows each bucket's.
fn by_bucket(
    gathered: &[(u32, u64)],
    buckets: usize,
    sorted: &mut Vec<u64>,
    mut each: impl FnMut(usize, &mut [u64]),
) {
    // Where each bucket's entries begin; while they are put there, where the next one goes.
    let mut next = vec![0; buckets];
    for &(bucket, _) in gathered {
        next[bucket as usize] += 1;
    }
    let mut begin = 0;
    for place in &mut next {
        begin += std::mem::replace(place, begin);
    }
    sorted.clear();
    sorted.resize(gathered.len(), FREE);
    for &(bucket, entry) in gathered {
        let place = &mut next[bucket as usize];
        sorted[*place] = entry;
        *place += 1;
    }
    let mut begin = 0;
    for (bucket, &end) in next.iter().enumerate() {
        each(bucket, &mut sorted[begin..end]);
        begin = end;
    }
}

/// Moves those to the front that are held, of a bucket's entries in order, and says how many. An
/// entry is not held when a larger value has the same fingerprint. Few have even the same tag.
fn without_older(entries: &mut [u64], key_of: impl Fn(u64) -> Fingerprint) -> usize {
    let mut held = 0;
    for at in 0..entries.len() {
        let this = entries[at];
        let alike = entries[at + 1..]
            .iter()
            .take_while(|&&other| other >> VALUE_BITS == this >> VALUE_BITS);
        let mut newer = alike.map(|&other| key_of(value(other)));
        let is_older = newer.next().is_some_and(|first| {
            let key = key_of(value(this));
            first == key || newer.any(|other| other == key)
        });
        if !is_older {
            entries[held] = this;
            held += 1;
        }
    }
    held
}

fn add(bucket: &mut Bucket, new: u64) {
    let stored = bucket.as_deref().unwrap_or_default();
    let slot = first_at_least(stored, new);
    if stored.last().is_none_or(|&last| last != FREE) {
        *bucket = packed(&[&stored[..slot], &[new], &stored[slot..]].concat());
    } else {
        let stored = Arc::make_mut(bucket.as_mut().expect("a bucket with a free slot is present"));
        stored.copy_within(slot..stored.len() - 1, slot + 1);
        stored[slot] = new;
    }
}

fn take(bucket: &mut Bucket, slot: usize) {
    let stored = Arc::make_mut(bucket.as_mut().expect("the entry was found in this bucket"));
    let last = stored.len() - 1;
    stored.copy_within(slot + 1.., slot);
    stored[last] = FREE;
    let left = entries(stored);
    // One free line stays, so that leaving and joining in turns does not allocate each time.
    if left.is_empty() || left.len() + left.len() / 4 + 2 * STEP <= stored.len() {
        *bucket = packed(left);
    }
}

impl Default for Fingerprints {
    fn default() -> Self {
        Self::new()
    }
}

// Shape only: the entries mean nothing without the identities.
impl fmt::Debug for Fingerprints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fingerprints")
            .field("len", &self.len)
            .field("buckets", &self.buckets.len())
            .finish()
    }
}
