//! The keyed permutation: every number has one place, and every place is equally likely.
//!
//! The statistics run over fixed keys, so they pass or fail once and for all; a fair shuffle
//! would have failed one choice of keys in a million.

use proptest::prelude::*;
use waitroom_core::permutation::{N_MAX, Permutation, TABLE_MAX};

#[test]
fn every_number_up_to_three_hundred_people_has_one_place_under_every_key() {
    for n in 0..=300 {
        for key in 0..5 {
            assert_bijection(&Permutation::new(key_number(key), n));
        }
    }
}

/// On both sides of the table's end, of a square (nobody walks twice) and of a full rectangle.
#[test]
fn every_number_of_a_network_has_one_place_too() {
    for n in [TABLE_MAX - 1, TABLE_MAX, TABLE_MAX + 1, 1088, 1089, 1090, 1122, 1123, 20_011] {
        for key in 0..3 {
            assert_bijection(&Permutation::new(key_number(key), n));
        }
    }
}

#[test]
fn nobody_and_one_person_need_no_draw() {
    let nobody = Permutation::new(key_number(1), 0);
    assert_eq!(nobody.n(), 0);
    nobody.forward_many(&mut []);
    let alone = Permutation::new(key_number(1), 1);
    assert_eq!((alone.forward(0), alone.inverse(0)), (0, 0));
}

#[test]
fn a_number_that_took_no_part_has_no_place() {
    for n in [0, 1, TABLE_MAX, TABLE_MAX + 1, N_MAX] {
        let order = Permutation::new(key_number(1), n);
        assert!(panics(|| order.forward(n)), "forward, n = {n}");
        assert!(panics(|| order.inverse(n)), "inverse, n = {n}");
        assert!(panics(|| order.forward_many(&mut [n])), "forward_many, n = {n}");
    }
    assert!(panics(|| Permutation::new(key_number(1), N_MAX + 1)));
}

#[test]
fn debug_output_keeps_the_order_to_itself() {
    let order = Permutation::new(key_number(1), 3);
    assert_eq!(format!("{order:?}"), "Permutation { n: 3, .. }");
}

#[test]
fn every_place_is_equally_likely_for_everyone_in_a_small_draw() {
    const KEYS: u64 = 50_000;
    for n in [2, 3, 5, 10, 37] {
        let mut places = vec![vec![0; n as usize]; n as usize];
        for key in 0..KEYS {
            let order = Permutation::new(key_number(key), n);
            for number in 0..n {
                places[number as usize][order.forward(number) as usize] += 1;
            }
        }
        for (number, counts) in places.iter().enumerate() {
            assert_even(counts, &format!("number {number} of {n}"));
        }
    }
}

#[test]
fn every_order_of_three_and_of_four_and_of_five_people_is_equally_likely() {
    const KEYS: u64 = 200_000;
    for n in [3, 4, 5] {
        let mut orders = vec![0; (1..=n).product::<u64>() as usize];
        for key in 0..KEYS {
            let order = Permutation::new(key_number(key), n);
            let places: Vec<u64> = (0..n).map(|number| order.forward(number)).collect();
            orders[rank(&places)] += 1;
        }
        assert_even(&orders, &format!("orders of {n}"));
    }
}

/// Friends who join together must not be drawn together or apart: two numbers of one row, of
/// one column and of neither, in the smallest network and in a large one.
#[test]
fn neighbours_in_arrival_are_strangers_in_the_draw() {
    const KEYS: u64 = 40_000;
    for n in [TABLE_MAX + 1, 5_000, 20_000_000] {
        let columns = n.div_ceil((n - 1).isqrt() + 1);
        for distance in [1, 2, columns, columns + 1, n / 2] {
            let mut firsts = Stripes::over(n);
            let mut seconds = Stripes::over(n);
            // Two people never share a place, so there are n - 1 differences.
            let mut differences = Stripes::over(n - 1);
            for key in 0..KEYS {
                let order = Permutation::new(key_number(key), n);
                let (first, second) = (order.forward(0), order.forward(distance));
                firsts.count(first);
                seconds.count(second);
                differences.count((second + n - first) % n - 1);
            }
            firsts.assert_even(&format!("0 of {n}"));
            seconds.assert_even(&format!("{distance} of {n}"));
            differences.assert_even(&format!("from 0 to {distance} of {n}"));
        }
    }
}

/// Arrival and place have nothing to do with each other within one draw either. Spearman's rank
/// correlation of n fair places has a standard deviation of 1/√n.
#[test]
fn coming_early_does_not_help_in_a_draw() {
    const N: u64 = 100_000;
    for key in 0..5 {
        let order = Permutation::new(key_number(key), N);
        let mut places: Vec<u64> = (0..N).collect();
        order.forward_many(&mut places);
        let squares: u128 =
            (0..N).zip(&places).map(|(i, &p)| u128::from(i.abs_diff(p)).pow(2)).sum();
        let n = N as f64;
        let correlation = 1.0 - 6.0 * squares as f64 / (n * (n * n - 1.0));
        assert!(correlation.abs() < 4.5 / n.sqrt(), "key {key}: {correlation}");
    }
}

