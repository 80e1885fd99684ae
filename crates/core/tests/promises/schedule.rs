//! Opening, start and end; sold out; and a sale that goes on after all.

use crate::script::check;

#[test]
fn a_room_without_a_schedule_runs_from_its_settings_on() {
    check(
        "
        room                  | configured, doors_opened, sale_started
        0s  join ana          | joined ana
    ",
    );
}

#[test]
fn nobody_joins_before_the_doors_open() {
    check(
        "
        room  opens_at=10s     | configured
         9.999s  join ana      | refused not_open_yet opens_at=10s
         9.999s  tick          | nothing
        10s      tick          | doors_opened, sale_started
        10s      join ana      | joined ana
    ",
    );
}

#[test]
fn the_room_asks_to_be_woken_for_its_schedule() {
    check(
        "
        room  opens_at=10s starts_at=20s ends_at=30s
         0s  next  | 10s
        10s  tick  | doors_opened
        10s  next  | 20s
        20s  tick  | sale_started
        20s  next  | 30s
        30s  tick  | sale_ended schedule closed=0
        30s  next  | never
    ",
    );
}

#[test]
fn between_doors_and_start_people_join_and_nobody_enters() {
    check(
        "
        room  opens_at=10s starts_at=20s
        10s      tick             | doors_opened
        10s      join a*2         | joined a1..a2
        10s      position a1..a2  | a1=1 a2=2
        10s      admit 1          | refused not_started
        19.999s  tick             | nothing
        20s      tick             | sale_started
        20.001s  tick             | admitted a1 claim_by=110.001s
    ",
    );
}

#[test]
fn what_was_saved_up_before_the_start_does_not_come_out_at_once() {
    check(
        "
        room  starts_at=100s rate=1/1s burst=50
         50s  join a*9  | joined a1..a9
        100s  tick      | sale_started
        101s  tick      | admitted a1 claim_by=191s
    ",
    );
}

