//! Planted bugs for promise 14.

use crate::story::{Story, keyed, version_of};
use crate::{caught, clean, passes};
use waitroom_core::{Epoch, Fresh, LaneId, Timestamp, What};
use waitroom_sim::history::{Grant, History, Moment};

/// Two epochs; the second begins with the event at this place.
fn two_epochs() -> (History, usize) {
    let mut story = Story::new(|_| {});
    story.join(1);
    let ana = story.join(2);
    story.reopen_by_another_owner();
    let second = story.history.log.len() - 1;
    story.join(3);
    story.move_to(ana, LaneId(1));
    let history = story.told();
    clean(&history);
    (history, second)
}

#[track_caller]
fn spoiled(change: impl FnOnce(&mut History, usize)) {
    let (mut history, second) = two_epochs();
    change(&mut history, second);
    caught(14, &history);
}

#[test]
fn an_event_of_the_old_epoch_after_the_new_one_opened_is_caught() {
    spoiled(|history, second| history.log[second + 1].epoch = Epoch(1));
    spoiled(|history, second| {
        // The late one brings its whole lease along.
        let (old, new) = (history.log[second - 1].clone(), &mut history.log[second + 2]);
        (new.epoch, new.nonce, new.batch) = (old.epoch, old.nonce, old.batch + 1);
    });
}

#[test]
fn an_epoch_that_begins_without_opened_or_with_anothers_is_caught() {
    spoiled(|history, second| history.log[second].event.what = What::DoorsOpened);
    for epoch in [1, 3] {
        spoiled(|history, second| {
            history.log[second].event.what = What::Opened { epoch: Epoch(epoch) };
        });
    }
}

#[test]
fn opening_in_the_middle_of_an_epoch_is_caught() {
    spoiled(|history, second| {
        history.log[second + 1].event.what = What::Opened { epoch: Epoch(2) };
    });
}

#[test]
fn an_event_under_another_nonce_is_caught() {
    spoiled(|history, second| history.log[second + 1].nonce += 1);
}

#[test]
fn a_batch_number_that_skips_one_or_does_not_begin_at_zero_is_caught() {
    spoiled(|history, _| history.log.last_mut().expect("a log").batch += 1);
    spoiled(|history, second| history.log[second..].iter_mut().for_each(|it| it.batch += 1));
    spoiled(|history, second| history.log[second + 1].batch += 5);
}

#[test]
fn a_batch_of_two_events_has_one_chain_and_two_batches_have_two() {
    let (mut history, _) = two_epochs();
    let before = history.log[history.log.len() - 2].clone();
    let last = history.log.last_mut().expect("a log");
    (last.batch, last.chain) = (before.batch, before.chain);
    clean(&history);
    history.log.last_mut().expect("a log").chain[0] ^= 1;
    caught(14, &history);
    spoiled(|history, second| history.log[second + 2].chain = history.log[second + 1].chain);
}

#[test]
fn an_index_that_is_one_off_is_caught() {
    spoiled(|history, _| history.log.last_mut().expect("a log").index += 1);
    spoiled(|history, second| history.log[second].index -= 1);
    spoiled(|history, _| history.log.iter_mut().for_each(|it| it.index -= 1));
}

#[test]
fn a_number_given_twice_or_left_out_is_caught() {
    for by in [1, u64::MAX] {
        spoiled(|history, second| {
            let What::Joined(joined) = &mut history.log[second + 1].event.what else { panic!() };
            joined.ticket.number.0 = joined.ticket.number.0.wrapping_add(by);
        });
    }
    spoiled(|history, second| {
        let What::Moved { to, .. } = &mut history.log[second + 2].event.what else { panic!() };
        to.number.0 += 1;
    });
}

#[test]
fn time_that_runs_back_by_one_millisecond_is_caught() {
    spoiled(|history, _| {
        let last = history.log.last_mut().expect("a log");
        last.event.at = Timestamp(last.event.at.0 - 1);
    });
}

/// The first two have joined when the second lease is granted; the third asks after that.
fn leased() -> (History, u64) {
    let (mut history, second) = two_epochs();
    let grant = |at, epoch| Grant { at: Moment(at), epoch: Epoch(epoch) };
    history.grants = vec![grant(0, 1), grant(4, 2)];
    clean(&history);
    (history, second as u64)
}

#[test]
fn an_answer_under_the_old_lease_to_somebody_who_asked_after_the_new_one_is_caught() {
    let (mut history, last_of_the_old) = leased();
    *version_of(&mut history.calls[2]) = last_of_the_old + 1;
    passes(14, &history);
    *version_of(&mut history.calls[2]) = last_of_the_old;
    caught(14, &history);
}

#[test]
fn who_asked_just_before_the_new_lease_may_still_be_answered_under_the_old_one() {
    let (mut history, last_of_the_old) = leased();
    *version_of(&mut history.calls[2]) = last_of_the_old;
    history.grants[1].at = history.calls[2].sent;
    passes(14, &history);
    history.grants[1].at = Moment(history.calls[2].sent.0 - 1);
    caught(14, &history);
}

#[test]
fn a_number_that_two_people_were_told_is_theirs_is_caught_whatever_the_log_says() {
    let mut story = Story::new(|_| {});
    let ana = story.join_as(1, keyed(1));
    story.tell_join(1, keyed(1), ana, Fresh::Repeat);
    passes(14, &story.history_for_now());
    story.tell_join(2, keyed(2), ana, Fresh::New);
    caught(14, &story.told());
}
