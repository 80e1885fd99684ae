//! Those who come back: a credit that counts once, soon, and for a capped share.

use crate::script::{World, check};
use waitroom_core::{LaneId, What};

fn returned(world: &World) -> (usize, usize) {
    let mut counts = (0, 0);
    for event in &world.log {
        match event.what {
            What::Admitted { ticket, .. } if ticket.lane == LaneId::RETURNING => counts.0 += 1,
            What::Admitted { .. } => counts.1 += 1,
            _ => {}
        }
    }
    counts
}

/// Fills the lane of those who return with `n` people, and an ordinary lane besides.
fn with_returners(settings: &str, n: usize, ordinary: &[usize]) -> World {
    let mut world = World::room(&format!("{settings} rate=none max_active=10000"));
    for i in 0..n {
        world.line(&format!("1s join r{i} id=r{i}"));
        world.line(&format!("1s leave r{i}"));
        world.line(&format!("2s join s{i} id=r{i}"));
    }
    for (lane, count) in ordinary.iter().enumerate() {
        world.line(&format!("2s join {}*{count} lane={lane}", ["a", "b"][lane]));
    }
    world
}

#[test]
fn who_comes_back_soon_gets_into_their_own_lane() {
    check(
        "
        room  returning=20%/60s rate=none
        1s  join ana id=ann         | joined ana
        2s  leave ana               | left ana
        3s  join again id=ann       | joined again lane=returning returns=ana
        3s  position again          | again=1
    ",
    );
}

#[test]
fn the_credit_lasts_until_the_moment_before_its_end() {
    check(
        "
        room  returning=20%/60s rate=none
         1s      join ana id=ann        | joined ana
         1s      join bo id=bob         | joined bo
         2s      leave ana              | left ana
         2s      leave bo               | left bo
        61.999s  join ana2 id=ann       | joined ana2 lane=returning returns=ana
        62s      join bo2 id=bob        | joined bo2
    ",
    );
}

#[test]
fn expired_left_and_completed_tickets_give_a_credit() {
    check("
        room  returning=20%/60s max_active=3 claim_within=10s
         1s  join ana id=ann        | joined ana
         1s  join bo id=bob         | joined bo
         1s  join cy id=cyd         | joined cy
         1s  tick                   | admitted ana claim_by=11s, admitted bo claim_by=11s, admitted cy claim_by=11s
         2s  complete ana           | completed ana
         2s  revoke cy              | revoked cy
        11s  tick                   | no_show bo
        12s  join ana2 id=ann       | joined ana2 lane=returning returns=ana
        12s  join bo2 id=bob        | joined bo2 lane=returning returns=bo
        12s  join cy2 id=cyd        | joined cy2
    ");
}

#[test]
fn a_returned_ticket_gives_no_credit() {
    check(
        "
        room  returning=20%/60s rate=none
        1s  join ana id=ann    | joined ana
        1s  leave ana          | left ana
        2s  join ana2 id=ann   | joined ana2 lane=returning returns=ana
        2s  leave ana2         | left ana2
        3s  join ana3 id=ann   | joined ana3
    ",
    );
}

#[test]
fn a_ticket_gives_one_credit() {
    check(
        "
        room  returning=20%/60s rate=none
        1s  join ana                | joined ana
        1s  leave ana               | left ana
        2s  join two holding=ana    | joined two lane=returning returns=ana
        2s  join three holding=ana  | joined three
    ",
    );
}

#[test]
fn a_closed_ticket_gives_no_credit() {
    check(
        "
        room  returning=20%/60s rate=none
        1s  join ana id=ann   | joined ana
        1s  finish            | sale_ended operator closed=1
        2s  reopen            | reopened
        2s  join bo id=ann    | joined bo
    ",
    );
}

#[test]
fn without_the_setting_everyone_goes_to_the_end() {
    check(
        "
        room  rate=none
        1s  join ana id=ann   | joined ana
        1s  leave ana         | left ana
        2s  join bo id=ann    | joined bo
    ",
    );
}

#[test]
fn a_full_queue_is_full_for_those_who_return_too() {
    check(
        "
        room  returning=20%/60s rate=none max_waiting=1
        1s  join ana id=ann   | joined ana
        1s  leave ana         | left ana
        1s  join bo           | joined bo
        2s  join cy id=ann    | refused full max_waiting=1
        2s  leave bo          | left bo
        2s  join cy id=ann    | joined cy lane=returning returns=ana
    ",
    );
}

#[test]
fn one_in_five_returns_while_others_wait() {
    let mut world = with_returners("returning=20%/60s", 50, &[300]);
    world.line("3s admit 100");
    assert_eq!(returned(&world), (20, 80));
}

#[test]
fn the_share_is_exact_beside_any_weights() {
    let mut world = with_returners("returning=20%/60s lanes=3:1", 50, &[300, 300]);
    world.line("3s admit 100");
    assert_eq!(returned(&world), (20, 80));
}

#[test]
fn the_share_is_a_cap_also_when_one_lane_is_empty() {
    let mut world = with_returners("returning=20%/60s lanes=3:1", 50, &[0, 300]);
    world.line("3s admit 100");
    assert_eq!(returned(&world), (20, 80));
}

#[test]
fn those_who_return_get_everything_when_nobody_else_waits() {
    let mut world = with_returners("returning=20%/60s", 10, &[2]);
    world.line("3s admit 12");
    assert_eq!(returned(&world), (10, 2));
}

#[test]
fn the_lane_stays_while_somebody_waits_in_it() {
    check("
        room  returning=20%/60s rate=none
        1s  join ana id=ann      | joined ana
        1s  leave ana            | left ana
        2s  join bo id=ann       | joined bo lane=returning returns=ana
        2s  set returning=none   | refused settings lanes: lane returning left out does not fit; allowed: kept while 1 wait in it
    ");
}
