//! The fingerprint table beside an ordered map: same answers, and clones that never change.
//! The identity column of these tests panics when it is asked for a value it does not hold, so
//! they also promise that the table never looks where nothing is.

use proptest::prelude::*;
use std::collections::BTreeMap;
use waitroom_core::fingerprints::{Fingerprint, Fingerprints, VALUE_MAX};

/// What a room has: the table, and the column it reads. `held` is the model.
#[derive(Clone, Debug, Default)]
struct Identities {
    table: Fingerprints,
    column: BTreeMap<u64, Fingerprint>,
    held: BTreeMap<Fingerprint, u64>,
    given: u64,
}

impl Identities {
    fn find(&self, hash: &Fingerprint) -> Option<u64> {
        self.table.find(hash, |value| self.column[&value])
    }

    fn insert(&mut self, hash: Fingerprint) {
        let value =
            if self.given.is_multiple_of(2) { self.given } else { VALUE_MAX + 1 - self.given };
        self.given += 1;
        let before = self.table.insert(&hash, value, |value| self.column[&value]);
        assert_eq!(before, self.held.insert(hash, value));
        if let Some(before) = before {
            assert!(!self.table.remove(&hash, before), "the value before is gone");
            self.column.remove(&before);
        }
        self.column.insert(value, hash);
    }

    fn remove(&mut self, hash: Fingerprint) {
        let value = self.held.remove(&hash);
        for wrong in [self.given, VALUE_MAX / 2, VALUE_MAX + 1, u64::MAX] {
            assert!(!self.table.remove(&hash, wrong), "not held: {wrong}");
        }
        if let Some(value) = value {
            // The identity may be gone already: removing asks for none.
            self.column.remove(&value);
            assert!(self.table.remove(&hash, value));
            assert!(!self.table.remove(&hash, value));
        }
    }

    fn check(&self, ids: u64) {
        assert_eq!(self.table.len(), self.held.len() as u64);
        assert_eq!(self.table.is_empty(), self.held.is_empty());
        for id in 0..ids {
            let hash = hash(id);
            assert_eq!(self.find(&hash), self.held.get(&hash).copied(), "id {id}");
        }
    }
}

/// Every kind of likeness that could confuse the table: most hashes look random, some agree in
/// all bits that choose a bucket, some in the first half of the hash and so in the tag too.
fn hash(id: u64) -> Fingerprint {
    let (a, b) = (mixed(id), mixed(id ^ 0xABCD_EF01_2345_6789));
    let first = match id % 16 {
        0 => a & 0xFFFF << 48,
        1 => 7,
        2 => u64::MAX,
        _ => a,
    };
    let mut hash = [0; 16];
    hash[..8].copy_from_slice(&first.to_le_bytes());
    hash[8..].copy_from_slice(&b.to_le_bytes());
    hash
}

/// A bijection that leaves no pattern, so that different ids have different hashes.
fn mixed(id: u64) -> u64 {
    let mut x = id.wrapping_add(0x9E37_79B9_7F4A_7C15);
    for (shift, factor) in [(30, 0xBF58_476D_1CE4_E5B9), (27, 0x94D0_49BB_1331_11EB), (31, 1)] {
        x = (x ^ x >> shift).wrapping_mul(factor);
    }
    x
}

const IDS: u64 = 6_000;

