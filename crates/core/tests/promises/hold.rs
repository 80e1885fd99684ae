//! Pause and maintenance: nobody enters, every place is kept, the reason is told. A drain: nobody
//! new joins, and those in line are let in.

use crate::script::check;

#[test]
fn a_paused_room_admits_nobody_by_pace_nor_by_hand() {
    check(
        "
        room
        1s  join a*3         | joined a1..a3
        1s  pause jam        | paused jam
        9s  tick             | nothing
        9s  next             | never
        9s  admit 1          | refused paused jam
        9s  position a1..a3  | a1=1 a2=2 a3=3
    ",
    );
}

#[test]
fn a_pause_leaves_no_burst_behind() {
    check(
        "
        room  rate=1/1s burst=50
        10s  join ana   | joined ana
        10s  tick       | admitted ana claim_by=100s
        11s  pause jam  | paused jam
        12s  join a*9   | joined a1..a9
        60s  resume     | resumed
        60s  tick       | nothing
        61s  tick       | admitted a1 claim_by=151s
    ",
    );
}

#[test]
fn a_pause_can_be_set_twice_and_its_reason_changed() {
    check(
        "
        room
        1s  pause jam        | paused jam
        1s  pause jam        | done
        1s  pause fire       | paused fire
        1s  admit 1          | refused paused fire
        1s  resume           | resumed
        1s  resume           | done
    ",
    );
}

#[test]
fn people_leave_and_lapse_also_during_a_pause() {
    check(
        "
        room
        1s  join a*3    | joined a1..a3
        1s  pause jam   | paused jam
        2s  leave a1    | left a1
        2s  lapse a2    | silent a2
        2s  position a3 | a3=1
    ",
    );
}

#[test]
fn a_no_show_is_one_also_during_a_pause() {
    check(
        "
        room  claim_within=10s
         1s  join ana   | joined ana
         1s  tick       | admitted ana claim_by=11s
         2s  pause jam  | paused jam
        11s  tick       | no_show ana
    ",
    );
}

#[test]
fn maintenance_that_keeps_those_inside_lets_them_go_on() {
    check(
        "
        room  keep_inside=yes session_timeout=100s claim_within=60s
        1s    join a*2          | joined a1..a2
        1s    tick              | admitted a1..a2 claim_by=61s
        1s    claim a1          | claimed a1 until=101s
        2s    maintenance till  | maintenance till
        20s   renew a1          | renewed a1 until=120s
        20s   claim a2          | claimed a2 until=120s
        20s   admit 1           | refused maintenance till
       120s   tick              | session_over a1..a2
    ",
    );
}

#[test]
fn during_maintenance_for_everyone_time_stands_still_inside() {
    check(
        "
        room  keep_inside=no session_timeout=100s claim_within=60s
         1s  join a*2          | joined a1..a2
         1s  tick              | admitted a1..a2 claim_by=61s
         1s  claim a1          | claimed a1 until=101s
         2s  maintenance till  | maintenance till
         3s  renew a1          | refused maintenance till
         3s  claim a2          | refused maintenance till
         3s  next              | never
       500s  tick              | nothing
       500s  resume            | resumed
       559s  claim a2          | claimed a2 until=659s
       559s  tick              | nothing
       600s  tick              | session_over a1
    ",
    );
}

#[test]
fn who_is_frozen_may_still_go() {
    check(
        "
        room  keep_inside=no session_timeout=100s max_active=2
         1s  join a*3          | joined a1..a3
         1s  tick              | admitted a1..a2 claim_by=91s
         1s  claim a1          | claimed a1 until=101s
         2s  maintenance till  | maintenance till
         3s  leave a1          | completed a1 held=101s
         3s  leave a2          | completed a2
       101s  tick              | released a1
       101s  inside            | 0
    ",
    );
}

#[test]
fn a_pause_after_maintenance_lets_time_go_on() {
    check(
        "
        room  keep_inside=no session_timeout=100s
         1s  join ana          | joined ana
         1s  tick              | admitted ana claim_by=91s
         1s  claim ana         | claimed ana until=101s
         2s  maintenance till  | maintenance till
       300s  pause soon        | paused soon
       300s  claim ana         | repeat ana until=400s pass=101s
       400s  tick              | session_over ana
    ",
    );
}

#[test]
fn keep_inside_can_change_in_the_middle_of_a_maintenance() {
    check(
        "
        room  keep_inside=yes session_timeout=100s
         1s  join ana             | joined ana
         1s  tick                 | admitted ana claim_by=91s
         1s  claim ana            | claimed ana until=101s
         2s  maintenance till     | maintenance till
         3s  set keep_inside=no   | configured
       500s  tick                 | nothing
       500s  set keep_inside=yes  | configured
       500s  claim ana            | repeat ana until=600s pass=101s
       600s  tick                 | session_over ana
    ",
    );
}

#[test]
fn a_change_of_settings_during_a_pause_gives_nobody_more_time() {
    check(
        "
        room  session_timeout=100s claim_within=60s
         1s  join a*2             | joined a1..a2
         1s  tick                 | admitted a1..a2 claim_by=61s
         1s  claim a1             | claimed a1 until=101s
         2s  pause jam            | paused jam
        50s  set max_active=7     | configured
        61s  tick                 | no_show a2
        61s  claim a1             | repeat a1 until=101s
    ",
    );
}

#[test]
fn a_draining_room_takes_nobody_new_and_lets_those_in_line_in() {
    check(
        "
        room  rate=1/1s burst=1
         1s  join a*3        | joined a1..a3
         1s  drain enough    | draining enough
         1s  join late       | refused draining enough
         2s  tick            | admitted a1 claim_by=92s
         2s  admit 1         | admitted_now asked=1 granted=1, admitted a2 claim_by=92s manual
         3s  tick            | admitted a3 claim_by=93s
         4s  drain enough    | done
         4s  join late       | refused draining enough
         5s  resume          | resumed
         5s  join late       | joined late
    ",
    );
}

#[test]
fn who_has_a_place_finds_it_also_while_the_room_drains() {
    check(
        "
        room  rate=none
         1s  join ana id=ann   | joined ana
         2s  drain enough      | draining enough
         2s  join ana id=ann   | repeat ana
         2s  position ana      | ana=1
    ",
    );
}

#[test]
fn from_a_pause_into_a_drain_there_is_no_burst() {
    check(
        "
        room  rate=1/1s burst=50
        10s  join a*9        | joined a1..a9
        10s  pause jam       | paused jam
        60s  drain enough    | draining enough
        60s  tick            | nothing
        61s  tick            | admitted a1 claim_by=151s
    ",
    );
}
