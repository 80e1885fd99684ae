//! The pace: never more than rate × window + burst, in any window.

use crate::script::{World, check};
use proptest::prelude::*;

#[test]
fn a_room_opens_with_an_empty_bucket() {
    check(
        "
        room  rate=1/1s burst=5
        0s      join a*3  | joined a1..a3
        0.999s  tick      | nothing
        1s      tick      | admitted a1 claim_by=91s
        1.999s  tick      | nothing
        2s      tick      | admitted a2 claim_by=92s
    ",
    );
}

#[test]
fn what_is_saved_up_never_exceeds_the_burst() {
    check(
        "
        room  rate=1/1s burst=3 max_active=100
        100s    join a*10  | joined a1..a10
        100s    tick       | admitted a1..a3 claim_by=190s
        100.9s  tick       | nothing
        101s    tick       | admitted a4 claim_by=191s
    ",
    );
}

#[test]
fn without_a_burst_one_ticks_worth_is_saved_up() {
    check(
        "
        room  rate=50/1s burst=none tick=200ms
        9s  join a*30  | joined a1..a30
        9s  tick       | admitted a1..a10 claim_by=99s
    ",
    );
}

#[test]
fn without_a_burst_at_least_one_is_saved_up() {
    check(
        "
        room  rate=1/3600s burst=none tick=20ms
        7200s  join a*3  | joined a1..a3
        7200s  tick      | admitted a1 claim_by=7290s
        9999s  tick      | no_show a1
    ",
    );
}

#[test]
fn broken_tokens_are_kept_and_never_rounded() {
    // Three a second is one every 333.3… ms: nine in three seconds, not a millisecond earlier.
    let mut world = World::room("rate=3/1s burst=2 max_active=100");
    world.line("0s join a*20");
    let mut times = Vec::new();
    for ms in 0..=3_000 {
        if world.line(&format!("{ms}ms tick")) != "nothing" {
            times.push(ms);
        }
    }
    assert_eq!(times, [334, 667, 1_000, 1_334, 1_667, 2_000, 2_334, 2_667, 3_000]);
    world.witness.pace_is_kept();
}

#[test]
fn the_next_look_is_when_a_token_will_be_there() {
    check(
        "
        room  rate=1/1s burst=2 max_active=100
        0s    next       | never
        0s    join a*3   | joined a1..a3
        0s    next       | 1s
        0.4s  next       | 1s
        1s    tick       | admitted a1 claim_by=91s
        1s    next       | 2s
    ",
    );
}

#[test]
fn a_fast_room_is_looked_at_every_half_tick_and_loses_nothing() {
    let mut world = World::room("rate=1000/1s burst=none tick=200ms max_active=10000");
    world.line("0s join a*2000");
    let mut looks = 0;
    let mut now = 0;
    while now < 1_000 {
        let next = world.line(&format!("{now}ms next"));
        now = (next.trim_end_matches('s').parse::<f64>().expect("a time") * 1_000.0) as u64;
        world.line(&format!("{now}ms tick"));
        looks += 1;
    }
    assert_eq!(world.room.state().counts().admissions, 1_000);
    assert_eq!(looks, 10);
    world.witness.pace_is_kept();
}

#[test]
fn a_live_change_keeps_what_was_saved_up() {
    check(
        "
        room  rate=1/1s burst=10 max_active=100
        4s  join a*20      | joined a1..a20
        4s  set rate=2/1s  | configured
        4s  tick           | admitted a1..a4 claim_by=94s
        5s  tick           | admitted a5..a6 claim_by=95s
    ",
    );
}

#[test]
fn a_live_change_keeps_no_more_than_the_new_burst() {
    check(
        "
        room  rate=1/1s burst=10 max_active=100
        9s  join a*20               | joined a1..a20
        9s  set rate=5/1s burst=2   | configured
        9s  tick                    | admitted a1..a2 claim_by=99s
    ",
    );
}

#[test]
fn a_larger_burst_gives_nothing_that_was_not_saved_up() {
    check(
        "
        room  rate=1/1s burst=2 max_active=100
        60s  join a*20      | joined a1..a20
        60s  set burst=10   | configured
        60s  tick           | admitted a1..a2 claim_by=150s
        63s  tick           | admitted a3..a5 claim_by=153s
    ",
    );
}

