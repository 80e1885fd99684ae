//! One lane's queue as bits in order space: bit `order` is 1 while that ticket waits.
//!
//! A draw splits it: orders below `split` belong to those who joined before the start and are
//! held in `drawn`; everyone later is in `rest`. The two are separate so that the drawn part can
//! be built beside the writer and swapped in at once while people go on joining behind it.
//! Until the draw is made, `drawn` is still in the order of numbers.

use crate::bitmap::Bitmap;

#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) drawn: Bitmap,
    pub(crate) split: u64,
    pub(crate) rest: Bitmap,
}

impl Line {
    #[inline]
    pub(crate) fn push(&mut self) {
        self.rest.push_one();
    }

    /// How many wait before this index.
    #[inline]
    pub(crate) fn rank(&self, index: u64) -> u64 {
        if index < self.split {
            self.drawn.rank(index)
        } else {
            self.drawn.ones() + self.rest.rank(index - self.split)
        }
    }

    #[inline]
    pub(crate) fn waits(&self, index: u64) -> bool {
        if index < self.split { self.drawn.get(index) } else { self.rest.get(index - self.split) }
    }

    pub(crate) fn ones(&self) -> u64 {
        self.drawn.ones() + self.rest.ones()
    }

    /// The waiting index with so many waiting ones before it.
    pub(crate) fn select(&self, rank: u64) -> Option<u64> {
        match rank.checked_sub(self.drawn.ones()) {
            None => self.drawn.select(rank),
            Some(rank) => self.rest.select(rank).map(|index| index + self.split),
        }
    }

    pub(crate) fn count(&self, from: u64, to: u64) -> u64 {
        self.rank(to) - self.rank(from)
    }

    pub(crate) fn clear(&mut self, index: u64) {
        let was = if index < self.split {
            self.drawn.clear(index)
        } else {
            self.rest.clear(index - self.split)
        };
        debug_assert!(was, "only a waiting ticket leaves the line");
    }

    /// The next `count` waiting indexes in order, below `limit`.
    pub(crate) fn first(&self, count: usize, limit: u64, out: &mut Vec<u64>) {
        let begin = out.len();
        if let Some(first) = self.drawn.first_one() {
            self.drawn.next_ones(first, count, out);
        }
        let left = count - (out.len() - begin);
        if left > 0
            && let Some(first) = self.rest.first_one()
        {
            let tail = out.len();
            self.rest.next_ones(first, left, out);
            for index in &mut out[tail..] {
                *index += self.split;
            }
        }
        while out.len() > begin && out[out.len() - 1] >= limit {
            out.pop();
        }
    }

    /// Everyone so far takes part in the draw; the line goes on behind them.
    pub(crate) fn split_here(&mut self) {
        debug_assert_eq!(self.split, 0, "a lane is drawn once");
        self.drawn = std::mem::take(&mut self.rest);
        self.split = self.drawn.len();
    }

    pub(crate) fn shuffle(&mut self, start: u64, len: u64, to: impl Fn(u64) -> u64) {
        self.rest.permute_range(start - self.split, len, to);
    }

    /// Nobody waits any more; the indexes stay used.
    pub(crate) fn close(&mut self) {
        for bits in [&mut self.drawn, &mut self.rest] {
            let len = bits.len();
            *bits = Bitmap::new();
            bits.extend_zeros(len);
        }
    }
}
