//! A keyed shuffle of the numbers below `n`, forward and back, without shuffling anything.
//!
//! Lives here: [`Permutation`], which says where each number goes under a key.
//! Stays out: where keys come from (`draw`), and what is done with the order.
//!
//! Everything rests on one keyed function. `pick(round, value, m)` encrypts the 16-byte block
//! `round (1 byte) ‖ value (7 bytes) ‖ n (8 bytes)`, big endian, with AES-128, reads the first
//! 8 bytes as a big endian number `v`, and answers `⌊v · m / 2⁶⁴⌋`: an even choice among
//! `0 … m-1`, but for a relative m · 2⁻⁶⁴, where no m is above 2²⁰.
//!
//! - **Small `n`, up to [`TABLE_MAX`]:** Fisher and Yates's shuffle, written down as a table:
//!   for `j = n-1 … 1` swap the entries `j` and `pick(0, j, j+1)`. Each of the n! orders is
//!   equally likely. A Feistel network is not even on tiny domains (figures in `docs/draw.md`),
//!   and three friends in a small room deserve the same fairness as a stadium.
//! - **Larger `n`:** a Feistel network over a rectangle of `a · b ≥ n` cells, where
//!   `a = ⌈√n⌉` and `b = ⌈n/a⌉`. A number is a row and a column, `x = row · b + column`. Odd
//!   rounds add `pick(round, column, a)` to the row, even rounds add `pick(round, row, b)` to
//!   the column. Whoever lands on a cell beyond `n` goes through the rounds again (cycle
//!   walking; it ends because the rounds are a permutation of the rectangle and the walk began
//!   below `n`). Fewer than `a` cells lie beyond, so about one walk in √n is repeated; over
//!   the next power of four, twenty million people would walk 3.4 times each.
//!
//! `docs/draw.md` tells the same to outsiders, and `docs/vectors/draw.json` holds shuffles made
//! by a second implementation: whoever changes a byte here changes the draws of the past.

use std::fmt;

use aes::cipher::consts::U16;
use aes::cipher::{
    BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, KeyInit,
};
use aes::{Aes128Enc, Block};

/// As many as there can be ticket numbers in a lane.
pub const N_MAX: u64 = 1 << 40;

/// Up to here the order is a table: 8 KiB at most, and a few microseconds to make. The
/// network's unevenness was no longer measurable at a fiftieth of this.
pub const TABLE_MAX: u64 = 1024;

/// As many as NIST's FF1 has for the same task. Four give a pseudorandom permutation to
/// whoever sees few places; here everybody sees all of them in the end, so the margin is taken
/// from practice: it costs tens of nanoseconds.
const ROUNDS: u8 = 10;

/// The round number of the table's choices, which no round of the network has.
const TABLE_ROUND: u8 = 0;

/// How many blocks are encrypted side by side where none waits for another. The widest AES
/// hardware takes this many at once; smaller batches fall back to one at a time there.
const BATCH: usize = 64;

/// A permutation of `0 … n-1` under a key.
#[derive(Clone)]
pub struct Permutation {
    n: u64,
    shuffle: Shuffle,
}

#[derive(Clone)]
enum Shuffle {
    Table { forward: Box<[u16]>, inverse: Box<[u16]> },
    Network { cipher: Aes128Enc, grid: Grid },
}

impl Permutation {
    /// # Panics
    /// When `n` is above [`N_MAX`]. Whoever takes `n` from a stranger checks it first.
    pub fn new(key: [u8; 16], n: u64) -> Self {
        assert!(n <= N_MAX, "a lane has at most 2^40 numbers, not {n}");
        let cipher = Aes128Enc::new(&key.into());
        let shuffle = if n <= TABLE_MAX {
            table(&cipher, n)
        } else {
            Shuffle::Network { cipher, grid: Grid::new(n) }
        };
        Self { n, shuffle }
    }