proptest! {
    #[test]
    fn forward_and_inverse_undo_each_other_for_any_size(
        key in any::<[u8; 16]>(),
        (n, i) in (1..=N_MAX).prop_flat_map(|n| (Just(n), 0..n)),
    ) {
        let order = Permutation::new(key, n);
        let place = order.forward(i);
        prop_assert!(place < n);
        prop_assert_eq!(order.inverse(place), i);
        prop_assert_eq!(order.forward(order.inverse(i)), i);
    }

    #[test]
    fn many_at_once_go_where_each_would_go_alone(
        key in any::<[u8; 16]>(),
        n in prop_oneof![1..3_000u64, 1..=N_MAX],
        mut numbers in prop::collection::vec(any::<u64>(), 0..200),
    ) {
        let order = Permutation::new(key, n);
        numbers.iter_mut().for_each(|number| *number %= n);
        let alone: Vec<u64> = numbers.iter().map(|&number| order.forward(number)).collect();
        order.forward_many(&mut numbers);
        prop_assert_eq!(numbers, alone);
    }

    /// In a draw of some size, two keys that agree on all of the first twenty places would be
    /// one key: the order hangs on every bit of it.
    #[test]
    fn every_bit_of_the_key_counts(key in any::<[u8; 16]>(), bit in 0..128u32, n in 100..1_000_000u64) {
        let other = (u128::from_be_bytes(key) ^ 1u128 << bit).to_be_bytes();
        let [ours, theirs] = [key, other].map(|key| {
            let order = Permutation::new(key, n);
            (0..20).map(|number| order.forward(number)).collect::<Vec<_>>()
        });
        prop_assert_ne!(ours, theirs);
    }
}

fn key_number(number: u64) -> [u8; 16] {
    u128::from(number).to_be_bytes()
}

fn assert_bijection(order: &Permutation) {
    let n = order.n();
    let mut taken = vec![false; n as usize];
    let mut many: Vec<u64> = (0..n).collect();
    order.forward_many(&mut many);
    for number in 0..n {
        let place = order.forward(number);
        assert!(place < n, "{number} of {n} went to {place}");
        assert!(!taken[place as usize], "place {place} of {n} was given twice");
        taken[place as usize] = true;
        assert_eq!(order.inverse(place), number, "n = {n}");
        assert_eq!(many[number as usize], place, "n = {n}");
    }
}

/// Counts of what falls into each of twenty stripes of a range, as equal as integers allow.
struct Stripes {
    range: u64,
    counts: Vec<u64>,
}

impl Stripes {
    const NUMBER: u64 = 20;

    fn over(range: u64) -> Self {
        Self { range, counts: vec![0; Self::NUMBER as usize] }
    }

    fn count(&mut self, value: u64) {
        self.counts[(value * Self::NUMBER / self.range) as usize] += 1;
    }

    fn assert_even(&self, what: &str) {
        let bound = |stripe: u64| (stripe * self.range).div_ceil(Self::NUMBER);
        let widths: Vec<f64> =
            (0..Self::NUMBER).map(|stripe| (bound(stripe + 1) - bound(stripe)) as f64).collect();
        assert_fair(&self.counts, &widths, what);
    }
}

fn assert_even(counts: &[u64], what: &str) {
    assert_fair(counts, &vec![1.0; counts.len()], what);
}

/// Pearson's chi-square of the counts against the weights: no further above its mean than a
/// fair shuffle gets once in a million times (Wilson and Hilferty: its cube root is nearly
/// normal).
fn assert_fair(counts: &[u64], weights: &[f64], what: &str) {
    let per_weight = counts.iter().sum::<u64>() as f64 / weights.iter().sum::<f64>();
    let chi_square: f64 = counts
        .iter()
        .zip(weights)
        .map(|(&count, weight)| {
            (count as f64 - weight * per_weight).powi(2) / (weight * per_weight)
        })
        .sum();
    let freedom = (counts.len() - 1) as f64;
    let spread = 2.0 / (9.0 * freedom);
    let deviations = ((chi_square / freedom).cbrt() - (1.0 - spread)) / spread.sqrt();
    assert!(deviations < 4.75, "{what}: {deviations:.1} deviations, counts {counts:?}");
}

/// The place of an order among all orders of as many people.
fn rank(places: &[u64]) -> usize {
    places.iter().enumerate().fold(0, |rank, (at, place)| {
        let smaller_later = places[at + 1..].iter().filter(|&later| later < place).count();
        rank * (places.len() - at) + smaller_later
    })
}

fn panics<T>(act: impl FnOnce() -> T) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).is_err()
}
