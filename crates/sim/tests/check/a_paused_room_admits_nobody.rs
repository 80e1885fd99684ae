//! Planted bugs for promise 9.

use crate::story::{Story, version_of};
use crate::{caught, clean, passes};
use waitroom_core::command::FinishCause;
use waitroom_core::{Actor, AdmitWhy, Command, Entry, Hold, Reply, What};

fn pause() -> Hold {
    Hold::Paused { reason: "a moment".into() }
}

fn held(hold: Hold) -> What {
    What::Held { hold, by: Actor::default() }
}

fn resumed() -> What {
    What::Resumed { by: Actor::default() }
}

#[test]
fn an_admission_in_a_pause_is_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.push(held(pause()));
    clean(&story.history_for_now());
    story.admit(ana);
    caught(9, &story.told());
}

#[test]
fn an_admission_one_event_after_the_pause_began_or_before_it_ends_is_caught() {
    let pause_begins = |story: &mut Story| story.push(held(pause()));
    let pause_ends = |story: &mut Story| story.push(resumed());
    for (at, fine) in [(0, true), (1, false), (2, false), (3, true)] {
        let mut story = Story::new(|_| {});
        let ana = story.join(1);
        for step in 0..4 {
            if step == at {
                story.admit(ana);
            }
            match step {
                0 => pause_begins(&mut story),
                // New settings in the middle of a pause do not end it.
                1 => {
                    story.configure(|settings| settings.title = "another".into());
                    story.head()
                }
                2 => pause_ends(&mut story),
                _ => story.head(),
            };
            story.wait(1_000);
        }
        let history = story.told();
        if fine { passes(9, &history) } else { caught(9, &history) }
    }
}

#[test]
fn an_operators_admission_in_maintenance_is_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.push(held(Hold::Maintenance { reason: String::new() }));
    story.push(What::AdmittedNow { asked: 1, granted: 1, by: Actor::default() });
    let entry = Entry::MustClaim { by: story.now };
    story.admit_by(ana, AdmitWhy::Manual, entry);
    caught(9, &story.told());
}

#[test]
fn a_restart_does_not_end_a_pause() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.push(held(pause()));
    story.reopen_by_another_owner();
    story.wait(1_000);
    story.admit(ana);
    caught(9, &story.told());
}

#[test]
fn a_room_before_its_start_and_after_its_end_admits_nobody() {
    let mut story = Story::closed(|_| {});
    story.push(What::DoorsOpened);
    let ana = story.join(1);
    story.admit(ana);
    caught(9, &story.told());

    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    let (cause, reason) = (FinishCause::SoldOut, String::new());
    story.push(What::SaleEnded { cause, reason, closed: 1, by: Actor::default() });
    story.admit(ana);
    caught(9, &story.told());
}

#[test]
fn a_pause_that_was_acknowledged_and_is_not_in_the_log_is_caught() {
    let ask = |hold| Command::Hold { hold, by: Actor::default() };
    let mut story = Story::new(|_| {});
    story.push(held(pause()));
    story.call(1, ask(pause()), Reply::Done);
    story.call(1, ask(pause()), Reply::Done);
    clean(&story.history_for_now());
    story.call(1, ask(Hold::Paused { reason: "another".into() }), Reply::Done);
    caught(9, &story.told());
}

#[test]
fn a_pause_that_comes_one_version_after_its_answer_is_caught() {
    let mut story = Story::new(|_| {});
    story.push(held(pause()));
    story.call(1, Command::Hold { hold: pause(), by: Actor::default() }, Reply::Done);
    story.push(resumed());
    story.call(1, Command::Resume { by: Actor::default() }, Reply::Done);
    let mut history = story.told();
    clean(&history);
    *version_of(&mut history.calls[1]) -= 1;
    caught(9, &history);
    *version_of(&mut history.calls[1]) += 1;
    *version_of(&mut history.calls[0]) -= 1;
    caught(9, &history);
}
