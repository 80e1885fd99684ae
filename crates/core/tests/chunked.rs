//! The chunked array beside a plain vector: same operations, same content, and clones that
//! never change.

use proptest::prelude::*;
use waitroom_core::chunked::{CHUNK, Chunked};

/// The entries of a leaf of the directory, so that tests cross its border.
const LEAF: u64 = 64 * CHUNK;

#[derive(Clone, Debug)]
enum Step {
    Push(u32),
    PushMany(u16, u32),
    Pop(u16),
    Set(u64, u32),
    Change(u64, u32),
    ExtendDefault(u64),
    DropChunk(u64),
    PutChunk(u64, Vec<u32>),
    KeepClone,
    ContinueFromClone(usize),
}

/// Small values, so that defaults are written often.
fn value() -> impl Strategy<Value = u32> {
    0..4u32
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => value().prop_map(Step::Push),
        4 => (0..5_000u16, value()).prop_map(|(count, value)| Step::PushMany(count, value)),
        2 => (0..6_000u16).prop_map(Step::Pop),
        6 => (any::<u64>(), value()).prop_map(|(at, value)| Step::Set(at, value)),
        4 => (any::<u64>(), value()).prop_map(|(at, value)| Step::Change(at, value)),
        2 => (0..3 * CHUNK).prop_map(Step::ExtendDefault),
        1 => (0..LEAF).prop_map(Step::ExtendDefault),
        5 => any::<u64>().prop_map(Step::DropChunk),
        2 => (any::<u64>(), prop::collection::vec(value(), 0..60))
            .prop_map(|(at, entries)| Step::PutChunk(at, entries)),
        3 => Just(Step::KeepClone),
        1 => any::<usize>().prop_map(Step::ContinueFromClone),
    ]
}

fn same(array: &Chunked<u32>, model: &[u32]) -> Result<(), TestCaseError> {
    prop_assert_eq!(array.len(), model.len() as u64);
    prop_assert_eq!(array.is_empty(), model.is_empty());
    prop_assert_eq!(array.chunk_count(), model.chunks(CHUNK as usize).len() as u64);
    prop_assert!(array.iter().eq(model), "iter");
    for (index, value) in model.iter().enumerate().step_by(61) {
        prop_assert_eq!(array.get(index as u64), value);
    }
    let mut written = Vec::new();
    for (index, chunk) in model.chunks(CHUNK as usize).enumerate() {
        let used = chunk.iter().rposition(|&value| value != 0).map_or(0, |last| last + 1);
        let expected = (used > 0).then(|| &chunk[..used]);
        prop_assert_eq!(array.chunk(index as u64), expected);
        written.extend(expected.map(|entries| (index as u64, entries)));
    }
    prop_assert!(array.chunks().eq(written), "chunks");
    prop_assert_eq!(*array.get(model.len() as u64), 0);
    prop_assert_eq!(*array.get(u64::MAX), 0);
    let rebuilt: Chunked<u32> = model.iter().copied().collect();
    prop_assert!(*array == rebuilt, "equal content, however it came to be");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn it_behaves_like_a_vector_and_clones_never_change(
        steps in prop::collection::vec(step(), 1..40)
    ) {
        let mut array = Chunked::<u32>::new();
        let mut model = Vec::<u32>::new();
        let mut kept: Vec<(Chunked<u32>, Vec<u32>)> = Vec::new();
        for step in steps {
            let len = model.len() as u64;
            match step {
                Step::Push(value) => {
                    array.push(value);
                    model.push(value);
                }
                Step::PushMany(count, value) => {
                    array.extend(std::iter::repeat_n(value, count.into()));
                    model.extend(std::iter::repeat_n(value, count.into()));
                }
                Step::Pop(count) => {
                    for _ in 0..count {
                        prop_assert_eq!(array.pop(), model.pop());
                    }
                }
                Step::Set(at, value) if len > 0 => {
                    array.set(at % len, value);
                    model[(at % len) as usize] = value;
                }
                Step::Change(at, value) if len > 0 => {
                    *array.get_mut(at % len) += value;
                    model[(at % len) as usize] += value;
                }
                Step::ExtendDefault(more) => {
                    array.extend_default(len + more);
                    array.extend_default(len);
                    model.resize((len + more) as usize, 0);
                }
                Step::DropChunk(at) if len > 0 => {
                    // Most often near the front, where leaves leave the directory.
                    let chunk = at % array.chunk_count() / (1 + at % 7);
                    array.drop_chunk(chunk);
                    model.chunks_mut(CHUNK as usize).nth(chunk as usize).unwrap().fill(0);
                }
                Step::PutChunk(at, mut entries) if len > 0 => {
                    let chunk = at % array.chunk_count();
                    let place = model.chunks_mut(CHUNK as usize).nth(chunk as usize).unwrap();
                    entries.truncate(place.len());
                    array.put_chunk(chunk, &entries);
                    place.fill(0);
                    place[..entries.len()].copy_from_slice(&entries);
                }
                Step::KeepClone => kept.push((array.clone(), model.clone())),
                Step::ContinueFromClone(at) if !kept.is_empty() => {
                    let at = at % kept.len();
                    (array, model) = kept[at].clone();
                }
                _ => {}
            }
        }
        same(&array, &model)?;
        for (array, model) in &kept {
            same(array, model)?;
        }
    }
}

