//! Planted bugs for promise 4.

use crate::story::{Story, what_of};
use crate::{caught, clean, passes};
use waitroom_core::{
    AdmitWhy, Command, Ending, Entry, Fresh, Millis, Reply, Ticket, Timestamp, What,
};
use waitroom_sim::history::Moment;

fn two_slots() -> (Story, [Ticket; 4]) {
    let mut story = Story::new(|settings| settings.max_active = 2);
    let tickets = [1, 2, 3, 4].map(|client| story.join(client));
    (story, tickets)
}

#[test]
fn as_many_as_there_are_slots_pass_and_one_more_is_caught() {
    let (mut story, [a, b, c, _]) = two_slots();
    story.admit(a);
    story.admit(b);
    clean(&story.history_for_now());
    story.admit(c);
    caught(4, &story.told());
}

#[test]
fn an_operator_gets_no_slot_that_is_not_there() {
    let (mut story, [a, b, c, _]) = two_slots();
    story.admit(a);
    story.admit(b);
    story.push(What::AdmittedNow { asked: 1, granted: 1, by: Default::default() });
    let entry = Entry::MustClaim { by: story.now };
    story.admit_by(c, AdmitWhy::Manual, entry);
    caught(4, &story.told());
}

#[test]
fn lowering_the_limit_evicts_nobody_and_lets_nobody_in() {
    let (mut story, [a, b, c, _]) = two_slots();
    story.admit(a);
    story.admit(b);
    story.configure(|settings| settings.max_active = 1);
    story.no_show(a);
    clean(&story.history_for_now());
    story.admit(c);
    caught(4, &story.told());
}

#[test]
fn a_no_show_frees_its_slot_at_once() {
    let (mut story, [a, b, c, d]) = two_slots();
    story.admit(a);
    story.admit(b);
    story.no_show(a);
    story.admit(c);
    clean(&story.history_for_now());
    story.admit(d);
    caught(4, &story.told());
}

/// Both slots are taken, and somebody who had a pass has left.
fn one_has_left() -> (Story, [Ticket; 4], Timestamp) {
    let (mut story, [a, b, c, d]) = two_slots();
    story.admit(a);
    story.admit(b);
    story.claim(1, a);
    let until = story.leave(1, a);
    (story, [a, b, c, d], until)
}

#[test]
fn who_left_holds_the_slot_until_the_pass_is_dead() {
    let (mut story, [a, _, c, _], until) = one_has_left();
    story.now = until;
    story.push(What::Released { ticket: a });
    story.admit(c);
    clean(&story.told());

    let (mut story, [_, _, c, _], _) = one_has_left();
    story.admit(c);
    caught(4, &story.told());
}

#[test]
fn a_slot_that_is_released_a_millisecond_early_is_caught_unless_the_gates_confirmed_it() {
    for confirmed in [false, true] {
        let (mut story, [a, ..], until) = one_has_left();
        story.now = Timestamp(until.0 - 1);
        story.push(What::Released { ticket: a });
        if confirmed {
            story.call(9, Command::Release { tickets: vec![a] }, Reply::Released { count: 1 });
        }
        let history = story.told();
        if confirmed { clean(&history) } else { caught(4, &history) }
    }
}

#[test]
fn a_release_that_was_not_done_confirms_nothing() {
    let (mut story, [a, ..], _) = one_has_left();
    story.push(What::Released { ticket: a });
    story.call(9, Command::Release { tickets: vec![a] }, Reply::Released { count: 1 });
    let mut history = story.told();
    clean(&history);
    let last = history.calls.last_mut().expect("the release");
    last.outcome = waitroom_sim::history::Outcome::NotDone { at: Moment(99) };
    caught(4, &history);
}

#[test]
fn an_end_that_holds_the_slot_a_millisecond_too_short_is_caught() {
    let (mut story, ..) = one_has_left();
    let index = story.head();
    let What::Ended { held_until, .. } = what_of(&mut story.history, index) else { panic!() };
    *held_until = held_until.map(|until| Timestamp(until.0 - 1));
    caught(4, &story.told());
}

#[test]
fn an_end_that_frees_a_slot_while_its_pass_is_good_is_caught() {
    for (later, fine) in [(0, false), (604_999, false), (605_000, true)] {
        let (mut story, [a, b, ..]) = two_slots();
        story.admit(a);
        story.admit(b);
        story.claim(1, a);
        story.wait(later);
        story.end(a, Ending::SessionOver, None);
        let history = story.told();
        if fine { clean(&history) } else { caught(4, &history) }
    }
}

#[test]
fn a_renewed_pass_holds_the_slot_longer_and_the_longest_one_counts() {
    let (mut story, [a, ..]) = two_slots();
    story.admit(a);
    let first = story.claim(1, a);
    let mut shorter = first;
    shorter.pass_expires_at = Timestamp(first.pass_expires_at.0 - 1);
    story.push(What::Renewed { ticket: a, session: shorter });
    let dead = shorter.pass_expires_at.after(story.settings.pass_leeway);
    story.now = dead;
    story.end(a, Ending::SessionOver, None);
    caught(4, &story.told());
    assert_eq!(first.pass_expires_at, shorter.pass_expires_at.after(Millis(1)));
}

#[test]
fn a_restart_frees_no_slot() {
    let (mut story, [a, b, c, _]) = two_slots();
    story.admit(a);
    story.admit(b);
    story.reopen_by_another_owner();
    story.wait(1_000);
    clean(&story.history_for_now());
    story.admit(c);
    caught(4, &story.told());
}

#[test]
fn a_pass_for_a_slot_that_somebody_knows_to_be_free_is_caught() {
    let (mut story, [a, ..]) = two_slots();
    story.admit(a);
    let session = story.claim(1, a);
    story.now = story.leave(1, a);
    story.push(What::Released { ticket: a });
    // Nobody has heard of that yet: the answer may have been given before.
    let mut before = story.clone();
    before.tell_claim(1, a, session, Fresh::Repeat);
    passes(4, &before.told());
    story.join(5);
    story.tell_claim(1, a, session, Fresh::Repeat);
    caught(4, &story.told());
}