    /// How many numbers are permuted.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Where number `i` goes.
    ///
    /// # Panics
    /// When `i` is not below `n`: such a number has no place in this order.
    pub fn forward(&self, i: u64) -> u64 {
        self.assert_within(i);
        match &self.shuffle {
            Shuffle::Table { forward, .. } => u64::from(forward[i as usize]),
            Shuffle::Network { cipher, grid } => grid.walk(cipher, i, Direction::There),
        }
    }

    /// Which number goes to place `i`.
    ///
    /// # Panics
    /// When `i` is not below `n`.
    pub fn inverse(&self, i: u64) -> u64 {
        self.assert_within(i);
        match &self.shuffle {
            Shuffle::Table { inverse, .. } => u64::from(inverse[i as usize]),
            Shuffle::Network { cipher, grid } => grid.walk(cipher, i, Direction::Back),
        }
    }

    /// Replaces every number by where it goes: the same as [`Permutation::forward`] one by one,
    /// several times faster. A draw of millions uses this.
    ///
    /// # Panics
    /// When one of the numbers is not below `n`.
    pub fn forward_many(&self, numbers: &mut [u64]) {
        match &self.shuffle {
            Shuffle::Table { .. } => {
                numbers.iter_mut().for_each(|number| *number = self.forward(*number));
            }
            Shuffle::Network { cipher, grid } => {
                numbers.iter().for_each(|&number| self.assert_within(number));
                numbers.chunks_mut(BATCH).for_each(|batch| grid.walk_many(cipher, batch));
            }
        }
    }

    fn assert_within(&self, i: u64) {
        assert!(i < self.n, "{i} is not one of the {} numbers of this order", self.n);
    }
}

/// Says nothing about the key or the order: before the draw is revealed both are secret.
impl fmt::Debug for Permutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permutation").field("n", &self.n).finish_non_exhaustive()
    }
}

/// What `pick` encrypts. A value is below 2⁵⁶ because [`N_MAX`] is, so the round has the first
/// byte to itself.
fn question(n: u64, round: u8, value: u64) -> Block {
    let high = u64::from(round) << 56 | value;
    (u128::from(high) << 64 | u128::from(n)).to_be_bytes().into()
}

/// What `pick` makes of the encrypted block.
fn answer(block: &Block, m: u64) -> u64 {
    let v = u128::from_be_bytes((*block).into()) >> 64;
    ((v * u128::from(m)) >> 64) as u64
}

/// [`question`]s that do not wait for each other, encrypted together.
fn encrypted(cipher: &Aes128Enc, question_at: impl Fn(usize) -> Block) -> [Block; BATCH] {
    let mut blocks = std::array::from_fn(question_at);
    cipher.encrypt_blocks(&mut blocks);
    blocks
}

fn table(cipher: &Aes128Enc, n: u64) -> Shuffle {
    let mut forward: Box<[u16]> = (0..n as u16).collect();
    let mut swaps: Vec<usize> = (1..forward.len()).rev().collect();
    for batch in swaps.chunks_mut(BATCH) {
        let blocks = encrypted(cipher, |at| {
            // The last batch is seldom full; the rest of it is encrypted and ignored.
            question(n, TABLE_ROUND, batch.get(at).map_or(0, |&j| j as u64))
        });
        for (j, block) in batch.iter().zip(&blocks) {
            forward.swap(*j, answer(block, *j as u64 + 1) as usize);
        }
    }
    let mut inverse = vec![0; forward.len()].into_boxed_slice();
    for (number, &place) in forward.iter().enumerate() {
        inverse[usize::from(place)] = number as u16;
    }
    Shuffle::Table { forward, inverse }
}

/// The rectangle that the network shuffles.
#[derive(Clone, Copy)]
struct Grid {
    n: u64,
    rows: u64,
    columns: u64,
}

