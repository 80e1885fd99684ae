//! A place goes to another device, or an operator puts it into another lane.

use crate::script::{World, check};

#[test]
fn the_old_device_has_no_place_any_more() {
    check(
        "
        room  rate=none
        1s  join ana                 | joined ana
        1s  hand_over ana to=phone   | handed_over ana holder=1
        1s  leave ana                | refused moved_elsewhere
        1s  claim ana                | refused moved_elsewhere
        1s  hand_over ana to=x       | refused moved_elsewhere
        1s  hand_over phone to=tab   | handed_over ana holder=2
        1s  leave phone              | refused moved_elsewhere
        1s  leave tab                | left ana
    ",
    );
}

#[test]
fn a_service_speaks_for_the_place_whoever_holds_it() {
    check(
        "
        room
        1s  join ana                 | joined ana
        1s  hand_over ana to=phone   | handed_over ana holder=1
        1s  tick                     | admitted ana claim_by=91s
        1s  claim ana service        | claimed ana until=601s
        1s  complete ana service     | completed ana held=601s
    ",
    );
}

#[test]
fn a_place_changes_hands_also_inside() {
    check(
        "
        room
        1s  join ana                 | joined ana
        1s  tick                     | admitted ana claim_by=91s
        1s  hand_over ana to=phone   | handed_over ana holder=1
        1s  claim ana                | refused moved_elsewhere
        1s  claim phone              | claimed ana until=601s
        1s  hand_over phone to=tab   | handed_over ana holder=2
        1s  renew phone              | refused moved_elsewhere
    ",
    );
}

#[test]
fn what_is_over_changes_hands_no_more() {
    check(
        "
        room  rate=none
        1s  join ana              | joined ana
        1s  leave ana             | left ana
        1s  hand_over ana to=x    | refused wrong_status status=left
    ",
    );
}

#[test]
fn a_place_changes_hands_255_times_and_no_more() {
    let mut world = World::room("rate=none");
    world.line("1s join d0");
    for i in 0..255 {
        let said = world.line(&format!("1s hand_over d{i} to=d{}", i + 1));
        assert_eq!(said, format!("handed_over d0 holder={}", i + 1));
    }
    assert_eq!(world.line("1s hand_over d255 to=x"), "refused handed_over_too_often");
    assert_eq!(world.line("1s leave d254"), "refused moved_elsewhere");
    assert_eq!(world.line("1s leave d255"), "left d0");
}

#[test]
fn a_moved_ticket_begins_anew_at_the_end_of_the_other_lane() {
    check(
        "
        room  rate=none lanes=1:1
        1s  join a*3                      | joined a1..a3
        1s  join b*2 lane=1               | joined b1..b2 lane=1
        2s  move a2 lane=1 to=new         | moved a2 to=new lane=1
        2s  position a1 a3 b1 b2 new      | a1=1 a3=2 b1=1 b2=2 new=3
        2s  counts                        | joined=6 waiting=5 moved=1
    ",
    );
}

#[test]
fn the_old_id_leads_to_the_new_place() {
    check(
        "
        room  lanes=1:1
        1s  join ana                   | joined ana
        1s  move ana lane=1 to=new     | moved ana to=new lane=1
        1s  tick                       | admitted new claim_by=91s
        1s  claim ana                  | claimed new until=601s
        1s  claim new                  | repeat new until=601s
        1s  complete ana               | completed new held=601s
    ",
    );
}

#[test]
fn a_chain_of_moves_leads_to_its_end() {
    check(
        "
        room  rate=none lanes=1:1:1
        1s  join ana                   | joined ana
        1s  move ana lane=1 to=two     | moved ana to=two lane=1
        1s  move ana lane=2 to=three   | moved two to=three lane=2
        1s  move two lane=0 to=four    | moved three to=four
        1s  leave ana                  | left four
        1s  leave two                  | over four left
        1s  leave three                | over four left
        1s  counts                     | joined=4 left=1 moved=3
    ",
    );
}

#[test]
fn a_move_to_where_it_is_changes_nothing() {
    check(
        "
        room  rate=none lanes=1:1
        1s  join ana           | joined ana
        1s  move ana lane=0    | stays ana
    ",
    );
}

#[test]
fn only_who_waits_is_moved() {
    check(
        "
        room  lanes=1:1 max_active=1
        1s  join a*2            | joined a1..a2
        1s  tick                | admitted a1 claim_by=91s
        1s  move a1 lane=1      | refused wrong_status status=admitted
        1s  leave a2            | left a2
        1s  move a2 lane=1      | refused wrong_status status=left
    ",
    );
}

#[test]
fn nobody_is_moved_into_a_lane_that_is_not_there() {
    check(
        "
        room  lanes=1:1
        1s  join ana                  | joined ana
        1s  move ana lane=2           | refused unknown_lane lane=2
        1s  move ana lane=returning   | refused unknown_lane lane=returning
        1s  position ana              | ana=1
    ",
    );
}

#[test]
fn nobody_is_moved_into_a_lane_that_was_taken_away() {
    check(
        "
        room  lanes=1:1
        1s  set lanes=1        | configured
        1s  join ana           | joined ana
        1s  move ana lane=1    | refused unknown_lane lane=1
    ",
    );
}

#[test]
fn an_operator_moves_into_the_lane_of_those_who_return() {
    check(
        "
        room  rate=none returning=20%/60s
        1s  join ana                         | joined ana
        1s  move ana lane=returning to=new   | moved ana to=new lane=returning
    ",
    );
}

#[test]
fn a_full_queue_does_not_hinder_a_move() {
    check(
        "
        room  rate=none lanes=1:1 max_waiting=1
        1s  join ana                   | joined ana
        1s  move ana lane=1 to=new     | moved ana to=new lane=1
    ",
    );
}

#[test]
fn the_holder_moves_along() {
    check(
        "
        room  rate=none lanes=1:1
        1s  join ana                   | joined ana
        1s  hand_over ana to=phone     | handed_over ana holder=1
        1s  move phone lane=1 to=new   | moved ana to=new lane=1
        1s  leave ana                  | refused moved_elsewhere
        1s  leave phone                | left new
    ",
    );
}

#[test]
fn the_age_of_a_moved_ticket_counts_from_the_move() {
    check(
        "
        room  rate=none lanes=1:1 ticket_life=200s
          1s  join ana                  | joined ana
        100s  move ana lane=1 to=new    | moved ana to=new lane=1
        201s  tick                      | nothing
        300s  tick                      | too_old new
    ",
    );
}

#[test]
fn the_silent_are_named_by_where_they_are_now() {
    check(
        "
        room  rate=none lanes=1:1
        1s  join ana                  | joined ana
        1s  move ana lane=1 to=new    | moved ana to=new lane=1
        9s  lapse ana                 | nothing
        9s  lapse new                 | silent new
    ",
    );
}