#[test]
fn a_write_after_a_clone_copies_its_own_chunk_only() {
    let mut array: Chunked<u64> = (1..=3 * LEAF + 5).collect();
    let kept = array.clone();
    array.set(LEAF + 7, 0);
    *array.get_mut(3 * LEAF + 4) += 1;
    for chunk in 0..array.chunk_count() {
        let changed = chunk == LEAF / CHUNK || chunk == 3 * LEAF / CHUNK;
        assert_eq!(array.same_chunk(&kept, chunk), !changed, "chunk {chunk}");
    }
    array.set(LEAF + 7, LEAF + 8);
    assert!(!array.same_chunk(&kept, LEAF / CHUNK), "equal again, but in its own memory");
    assert_eq!((*kept.get(LEAF + 7), *kept.get(3 * LEAF + 4)), (LEAF + 8, 3 * LEAF + 5));
}

#[test]
fn writing_what_is_there_already_stores_nothing() {
    let mut array = Chunked::<u64>::new();
    array.extend_default(10 * LEAF);
    let empty = array.resident_bytes();
    array.set(5 * LEAF, 0);
    array.push(0);
    assert_eq!(array.resident_bytes(), empty);
    assert_eq!(array.chunks().count(), 0);
}

#[test]
fn three_entries_do_not_pay_for_a_chunk() {
    let array: Chunked<u64> = [1, 2, 3].into_iter().collect();
    assert!(array.resident_bytes() <= 150, "{} bytes", array.resident_bytes());
}

#[test]
fn memory_stays_flat_over_a_billion_entries_of_which_few_live() {
    let mut array = Chunked::<u64>::new();
    let mut most = 0;
    let live_chunks = 50;
    for chunk in 0..1_000_000_000 / CHUNK {
        // One entry written per chunk is enough to make it take storage; the billion is passed
        // through the directory, not through the test's patience.
        array.extend_default(chunk * CHUNK + CHUNK - 1);
        array.push(chunk + 1);
        if chunk >= live_chunks {
            array.drop_chunk(chunk - live_chunks);
        }
        most = most.max(array.resident_bytes());
    }
    let live = live_chunks as usize * CHUNK as usize * size_of::<u64>();
    assert!(most < 2 * live, "{most} bytes for {live} live ones");
    (0..array.chunk_count()).for_each(|chunk| array.drop_chunk(chunk));
    assert!(array.resident_bytes() < 1_000, "{} bytes for none", array.resident_bytes());
}

#[test]
fn a_dropped_front_can_be_written_again() {
    let mut array: Chunked<u64> = (1..=5 * LEAF).collect();
    for chunk in 0..4 * LEAF / CHUNK {
        array.drop_chunk(chunk);
    }
    array.set(LEAF + 1, 77);
    assert_eq!((*array.get(0), *array.get(LEAF + 1)), (0, 77));
    assert_eq!(*array.get(4 * LEAF), 4 * LEAF + 1);
    assert_eq!(array.chunks().next(), Some((LEAF / CHUNK, &[0, 77][..])));
}

#[test]
fn arrays_that_differ_in_one_entry_or_in_length_are_not_equal() {
    let array: Chunked<u64> = (0..3 * CHUNK).collect();
    let mut other = array.clone();
    assert!(array == other);
    other.set(CHUNK, 0);
    assert!(array != other);
    other.set(CHUNK, CHUNK);
    assert!(array == other);
    other.push(0);
    assert!(array != other);
    let mut blank = Chunked::new();
    blank.extend_default(array.len());
    assert!(array != blank);
    assert!(blank != array);
}

#[test]
#[should_panic(expected = "past the end")]
fn writing_past_the_end_is_a_mistake() {
    Chunked::<u64>::new().set(0, 0);
}

#[test]
#[should_panic(expected = "past the end")]
fn changing_past_the_end_is_a_mistake() {
    let mut array: Chunked<u64> = [1].into_iter().collect();
    *array.get_mut(1) = 2;
}

#[test]
#[should_panic(expected = "past the end")]
fn a_chunk_longer_than_the_array_is_a_mistake() {
    let mut array: Chunked<u64> = [1].into_iter().collect();
    array.put_chunk(0, &[1, 2]);
}
