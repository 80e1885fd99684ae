//! Whose turn it is, and how many there may be inside.

use crate::script::check;

#[test]
fn the_next_enter_in_the_order_they_came() {
    check(
        "
        room  max_active=2
        1s  join a*5         | joined a1..a5
        1s  tick             | admitted a1..a2 claim_by=91s
        1s  position a3..a5  | a3=1 a4=2 a5=3
    ",
    );
}

#[test]
fn max_active_is_reached_and_never_passed() {
    check(
        "
        room  max_active=3
        1s  join a*10  | joined a1..a10
        1s  tick       | admitted a1..a3 claim_by=91s
        1s  inside     | 3
        2s  tick       | nothing
        2s  admit 1    | admitted_now asked=1 granted=0
        2s  leave a1   | completed a1
        2s  tick       | admitted a4 claim_by=92s
        2s  inside     | 3
    ",
    );
}

#[test]
fn a_slot_is_held_until_no_gate_can_accept_the_pass() {
    check(
        "
        room  max_active=1 session_timeout=100s pass_leeway=5s
         1s    join a*2    | joined a1..a2
         1s    tick        | admitted a1 claim_by=91s
        10s    claim a1    | claimed a1 until=110s
        20s    leave a1    | completed a1 held=115s
        20s    inside      | 1
        20s    next        | 115s
       114.9s  tick        | nothing
       115s    tick        | released a1, admitted a2 claim_by=205s
    ",
    );
}

#[test]
fn short_passes_free_the_slot_soon() {
    check(
        "
        room  max_active=1 session_timeout=100s pass_life=10s pass_leeway=2s
         1s  join a*2    | joined a1..a2
         1s  tick        | admitted a1 claim_by=91s
        10s  claim a1    | claimed a1 until=110s pass=20s
        15s  leave a1    | completed a1 held=22s
        21s  tick        | nothing
        22s  tick        | released a1, admitted a2 claim_by=112s
    ",
    );
}

#[test]
fn a_slot_is_free_when_every_gate_has_confirmed() {
    check(
        "
        room  max_active=1 session_timeout=100s
         1s  join a*2        | joined a1..a2
         1s  tick            | admitted a1 claim_by=91s
        10s  claim a1        | claimed a1 until=110s
        20s  leave a1        | completed a1 held=110s
        21s  release a1      | released a1
        21s  release a1      | nothing
        21s  tick            | admitted a2 claim_by=111s
    ",
    );
}

#[test]
fn a_slot_of_somebody_inside_is_not_released() {
    check(
        "
        room
        1s  join ana                | joined ana
        1s  release ana 0:9@1 7:0@1 | nothing
        1s  tick                    | admitted ana claim_by=91s
        1s  release ana             | nothing
        1s  claim ana               | claimed ana until=601s
        1s  release ana ana         | nothing
        1s  inside                  | 1
    ",
    );
}

#[test]
fn a_batch_of_releases_names_nobody_twice() {
    check(
        "
        room
        1s  join a*3                | joined a1..a3
        1s  tick                    | admitted a1..a3 claim_by=91s
        1s  claim a1                | claimed a1 until=601s
        1s  claim a2                | claimed a2 until=601s
        2s  complete a1             | completed a1 held=601s
        2s  complete a2             | completed a2 held=601s
        2s  release a2 a1 a2 a3 a1  | released a1..a2
        2s  inside                  | 1
    ",
    );
}

#[test]
fn who_was_admitted_but_never_claimed_frees_the_slot_at_once() {
    check(
        "
        room  max_active=1 claim_within=60s pass_leeway=5s
         1s    join a*2  | joined a1..a2
         1s    tick      | admitted a1 claim_by=61s
        60.9s  tick      | nothing
        61s    tick      | no_show a1, admitted a2 claim_by=121s
        61s    counts    | joined=2 admitted=1 expired=1 admissions=2 no_shows=1
    ",
    );
}

