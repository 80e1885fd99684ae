//! Who goes: by choice, by silence, by age.

use crate::script::check;

#[test]
fn who_leaves_makes_room_for_those_behind() {
    check(
        "
        room  rate=none
        1s  join a*3           | joined a1..a3
        2s  leave a2           | left a2
        2s  position a1..a3    | a1=1 a2=unknown a3=2
        2s  counts             | joined=3 waiting=2 left=1
    ",
    );
}

#[test]
fn who_left_has_left() {
    check(
        "
        room  rate=none
        1s  join ana   | joined ana
        2s  leave ana  | left ana
        3s  leave ana  | over ana left
    ",
    );
}

#[test]
fn who_goes_from_inside_is_done() {
    check(
        "
        room
        1s  join a*2  | joined a1..a2
        1s  tick      | admitted a1..a2 claim_by=91s
        1s  leave a1  | completed a1
        1s  claim a2  | claimed a2 until=601s
        2s  leave a2  | completed a2 held=601s
    ",
    );
}

#[test]
fn the_silent_lapse_in_one_go_and_nobody_twice() {
    check(
        "
        room  max_active=1
        1s  join a*6               | joined a1..a6
        1s  tick                   | admitted a1 claim_by=91s
        1s  leave a2               | left a2
        9s  lapse a5 a3 a1 a2 a3 0:77@1 9:0@1 | silent a3, silent a5
        9s  lapse a3               | nothing
        9s  position a4 a6         | a4=1 a6=2
    ",
    );
}

#[test]
fn one_lapse_ends_at_most_two_thousand() {
    check(
        "
        room  rate=none
        1s  join a*2001
        9s  lapse a1..a2001  | silent a1..a2000
        9s  position a2001   | a2001=1
    ",
    );
}

#[test]
fn a_ticket_that_grew_too_old_expires_at_that_moment() {
    check(
        "
        room  rate=none ticket_life=200s
          1s      join ana   | joined ana
          2s      join bo    | joined bo
          2s      next       | 201s
        200.999s  tick       | nothing
        201s      tick       | too_old ana
        201s      next       | 202s
        202s      tick       | too_old bo
        202s      next       | never
    ",
    );
}

#[test]
fn the_old_are_found_behind_those_who_are_gone() {
    check(
        "
        room  rate=none ticket_life=200s
          1s  join a*4   | joined a1..a4
          5s  join b*2   | joined b1..b2
          6s  leave a1   | left a1
          6s  leave a3   | left a3
        201s  tick       | too_old a2, too_old a4
        204s  tick       | nothing
        205s  tick       | too_old b1..b2
    ",
    );
}

#[test]
fn without_a_life_no_ticket_grows_old() {
    check(
        "
        room  rate=none ticket_life=0s
           1s  join ana  | joined ana
        9999h  tick      | nothing
        9999h  next      | never
    ",
    );
}

#[test]
fn a_life_that_is_set_later_counts_from_the_join() {
    check(
        "
        room  rate=none
          1s  join ana              | joined ana
        300s  set ticket_life=200s  | configured
        300s  next                  | 201s
        300s  tick                  | too_old ana
    ",
    );
}

#[test]
fn age_counts_for_those_who_wait_only() {
    check(
        "
        room  ticket_life=200s claim_within=300s
          1s  join ana   | joined ana
          1s  tick       | admitted ana claim_by=301s
        300s  tick       | nothing
        300s  claim ana  | claimed ana until=900s
    ",
    );
}

#[test]
fn each_lane_loses_its_own_old() {
    check(
        "
        room  rate=none ticket_life=200s lanes=1:1
          1s  join a*2 lane=0  | joined a1..a2
          1s  join b*2 lane=1  | joined b1..b2 lane=1
          9s  join cy lane=1   | joined cy lane=1
        201s  tick             | too_old a1..a2, too_old b1..b2
        201s  position cy      | cy=1
    ",
    );
}
