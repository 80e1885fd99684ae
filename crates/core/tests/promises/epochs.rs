//! A new owner begins: full grace inside, an empty bucket, and no two people with one place.

use crate::script::{World, check};

#[test]
fn an_epoch_never_comes_twice_and_never_goes_down() {
    check(
        "
        room
        1s  open 1         | refused stale_epoch newest=1
        1s  open 5         | opened epoch=5
        1s  open 3         | refused stale_epoch newest=5
        1s  open 16777216  | refused stale_epoch newest=5
        1s  open 16777215  | opened epoch=16777215
    ",
    );
}

#[test]
fn an_outage_makes_no_no_shows() {
    check(
        "
        room  claim_within=60s
         1s      join ana   | joined ana
         1s      tick       | admitted ana claim_by=61s
       300s      open 2     | opened epoch=2
       300s      tick       | nothing
       359.999s  claim ana  | claimed ana until=959.999s
    ",
    );
}

#[test]
fn an_outage_ends_no_session() {
    check(
        "
        room  session_timeout=100s pass_leeway=5s
         1s  join ana   | joined ana
         1s  tick       | admitted ana claim_by=91s
         1s  claim ana  | claimed ana until=101s
       300s  open 2     | opened epoch=2
       300s  tick       | nothing
       301s  renew ana  | renewed ana until=401s
       401s  tick       | session_over ana held=406s
    ",
    );
}

#[test]
fn a_short_outage_takes_nothing_away() {
    check(
        "
        room  session_timeout=100s claim_within=60s
         1s  join a*2                | joined a1..a2
         1s  tick                    | admitted a1..a2 claim_by=61s
         1s  claim a1                | claimed a1 until=101s
         2s  set session_timeout=10s claim_within=5s | configured
         3s  open 2                  | opened epoch=2
         3s  claim a1                | repeat a1 until=101s
        60s  claim a2                | claimed a2 until=70s
    ",
    );
}

#[test]
fn an_outage_leaves_no_burst_behind() {
    check(
        "
        room  rate=1/1s burst=50
        10s  join ana  | joined ana
        10s  tick      | admitted ana claim_by=100s
        11s  join a*9  | joined a1..a9
        40s  open 2    | opened epoch=2
        40s  tick      | nothing
        41s  tick      | admitted a1 claim_by=131s
    ",
    );
}

#[test]
fn every_place_outlives_its_owner() {
    check(
        "
        room  rate=none
        1s  join a*3         | joined a1..a3
        2s  open 2           | opened epoch=2
        2s  join bo          | joined bo
        2s  position a1..a3 bo | a1=1 a2=2 a3=3 bo=4
        2s  leave a2         | left a2
        2s  open 3           | opened epoch=3
        2s  leave bo         | left bo
    ",
    );
}

#[test]
fn a_place_that_was_lost_is_nobody_elses() {
    check(
        "
        room  rate=none
        1s  join ana         | joined ana
        1s  join bo          | joined bo
        1s  lose 1           | lost
        2s  open 2           | opened epoch=2
        2s  claim bo         | refused place_lost
        3s  join cy          | joined cy
        3s  claim bo         | refused place_lost
        3s  leave bo         | refused place_lost
        3s  hand_over bo to=x | refused place_lost
        3s  leave cy         | left cy
        3s  leave ana        | left ana
    ",
    );
}

#[test]
fn a_lost_place_in_the_hand_leads_to_a_new_one() {
    check(
        "
        room  rate=none
        1s  join ana              | joined ana
        1s  lose 1                | lost
        2s  open 2                | opened epoch=2
        2s  join bo               | joined bo
        2s  join cy holding=ana   | joined cy
    ",
    );
}

#[test]
fn a_join_whose_outcome_was_lost_is_repeated_with_its_key() {
    check(
        "
        room  rate=none
        1s  join ana key=k1   | joined ana
        1s  lose 1            | lost
        2s  open 2            | opened epoch=2
        2s  join ana key=k1   | joined ana
        2s  join ana key=k1   | repeat ana
    ",
    );
}

#[test]
fn many_owners_without_tickets_cost_nothing() {
    let mut world = World::room("rate=none");
    world.line("1s join ana");
    for epoch in 2..500 {
        world.line(&format!("2s open {epoch}"));
    }
    world.line("3s join bo");
    assert_eq!(world.line("3s leave ana"), "left ana");
    assert_eq!(world.line("3s leave 0:1@498"), "refused place_lost");
    assert_eq!(world.line("3s leave 0:1@499"), "left bo");
}
