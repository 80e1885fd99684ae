//! One place per known person.

use crate::script::check;

#[test]
fn a_known_person_has_one_place() {
    check(
        "
        room  max_active=1
        1s  join ana id=ann    | joined ana
        1s  join two id=ann    | repeat ana
        1s  tick               | admitted ana claim_by=91s
        1s  join two id=ann    | repeat ana
        1s  claim ana          | claimed ana until=601s
        1s  join two id=ann    | repeat ana
    ",
    );
}

#[test]
fn two_people_have_two_places() {
    check(
        "
        room
        1s  join ana id=ann    | joined ana
        1s  join bo id=bob     | joined bo
    ",
    );
}

#[test]
fn a_person_has_one_place_over_all_lanes() {
    check(
        "
        room  lanes=1:1
        1s  join ana id=ann lane=0  | joined ana
        1s  join two id=ann lane=1  | repeat ana
    ",
    );
}

#[test]
fn who_finished_comes_again_at_the_end() {
    check(
        "
        room  rate=none
        1s  join ana id=ann    | joined ana
        1s  join bo            | joined bo
        2s  leave ana          | left ana
        3s  join two id=ann    | joined two
        3s  join three id=ann  | repeat two
        3s  position bo two    | bo=1 two=2
    ",
    );
}

#[test]
fn nobody_is_not_a_person() {
    check(
        "
        room
        1s  join ana id=nobody  | refused nobody_is_nobody
        1s  join ana            | joined ana
        1s  join bo             | joined bo
    ",
    );
}

#[test]
fn a_shared_browser_mistakes_nobody_for_another() {
    check(
        "
        room  rate=none
        1s  join ana id=ann              | joined ana
        1s  join bo id=bob holding=ana   | joined bo
        1s  join ana2 id=ann holding=bo  | repeat ana
    ",
    );
}

#[test]
fn who_tells_their_name_later_keeps_the_place_in_the_hand() {
    check(
        "
        room  rate=none
        1s  join ana                      | joined ana
        2s  join ana2 id=ann holding=ana  | bound ana
        3s  join ana3 id=ann holding=ana  | repeat ana
        3s  position ana                  | ana=1
    ",
    );
}

#[test]
fn a_name_told_later_finds_the_place_from_everywhere() {
    check(
        "
        room  rate=none
        1s  join ana                      | joined ana
        2s  join ana2 id=ann holding=ana  | bound ana
        3s  join phone id=ann             | repeat ana
        4s  leave ana                     | left ana
        5s  join phone id=ann             | joined phone
    ",
    );
}

#[test]
fn a_name_is_bound_inside_too() {
    check(
        "
        room
        1s  join ana                     | joined ana
        1s  tick                         | admitted ana claim_by=91s
        1s  join x id=ann holding=ana    | bound ana
        1s  claim ana                    | claimed ana until=601s
        1s  join y id=ann                | repeat ana
    ",
    );
}

#[test]
fn a_place_that_is_bound_belongs_to_no_other_name() {
    check(
        "
        room  rate=none
        1s  join ana                     | joined ana
        1s  join x id=ann holding=ana    | bound ana
        1s  join bo id=bob holding=ana   | joined bo
    ",
    );
}

#[test]
fn a_place_that_is_over_is_bound_to_nobody() {
    check(
        "
        room  rate=none
        1s  join ana                     | joined ana
        1s  leave ana                    | left ana
        2s  join x id=ann holding=ana    | joined x
        2s  leave x                      | left x
        3s  join y id=ann                | joined y
    ",
    );
}

#[test]
fn who_had_a_place_before_is_bound_to_the_one_in_the_hand() {
    check(
        "
        room  rate=none returning=20%/60s
        1s  join old id=ann              | joined old
        1s  leave old                    | left old
        2s  join new                     | joined new
        3s  join x id=ann holding=new    | bound new
        4s  join y id=ann                | repeat new
    ",
    );
}

#[test]
fn a_name_bound_to_a_place_moves_with_it() {
    check(
        "
        room  rate=none lanes=1:1
        1s  join ana                     | joined ana
        1s  join x id=ann holding=ana    | bound ana
        1s  move ana lane=1 to=ana2      | moved ana to=ana2 lane=1
        1s  join y id=ann                | repeat ana2
    ",
    );
}

#[test]
fn a_repeat_by_key_binds_no_name() {
    check(
        "
        room  rate=none
        1s  join ana key=k               | joined ana
        1s  join x key=k id=ann          | repeat ana
        1s  join y id=ann                | joined y
    ",
    );
}

#[test]
fn who_is_known_and_waits_is_answered_before_what_they_hold() {
    check(
        "
        room  rate=none
        1s  join ana id=ann             | joined ana
        1s  join anon                   | joined anon
        1s  join x id=ann holding=anon  | repeat ana
    ",
    );
}

#[test]
fn a_moved_person_is_still_one_person() {
    check(
        "
        room  rate=none lanes=1:1
        1s  join ana id=ann           | joined ana
        1s  move ana lane=1 to=ana2   | moved ana to=ana2 lane=1
        1s  join x id=ann             | repeat ana2
        1s  leave ana                 | left ana2
        1s  join x id=ann             | joined x
    ",
    );
}

#[test]
fn a_person_is_unknown_again_when_their_ticket_is_forgotten() {
    check(
        "
        room  rate=none memory=600s returning=20%/600s
          1s      join ana id=ann  | joined ana
          2s      leave ana        | left ana
        602s      join two id=ann  | joined two
    ",
    );
}
