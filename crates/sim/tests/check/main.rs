//! Every checker catches the bugs that are planted for it, at least two each, one of them off by
//! one, and finds nothing wrong with histories in which nothing is.
//!
//! Lives here: small histories made by hand (`story.rs`), one file of planted bugs per promise,
//! and long histories of the real core (`rooms.rs`), which the checkers must leave alone.

mod rooms;
mod story;

mod a_paused_room_admits_nobody;
mod a_room_never_sticks;
mod never_above_the_pace;
mod never_over_capacity;
mod no_acknowledged_join_is_lost;
mod no_forged_id_is_accepted;
mod nobody_admitted_twice;
mod one_live_ticket_per_identity;
mod one_writer;
mod order_kept_in_lane;
mod outbox_has_no_gap;
mod positions_never_rise;
mod snapshot_plus_tail_is_replay;
mod the_draw_is_the_published_permutation;
mod tickets_are_conserved;

use waitroom_sim::check::{PROMISES, check_all};
use waitroom_sim::history::{History, Violation};

/// Nothing is wrong with it, by any checker.
#[track_caller]
fn clean(history: &History) {
    assert_eq!(check_all(history), []);
}

/// What the checker of one promise says.
fn judged(promise: u8, history: &History) -> Vec<Violation> {
    let judge = PROMISES.iter().find(|it| it.number == promise).expect("promises 1 to 15");
    (judge.check)(history)
}

/// The checker of this promise finds something.
#[track_caller]
fn caught(promise: u8, history: &History) {
    let found = judged(promise, history);
    assert!(!found.is_empty(), "the planted bug went unnoticed");
    assert!(found.iter().all(|violation| violation.promise == promise));
}

/// The checker of this promise finds nothing.
#[track_caller]
fn passes(promise: u8, history: &History) {
    assert_eq!(judged(promise, history), []);
}

#[test]
fn every_promise_from_1_to_15_has_a_checker_in_a_file_of_its_name() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/check");
    for (promise, number) in PROMISES.iter().zip(1..) {
        assert_eq!(promise.number, number);
        assert!(folder.join(format!("{}.rs", promise.name)).exists(), "{}", promise.name);
    }
}

#[test]
fn an_empty_history_breaks_no_promise() {
    clean(&History::default());
}

#[test]
fn a_whole_life_of_a_room_breaks_no_promise() {
    let mut story = story::Story::new(|settings| settings.max_active = 2);
    let (ana, bo, cy) = (story.join(1), story.join(2), story.join(3));
    story.admit(ana);
    story.claim(1, ana);
    story.admit(bo);
    story.reopen_by_another_owner();
    story.wait(100_000);
    story.no_show(bo);
    story.admit(cy);
    story.leave(1, ana);
    clean(&story.told());
}
