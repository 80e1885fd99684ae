//! Lanes share admissions by weight; none starves, and none gains by having been empty.

use crate::script::{World, check};
use proptest::prelude::*;
use waitroom_core::{LaneId, What};

/// Of the admissions so far, how many went to each of these lanes.
fn shares(world: &World, lanes: &[LaneId]) -> Vec<usize> {
    let of = |lane: LaneId| {
        let admitted = |event: &&waitroom_core::Event| matches!(event.what, What::Admitted { ticket, .. } if ticket.lane == lane);
        world.log.iter().filter(admitted).count()
    };
    lanes.iter().map(|lane| of(*lane)).collect()
}

#[test]
fn three_to_one_is_exact_over_four_hundred() {
    let mut world = World::room("lanes=3:1 rate=none max_active=1000");
    world.line("1s join a*400 lane=0");
    world.line("1s join b*400 lane=1");
    for done in 1..=100u64 {
        world.line("1s admit 4");
        let shares = shares(&world, &[LaneId(0), LaneId(1)]);
        assert_eq!(shares, [3 * done as usize, done as usize], "after {done} turns");
    }
}

#[test]
fn the_share_is_the_same_in_one_go_and_one_by_one() {
    let mut one_go = World::room("lanes=5:2:1 rate=none max_active=1000");
    let mut one_by_one = World::room("lanes=5:2:1 rate=none max_active=1000");
    for world in [&mut one_go, &mut one_by_one] {
        for lane in 0..3 {
            world.line(&format!("1s join {}*80 lane={lane}", ["a", "b", "c"][lane]));
        }
    }
    one_go.line("1s admit 80");
    for _ in 0..80 {
        one_by_one.line("1s admit 1");
    }
    let lanes = [LaneId(0), LaneId(1), LaneId(2)];
    assert_eq!(shares(&one_go, &lanes), [50, 20, 10]);
    assert_eq!(shares(&one_by_one, &lanes), [50, 20, 10]);
}

#[test]
fn a_lane_alone_gets_everything() {
    check(
        "
        room  lanes=3:1 max_active=4
        1s  join b*5 lane=1  | joined b1..b5 lane=1
        1s  tick             | admitted b1..b4 claim_by=91s
    ",
    );
}

#[test]
fn a_lane_that_was_empty_has_no_claim_on_the_turns_it_did_not_use() {
    check("
        room  lanes=1:1 rate=none max_active=1000
        1s  join a*200 lane=0   | joined a1..a200
        1s  admit 100           | admitted_now asked=100 granted=100, admitted a1..a100 claim_by=91s manual
        2s  join b*20 lane=1    | joined b1..b20 lane=1
        2s  admit 4             | admitted_now asked=4 granted=4, admitted b1 claim_by=92s manual, admitted a101 claim_by=92s manual, admitted b2 claim_by=92s manual, admitted a102 claim_by=92s manual
    ");
}

#[test]
fn a_lane_of_weight_zero_is_served_when_no_other_has_anybody() {
    check("
        room  lanes=1:0 rate=none
        1s  join z*2 lane=1   | joined z1..z2 lane=1
        1s  join a*2 lane=0   | joined a1..a2
        1s  admit 3           | admitted_now asked=3 granted=3, admitted a1..a2 claim_by=91s manual, admitted z1 claim_by=91s manual
        1s  join a*1 lane=0   | joined a3
        1s  admit 1           | admitted_now asked=1 granted=1, admitted a3 claim_by=91s manual
        1s  admit 1           | admitted_now asked=1 granted=1, admitted z2 claim_by=91s manual
    ");
}

#[test]
fn new_weights_count_from_the_next_turn() {
    let mut world = World::room("lanes=1:1 rate=none max_active=1000");
    world.line("1s join a*200 lane=0");
    world.line("1s join b*200 lane=1");
    world.line("1s admit 20");
    assert_eq!(shares(&world, &[LaneId(0), LaneId(1)]), [10, 10]);
    assert_eq!(world.line("1s set lanes=9:1"), "configured");
    world.line("1s admit 100");
    assert_eq!(shares(&world, &[LaneId(0), LaneId(1)]), [100, 20]);
}

#[test]
fn a_lane_that_gets_its_weight_later_has_no_claim_on_the_turns_before() {
    let mut world = World::room("lanes=1:0 rate=none max_active=1000");
    world.line("1s join a*200 lane=0");
    world.line("1s join b*200 lane=1");
    world.line("1s admit 50");
    assert_eq!(shares(&world, &[LaneId(0), LaneId(1)]), [50, 0]);
    assert_eq!(world.line("1s set lanes=1:1"), "configured");
    world.line("1s admit 20");
    assert_eq!(shares(&world, &[LaneId(0), LaneId(1)]), [60, 10]);
}

#[test]
fn a_lane_added_later_joins_in() {
    check(
        "
        room  lanes=1
        1s  join ana lane=1    | refused unknown_lane lane=1
        1s  set lanes=1:1      | configured
        1s  join ana lane=1    | joined ana lane=1
        1s  tick               | admitted ana claim_by=91s
    ",
    );
}

#[test]
fn a_lane_is_kept_while_somebody_waits_in_it() {
    check("
        room  lanes=1:1 rate=none
        1s  join ana lane=1  | joined ana lane=1
        1s  set lanes=1      | refused settings lanes: lane 1 left out does not fit; allowed: kept while 1 wait in it
        1s  leave ana        | left ana
        1s  set lanes=1      | configured
        1s  join bo lane=1   | refused unknown_lane lane=1
    ");
}

#[test]
fn a_lane_that_comes_back_gives_new_numbers() {
    let world = check(
        "
        room  lanes=1:1 rate=none
        1s  join ana lane=1  | joined ana lane=1
        1s  leave ana        | left ana
        1s  set lanes=1      | configured
        1s  set lanes=1:1    | configured
        1s  join bo lane=1   | joined bo lane=1
    ",
    );
    assert_eq!(world.ticket("bo").number.0, 1);
}

#[test]
fn the_place_of_who_is_inside_outlives_its_lane() {
    check(
        "
        room  lanes=1:1
        1s  join ana lane=1  | joined ana lane=1
        1s  tick             | admitted ana claim_by=91s
        1s  set lanes=1      | configured
        2s  claim ana        | claimed ana until=602s
        3s  complete ana     | completed ana held=602s
      602s  tick             | released ana
    ",
    );
}

proptest! {
    /// While all lanes have people, no lane is further from its share than one turn of each other.
    #[test]
    fn no_lane_starves(weights in prop::collection::vec(1u32..20, 2..5), turns in 1usize..150) {
        let words: Vec<String> = weights.iter().map(u32::to_string).collect();
        let mut world = World::room(&format!("lanes={} rate=none", words.join(":")));
        for lane in 0..weights.len() {
            world.line(&format!("1s join {}*150 lane={lane}", ["a", "b", "c", "d"][lane]));
        }
        let lanes: Vec<LaneId> = (0..weights.len()).map(|i| LaneId(i as u8)).collect();
        world.line(&format!("1s admit {turns}"));
        let sum: u32 = weights.iter().sum();
        for (weight, got) in weights.iter().zip(shares(&world, &lanes)) {
            let fair = turns as f64 * *weight as f64 / sum as f64;
            let off = (got as f64 - fair).abs();
            prop_assert!(off < weights.len() as f64, "{weights:?}: {got} of {fair}");
        }
    }
}
