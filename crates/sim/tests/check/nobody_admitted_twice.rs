//! Planted bugs for promise 3.

use crate::story::{Story, reply_of};
use crate::{caught, clean};
use waitroom_core::{AdmitWhy, Entry, Fresh, Holder, LaneId, Millis, Reply, What};

#[test]
fn a_second_admission_of_a_ticket_is_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.join(2);
    story.admit(ana);
    clean(&story.history_for_now());
    story.admit(ana);
    caught(3, &story.told());
}

#[test]
fn an_admission_of_a_ticket_and_of_its_successor_is_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.join(2);
    let moved = story.move_to(ana, LaneId(1));
    story.admit(moved);
    clean(&story.history_for_now());
    story.admit(ana);
    caught(3, &story.told());
}

#[test]
fn a_second_claim_in_the_log_is_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.admit(ana);
    let session = story.claim(1, ana);
    clean(&story.history_for_now());
    story.push(What::Claimed { ticket: ana, session });
    caught(3, &story.told());
}

#[test]
fn a_claim_after_an_admission_that_claimed_already_is_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    let session = story.session();
    story.admit_by(ana, AdmitWhy::Paced, Entry::Claimed(session));
    story.tell_claim(1, ana, session, Fresh::Repeat);
    clean(&story.history_for_now());
    story.claim(1, ana);
    caught(3, &story.told());
}

#[test]
fn two_people_who_both_newly_claimed_one_ticket_are_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.admit(ana);
    let session = story.claim(1, ana);
    story.tell_claim(1, ana, session, Fresh::Repeat);
    clean(&story.history_for_now());
    story.tell_claim(2, ana, session, Fresh::New);
    caught(3, &story.told());
}

#[test]
fn a_repeated_claim_with_a_pass_one_millisecond_longer_is_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.admit(ana);
    let mut session = story.claim(1, ana);
    session.pass_expires_at = session.pass_expires_at.after(Millis(1));
    story.tell_claim(1, ana, session, Fresh::Repeat);
    caught(3, &story.told());
}

#[test]
fn a_repeated_claim_may_have_more_time_after_a_reopening_and_not_without() {
    for reopened in [true, false] {
        let mut story = Story::new(|_| {});
        let ana = story.join(1);
        story.admit(ana);
        let mut session = story.claim(1, ana);
        if reopened {
            story.reopen_by_another_owner();
        } else {
            story.join(2);
        }
        session.expires_at = session.expires_at.after(Millis(1));
        story.tell_claim(1, ana, session, Fresh::Repeat);
        let history = story.told();
        if reopened { clean(&history) } else { caught(3, &history) }
    }
}

#[test]
fn after_a_renewal_was_told_the_old_session_is_not_told_again() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.admit(ana);
    let old = story.claim(1, ana);
    story.wait(60_000);
    let new = story.session();
    story.push(What::Renewed { ticket: ana, session: new });
    // Who asked before anybody had heard of the renewal may still be told of the old one.
    story.tell_claim(1, ana, old, Fresh::Repeat);
    story.tell_claim(1, ana, new, Fresh::Repeat);
    clean(&story.history_for_now());
    story.tell_claim(1, ana, old, Fresh::Repeat);
    let mut history = story.told();
    caught(3, &history);
    // Sent in the very moment of the first answer of that version, it was not sent after it.
    history.calls.last_mut().expect("calls were made").sent.0 -= 3;
    clean(&history);
}

#[test]
fn a_session_that_is_told_of_after_its_end_was_known_is_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.admit(ana);
    let session = story.claim(1, ana);
    story.leave(1, ana);
    clean(&story.history_for_now());
    story.tell_claim(1, ana, session, Fresh::Repeat);
    caught(3, &story.told());
}

#[test]
fn a_claim_that_is_answered_and_not_in_the_log_is_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.admit(ana);
    let session = story.session();
    story.tell_claim(1, ana, session, Fresh::New);
    caught(3, &story.told());
}

#[test]
fn a_claim_told_with_the_neighbours_session_is_caught() {
    let mut story = Story::new(|_| {});
    let (ana, bo) = (story.join(1), story.join(2));
    story.push(What::HandedOver { ticket: bo, holder: Holder(1) });
    story.admit(ana);
    story.admit(bo);
    let first = story.claim(1, ana);
    story.wait(1);
    let shown = waitroom_core::Presented { holder: Some(Holder(1)), ..story.shown(bo) };
    let session = story.session();
    story.push(What::Claimed { ticket: bo, session });
    let reply = Reply::Claimed { ticket: bo, session, fresh: Fresh::New };
    story.call(2, waitroom_core::Command::Claim(shown), reply);
    let mut history = story.told();
    clean(&history);
    let last = history.calls.last_mut().expect("calls were made");
    let Reply::Claimed { session, .. } = reply_of(last) else { panic!() };
    *session = first;
    caught(3, &history);
}