#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    InsertMany(u64, u64),
    Remove(u64),
    RemoveMany(u64, u64),
    KeepClone,
    ContinueFromClone(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let id = || 0..IDS;
    prop_oneof![
        4 => id().prop_map(Step::Insert),
        4 => (id(), 0..2_000u64).prop_map(|(id, count)| Step::InsertMany(id, count)),
        4 => id().prop_map(Step::Remove),
        3 => (id(), 0..3_000u64).prop_map(|(id, count)| Step::RemoveMany(id, count)),
        2 => Just(Step::KeepClone),
        1 => any::<usize>().prop_map(Step::ContinueFromClone),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn it_behaves_like_a_map_and_clones_never_change(
        capacity in 0..20_000u64,
        steps in prop::collection::vec(step(), 1..30),
    ) {
        let table = Fingerprints::with_capacity(if capacity % 2 == 0 { 0 } else { capacity });
        let mut now = Identities { table, ..Identities::default() };
        let mut kept: Vec<Identities> = Vec::new();
        for step in steps {
            match step {
                Step::Insert(id) => now.insert(hash(id)),
                Step::InsertMany(id, count) => {
                    (id..id + count).for_each(|id| now.insert(hash(id % IDS)));
                }
                Step::Remove(id) => now.remove(hash(id)),
                Step::RemoveMany(id, count) => {
                    (id..id + count).for_each(|id| now.remove(hash(id % IDS)));
                }
                Step::KeepClone if kept.len() < 4 => kept.push(now.clone()),
                Step::ContinueFromClone(at) if !kept.is_empty() => {
                    now = kept[at % kept.len()].clone();
                }
                _ => {}
            }
        }
        now.check(IDS);
        kept.iter().for_each(|kept| kept.check(IDS));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_table_made_whole_is_the_one_that_arrivals_make(
        ids in prop::collection::vec(0..IDS, 0..3_000),
        more in prop::collection::vec(0..IDS, 0..300),
    ) {
        // Whoever comes twice is found under the newer value.
        let column: BTreeMap<u64, Fingerprint> = (0..).zip(ids).map(|(n, id)| (n, hash(id))).collect();
        let entries = || column.iter().map(|(&value, &hash)| (hash, value));
        let table = Fingerprints::gathered(entries, |value| column[&value]);
        let held: BTreeMap<Fingerprint, u64> = entries().collect();
        let given = column.len() as u64 + column.len() as u64 % 2;
        let column = held.iter().map(|(&hash, &value)| (value, hash)).collect();
        let mut made = Identities { table, column, held, given };
        made.check(IDS);
        for id in more {
            made.remove(hash(id));
            made.insert(hash((id * 7) % IDS));
        }
        made.check(IDS);
    }
}

/// Random hashes without likenesses, with the value as their own identity: no column needed.
fn plain(value: u64) -> Fingerprint {
    let mut hash = [0; 16];
    hash[..8].copy_from_slice(&mixed(value).to_le_bytes());
    hash
}

/// Large enough for the table to find in the tags who moves, more than 2^16 buckets of 48, and to be
/// gathered in more than one go.
const LARGE: u64 = 4_200_000;

#[test]
fn an_entry_costs_at_most_eleven_bytes_at_any_size() {
    let mut table = Fingerprints::new();
    let mut check_at = 1_000;
    for value in 0..LARGE {
        assert_eq!(table.insert(&plain(value), value, plain), None);
        if table.len() == check_at {
            check_at += check_at / 16;
            let bytes = table.resident_bytes() as u64;
            assert!(bytes <= 11 * table.len(), "{bytes} bytes for {} entries", table.len());
        }
    }
    for value in (0..LARGE).step_by(3) {
        assert_eq!(table.find(&plain(value), plain), Some(value));
    }
}

#[test]
fn a_large_table_made_whole_holds_everybody_in_as_few_bytes() {
    let table = Fingerprints::gathered(|| (0..LARGE).map(|value| (plain(value), value)), plain);
    assert_eq!(table.len(), LARGE);
    let bytes = table.resident_bytes() as u64;
    assert!(bytes <= 11 * LARGE, "{bytes} bytes for {LARGE} entries");
    for value in 0..LARGE {
        assert_eq!(table.find(&plain(value), plain), Some(value));
    }
    assert_eq!(table.find(&plain(LARGE), plain), None);
}

#[test]
fn a_table_that_empties_gives_its_memory_back() {
    let mut table = Fingerprints::new();
    (0..200_000).for_each(|value| assert_eq!(table.insert(&plain(value), value, plain), None));
    (0..199_000).for_each(|value| assert!(table.remove(&plain(value), value)));
    assert!(table.resident_bytes() < 100_000, "{} bytes", table.resident_bytes());
    (199_000..200_000).for_each(|value| assert_eq!(table.find(&plain(value), plain), Some(value)));
}

#[test]
fn no_single_insert_moves_more_than_a_few_hundred_entries() {
    use std::cell::Cell;
    let mut table = Fingerprints::new();
    let mut most = 0;
    for value in 0..200_000 {
        let asked = Cell::new(0);
        let key_of = |value| {
            asked.set(asked.get() + 1);
            plain(value)
        };
        table.insert(&plain(value), value, key_of);
        most = most.max(asked.get());
    }
    assert!((50..300).contains(&most), "{most} identities read for one insert");
}

#[test]
fn hashes_that_agree_in_every_bit_looked_at_are_still_told_apart() {
    let alike = |value: u64| {
        let mut hash = [0xA5; 16];
        hash[8..].copy_from_slice(&value.to_le_bytes());
        hash
    };
    let mut table = Fingerprints::new();
    (0..3_000).for_each(|value| assert_eq!(table.insert(&alike(value), value, alike), None));
    (0..3_000).for_each(|value| assert_eq!(table.find(&alike(value), alike), Some(value)));
    assert!(table.resident_bytes() < 3_000 * 12, "{} bytes", table.resident_bytes());
    (0..3_000).for_each(|value| assert!(table.remove(&alike(value), value)));
    assert!(table.is_empty() && table.resident_bytes() < 2_000, "{}", table.resident_bytes());
}

#[test]
fn a_small_room_pays_for_a_line() {
    let mut table = Fingerprints::new();
    (0..3).for_each(|value| assert_eq!(table.insert(&plain(value), value, plain), None));
    let three = table.resident_bytes();
    assert!(three <= 300, "{three} bytes");
    (0..3).for_each(|value| assert!(table.remove(&plain(value), value)));
    assert!(table.resident_bytes() <= three - 64, "an empty room gives the line back");
}

#[test]
#[should_panic(expected = "more than 48 bits")]
fn a_value_that_does_not_fit_is_a_mistake() {
    Fingerprints::new().insert(&[0; 16], VALUE_MAX + 1, plain);
}
