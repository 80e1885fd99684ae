//! Seats and the hall they stand in.
//!
//! Seats are numbered from 1; rows of twenty, parts of ten rows. A page shows one part, so that
//! the largest hall is no larger a page than a small one.

use std::fmt;

pub const ROW: u32 = 20;
pub const PART: u32 = 10 * ROW;

/// More than any stadium has; what a demo is asked for by mistake.
pub const SEATS_MAX: u32 = 200_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat(pub u32);

impl Seat {
    /// The row's letters: A to Z, then AA, AB …
    pub fn row(self) -> String {
        let mut row = (self.0.saturating_sub(1)) / ROW;
        let mut letters = Vec::new();
        loop {
            letters.push(char::from(b'A' + (row % 26) as u8));
            if row < 26 {
                break;
            }
            row = row / 26 - 1;
        }
        letters.iter().rev().collect()
    }

    /// Where in the row, from 1.
    pub fn chair(self) -> u32 {
        (self.0.saturating_sub(1)) % ROW + 1
    }
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.row(), self.chair())
    }
}

/// How many seats there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hall {
    seats: u32,
}

impl Hall {
    /// None for a hall without seats, or one that cannot be meant.
    pub fn new(seats: u32) -> Option<Hall> {
        (1..=SEATS_MAX).contains(&seats).then_some(Hall { seats })
    }

    pub fn seats(self) -> u32 {
        self.seats
    }

    pub fn has(self, seat: Seat) -> bool {
        (1..=self.seats).contains(&seat.0)
    }

    pub fn parts(self) -> u32 {
        self.seats.div_ceil(PART)
    }

    /// The seats of a part, counted from 0.
    pub fn part(self, part: u32) -> impl Iterator<Item = Seat> {
        let first = part.saturating_mul(PART) + 1;
        let last = first.saturating_add(PART - 1).min(self.seats);
        (first..=last).map(Seat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_called_by_row_and_chair() {
        let names = [1, 20, 21, 520, 521, 541, 14_040, 14_041].map(|n| Seat(n).to_string());
        assert_eq!(names, ["A1", "A20", "B1", "Z20", "AA1", "AB1", "ZZ20", "AAA1"]);
    }

    #[test]
    fn every_seat_stands_in_one_part() {
        for seats in [1, 19, 200, 201, 999] {
            let hall = Hall::new(seats).expect("a hall");
            let all: Vec<u32> =
                (0..hall.parts()).flat_map(|it| hall.part(it)).map(|it| it.0).collect();
            assert_eq!(all, (1..=seats).collect::<Vec<_>>());
        }
        assert_eq!(Hall::new(0), None);
        assert_eq!(Hall::new(SEATS_MAX + 1), None);
    }
}
