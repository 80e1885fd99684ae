//! Planted bugs for promise 13.

use crate::story::{Story, what_of};
use crate::{caught, clean, passes};
use waitroom_core::chunked::CHUNK;
use waitroom_core::command::FinishCause;
use waitroom_core::{
    Actor, AdmitWhy, Block, Ending, Entry, Holder, Join, LaneId, Ticket, Timestamp, What,
};

#[test]
fn a_count_of_those_waiting_that_is_one_off_is_caught_in_every_event_that_carries_one() {
    let story = || {
        let mut story = Story::new(|_| {});
        let (ana, bo, _) = (story.join(1), story.join(2), story.join(3));
        story.admit(ana);
        story.lapse(bo);
        story.told()
    };
    clean(&story());
    let mut spoiled = 0;
    for place in 0..story().log.len() {
        for by in [1, u64::MAX] {
            let mut history = story();
            match &mut history.log[place].event.what {
                What::Joined(joined) => joined.waiting = joined.waiting.wrapping_add(by),
                What::Admitted { waiting, .. } | What::Ended { waiting, .. } => {
                    *waiting = waiting.wrapping_add(by);
                }
                _ => continue,
            }
            caught(13, &history);
            spoiled += 1;
        }
    }
    assert_eq!(spoiled, 10);
}

#[test]
fn a_count_of_the_lane_that_is_one_off_is_caught() {
    let mut story = Story::new(|_| {});
    story.join_as(1, Join { lane: LaneId(1), ..Join::default() });
    story.join(2);
    let mut history = story.told();
    clean(&history);
    let index = history.log.len() as u64;
    let What::Joined(joined) = what_of(&mut history, index) else { panic!() };
    joined.waiting_in_lane += 1;
    caught(13, &history);
}

#[test]
fn a_ticket_that_begins_twice_is_caught() {
    let mut story = Story::new(|_| {});
    story.join(1);
    story.join(2);
    let mut history = story.told();
    let index = history.log.len() as u64;
    let What::Joined(joined) = what_of(&mut history, index) else { panic!() };
    joined.ticket.number.0 -= 1;
    caught(13, &history);
}

#[test]
fn a_ticket_that_never_joined_cannot_be_admitted_or_end() {
    let mut story = Story::new(|_| {});
    story.join(1);
    let mut ended = story.clone();
    ended.lapse(Ticket::new(0, 1));
    caught(13, &ended.told());
    story.admit(Ticket::new(0, 1));
    caught(13, &story.told());
}

#[test]
fn every_ending_is_possible_from_its_own_statuses_only() {
    // Waiting, admitted, active, over.
    let table = [
        (Ending::Completed, [false, true, true, false]),
        (Ending::Left, [true, false, false, false]),
        (Ending::Silent, [true, false, false, false]),
        (Ending::TooOld, [true, false, false, false]),
        (Ending::NoShow, [false, true, false, false]),
        (Ending::SessionOver, [false, false, true, false]),
        (Ending::CheckoutFailed, [false, false, true, false]),
        (Ending::CheckoutExpired, [false, false, true, false]),
        (Ending::Revoked, [true, true, true, false]),
    ];
    assert_eq!(table.len(), Ending::ALL.len());
    for (ending, possible) in table {
        for (status, fine) in possible.into_iter().enumerate() {
            let mut story = Story::new(|_| {});
            let ana = story.join(1);
            if status >= 1 {
                story.admit(ana);
            }
            if status >= 2 {
                story.claim(1, ana);
            }
            if status >= 3 {
                story.leave(1, ana);
            }
            if status == 0 {
                story.close_everybody();
            }
            story.end(ana, ending, None);
            let history = story.told();
            if fine { passes(13, &history) } else { caught(13, &history) }
        }
    }
}

#[test]
fn only_the_waiting_are_admitted_or_moved_and_only_the_admitted_claim() {
    let inside = || {
        let mut story = Story::new(|_| {});
        let ana = story.join(1);
        story.join(2);
        story.admit(ana);
        (story, ana)
    };
    let (mut story, ana) = inside();
    story.move_to(ana, LaneId(1));
    caught(13, &story.told());
    let (mut story, ana) = inside();
    story.admit(ana);
    caught(13, &story.told());
    let (mut story, _) = inside();
    story.claim(2, Ticket::new(0, 1));
    caught(13, &story.told());
}

#[test]
fn an_end_of_the_sale_that_counts_one_too_many_or_too_few_is_caught() {
    for (by, fine) in [(0, true), (1, false), (u64::MAX, false)] {
        let mut story = Story::new(|_| {});
        let (ana, _, _) = (story.join(1), story.join(2), story.join(3));
        story.admit(ana);
        let closed = story.close_everybody().wrapping_add(by);
        let (cause, reason) = (FinishCause::Operator, String::new());
        story.push(What::SaleEnded { cause, reason, closed, by: Actor::default() });
        let history = story.told();
        if fine { clean(&history) } else { caught(13, &history) }
    }
}

#[test]
fn an_operator_gets_as_many_as_were_granted_not_one_more_or_less() {
    for (granted, fine) in [(1, false), (2, true), (3, false)] {
        let mut story = Story::new(|_| {});
        let (ana, bo) = (story.join(1), story.join(2));
        story.push(What::AdmittedNow { asked: 5, granted, by: Actor::default() });
        let entry = Entry::MustClaim { by: story.now };
        story.admit_by(ana, AdmitWhy::Manual, entry);
        story.admit_by(bo, AdmitWhy::Manual, entry);
        let history = story.told();
        if fine { clean(&history) } else { caught(13, &history) }
    }
}

#[test]
fn a_slot_is_released_once_and_only_if_it_was_held() {
    let mut story = Story::new(|_| {});
    let ana = story.join(1);
    story.admit(ana);
    story.claim(1, ana);
    let mut early = story.clone();
    early.push(What::Released { ticket: ana });
    caught(13, &early.told());
    let until: Timestamp = story.leave(1, ana);
    story.now = until;
    story.push(What::Released { ticket: ana });
    clean(&story.history_for_now());
    story.push(What::Released { ticket: ana });
    caught(13, &story.told());
}

#[test]
fn a_holder_count_that_jumps_by_two_or_stays_is_caught() {
    for (holder, fine) in [(0, false), (1, true), (2, false)] {
        let mut story = Story::new(|_| {});
        let ana = story.join(1);
        story.push(What::HandedOver { ticket: ana, holder: Holder(holder) });
        let history = story.told();
        if fine { clean(&history) } else { caught(13, &history) }
    }
}

/// A block of tickets of which all but the last few have lapsed.
fn a_block(joined: u64, waiting: u64) -> Story {
    let mut story = Story::new(|_| {});
    for client in 0..joined {
        story.join(client as u32);
    }
    for number in 0..joined - waiting {
        story.lapse(Ticket::new(0, number));
    }
    story.push(What::ForgotTickets(Block { lane: LaneId(0), index: 0 }));
    story
}

#[test]
fn a_block_is_forgotten_when_it_is_full_and_nobody_in_it_lives() {
    clean(&a_block(CHUNK, 0).told());
    caught(13, &a_block(CHUNK, 1).told());
    caught(13, &a_block(CHUNK - 1, 0).told());
}
