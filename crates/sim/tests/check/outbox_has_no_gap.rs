//! Planted bugs for promise 10.

use crate::story::Story;
use crate::{caught, clean};
use waitroom_core::{Event, LaneId, Ticket, Timestamp};
use waitroom_sim::history::{History, Published};

fn a_history() -> History {
    let mut story = Story::new(|_| {});
    let (ana, bo) = (story.join(1), story.join(2));
    story.admit(ana);
    story.claim(1, ana);
    let moved = story.move_to(bo, LaneId(1));
    story.admit(moved);
    story.told()
}

#[test]
fn a_sink_that_gets_things_again_from_any_point_on_passes() {
    let history = a_history();
    let all = history.published.len();
    for (upto, from) in [(all, 0), (5, 3), (5, 0), (1, 0), (all, all - 1)] {
        let mut history = a_history();
        let again = history.published.split_off(from);
        history.published.extend_from_slice(&again[..upto - from]);
        history.published.extend(again);
        clean(&history);
    }
}

#[test]
fn an_event_that_never_comes_is_caught_wherever_it_is() {
    let all = a_history().published.len();
    for gone in 0..all {
        let mut history = a_history();
        history.published.remove(gone);
        caught(10, &history);
    }
    let mut history = a_history();
    history.published.clear();
    caught(10, &history);
}

#[test]
fn neighbours_in_the_wrong_order_are_caught() {
    let all = a_history().published.len();
    for first in 0..all - 1 {
        let mut history = a_history();
        history.published.swap(first, first + 1);
        caught(10, &history);
    }
}

#[test]
fn something_that_did_not_happen_is_caught() {
    let mut history = a_history();
    let last = history.published.last().expect("things were published").clone();
    history.published.push(Published { index: last.index + 1, ..last.clone() });
    caught(10, &history);
    history.published.pop();
    clean(&history);
    history.published.push(Published { index: 0, ..last });
    caught(10, &history);
}

#[test]
fn a_repeat_that_differs_from_the_first_time_is_caught() {
    let mut history = a_history();
    let last = history.published.last().expect("things were published").clone();
    let at = Timestamp(last.event.at.0 + 1);
    let altered = Event { at, ..last.event.clone() };
    history.published.push(Published { event: altered, ..last.clone() });
    caught(10, &history);
    history.published.pop();
    let seq = last.seq.map(|(ticket, seq)| (ticket, seq + 1));
    history.published.push(Published { seq, ..last });
    caught(10, &history);
}

#[test]
fn a_seq_that_is_one_off_is_caught_wherever_it_is() {
    let all = a_history().published.len();
    for place in 0..all {
        for by in [1, u32::MAX] {
            let mut history = a_history();
            let Some((_, seq)) = &mut history.published[place].seq else { continue };
            *seq = seq.wrapping_add(by);
            caught(10, &history);
        }
    }
}

#[test]
fn a_seq_that_is_missing_or_of_another_ticket_is_caught() {
    let mut history = a_history();
    let last = history.published.last_mut().expect("things were published");
    last.seq = None;
    caught(10, &history);
    let mut history = a_history();
    let first = &mut history.published[0];
    first.seq = Some((Ticket::new(0, 0), 0));
    caught(10, &history);
}
