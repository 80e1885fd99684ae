//! Planted bugs for promise 11.

use crate::story::{Story, version_of};
use crate::{caught, clean, passes};
use waitroom_core::{
    Command, Epoch, Fresh, Holder, Join, LaneId, Presented, Refusal, Reply, Status, Ticket, What,
};
use waitroom_sim::history::Forgery;

fn left(ticket: Ticket) -> Reply {
    Reply::Over { ticket, status: Status::Left, fresh: Fresh::Repeat }
}

#[test]
fn a_forged_id_that_was_accepted_is_caught_and_a_refused_one_is_not() {
    let mut history = Story::new(|_| {}).told();
    history.forgeries.push(Forgery { what: "one bit flipped", accepted: false });
    clean(&history);
    history.forgeries.push(Forgery { what: "a ticket of another room", accepted: true });
    caught(11, &history);
}

#[test]
fn a_number_that_is_next_and_not_given_yet_is_caught() {
    let mut story = Story::new(|_| {});
    story.join(1);
    let next = Ticket::new(0, 1);
    let shown = Presented { ticket: next, epoch: Epoch(1), holder: None };
    story.call(9, Command::Leave(shown), Reply::Refused(Refusal::PlaceLost));
    clean(&story.history_for_now());
    story.call(9, Command::Leave(shown), left(next));
    caught(11, &story.told());
}

#[test]
fn a_number_that_is_given_one_event_after_the_answer_is_caught() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    let shown = story.shown(ana);
    story.call(9, Command::Leave(shown), left(ana));
    let mut history = story.told();
    passes(11, &history);
    *version_of(&mut history.calls[1]) -= 1;
    caught(11, &history);
}

#[test]
fn an_epoch_that_is_one_off_is_caught() {
    for epoch in [0, 2] {
        let mut story = Story::new(|_| {});
        let ana = story.join(1);
        let shown = Presented { epoch: Epoch(epoch), ..story.shown(ana) };
        story.call(9, Command::Leave(shown), left(ana));
        caught(11, &story.told());
    }
}

#[test]
fn a_holder_count_before_or_after_the_current_one_is_caught() {
    for (holder, fine) in [(0, false), (1, true), (2, false)] {
        let mut story = Story::new(|_| {});
        let ana = story.join(1);
        let shown = story.shown(ana);
        story.push(What::HandedOver { ticket: ana, holder: Holder(1) });
        let reply = Reply::HandedOver { ticket: ana, holder: Holder(1) };
        story.call(1, Command::HandOver(shown), reply);
        let shown = Presented { holder: Some(Holder(holder)), ..shown };
        story.call(1, Command::Leave(shown), left(ana));
        let history = story.told();
        if fine { passes(11, &history) } else { caught(11, &history) }
    }
}

#[test]
fn a_service_needs_no_holder_count() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.push(What::HandedOver { ticket: ana, holder: Holder(1) });
    let shown = Presented { holder: None, ..story.shown(ana) };
    story.call(1, Command::Leave(shown), left(ana));
    passes(11, &story.told());
}

#[test]
fn the_holder_count_goes_with_a_ticket_that_was_moved() {
    for (holder, fine) in [(0, false), (1, true)] {
        let mut story = Story::new(|_| {});
        let ana = story.join(1);
        story.push(What::HandedOver { ticket: ana, holder: Holder(1) });
        let moved = story.move_to(ana, LaneId(1));
        // Somebody heard of all this before the next call.
        story.join(2);
        let shown = Presented { holder: Some(Holder(holder)), ..story.shown(moved) };
        story.call(1, Command::Leave(shown), left(moved));
        let history = story.told();
        if fine { passes(11, &history) } else { caught(11, &history) }
    }
}

#[test]
fn a_join_with_an_altered_ticket_in_the_hand_is_caught() {
    for (epoch, fine) in [(1, true), (2, false)] {
        let mut story = Story::new(|_| {});
        let ana = story.join(1);
        let holding = Some(Presented { epoch: Epoch(epoch), ..story.shown(ana) });
        story.tell_join(1, Join { holding, ..Join::default() }, ana, Fresh::Repeat);
        let history = story.told();
        if fine { clean(&history) } else { caught(11, &history) }
    }
}