#[test]
fn a_rate_that_comes_back_starts_with_nothing() {
    check(
        "
        room  rate=1/1s burst=10 max_active=100
         9s  join a*20      | joined a1..a20
         9s  set rate=none  | configured
        20s  tick           | nothing
        20s  set rate=1/1s  | configured
        20s  tick           | nothing
        21s  tick           | admitted a1 claim_by=111s
    ",
    );
}

#[test]
fn a_no_show_keeps_its_token_where_the_room_says_so() {
    check(
        "
        room  rate=1/100s burst=1 claim_within=10s no_show=keep
        100s  join a*3  | joined a1..a3
        100s  tick      | admitted a1 claim_by=110s
        110s  tick      | no_show a1
        199s  tick      | nothing
        200s  tick      | admitted a2 claim_by=210s
    ",
    );
}

#[test]
fn a_no_show_gives_its_token_back_where_the_room_says_so() {
    let world = check(
        "
        room  rate=1/100s burst=1 claim_within=10s no_show=return
        100s  join a*3  | joined a1..a3
        100s  tick      | admitted a1 claim_by=110s
        110s  tick      | no_show a1, admitted a2 claim_by=120s
    ",
    );
    world.witness.pace_is_kept();
}

#[test]
fn returned_tokens_never_exceed_the_burst() {
    let world = check(
        "
        room  rate=1/1s burst=2 claim_within=10s no_show=return max_active=100
         2s  join a*20  | joined a1..a20
         2s  tick       | admitted a1..a2 claim_by=12s
        12s  tick       | no_show a1..a2, admitted a3..a4 claim_by=22s
    ",
    );
    world.witness.pace_is_kept();
}

#[test]
fn a_manual_admission_that_nobody_claims_returns_no_token() {
    check(
        "
        room  rate=1/100s burst=1 claim_within=10s no_show=return
         0s  join a*3  | joined a1..a3
         0s  admit 1   | admitted_now asked=1 granted=1, admitted a1 claim_by=10s manual
        10s  tick      | no_show a1
        99s  tick      | nothing
       100s  tick      | admitted a2 claim_by=110s
    ",
    );
}

#[test]
fn a_token_is_not_returned_by_who_leaves_after_the_admission() {
    check(
        "
        room  rate=1/100s burst=1 no_show=return
        100s  join a*3  | joined a1..a3
        100s  tick      | admitted a1 claim_by=190s
        110s  leave a1  | completed a1
        110s  tick      | nothing
    ",
    );
}

#[test]
fn a_bucket_of_one_token_keeps_no_broken_one_beside_it() {
    // Two at 334 and 667 ms would be two within 333 ms, which is more than 0.999 and a burst of 1.
    check(
        "
        room  rate=3/1s burst=1 max_active=100
        0s      join a*3  | joined a1..a3
        0.334s  tick      | admitted a1 claim_by=90.334s
        0.667s  tick      | nothing
        0.668s  tick      | admitted a2 claim_by=90.668s
    ",
    );
}

proptest! {
    /// Promise 5 over every pair of admissions, whatever the pace, however irregular the looks,
    /// with no-shows giving tokens back.
    #[test]
    fn no_window_admits_more_than_rate_and_burst(
        count in 1u32..50,
        per in prop::sample::select(vec![7u64, 100, 1_000, 60_000]),
        burst in prop::option::of(1u32..20),
        returns in any::<bool>(),
        gaps in prop::collection::vec(0u64..2_000, 1..60),
    ) {
        let burst = burst.map_or("none".into(), |burst| burst.to_string());
        let no_show = if returns { "return" } else { "keep" };
        let mut world = World::room(&format!(
            "rate={count}/{per}ms burst={burst} no_show={no_show} claim_within=1s max_active=1000"
        ));
        world.line("0s join a*300");
        let mut now = 0;
        for gap in gaps {
            now += gap;
            world.line(&format!("{now}ms tick"));
        }
        world.witness.pace_is_kept();
    }
}
