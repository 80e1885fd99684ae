//! A visitor joins: who gets a place, which one, and who gets none.

use crate::script::{World, check};

#[test]
fn who_comes_first_stands_first() {
    check(
        "
        room
        1s  join ana           | joined ana
        1s  join bo            | joined bo
        2s  join cy            | joined cy
        2s  position ana bo cy | ana=1 bo=2 cy=3
    ",
    );
}

#[test]
fn a_room_without_settings_takes_nobody() {
    let mut world = World::empty();
    assert_eq!(world.line("0s open 1"), "opened epoch=1");
    assert_eq!(world.line("0s join ana"), "refused not_ready");
    assert_eq!(world.line("0s tick"), "refused not_ready");
}

#[test]
fn a_room_that_nobody_owns_takes_nobody() {
    let mut world = World::empty();
    assert_eq!(world.line("0s join ana"), "refused not_ready");
}

#[test]
fn each_lane_has_its_own_numbers() {
    let world = check(
        "
        room  lanes=3:1
        1s  join ana lane=0  | joined ana
        1s  join bo lane=1   | joined bo lane=1
        1s  join cy lane=1   | joined cy lane=1
        1s  position ana bo cy | ana=1 bo=1 cy=2
    ",
    );
    assert_eq!(world.ticket("ana").number, world.ticket("bo").number);
}

#[test]
fn a_lane_that_does_not_exist_takes_nobody() {
    check(
        "
        room  lanes=3:1
        1s  join ana lane=2 | refused unknown_lane lane=2
    ",
    );
}

#[test]
fn nobody_asks_for_the_lane_of_those_who_return() {
    check(
        "
        room  returning=20%/60s
        1s  join ana lane=returning | refused unknown_lane lane=returning
    ",
    );
}

#[test]
fn a_full_queue_takes_the_last_and_refuses_the_next() {
    check(
        "
        room  max_waiting=2 rate=none
        1s  join a*2  | joined a1..a2
        1s  join cy   | refused full max_waiting=2
        1s  leave a1  | left a1
        1s  join cy   | joined cy
        1s  join dee  | refused full max_waiting=2
    ",
    );
}

#[test]
fn a_limit_that_is_lowered_sends_nobody_away() {
    check(
        "
        room  max_waiting=3 rate=none
        1s  join a*3           | joined a1..a3
        1s  set max_waiting=1  | configured
        1s  join bo            | refused full max_waiting=1
        1s  leave a1           | left a1
        1s  leave a2           | left a2
        1s  join bo            | refused full max_waiting=1
        1s  position a3        | a3=1
    ",
    );
}

#[test]
fn zero_means_no_limit_to_who_may_wait() {
    check(
        "
        room  max_waiting=0 rate=none
        1s  join a*500  | joined a1..a500
    ",
    );
}

#[test]
fn metadata_fits_up_to_its_last_byte() {
    check(
        "
        room
        1s  join ana meta=1024  | joined ana
        1s  join bo  meta=1025  | refused metadata_too_large bytes_max=1024
        1s  join cy  user=512   | joined cy
        1s  join dee user=513   | refused metadata_too_large bytes_max=512
    ",
    );
}

#[test]
fn an_idle_room_lets_people_straight_through() {
    check(
        "
        room  queue_all=no claim_within=60s
        1s  join ana  | joined ana, admitted ana claim_by=61s straight
        1s  join bo   | joined bo, admitted bo claim_by=61s straight
    ",
    );
}

#[test]
fn a_room_that_queues_all_lets_nobody_straight_through() {
    check(
        "
        room  queue_all=yes
        1s  join ana  | joined ana
    ",
    );
}

#[test]
fn nobody_goes_straight_past_somebody_who_waits() {
    check(
        "
        room  queue_all=no max_active=1
        1s  join ana    | joined ana, admitted ana claim_by=91s straight
        1s  join bo     | joined bo
        2s  set max_active=5
        2s  join cy     | joined cy
        2s  tick        | admitted bo claim_by=92s, admitted cy claim_by=92s
        2s  join dee    | joined dee, admitted dee claim_by=92s straight
    ",
    );
}

#[test]
fn going_straight_through_costs_a_token() {
    check(
        "
        room  queue_all=no rate=1/1s burst=1
        1s    join ana  | joined ana, admitted ana claim_by=91s straight
        1s    join bo   | joined bo
        1.9s  tick      | nothing
        2s    tick      | admitted bo claim_by=92s
    ",
    );
}

#[test]
fn going_straight_through_takes_a_slot() {
    check(
        "
        room  queue_all=no max_active=1
        1s  join ana   | joined ana, admitted ana claim_by=91s straight
        1s  inside     | 1
        1s  join bo    | joined bo
        1s  tick       | nothing
    ",
    );
}

#[test]
fn a_paused_room_takes_people_and_lets_none_through() {
    check(
        "
        room  queue_all=no
        1s  pause doors jam  | paused doors jam
        1s  join ana         | joined ana
    ",
    );
}

#[test]
fn a_room_in_maintenance_takes_nobody_and_says_why() {
    check(
        "
        room
        1s  join ana             | joined ana
        1s  maintenance new till | maintenance new till
        1s  join bo              | refused maintenance new till
        1s  resume               | resumed
        1s  join bo              | joined bo
        1s  position ana bo      | ana=1 bo=2
    ",
    );
}

#[test]
fn a_ticket_in_the_hand_is_answered_and_not_doubled() {
    check(
        "
        room
        1s  join ana              | joined ana
        2s  join ana holding=ana  | repeat ana
        3s  tick                  | admitted ana claim_by=93s
        4s  join ana holding=ana  | repeat ana
        4s  claim ana             | claimed ana until=604s
        5s  join ana holding=ana  | repeat ana
    ",
    );
}

#[test]
fn a_finished_ticket_in_the_hand_leads_to_a_new_one() {
    check(
        "
        room
        1s  join ana              | joined ana
        2s  leave ana             | left ana
        3s  join bo holding=ana   | joined bo
    ",
    );
}

#[test]
fn a_ticket_nobody_was_given_is_no_place() {
    check(
        "
        room
        1s  join ana holding=0:77@1  | joined ana
    ",
    );
}

#[test]
fn a_handed_over_token_in_the_hand_no_longer_counts() {
    check(
        "
        room
        1s  join ana                  | joined ana
        1s  hand_over ana to=phone    | handed_over ana holder=1
        1s  join bo holding=ana       | joined bo
        1s  join again holding=phone  | repeat ana
    ",
    );
}

#[test]
fn a_repeat_is_answered_also_when_nobody_new_may_join() {
    check(
        "
        room  max_waiting=1 rate=none
        1s  join ana id=ann key=k   | joined ana
        1s  join bo                 | refused full max_waiting=1
        1s  join ana id=ann         | repeat ana
        1s  maintenance x           | maintenance x
        1s  join ana id=ann         | repeat ana
        1s  join ana key=k          | repeat ana
        1s  finish over             | sale_ended operator closed=1
        1s  join ana key=k          | repeat ana
        1s  join ana id=ann         | refused finished over
    ",
    );
}

#[test]
fn time_never_runs_backwards_in_the_log() {
    let world = check(
        "
        room
        5s  join ana  | joined ana
        2s  join bo   | joined bo
    ",
    );
    assert!(world.log.is_sorted_by_key(|event| event.at));
}
