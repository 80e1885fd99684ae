//! Planted bugs for promise 2.

use crate::story::{Story, keyed, known};
use crate::{caught, clean};
use waitroom_core::command::FinishCause;
use waitroom_core::{Actor, Fresh, Join, LaneId, What};

#[test]
fn a_second_ticket_while_the_first_waits_is_caught() {
    let mut story = Story::new(|_| {});
    story.join_as(1, known(1));
    story.log_join(&known(1));
    caught(2, &story.told());
}

#[test]
fn a_second_ticket_while_the_first_is_inside_is_caught() {
    let mut story = Story::new(|_| {});
    let first = story.join_as(1, known(1));
    story.admit(first);
    story.join_as(1, known(1));
    caught(2, &story.told());
}

#[test]
fn a_second_ticket_one_event_before_the_first_ends_is_caught_and_after_it_is_fine() {
    for early in [true, false] {
        let mut story = Story::new(|_| {});
        let first = story.join_as(1, known(1));
        if early {
            story.join_as(1, known(1));
            story.lapse(first);
            caught(2, &story.told());
        } else {
            story.lapse(first);
            story.join_as(1, known(1));
            clean(&story.told());
        }
    }
}

#[test]
fn a_ticket_that_was_moved_is_still_the_persons_only_one() {
    let mut story = Story::new(|_| {});
    let first = story.join_as(1, known(1));
    let moved = story.move_to(first, LaneId(1));
    story.tell_join(1, known(1), moved, Fresh::Repeat);
    clean(&story.history_for_now());
    story.join_as(1, known(1));
    caught(2, &story.told());
}

#[test]
fn the_end_of_the_sale_ends_those_who_wait_and_not_those_inside() {
    for inside in [false, true] {
        let mut story = Story::new(|_| {});
        let first = story.join_as(1, known(1));
        if inside {
            story.admit(first);
        }
        let by = Actor::default();
        let (cause, reason) = (FinishCause::SoldOut, String::new());
        let closed = story.close_everybody();
        story.push(What::SaleEnded { cause, reason, closed, by: by.clone() });
        story.push(What::Reopened { by });
        story.join_as(1, known(1));
        let history = story.told();
        if inside { caught(2, &history) } else { clean(&history) }
    }
}

#[test]
fn a_key_makes_a_second_ticket_only_after_ten_minutes_to_the_millisecond() {
    for (later, fine) in [(599_999, false), (600_000, true)] {
        let mut story = Story::new(|_| {});
        story.join_as(1, keyed(1));
        story.wait(later);
        story.join_as(1, keyed(1));
        let history = story.told();
        if fine { clean(&history) } else { caught(2, &history) }
    }
}

#[test]
fn a_repeat_that_gets_the_next_number_is_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join_as(1, keyed(1));
    let bo = story.join_as(2, keyed(2));
    story.tell_join(1, keyed(1), ana, Fresh::Repeat);
    clean(&story.history_for_now());
    story.tell_join(1, keyed(1), bo, Fresh::Repeat);
    caught(2, &story.told());
}

#[test]
fn a_repeat_by_the_ticket_in_the_hand_is_about_that_ticket() {
    let mut story = Story::new(|_| {});
    let (ana, bo) = (story.join(1), story.join(2));
    let holding = Join { holding: Some(story.shown(ana)), ..Join::default() };
    story.tell_join(1, holding.clone(), ana, Fresh::Repeat);
    clean(&story.history_for_now());
    story.tell_join(1, holding, bo, Fresh::Repeat);
    caught(2, &story.told());
}

#[test]
fn an_older_ticket_of_the_same_person_while_the_newer_one_lives_is_caught() {
    let mut story = Story::new(|_| {});
    let first = story.join_as(1, known(1));
    story.lapse(first);
    let second = story.join_as(1, known(1));
    story.tell_join(1, known(1), second, Fresh::Repeat);
    clean(&story.history_for_now());
    story.tell_join(1, known(1), first, Fresh::Repeat);
    caught(2, &story.history_for_now());
    // That it ended one event later is no excuse.
    story.lapse(second);
    caught(2, &story.told());
}
