//! What the power and the disk can do to a journal, and what opening makes of it.
//!
//! A torn tail is ordinary: exactly the whole batches before it are there. Damage in the middle is
//! a clear refusal. In no case is there half a batch, or a batch that was never appended.

mod common;

use common::{Owner, Rng, open_on, read_all, room, segment_path};
use waitroom_store::{
    SimDisk, Stored,
    file::{OpenError, Options},
};

const ROOMS: [&str; 3] = ["ana", "bo", "cy"];

/// What a journal of one segment holds: each append's end in the file, and the logs at the end.
struct Written {
    disk: SimDisk,
    /// Length of the segment after each append, with the room it went to.
    ends: Vec<(usize, usize)>,
    logs: Vec<Vec<Stored>>,
}

fn write(appends: usize, close: bool) -> Written {
    let disk = SimDisk::new();
    let (store, _) = open_on(&disk, Options::default()).expect("a new store");
    let mut owners: Vec<_> = ROOMS.iter().map(|name| Owner::of(store.clone(), name)).collect();
    let mut rng = Rng(11);
    let mut ends = Vec::new();
    for _ in 0..appends {
        let which = rng.below(3) as usize;
        let payload = rng.bytes(60);
        owners[which].append(1 + rng.below(5) as u32, payload).expect("the disk works");
        ends.push((disk.contents(&segment_path(1)).expect("there").len(), which));
    }
    let logs = ROOMS.iter().map(|name| read_all(&store, &room(name))).collect();
    if !close {
        disk.crash(0); // everything was synced, so nothing is lost; it is just not closed
    }
    drop((owners, store));
    Written { disk, ends, logs }
}

impl Written {
    /// How many batches of each room lie before byte `at`.
    fn whole_before(&self, at: usize) -> Vec<usize> {
        let mut counts = vec![0; ROOMS.len()];
        self.ends.iter().filter(|(end, _)| *end <= at).for_each(|(_, which)| counts[*which] += 1);
        counts
    }
}

#[test]
fn a_journal_cut_at_any_byte_holds_exactly_the_whole_batches_before_the_cut() {
    let written = write(100, false);
    let len = written.ends.last().expect("appends").0;
    let first = written.ends[written.ends.len() - 65].0;
    for at in first..=len {
        let disk = written.disk.fork();
        disk.damage(&segment_path(1), |bytes| bytes.truncate(at));
        let (store, report) = open_on(&disk, Options::default()).expect("a torn tail is ordinary");
        let at_an_end = written.ends.iter().any(|(end, _)| *end == at);
        assert_eq!(report.cut.is_none(), at_an_end, "cut at {at}");
        for (n, whole) in written.whole_before(at).into_iter().enumerate() {
            assert_eq!(read_all(&store, &room(ROOMS[n])), written.logs[n][..whole], "cut at {at}");
        }
        // And the store goes on from there.
        Owner::of(store, "ana").append(1, b"on".to_vec()).expect("the disk works");
    }
}

