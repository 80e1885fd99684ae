//! Where a room's batches lie in the journal.
//!
//! Lives here: [`RoomLog`], a sparse index in memory: one entry per stretch of journal, not per
//! batch. Rooms share segments, so an entry is a span that holds some of this room's batches among
//! others' records; a reader skips those. A span is short enough that skipping costs little.
//! Stays out: the files. The index is rebuilt at every open and never stored.
//!
//! Entries tile the log: each begins at the head where the one before ends. Carrying a batch
//! forward puts a new entry over the old ones, clipping what it covers; so the span of an entry can
//! hold batches outside its heads, and readers go by the heads.

use std::collections::VecDeque;

use crate::log::{Appended, Chain, Head, Link};

/// A stretch ends once it is this long: the most a reader reads in vain for one batch.
const SPAN_BYTES: u64 = 32 << 10;
/// Batches remembered whole, for retries. An owner has a handful on the way; an older retry is
/// found by reading the log.
const RECENT: usize = 16;

/// Where a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub segment: u64,
    pub start: u64,
    pub end: u64,
}

impl Place {
    fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// A batch of a room and where it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub link: Link,
    pub payload_bytes: u64,
    pub before: Chain,
    pub chain: Chain,
    pub place: Place,
}

/// A stretch of journal that holds the events after `after` up to `last`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub after: Head,
    pub last: Head,
    pub place: Place,
    /// Payload bytes of these batches. After a clip it may count batches outside the heads: an
    /// estimate then, always on the high side.
    pub payload_bytes: u64,
    /// The same for whole frames: what carrying this stretch forward would write.
    pub frame_bytes: u64,
    /// The name of the first batch.
    epoch: u32,
    number: u64,
}

impl Entry {
    fn of(placed: &Placed) -> Entry {
        Entry {
            after: placed.link.after,
            last: placed.link.head(),
            place: placed.place,
            payload_bytes: placed.payload_bytes,
            frame_bytes: placed.place.len(),
            epoch: placed.link.epoch,
            number: placed.link.number,
        }
    }

    /// Takes a batch in that lies right behind, if the span stays short.
    fn extend(&mut self, placed: &Placed) -> bool {
        let near = placed.place.segment == self.place.segment
            && placed.place.start >= self.place.end
            && placed.place.start - self.place.start < SPAN_BYTES;
        if !near || placed.link.after != self.last {
            return false;
        }
        self.last = placed.link.head();
        self.place.end = placed.place.end;
        self.payload_bytes += placed.payload_bytes;
        self.frame_bytes += placed.place.len();
        true
    }

    pub fn holds(&self, link: &Link) -> bool {
        self.after <= link.after && link.head() <= self.last
    }
}

/// The index of one room's log.
#[derive(Debug, Default)]
pub(crate) struct RoomLog {
    /// Sorted by head, tiling.
    entries: VecDeque<Entry>,
    recent: VecDeque<Recent>,
}

/// A batch as a retry is compared with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recent {
    pub link: Link,
    pub before: Chain,
    pub chain: Chain,
}

impl Recent {
    pub fn appended(&self) -> Appended {
        Appended { head: self.link.head(), chain: self.chain }
    }

    pub fn is_named(&self, epoch: u32, nonce: u128, number: u64) -> bool {
        (self.link.epoch, self.link.nonce, self.link.number) == (epoch, nonce, number)
    }
}

