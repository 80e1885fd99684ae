//! The bitmap beside a plain vector of bools: same operations, same answers, and clones that
//! never change.

use proptest::prelude::*;
use waitroom_core::bitmap::{BLOCK_BITS, Bitmap};

/// The bits of a leaf of the directory, so that tests cross its border.
const LEAF: u64 = 32 * BLOCK_BITS;

#[derive(Clone, Debug)]
enum Step {
    PushOnes(u32),
    ExtendOnes(u64),
    ExtendZeros(u64),
    Set(u64),
    Clear(u64),
    ClearRange(u64, u64),
    ClearFirst(u32),
    Permute(u64, u64, u64),
    PutBlock(u64, Vec<u64>),
    KeepClone,
    ContinueFromClone(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..2_000u32).prop_map(Step::PushOnes),
        3 => (0..2 * BLOCK_BITS).prop_map(Step::ExtendOnes),
        1 => (0..LEAF + BLOCK_BITS).prop_map(Step::ExtendOnes),
        2 => (0..2 * BLOCK_BITS).prop_map(Step::ExtendZeros),
        1 => (0..LEAF + BLOCK_BITS).prop_map(Step::ExtendZeros),
        6 => any::<u64>().prop_map(Step::Set),
        6 => any::<u64>().prop_map(Step::Clear),
        3 => (any::<u64>(), 0..2_000u64).prop_map(|(at, count)| Step::ClearRange(at, count)),
        1 => (any::<u64>(), 0..LEAF).prop_map(|(at, count)| Step::ClearRange(at, count)),
        3 => (0..3_000u32).prop_map(Step::ClearFirst),
        2 => (any::<u64>(), 1..2_000u64, any::<u64>())
            .prop_map(|(at, count, shift)| Step::Permute(at, count, shift)),
        2 => (any::<u64>(), prop::collection::vec(any::<u64>(), 0..512))
            .prop_map(|(at, words)| Step::PutBlock(at, words)),
        3 => Just(Step::KeepClone),
        1 => any::<usize>().prop_map(Step::ContinueFromClone),
    ]
}

