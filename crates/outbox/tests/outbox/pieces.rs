//! A log from pieces: repeated, left out, altered, or no pieces at all.

use proptest::prelude::*;
use waitroom_outbox::mirror::{Assembly, Broken, Mark, SealKey, piece};
use waitroom_store::seal::MasterKey;
use waitroom_store::{Appended, Chain, Head, Link, RoomName, Stored};

fn room() -> RoomName {
    RoomName::parse("sale").expect("a plain name")
}

fn key() -> SealKey {
    SealKey::of(&MasterKey::from_bytes([1; 32]))
}

/// Batches of growing size; the last needs several parts.
fn log() -> Vec<Stored> {
    let mut at = Appended::default();
    let batch = |(number, len): (u64, usize)| {
        let link = Link { epoch: 1, nonce: 7, number, after: at.head, events: 2 };
        let payload = vec![number as u8; len];
        let chain = at.chain.next(&room(), &link, &payload);
        at = Appended { head: link.head(), chain };
        let (after, head) = (link.after, link.head());
        Stored { after, head, epoch: 1, nonce: 7, number, events: 2, at_ms: 5, payload, chain }
    };
    (0..).zip([3, 0, 700, 1_300_000]).map(batch).collect()
}

fn pieces(log: &[Stored]) -> Vec<Vec<u8>> {
    let mut chain = Chain::START;
    let mut all = Vec::new();
    for batch in log {
        all.extend(piece::of_batch(&key(), &room(), batch, Some(chain)));
        chain = batch.chain;
    }
    all
}

fn assembled(pieces: &[Vec<u8>]) -> Result<Vec<Stored>, Broken> {
    let mut assembly = Assembly::new(&key(), &room());
    let mut log = Vec::new();
    for piece in pieces {
        log.extend(assembly.take(piece)?);
    }
    Ok(log)
}

#[test]
fn what_went_in_comes_out_however_often_it_is_told() {
    let (log, pieces) = (log(), pieces(&log()));
    assert_eq!(pieces.len(), 6, "the last is in three parts");
    assert_eq!(assembled(&pieces), Ok(log.clone()));
    // A sender that was killed at any point, and began again at any point before.
    for cut in 0..=pieces.len() {
        for (from, batch) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
            if batch <= cut {
                let again = [&pieces[..cut], &pieces[from..]].concat();
                assert_eq!(assembled(&again), Ok(log.clone()), "cut {cut}, again {from}");
            }
        }
    }
}

#[test]
fn a_piece_that_is_left_out_is_missed_where_it_was() {
    let pieces = pieces(&log());
    let heads = [0, 2, 4, 6, 6];
    for (left_out, head) in heads.into_iter().enumerate() {
        let mut fewer = pieces.clone();
        fewer.remove(left_out);
        let broken = assembled(&fewer).expect_err("something is missing");
        assert_eq!(broken.after, Head(head), "without piece {left_out}: {broken}");
    }
}

#[test]
fn a_batch_that_was_never_whole_is_told_of() {
    let pieces = pieces(&log());
    let mut assembly = Assembly::new(&key(), &room());
    for piece in &pieces[..5] {
        assembly.take(piece).expect("so far it is whole");
    }
    assert_eq!((assembly.at().head, assembly.half()), (Head(6), Some(Head(8))));
    assembly.take(&pieces[5]).expect("whole");
    assert_eq!((assembly.at().head, assembly.half()), (Head(8), None));
}

#[test]
fn a_repeat_with_another_chain_is_another_history() {
    let (log, pieces) = (log(), pieces(&log()));
    let mut other = log[1].clone();
    other.payload = vec![9; 5];
    other.chain = log[0].chain.next(&room(), &other.link(), &other.payload);
    let held = Appended { head: other.head, chain: other.chain };
    let mark = Mark { at: other.head, digest: [0; 32] };
    for second in [
        piece::of_batch(&key(), &room(), &other, Some(log[0].chain)),
        vec![piece::of_mark(&key(), &room(), &mark, held)],
    ] {
        // Behind the same event, and behind a later one.
        for first in [&pieces[..2], &pieces[..3]] {
            let broken = assembled(&[first, &second].concat()).expect_err("two histories");
            assert_eq!(broken.why, "it holds two histories");
        }
    }
}

#[test]
fn a_digest_behind_the_end_shows_what_was_taken_away() {
    let (log, pieces) = (log(), pieces(&log()));
    let held = Appended { head: log[2].head, chain: log[2].chain };
    let mark = Mark { at: Head(1), digest: [0; 32] };
    let mark = piece::of_mark(&key(), &room(), &mark, held);
    let broken = assembled(&[&pieces[..1], &[mark]].concat()).expect_err("two batches are gone");
    assert_eq!(broken, Broken { after: Head(2), why: "events 3 to 6 are missing".into() });
}

#[test]
fn the_newest_digest_counts() {
    let log = log();
    let mut assembly = Assembly::new(&key(), &room());
    let mark = |at: u64| Mark { at: Head(at), digest: [at as u8; 32] };
    let held = Appended { head: log[0].head, chain: log[0].chain };
    let of_mark = |at| piece::of_mark(&key(), &room(), &mark(at), held);
    for piece in piece::of_batch(&key(), &room(), &log[0], None) {
        assembly.take(&piece).expect("whole");
    }
    assembly.take(&of_mark(2)).expect("whole");
    assembly.take(&of_mark(1)).expect("whole");
    assert_eq!(assembly.mark(), Some(mark(2)), "the newest counts");
}

#[test]
fn a_piece_of_another_room_or_under_another_key_is_none() {
    let batch = &log()[0];
    let other = RoomName::parse("other").expect("a plain name");
    let theirs = SealKey::of(&MasterKey::from_bytes([2; 32]));
    for foreign in [
        piece::of_batch(&theirs, &room(), batch, None),
        piece::of_batch(&key(), &other, batch, None),
    ] {
        let broken = assembled(&foreign).expect_err("not ours");
        assert!(broken.why.contains("of events 1 to 2") && broken.why.contains("seal"), "{broken}");
    }
    let held = Appended { head: batch.head, chain: batch.chain };
    let mark = Mark { at: batch.head, digest: [0; 32] };
    let foreign = piece::of_mark(&theirs, &room(), &mark, held);
    let pieces = [pieces(&log()[..1]), vec![foreign]].concat();
    assert_eq!(assembled(&pieces).expect_err("not ours").after, Head(2), "digests too");
}

proptest! {
    #[test]
    fn an_altered_byte_is_found_wherever_it_is(at in 0usize..900, flip in 1u8..) {
        let small = &log()[..3];
        let mut pieces = pieces(small);
        let mut at = at % pieces.iter().map(Vec::len).sum::<usize>();
        let which = pieces.iter().position(|it| {
            let here = at < it.len();
            at -= if here { 0 } else { it.len() };
            here
        }).expect("within");
        pieces[which][at] ^= flip;
        let broken = assembled(&pieces).expect_err("it is under a seal");
        prop_assert_eq!(broken.after, Head(2 * which as u64), "byte {} of piece {}", at, which);
    }

    #[test]
    fn no_bytes_crash_it(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Assembly::new(&key(), &room()).take(&bytes);
    }
}