impl RoomLog {
    /// Adds the newest batch.
    pub fn push(&mut self, placed: &Placed) {
        if !self.entries.back_mut().is_some_and(|last| last.extend(placed)) {
            self.entries.push_back(Entry::of(placed));
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        let Placed { link, before, chain, .. } = *placed;
        self.recent.push_back(Recent { link, before, chain });
    }

    /// Notes that a batch of the log now (also) lies elsewhere; the newer place counts.
    pub fn put_over(&mut self, placed: &Placed) {
        let (after, last) = (placed.link.after, placed.link.head());
        let mut at = self.entries.partition_point(|entry| entry.last <= after);
        if let Some(entry) = self.entries.get_mut(at).filter(|entry| entry.after < after) {
            // Its beginning stays; if it also reaches beyond, its end becomes an entry of its own.
            let rest = Entry { after: last, ..*entry };
            let reaches_beyond = entry.last > last;
            entry.last = after;
            at += 1;
            if reaches_beyond {
                self.entries.insert(at, rest);
            }
        }
        while self.entries.get(at).is_some_and(|entry| entry.last <= last) {
            self.entries.remove(at);
        }
        if let Some(entry) = self.entries.get_mut(at).filter(|entry| entry.after < last) {
            entry.after = last;
        }
        let extended = at > 0 && self.entries[at - 1].extend(placed);
        if !extended {
            self.entries.insert(at, Entry::of(placed));
        }
    }

    /// Forgets what lies wholly in the trimmed part.
    pub fn trim(&mut self, to: Head) {
        while self.entries.front().is_some_and(|entry| entry.last <= to) {
            self.entries.pop_front();
        }
    }

    /// The stretches that hold events after `from`, in order.
    pub fn after(&self, from: Head) -> impl Iterator<Item = &Entry> {
        let first = self.entries.partition_point(|entry| entry.last <= from);
        self.entries.range(first..)
    }

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub fn recent(&self, epoch: u32, nonce: u128, number: u64) -> Option<&Recent> {
        self.recent.iter().rev().find(|recent| recent.is_named(epoch, nonce, number))
    }

    /// The stretch in which a batch of that name must be, if it is in the log at all.
    pub fn stretch_of(&self, epoch: u32, number: u64) -> Option<Entry> {
        let after =
            self.entries.partition_point(|entry| (entry.epoch, entry.number) <= (epoch, number));
        after.checked_sub(1).map(|at| self.entries[at])
    }

    /// The first events that should be here and are not.
    pub fn missing(&self, trimmed_to: Head, head: Head) -> Option<(Head, Head)> {
        let mut reached = trimmed_to;
        for entry in &self.entries {
            if entry.after > reached {
                return Some((reached, entry.after));
            }
            reached = reached.max(entry.last);
        }
        (reached < head).then_some((reached, head))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(after: u64, events: u32, segment: u64, start: u64) -> Placed {
        let link = Link { epoch: 1, nonce: 0, number: after + 1, after: Head(after), events };
        let place = Place { segment, start, end: start + 100 };
        let (before, chain) = (Chain::START, Chain::START);
        Placed { link, payload_bytes: 10, before, chain, place }
    }

    fn spans(log: &RoomLog) -> Vec<(u64, u64, u64)> {
        log.entries().map(|e| (e.after.0, e.last.0, e.place.segment)).collect()
    }

    fn log() -> RoomLog {
        let mut log = RoomLog::default();
        for n in 0..10 {
            // Every second batch is far from the one before, so that there are five stretches.
            log.push(&placed(n, 1, 1, n / 2 * (SPAN_BYTES + 1_000) + n % 2 * 100));
        }
        log
    }

    #[test]
    fn neighbours_share_a_stretch_and_a_reader_finds_the_right_one() {
        let log = log();
        assert_eq!(spans(&log), [(0, 2, 1), (2, 4, 1), (4, 6, 1), (6, 8, 1), (8, 10, 1)]);
        assert_eq!(log.after(Head(5)).next().unwrap().after, Head(4));
        assert_eq!(log.after(Head(6)).next().unwrap().after, Head(6));
        assert!(log.after(Head(10)).next().is_none());
        assert_eq!(log.stretch_of(1, 6).unwrap().after, Head(4));
        assert!(log.stretch_of(0, 6).is_none());
        assert_eq!(log.missing(Head(0), Head(10)), None);
        assert_eq!(log.missing(Head(0), Head(11)), Some((Head(10), Head(11))));
    }

    #[test]
    fn a_carried_batch_lies_over_the_old_one_however_they_overlap() {
        for after in 0..10u64 {
            for events in 1..=(10 - after) {
                let mut log = log();
                log.put_over(&placed(after, events as u32, 9, 50));
                assert_eq!(log.missing(Head(0), Head(10)), None, "{after}+{events}");
                let mut reached = 0;
                for (from, to, segment) in spans(&log) {
                    assert_eq!(from, reached, "{after}+{events}: {:?}", spans(&log));
                    let covered = from >= after && to <= after + events;
                    assert_eq!(segment, if covered { 9 } else { 1 });
                    reached = to;
                }
            }
        }
    }

    #[test]
    fn carrying_a_whole_log_leaves_nothing_where_it_was() {
        let mut log = log();
        for n in 0..10 {
            log.put_over(&placed(n, 1, 9, n * 100));
        }
        assert_eq!(spans(&log), [(0, 10, 9)]);
        log.trim(Head(9));
        assert_eq!(spans(&log), [(0, 10, 9)], "event 10 is still wanted");
        log.trim(Head(10));
        assert_eq!(spans(&log), []);
    }
}