impl Grid {
    fn new(n: u64) -> Self {
        let floor = n.isqrt();
        let rows = if floor * floor == n { floor } else { floor + 1 };
        Self { n, rows, columns: n.div_ceil(rows) }
    }

    fn walk(self, cipher: &Aes128Enc, number: u64, direction: Direction) -> u64 {
        let mut at = number;
        cipher.encrypt_with_backend(Walk { grid: self, direction, at: &mut at });
        at
    }

    /// [`Grid::walk`] there, for up to [`BATCH`] numbers, a round at a time. The few that land
    /// beyond `n` walk on alone.
    fn walk_many(self, cipher: &Aes128Enc, numbers: &mut [u64]) {
        let mut rows = [0; BATCH];
        let mut columns = [0; BATCH];
        for (at, &number) in numbers.iter().enumerate() {
            (rows[at], columns[at]) = self.cell(number);
        }
        for round in 1..=ROUNDS {
            let (read, written, m) = if turns_rows(round) {
                (&columns, &mut rows, self.rows)
            } else {
                (&rows, &mut columns, self.columns)
            };
            let blocks = encrypted(cipher, |at| question(self.n, round, read[at]));
            for (value, block) in written.iter_mut().zip(&blocks) {
                *value = add(*value, answer(block, m), m);
            }
        }
        for (at, number) in numbers.iter_mut().enumerate() {
            *number = self.number((rows[at], columns[at]));
            if *number >= self.n {
                *number = self.walk(cipher, *number, Direction::There);
            }
        }
    }

    fn there(self, number: u64, pick: impl Fn(u8, u64, u64) -> u64) -> u64 {
        let (mut row, mut column) = self.cell(number);
        for round in 1..=ROUNDS {
            if turns_rows(round) {
                row = add(row, pick(round, column, self.rows), self.rows);
            } else {
                column = add(column, pick(round, row, self.columns), self.columns);
            }
        }
        self.number((row, column))
    }

    fn back(self, place: u64, pick: impl Fn(u8, u64, u64) -> u64) -> u64 {
        let (mut row, mut column) = self.cell(place);
        for round in (1..=ROUNDS).rev() {
            if turns_rows(round) {
                row = subtract(row, pick(round, column, self.rows), self.rows);
            } else {
                column = subtract(column, pick(round, row, self.columns), self.columns);
            }
        }
        self.number((row, column))
    }

    fn cell(self, number: u64) -> (u64, u64) {
        (number / self.columns, number % self.columns)
    }

    fn number(self, (row, column): (u64, u64)) -> u64 {
        row * self.columns + column
    }
}

/// Odd rounds change the row, even ones the column.
fn turns_rows(round: u8) -> bool {
    round % 2 == 1
}

/// Both are below `m` and `m` is far below 2⁶³, so the sum does not overflow; a comparison is
/// cheaper than a division.
fn add(x: u64, y: u64, m: u64) -> u64 {
    let sum = x + y;
    if sum >= m { sum - m } else { sum }
}

fn subtract(x: u64, y: u64, m: u64) -> u64 {
    if x >= y { x - y } else { x + m - y }
}

#[derive(Clone, Copy)]
enum Direction {
    There,
    Back,
}

/// One number's way through the rounds until it is below `n` again.
///
/// It is handed to the cipher as a whole, because the cipher prepares its wide registers at
/// every call: ten calls cost three times what the ten blocks do.
struct Walk<'a> {
    grid: Grid,
    direction: Direction,
    at: &'a mut u64,
}

impl BlockSizeUser for Walk<'_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for Walk<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let pick = |round, value, m| {
            let mut block = question(self.grid.n, round, value);
            backend.encrypt_block((&mut block).into());
            answer(&block, m)
        };
        loop {
            *self.at = match self.direction {
                Direction::There => self.grid.there(*self.at, pick),
                Direction::Back => self.grid.back(*self.at, pick),
            };
            if *self.at < self.grid.n {
                break;
            }
        }
    }
}
