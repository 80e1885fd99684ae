//! Planted bugs for promise 15.

use crate::story::Story;
use crate::{caught, clean};
use waitroom_sim::history::{How, Reached};

#[test]
fn one_bit_of_one_digest_is_caught_however_the_state_was_reached() {
    for place in 0..3 {
        let mut history = Story::new(|_| {}).told();
        clean(&history);
        history.states[place].digest[31] ^= 1;
        caught(15, &history);
    }
}

#[test]
fn a_tail_that_stops_one_event_early_is_caught() {
    let mut history = Story::new(|_| {}).told();
    let head = history.log.len() as u64;
    let early = Reached { head: head - 1, how: How::Live, digest: [8; 32] };
    history.states.push(early.clone());
    clean(&history);
    // It says that it is at the head and is one event behind.
    history.states.push(Reached { head, how: How::SnapshotAndTail, ..early });
    caught(15, &history);
}

#[test]
fn two_lives_that_differ_at_one_head_are_caught() {
    let mut history = Story::new(|_| {}).told();
    history.states.push(Reached { head: 1, how: How::Live, digest: [1; 32] });
    clean(&history);
    history.states.push(Reached { head: 1, how: How::Live, digest: [2; 32] });
    caught(15, &history);
}