#[test]
fn lowering_max_active_evicts_nobody() {
    check(
        "
        room  max_active=5
        1s  join a*8          | joined a1..a8
        1s  tick              | admitted a1..a5 claim_by=91s
        2s  set max_active=2  | configured
        2s  tick              | nothing
        2s  inside            | 5
        2s  claim a5          | claimed a5 until=602s
        3s  leave a1          | completed a1
        3s  leave a2          | completed a2
        3s  leave a3          | completed a3
        3s  tick              | nothing
        3s  leave a4          | completed a4
        3s  tick              | admitted a6 claim_by=93s
    ",
    );
}

#[test]
fn raising_max_active_lets_the_next_in() {
    check(
        "
        room  max_active=1
        1s  join a*3          | joined a1..a3
        1s  tick              | admitted a1 claim_by=91s
        2s  set max_active=2  | configured
        2s  tick              | admitted a2 claim_by=92s
    ",
    );
}

#[test]
fn one_event_admits_and_claims_where_the_room_says_so() {
    check(
        "
        room  claim=on_admission session_timeout=100s
         1s  join a*2  | joined a1..a2
         1s  tick      | admitted a1..a2 until=101s
         1s  counts    | joined=2 active=2 admissions=2
         2s  claim a1  | repeat a1 until=101s
       101s  tick      | session_over a1..a2
    ",
    );
}

#[test]
fn an_operator_lets_the_next_in_outside_the_pace() {
    check(
        "
        room  rate=1/1s burst=1 max_active=4
        1s    join a*6  | joined a1..a6
        1s    tick      | admitted a1 claim_by=91s
        1s    admit 2   | admitted_now asked=2 granted=2, admitted a2..a3 claim_by=91s manual
        1.9s  tick      | nothing
        2s    tick      | admitted a4 claim_by=92s
        2s    admit 9   | admitted_now asked=9 granted=0
    ",
    );
}

#[test]
fn an_operator_gets_no_more_than_there_are() {
    check(
        "
        room  rate=none
        1s  admit 3    | admitted_now asked=3 granted=0
        1s  join a*2   | joined a1..a2
        1s  admit 3    | admitted_now asked=3 granted=2, admitted a1..a2 claim_by=91s manual
        1s  admit 0    | admitted_now asked=0 granted=0
    ",
    );
}

#[test]
fn a_room_without_a_rate_admits_only_by_hand() {
    check(
        "
        room  rate=none
         1s  join a*2    | joined a1..a2
        99s  tick        | nothing
        99s  next        | never
        99s  admit 1     | admitted_now asked=1 granted=1, admitted a1 claim_by=189s manual
    ",
    );
}

#[test]
fn nobody_is_admitted_twice() {
    check(
        "
        room  max_active=5
        1s  join a*2    | joined a1..a2
        1s  tick        | admitted a1..a2 claim_by=91s
        1s  tick        | nothing
        1s  admit 5     | admitted_now asked=5 granted=0
    ",
    );
}

#[test]
fn who_left_is_passed_over() {
    check(
        "
        room  max_active=2
        1s  join a*4    | joined a1..a4
        1s  leave a1    | left a1
        1s  lapse a3    | silent a3
        1s  tick        | admitted a2 claim_by=91s, admitted a4 claim_by=91s
    ",
    );
}

#[test]
fn a_large_crowd_enters_in_steps_and_in_order() {
    let world = check(
        "
        room  max_active=5000 rate=100000/1s burst=10000
        1s  join a*4500
        1s  tick        | admitted a1..a4500 claim_by=91s
    ",
    );
    world.witness.pace_is_kept();
}

#[test]
fn one_admit_grants_at_most_ten_thousand() {
    check("
        room  max_active=20000 rate=none
        1s  join a*10001
        1s  admit 20000  | admitted_now asked=20000 granted=10000, admitted a1..a10000 claim_by=91s manual
        1s  position a10001 | a10001=1
    ");
}