/// Compares every answer, at every place where a level of the counts begins or ends and at some
/// between.
fn same(bitmap: &Bitmap, model: &[bool]) -> Result<(), TestCaseError> {
    let ones: Vec<u64> =
        model.iter().enumerate().filter(|(_, one)| **one).map(|(at, _)| at as u64).collect();
    let len = model.len() as u64;
    prop_assert_eq!(bitmap.len(), len);
    prop_assert_eq!(bitmap.is_empty(), len == 0);
    prop_assert_eq!(bitmap.ones(), ones.len() as u64);
    prop_assert_eq!(bitmap.first_one(), ones.first().copied());
    prop_assert!(bitmap.ones_from(0).eq(ones.iter().copied()), "ones");

    let places = (0..len + 3).filter(|at| {
        let in_line = at % 512;
        in_line <= 1 || in_line == 511 || at % 997 == 0 || *at >= len.saturating_sub(70)
    });
    let mut rank = 0;
    let mut counted = 0;
    for at in places {
        while counted < at.min(len) {
            rank += u64::from(model[counted as usize]);
            counted += 1;
        }
        prop_assert_eq!(bitmap.rank(at), rank, "rank({})", at);
        let one = model.get(at as usize).copied().unwrap_or(false);
        prop_assert_eq!(bitmap.get(at), one, "get({})", at);
        if one {
            prop_assert_eq!(bitmap.select(rank), Some(at));
        }
        prop_assert_eq!(bitmap.ones_from(at).next(), ones.get(rank as usize).copied());
    }
    prop_assert_eq!(bitmap.select(ones.len() as u64), None);
    prop_assert_eq!(bitmap.rank(u64::MAX), ones.len() as u64);
    prop_assert_eq!(bitmap.ones_from(u64::MAX).next(), None);

    let (from, to) = (len / 3, len / 3 + 1_000);
    let inside = ones.iter().filter(|&&at| from <= at && at < to);
    prop_assert_eq!(bitmap.count_range(from, to), inside.clone().count() as u64);
    prop_assert_eq!(bitmap.count_range(to, from), 0);
    let mut some = vec![7];
    bitmap.next_ones(from, 100, &mut some);
    prop_assert!(some[1..].iter().eq(ones.iter().filter(|&&at| at >= from).take(100)));

    let mut read = Bitmap::new();
    read.extend_zeros(len);
    for (index, words) in bitmap.blocks() {
        prop_assert!(words.last().is_some_and(|&word| word != 0), "no zeros at the end");
        read.put_block(index, words);
    }
    prop_assert!(read == *bitmap, "written out and read back");
    prop_assert_eq!(read.ones(), bitmap.ones());
    prop_assert_eq!(read.rank(len / 2), bitmap.rank(len / 2));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn it_behaves_like_a_vector_of_bools_and_clones_never_change(
        steps in prop::collection::vec(step(), 1..40)
    ) {
        let mut bitmap = Bitmap::new();
        let mut model = Vec::<bool>::new();
        let mut kept: Vec<(Bitmap, Vec<bool>)> = Vec::new();
        for step in steps {
            let len = model.len() as u64;
            match step {
                Step::PushOnes(count) => {
                    (0..count).for_each(|_| bitmap.push_one());
                    model.resize(model.len() + count as usize, true);
                }
                Step::ExtendOnes(more) => {
                    bitmap.extend_ones(len + more);
                    bitmap.extend_ones(len);
                    model.resize((len + more) as usize, true);
                }
                Step::ExtendZeros(more) => {
                    bitmap.extend_zeros(len + more);
                    bitmap.extend_zeros(len);
                    model.resize((len + more) as usize, false);
                }
                Step::Set(at) if len > 0 => {
                    let bit = &mut model[(at % len) as usize];
                    prop_assert_eq!(bitmap.set(at % len), !*bit);
                    *bit = true;
                }
                Step::Clear(at) if len > 0 => {
                    let bit = &mut model[(at % len) as usize];
                    prop_assert_eq!(bitmap.clear(at % len), *bit);
                    *bit = false;
                }
                Step::ClearRange(at, count) if len > 0 => {
                    for index in at % len..(at % len + count).min(len) {
                        let bit = &mut model[index as usize];
                        prop_assert_eq!(bitmap.clear(index), *bit);
                        *bit = false;
                    }
                }
                Step::ClearFirst(count) => {
                    let mut expected = 0;
                    for _ in 0..count {
                        let Some(first) = bitmap.first_one() else { break };
                        expected += model[expected..].iter().position(|one| *one).unwrap();
                        prop_assert_eq!(first, expected as u64);
                        bitmap.clear(first);
                        model[expected] = false;
                    }
                }
                Step::Permute(at, count, shift) if len > 0 => {
                    let start = at % len;
                    let count = count.min(len - start);
                    let shift = shift % count;
                    bitmap.permute_range(start, count, |offset| (offset + shift) % count);
                    model[start as usize..][..count as usize].rotate_right(shift as usize);
                }
                Step::PutBlock(at, words) if len >= BLOCK_BITS => {
                    let block = at % (len / BLOCK_BITS);
                    bitmap.put_block(block, &words);
                    let bits = &mut model[(block * BLOCK_BITS) as usize..][..BLOCK_BITS as usize];
                    for (at, bit) in bits.iter_mut().enumerate() {
                        *bit = words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1);
                    }
                }
                Step::KeepClone if kept.len() < 4 => kept.push((bitmap.clone(), model.clone())),
                Step::ContinueFromClone(at) if !kept.is_empty() => {
                    let at = at % kept.len();
                    (bitmap, model) = kept[at].clone();
                }
                _ => {}
            }
        }
        same(&bitmap, &model)?;
        for (before, before_model) in &kept {
            same(before, before_model)?;
            let mut gone = vec![7];
            before.ones_missing_in(&bitmap, &mut gone);
            let stays = |at: &usize| model.get(*at).copied().unwrap_or(false);
            let left = (0..before_model.len()).filter(|at| before_model[*at] && !stays(at));
            prop_assert!(gone[1..].iter().copied().eq(left.map(|at| at as u64)), "who left");
        }
    }
}

#[test]
fn a_write_after_a_clone_copies_its_own_block_only() {
    let mut bitmap = Bitmap::new();
    bitmap.extend_ones(2 * LEAF + 5);
    let kept = bitmap.clone();
    assert!(bitmap.clear(LEAF + 7));
    bitmap.push_one();
    assert!(!bitmap.set(3) && !bitmap.clear(LEAF + 7), "nothing to do, nothing to copy");
    for block in 0..=2 * LEAF / BLOCK_BITS {
        let changed = block == LEAF / BLOCK_BITS || block == 2 * LEAF / BLOCK_BITS;
        assert_eq!(bitmap.same_block(&kept, block), !changed, "block {block}");
    }
    assert_eq!((kept.len(), kept.ones(), kept.get(LEAF + 7)), (2 * LEAF + 5, 2 * LEAF + 5, true));
}