#[test]
fn a_flipped_bit_is_refused_or_costs_at_most_the_last_group() {
    let written = write(100, false);
    let len = written.disk.contents(&segment_path(1)).expect("there").len();
    let last_group = written.ends[written.ends.len() - 2].0;
    let mut rng = Rng(5);
    let (mut refused, mut cut) = (0, 0);
    for round in 0..10_000 {
        let bit = rng.below(len as u64 * 8) as usize;
        let disk = written.disk.fork();
        disk.damage(&segment_path(1), |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        match open_on(&disk, Options::default()) {
            Err(OpenError::Damaged { file, at, .. }) => {
                assert!(file.ends_with("00000000000000000001.seg"));
                assert!(at as usize <= bit / 8, "bit {bit}: said {at}");
                refused += 1;
            }
            Err(other) => panic!("round {round}, bit {bit}: {other}"),
            Ok((store, report)) => {
                assert!(bit / 8 >= last_group, "round {round}: bit {bit} went unnoticed");
                assert_eq!(report.cut.expect("told").at as usize, last_group);
                for (n, whole) in written.whole_before(last_group).into_iter().enumerate() {
                    assert_eq!(read_all(&store, &room(ROOMS[n])), written.logs[n][..whole]);
                }
                cut += 1;
            }
        }
    }
    assert!(refused > 9_000 && cut > 10, "{refused} refused, {cut} cut");
}

#[test]
fn after_closing_in_good_order_no_flipped_bit_costs_a_batch() {
    let written = write(40, true);
    let len = written.disk.contents(&segment_path(1)).expect("there").len();
    let closed_at = written.ends.last().expect("appends").0;
    for bit in 0..len * 8 {
        let disk = written.disk.fork();
        disk.damage(&segment_path(1), |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        match open_on(&disk, Options::default()) {
            Err(OpenError::Damaged { .. }) => assert!(bit / 8 < closed_at),
            Err(other) => panic!("bit {bit}: {other}"),
            Ok((store, _)) => {
                assert!(bit / 8 >= closed_at, "bit {bit} went unnoticed");
                for (n, log) in written.logs.iter().enumerate() {
                    assert_eq!(read_all(&store, &room(ROOMS[n])), *log);
                }
            }
        }
    }
}

#[test]
fn damage_in_an_older_segment_is_refused_wherever_it_is() {
    let disk = SimDisk::new();
    let small = || Options { segment_bytes: 2_000, ..Options::default() };
    let (store, _) = open_on(&disk, small()).expect("a new store");
    let mut owner = Owner::of(store.clone(), "ana");
    let mut rng = Rng(3);
    while store.journal_size().1 < 4 {
        owner.append(1, rng.bytes(100)).expect("the disk works");
    }
    drop((owner, store));
    for number in 1..=3 {
        let len = disk.contents(&segment_path(number)).expect("there").len();
        for at in 0..len {
            let damaged = disk.fork();
            damaged.damage(&segment_path(number), |bytes| bytes[at] ^= 0x40);
            assert!(
                matches!(open_on(&damaged, small()), Err(OpenError::Damaged { .. })),
                "{number} {at}"
            );
        }
        for at in 0..len {
            let damaged = disk.fork();
            damaged.damage(&segment_path(number), |bytes| bytes.truncate(at));
            // Cut between two records it can only be seen by what follows; and it is.
            assert!(
                matches!(open_on(&damaged, small()), Err(OpenError::Damaged { .. })),
                "{number} {at}"
            );
        }
    }
    open_on(&disk.fork(), small()).expect("undamaged it opens");
}

#[test]
fn a_missing_segment_or_journal_is_damage_not_an_empty_store() {
    use waitroom_store::disk::Disk;
    let disk = SimDisk::new();
    let small = || Options { segment_bytes: 2_000, ..Options::default() };
    let (store, _) = open_on(&disk, small()).expect("a new store");
    let mut owner = Owner::of(store.clone(), "ana");
    while store.journal_size().1 < 4 {
        owner.append(1, vec![1; 100]).expect("the disk works");
    }
    owner.snapshot("s");
    drop((owner, store));
    for missing in [vec![2], vec![1], vec![1, 2, 3, 4]] {
        let damaged = disk.fork();
        for number in missing {
            damaged.remove(&segment_path(number)).expect("there");
        }
        assert!(matches!(open_on(&damaged, small()), Err(OpenError::Damaged { .. })));
    }
}

#[test]
fn a_segment_of_another_store_is_refused_though_it_is_whole() {
    let small = || Options { segment_bytes: 2_000, ..Options::default() };
    let made = |payload: u8| {
        let disk = SimDisk::new();
        let (store, _) = open_on(&disk, small()).expect("a new store");
        let mut owner = Owner::of(store.clone(), "ana");
        while store.journal_size().1 < 3 {
            owner.append(1, vec![payload; 100]).expect("the disk works");
        }
        drop((owner, store));
        disk
    };
    let (ours, theirs) = (made(1), made(2));
    for number in [2, 3] {
        let mixed = ours.fork();
        let foreign = theirs.contents(&segment_path(number)).expect("there");
        mixed.damage(&segment_path(number), |bytes| *bytes = foreign);
        let refused = open_on(&mixed, small()).expect_err("another store's").to_string();
        assert!(refused.contains("contradicts the segments before it"), "{refused}");
    }
}

#[test]
fn the_refusal_names_the_file_the_place_and_what_to_do() {
    let written = write(40, true);
    written.disk.damage(&segment_path(1), |bytes| bytes[3_000] ^= 1);
    let error = open_on(&written.disk, Options::default()).expect_err("damaged").to_string();
    let expected = "journal/00000000000000000001.seg is damaged at byte 2874: a record's checksum is wrong\n  \
        means   something that was acknowledged cannot be read; nothing was changed, and no room opens\n  \
        do      keep a copy of the data folder, check the disk, then restore the newest backup;\n          \
        or go on without what follows: repair --cut journal/00000000000000000001.seg 2874 (what is cut is moved aside)";
    assert_eq!(error, expected);
    // Refusing changes nothing: the same words again.
    assert_eq!(
        open_on(&written.disk, Options::default()).expect_err("damaged").to_string(),
        expected
    );
}

#[test]
fn a_journal_of_a_newer_format_is_left_alone() {
    let written = write(3, true);
    written.disk.damage(&segment_path(1), |bytes| {
        bytes[8] = 2;
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes[..12]);
        hasher.update(&bytes[16..24]);
        let crc = hasher.finalize().to_le_bytes();
        bytes[12..16].copy_from_slice(&crc);
    });
    let refused = open_on(&written.disk, Options::default());
    assert!(matches!(refused, Err(OpenError::Version { found: 2, .. })));
}
