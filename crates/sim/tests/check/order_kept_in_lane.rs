//! Planted bugs for promise 6.

use crate::story::Story;
use crate::{caught, clean, passes};
use waitroom_core::{Join, LaneId, What};

#[test]
fn who_came_second_is_not_admitted_while_the_first_waits() {
    let mut story = Story::new(|_| {});
    let (ana, bo) = (story.join(1), story.join(2));
    story.admit(bo);
    caught(6, &story.history_for_now());
    story.admit(ana);
    caught(6, &story.told());
}

#[test]
fn people_who_left_or_were_moved_are_passed_by() {
    let mut story = Story::new(|_| {});
    let (ana, bo, cy) = (story.join(1), story.join(2), story.join(3));
    story.lapse(ana);
    story.move_to(bo, LaneId(1));
    story.admit(cy);
    clean(&story.told());
}

#[test]
fn an_admission_one_event_before_the_one_ahead_left_is_caught() {
    let mut story = Story::new(|_| {});
    let (ana, bo) = (story.join(1), story.join(2));
    story.admit(bo);
    story.lapse(ana);
    caught(6, &story.told());
}

#[test]
fn lanes_do_not_wait_for_each_other() {
    let mut story = Story::new(|_| {});
    story.join(1);
    let fast = story.join_as(2, Join { lane: LaneId(1), ..Join::default() });
    story.admit(fast);
    clean(&story.told());
}

#[test]
fn a_number_that_is_lower_than_one_that_was_answered_before_is_caught() {
    let mut story = Story::new(|_| {});
    story.join(1);
    story.join(2);
    let mut history = story.told();
    clean(&history);
    // Bo is served first although Ana had her answer before Bo asked.
    history.calls.swap(0, 1);
    let (first, second) = (history.calls[0].sent, history.calls[1].sent);
    (history.calls[0].sent, history.calls[1].sent) = (second, first);
    let times = history.calls.iter().map(|call| match call.outcome {
        waitroom_sim::history::Outcome::Answered { at, .. } => at,
        _ => unreachable!("both were answered"),
    });
    let times: Vec<_> = times.collect();
    for (call, time) in history.calls.iter_mut().zip(times.iter().rev()) {
        let waitroom_sim::history::Outcome::Answered { at, .. } = &mut call.outcome else {
            unreachable!("both were answered")
        };
        *at = *time;
    }
    caught(6, &history);
}

#[test]
fn joins_that_overlap_by_one_moment_may_come_in_any_order() {
    let mut story = Story::new(|_| {});
    story.join(1);
    story.join(2);
    let mut history = story.told();
    // Bo with the higher number is answered first; Ana had asked before that, or just then.
    for (sent, fine) in [(3, true), (4, true), (5, false)] {
        history.calls[0].sent.0 = sent;
        if let waitroom_sim::history::Outcome::Answered { at, .. } = &mut history.calls[0].outcome {
            at.0 = 9;
        }
        if fine { passes(6, &history) } else { caught(6, &history) }
    }
}

#[test]
fn shuffled_rooms_do_not_promise_the_order_of_arrival() {
    let mut story = Story::new(|settings| settings.shuffle_window = 16);
    let (_, bo) = (story.join(1), story.join(2));
    story.push(What::Sealed { lane: LaneId(0), start: Default::default(), len: 2, seed: [1; 16] });
    story.admit(bo);
    passes(6, &story.told());
}
