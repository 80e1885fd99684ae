//! Planted bugs for promise 1.

use crate::story::{Story, keyed, known, refused, reply_of, version_of};
use crate::{caught, clean, passes};
use waitroom_core::{Command, Fresh, Join, Millis, Refusal, Reply, Status, Ticket};
use waitroom_sim::history::{HeardOf, History, Moment, Outcome};

fn three_join() -> History {
    let mut story = Story::new(|_| {});
    story.join(1);
    story.join_as(2, known(2));
    story.join_as(3, keyed(3));
    story.told()
}

#[test]
fn a_join_that_was_acknowledged_and_is_not_in_the_log_is_caught() {
    let mut history = three_join();
    clean(&history);
    history.log.pop();
    caught(1, &history);
}

#[test]
fn a_number_that_is_one_too_high_in_the_answer_is_caught() {
    let mut history = three_join();
    let Reply::Joined { ticket, .. } = reply_of(&mut history.calls[2]) else { panic!() };
    ticket.number.0 += 1;
    caught(1, &history);
}

#[test]
fn a_number_that_is_one_too_low_in_the_answer_is_caught() {
    let mut history = three_join();
    let Reply::Joined { ticket, .. } = reply_of(&mut history.calls[2]) else { panic!() };
    ticket.number.0 -= 1;
    caught(1, &history);
}

#[test]
fn one_number_for_two_anonymous_visitors_is_caught() {
    let mut story = Story::new(|_| {});
    let ticket = story.join(1);
    story.tell_join(2, Join::default(), ticket, Fresh::New);
    caught(1, &story.told());
}

#[test]
fn an_answer_one_version_before_its_event_is_caught() {
    let mut history = three_join();
    passes(1, &history);
    *version_of(&mut history.calls[2]) -= 1;
    caught(1, &history);
}

#[test]
fn an_answer_of_an_epoch_that_is_one_off_is_caught() {
    let mut history = three_join();
    let Reply::Joined { epoch, .. } = reply_of(&mut history.calls[0]) else { panic!() };
    epoch.0 += 1;
    caught(1, &history);
}

#[test]
fn a_refused_join_that_appears_is_caught_whoever_sent_it() {
    for place in 0..3 {
        let mut history = three_join();
        *reply_of(&mut history.calls[place]) = refused();
        caught(1, &history);
    }
}

#[test]
fn a_join_that_never_reached_the_room_and_appears_is_caught() {
    for place in 0..3 {
        let mut history = three_join();
        history.calls[place].outcome = Outcome::NotDone { at: Moment(99) };
        caught(1, &history);
    }
}

#[test]
fn an_unknown_join_may_appear_once_and_not_twice() {
    let mut story = Story::new(|_| {});
    story.join_as(1, keyed(1));
    story.log_join(&Join::default());
    let mut history = story.told();
    caught(1, &history);
    let mut unknown = history.calls[0].clone();
    unknown.command = Command::Join(Join::default());
    unknown.outcome = Outcome::Unknown;
    history.calls.push(unknown);
    clean(&history);

    let mut story = Story::new(|_| {});
    story.log_join(&Join::default());
    story.log_join(&Join::default());
    let mut twice = story.told();
    twice.calls.push(history.calls[1].clone());
    caught(1, &twice);
}

#[test]
fn a_retry_that_succeeds_explains_the_join_of_a_refused_one() {
    let mut story = Story::new(|_| {});
    story.call(1, Command::Join(keyed(1)), refused());
    story.join_as(1, keyed(1));
    clean(&story.told());
}

#[test]
fn an_answer_about_the_neighbours_ticket_is_caught() {
    let mut story = Story::new(|_| {});
    let (ana, bo) = (story.join(1), story.join(2));
    let shown = story.shown(ana);
    let over = |ticket| Reply::Over { ticket, status: Status::Left, fresh: Fresh::Repeat };
    story.call(1, Command::Leave(shown), over(ana));
    passes(1, &story.history);
    story.call(1, Command::Leave(shown), over(bo));
    caught(1, &story.told());
}

/// Ana's join is lost with the store; Bo comes in a later epoch and gets the same number.
fn a_store_that_lost_data(to_ana: Reply) -> History {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    let shown = story.shown(ana);
    let mut after = Story::new(|_| {});
    after.reopen_by_another_owner();
    after.history.calls = story.history.calls;
    after.history.store_lost_data = true;
    for _ in 0..2 {
        // Moments go on where Ana's ended.
        after.call(9, Command::Join(Join::default()), refused());
    }
    after.join(2);
    after.call(1, Command::Claim(shown), to_ana);
    after.told()
}

#[test]
fn a_place_that_the_store_lost_answers_place_lost() {
    clean(&a_store_that_lost_data(Reply::Refused(Refusal::PlaceLost)));
}

#[test]
fn a_lost_place_that_answers_with_the_next_persons_status_is_caught() {
    let status = Status::Waiting;
    caught(1, &a_store_that_lost_data(Reply::Refused(Refusal::WrongStatus { status })));
    let ticket = Ticket::new(0, 0);
    caught(1, &a_store_that_lost_data(Reply::Over { ticket, status, fresh: Fresh::New }));
}

/// Somebody lapses who may be silent for 20 s and was heard of so long before.
fn lapses_after(silent_ms: u64) -> History {
    let mut story = Story::new(|settings| settings.heartbeat_timeout = Millis(20_000));
    let ticket = story.join(1);
    story.wait(60_000);
    story.lapse(ticket);
    let mut history = story.told();
    history.decided = vec![40_000; history.log.len()];
    *history.decided.last_mut().expect("the lapse") = 100_000;
    history.heard = vec![HeardOf { ticket, at_ms: 100_000 - silent_ms }];
    history
}

#[test]
fn a_place_that_lapses_although_its_visitor_was_heard_of_is_caught() {
    // Eight seconds for the word to get there, and a twentieth for clocks that run apart.
    clean(&lapses_after(7_999));
    caught(1, &lapses_after(8_000));
    caught(1, &lapses_after(18_999));
    clean(&lapses_after(19_000));
    // Whoever was never silent for so long did not come back too late.
    let mut history = lapses_after(1_000);
    let ticket = history.heard[0].ticket;
    history.heard.push(HeardOf { ticket, at_ms: 95_000 });
    clean(&history);
    history.heard.push(HeardOf { ticket, at_ms: 85_000 });
    caught(1, &history);
}

#[test]
fn who_is_heard_of_after_the_end_was_silent_before_it() {
    let mut history = lapses_after(19_000);
    let ticket = history.heard[0].ticket;
    history.heard.push(HeardOf { ticket, at_ms: 100_001 });
    clean(&history);
}