#[test]
fn a_position_is_the_number_of_ones_strictly_before() {
    let mut bitmap = Bitmap::new();
    bitmap.extend_ones(1_000);
    bitmap.clear(10);
    assert_eq!([9, 10, 11, 999].map(|order| bitmap.rank(order)), [9, 10, 10, 998]);
}

#[test]
fn twenty_million_bits_cost_at_most_fourteen_hundredths_of_a_byte_each() {
    let mut bitmap = Bitmap::new();
    bitmap.extend_ones(20_000_000);
    assert!(bitmap.resident_bytes() <= 20_000_000 * 14 / 100, "{}", bitmap.resident_bytes());
}

#[test]
fn three_tickets_do_not_pay_for_a_block() {
    let mut bitmap = Bitmap::new();
    (0..3).for_each(|_| bitmap.push_one());
    assert!(bitmap.resident_bytes() <= 400, "{} bytes", bitmap.resident_bytes());
}

#[test]
fn memory_stays_flat_over_a_billion_tickets_of_which_few_wait() {
    let waiting = 100_000;
    let mut bitmap = Bitmap::new();
    let mut most = 0;
    let mut len = 0;
    while len < 1_000_000_000 {
        // Whole blocks come; all but one of each go at once, and the last one much later.
        len += BLOCK_BITS;
        bitmap.extend_zeros(len - 1);
        bitmap.push_one();
        if let Some(first) = bitmap.first_one().filter(|first| first + waiting < len) {
            assert!(bitmap.clear(first));
        }
        most = most.max(bitmap.resident_bytes());
    }
    assert!(most < 64 * 1024, "{most} bytes");
    assert_eq!(bitmap.rank(u64::MAX), bitmap.ones());
    while let Some(first) = bitmap.first_one() {
        bitmap.clear(first);
    }
    assert!(bitmap.resident_bytes() < 1_000, "{} bytes for none", bitmap.resident_bytes());
}

#[test]
fn a_dead_front_can_be_set_again() {
    let mut bitmap = Bitmap::new();
    bitmap.extend_ones(3 * LEAF);
    (0..2 * LEAF + 9).for_each(|index| assert!(bitmap.clear(index)));
    assert_eq!((bitmap.first_one(), bitmap.rank(2 * LEAF)), (Some(2 * LEAF + 9), 0));
    assert!(bitmap.set(5));
    assert_eq!((bitmap.first_one(), bitmap.select(0)), (Some(5), Some(5)));
    assert_eq!((bitmap.rank(5), bitmap.rank(6), bitmap.select(1)), (0, 1, Some(2 * LEAF + 9)));
}

#[test]
fn bitmaps_that_differ_in_one_bit_or_in_length_are_not_equal() {
    let mut bitmap = Bitmap::new();
    bitmap.extend_ones(LEAF + 100);
    let mut other = bitmap.clone();
    assert!(bitmap == other);
    other.clear(LEAF + 3);
    bitmap.clear(LEAF + 4);
    assert!(bitmap != other);
    other.clear(LEAF + 4);
    other.set(LEAF + 3);
    assert!(bitmap == other);
    other.extend_zeros(LEAF + 101);
    assert!(bitmap != other);
}

#[test]
#[should_panic(expected = "past the end")]
fn setting_past_the_end_is_a_mistake() {
    Bitmap::new().set(0);
}

#[test]
#[should_panic(expected = "past the end")]
fn a_block_past_the_end_is_a_mistake() {
    let mut bitmap = Bitmap::new();
    bitmap.extend_zeros(64);
    bitmap.put_block(0, &[0, 1]);
}

#[test]
#[should_panic(expected = "two bits of a window")]
fn a_window_that_sends_two_people_to_one_place_is_a_mistake() {
    let mut bitmap = Bitmap::new();
    bitmap.extend_ones(64);
    bitmap.permute_range(0, 64, |offset| offset / 2);
}

#[test]
#[should_panic(expected = "leaves its window")]
fn a_window_that_sends_people_out_of_it_is_a_mistake() {
    let mut bitmap = Bitmap::new();
    bitmap.extend_ones(128);
    bitmap.permute_range(0, 64, |offset| offset + 1);
}