#[test]
fn settings_that_come_late_catch_up_at_once() {
    check("
        room  opens_at=500s starts_at=600s                        | configured
        550s  set opens_at=100s starts_at=200s ends_at=900s       | configured, doors_opened, sale_started
        560s  join ana                                            | joined ana
    ");
}

#[test]
fn settings_of_a_sale_that_is_over_end_it_at_once() {
    check(
        "
        room  starts_at=10s
         1s  join ana                     | joined ana
        99s  set starts_at=10s ends_at=50s | configured, sale_ended schedule closed=1
    ",
    );
}

#[test]
fn the_end_closes_every_waiting_ticket() {
    check(
        "
        room  ends_at=60s max_active=1
         1s      join a*3   | joined a1..a3
         1s      tick       | admitted a1 claim_by=91s
        59.999s  tick       | nothing
        60s      tick       | sale_ended schedule closed=2
        60s      counts     | joined=3 admitted=1 closed=2 admissions=1
        60s      join bo    | refused finished
        60s      leave a2   | over a2 closed
        60s      claim a3   | refused wrong_status status=closed
        60s      claim a1   | claimed a1 until=660s
        60s      admit 1    | refused finished
    ",
    );
}

#[test]
fn sold_out_ends_the_sale_and_says_why() {
    check(
        "
        room  rate=none
        1s  join ana             | joined ana
        2s  sold_out all gone    | sale_ended sold_out closed=1
        2s  join bo              | refused finished all gone
        3s  sold_out again       | done
        3s  finish really        | done
        3s  join bo              | refused finished all gone
    ",
    );
}

#[test]
fn a_reopened_sale_goes_on_for_those_who_come_now() {
    check(
        "
        room
        1s  join a*2       | joined a1..a2
        2s  sold_out gone  | sale_ended sold_out closed=2
        3s  reopen         | reopened
        3s  join bo        | joined bo
        3s  position bo    | bo=1
        3s  tick           | nothing
        4s  tick           | admitted bo claim_by=94s
        4s  claim a1       | refused wrong_status status=closed
        4s  reopen         | done
    ",
    );
}

#[test]
fn an_end_that_was_reopened_over_does_not_come_again() {
    check(
        "
        room  ends_at=60s
        60s  tick      | sale_ended schedule closed=0
        70s  reopen    | reopened
        70s  next      | never
        99s  tick      | nothing
        99s  join ana  | joined ana
    ",
    );
}

#[test]
fn an_end_reopened_over_in_the_same_moment_does_not_come_again() {
    check(
        "
        room  ends_at=60s
        60s  tick      | sale_ended schedule closed=0
        60s  reopen    | reopened
        60s  tick      | nothing
        60s  join ana  | joined ana
    ",
    );
}

#[test]
fn an_end_that_lies_ahead_still_comes_after_a_reopening() {
    check(
        "
        room  ends_at=60s
        10s  finish    | sale_ended operator closed=0
        20s  reopen    | reopened
        60s  tick      | sale_ended schedule closed=0
    ",
    );
}

#[test]
fn a_reopening_after_the_end_overrules_the_schedule() {
    check(
        "
        room  ends_at=60s
        10s  finish    | sale_ended operator closed=0
        70s  reopen    | reopened
        70s  next      | never
        71s  tick      | nothing
        71s  join ana  | joined ana
    ",
    );
}

#[test]
fn reopening_before_the_start_waits_for_the_start() {
    check(
        "
        room  opens_at=10s starts_at=60s
        11s  tick      | doors_opened
        12s  join a*2  | joined a1..a2
        13s  finish    | sale_ended operator closed=2
        14s  reopen    | reopened
        14s  join bo   | joined bo
        14s  admit 1   | refused not_started
        60s  tick      | sale_started
        61s  tick      | admitted bo claim_by=151s
    ",
    );
}

#[test]
fn reopening_before_the_doors_waits_for_the_doors() {
    check(
        "
        room  opens_at=10s starts_at=60s
         1s  finish    | sale_ended operator closed=0
         2s  reopen    | reopened
         2s  join bo   | refused not_open_yet opens_at=10s
        10s  tick      | doors_opened
        10s  join bo   | joined bo
    ",
    );
}

#[test]
fn reopening_before_the_draw_still_draws() {
    check(
        "
        room  starts_at=60s draw=committed
         1s  commit                  | draw_committed, doors_opened
         2s  join a*3                | joined a1..a3
         3s  finish                  | sale_ended operator closed=3
         4s  reopen                  | reopened
         4s  join b*2                | joined b1..b2
         4s  position b1             | b1=unknown
        60s  tick                    | draw_closed 0=5
        60s  draw                    | drawn
    ",
    );
}

#[test]
fn a_sale_that_ended_in_the_middle_of_its_draw_waits_for_it() {
    check(
        "
        room  starts_at=60s draw=committed
         1s  commit    | draw_committed, doors_opened
         2s  join a*3  | joined a1..a3
        60s  tick      | draw_closed 0=3
        61s  finish    | sale_ended operator closed=3
        62s  reopen    | refused draw_pending
        63s  draw      | drawn
        64s  reopen    | reopened
        64s  join bo   | joined bo
        65s  tick      | admitted bo claim_by=155s
    ",
    );
}

#[test]
fn a_second_end_does_not_remind_the_room_of_the_tickets_of_the_first() {
    check(
        "
        room  memory=600s rate=none
           1s  join ana     | joined ana
           2s  finish       | sale_ended operator closed=1
           3s  leave ana    | over ana closed
         602s  leave ana    | refused forgotten
         603s  reopen       | reopened
         603s  join bo      | joined bo
         604s  finish       | sale_ended operator closed=1
         605s  leave ana    | refused forgotten
        1203s  leave bo     | over bo closed
        1204s  leave bo     | refused forgotten
    ",
    );
}

#[test]
fn each_end_closes_those_who_waited_then() {
    check(
        "
        room  memory=600s rate=none
           1s  join ana     | joined ana
         100s  finish       | sale_ended operator closed=1
         200s  reopen       | reopened
         200s  join bo      | joined bo
         300s  finish       | sale_ended operator closed=1
         400s  reopen       | reopened
         400s  join cy      | joined cy
         699s  leave ana    | over ana closed
         700s  leave ana    | refused forgotten
         899s  leave bo     | over bo closed
         900s  leave bo     | refused forgotten
         900s  leave cy     | left cy
         900s  counts       | joined=3 left=1 closed=2
    ",
    );
}

#[test]
fn a_sale_that_ended_before_its_start_starts_after_it_was_reopened() {
    check(
        "
        room  starts_at=60s
         1s  join ana  | joined ana
        10s  finish    | sale_ended operator closed=1
        99s  reopen    | reopened
        99s  admit 1   | refused not_started
        99s  join bo   | joined bo
        99s  tick      | sale_started
       100s  tick      | admitted bo claim_by=190s
    ",
    );
}

#[test]
fn a_sale_that_ran_goes_on_whatever_the_schedule_says_now() {
    check(
        "
        room  starts_at=10s
        10s  tick               | sale_started
        20s  finish             | sale_ended operator closed=0
        21s  set starts_at=500s | configured
        22s  reopen             | reopened
        22s  join ana           | joined ana
        23s  tick               | admitted ana claim_by=113s
    ",
    );
}
