//! Planted bugs for promise 8.

use crate::story::Story;
use crate::{caught, clean};
use waitroom_core::LaneId;

#[test]
fn a_position_that_falls_or_stays_passes_and_one_higher_is_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.see(1, ana, 5, 7);
    story.see(1, ana, 6, 7);
    story.see(1, ana, 8, 3);
    clean(&story.history_for_now());
    story.see(1, ana, 9, 4);
    caught(8, &story.told());
}

#[test]
fn a_rise_within_one_version_is_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.see(1, ana, 5, 7);
    story.see(1, ana, 5, 8);
    caught(8, &story.told());
}

#[test]
fn an_answer_one_version_older_says_nothing_and_hides_nothing() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.see(1, ana, 5, 7);
    story.see(1, ana, 4, 9);
    clean(&story.history_for_now());
    story.see(1, ana, 5, 8);
    caught(8, &story.told());
}

#[test]
fn coming_back_into_the_line_after_being_admitted_is_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.see(1, ana, 5, 1);
    story.see(1, ana, 6, 0);
    clean(&story.history_for_now());
    story.see(1, ana, 7, 1);
    caught(8, &story.told());
}

#[test]
fn clients_and_tickets_are_judged_apart() {
    let mut story = Story::new(|_| {});
    let (ana, bo) = (story.join(1), story.join(2));
    story.see(1, ana, 5, 1);
    story.see(1, bo, 6, 2);
    story.see(2, ana, 6, 3);
    clean(&story.told());
}

#[test]
fn a_rise_across_an_unknown_position_is_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.see(1, ana, 5, 2);
    story.see(1, ana, 6, 2);
    story.history.seen[1].position = None;
    story.see(1, ana, 7, 3);
    caught(8, &story.told());
}

#[test]
fn an_operators_move_to_another_lane_begins_a_new_place_at_its_event_and_not_before() {
    for (version, fine) in [(0, true), (1, false)] {
        let mut story = Story::new(|_| {});
        let ana = story.join(1);
        story.see(1, ana, 5, 1);
        story.move_to(ana, LaneId(1));
        let moved = story.head();
        story.see(1, ana, moved - version, 4);
        let history = story.told();
        if fine { clean(&history) } else { caught(8, &history) }
    }
}
