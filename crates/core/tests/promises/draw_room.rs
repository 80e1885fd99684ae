//! The draw of a pre-sale: commit, close, reveal; nothing else decides the order.

use crate::script::world::{CHAIN, SEED};
use crate::script::{World, check};
use waitroom_core::draw::{LaneCount, final_key, lane_key};
use waitroom_core::permutation::Permutation;

#[test]
fn a_sale_with_a_draw_from_doors_to_the_first_admission() {
    check(
        "
        room  starts_at=60s draw=committed max_active=1  | configured
         1s  commit              | draw_committed, doors_opened
         1s  join a*3            | joined a1..a3
         1s  position a1..a3     | a1=unknown a2=unknown a3=unknown
        59s  admit 1             | refused not_started
        60s  tick                | draw_closed 0=3
        61s  tick                | nothing
        61s  admit 1             | refused draw_pending
        62s  draw                | drawn
        62s  tick                | nothing
    ",
    );
}

#[test]
fn the_order_is_the_published_permutation_and_nothing_else() {
    let mut world = World::room("starts_at=60s draw=committed");
    world.line("1s commit");
    world.line("1s join a*100");
    world.line("60s tick");
    world.line("61s draw");
    let counts = [LaneCount { lane: 0, count: 100 }];
    let key = final_key(&SEED, &counts, &CHAIN, None);
    let drawn = Permutation::new(lane_key(&key, 0), 100);
    for number in 0..100 {
        let ticket = world.ticket(&format!("a{}", number + 1));
        assert_eq!(world.position(ticket), Some(drawn.forward(number) + 1));
    }
    world.replays_to_the_same();
}

#[test]
fn who_comes_after_the_close_stands_behind_the_draw() {
    check(
        "
        room  starts_at=60s draw=committed
         1s  commit             | draw_committed, doors_opened
         1s  join a*5           | joined a1..a5
        60s  tick               | draw_closed 0=5
        60s  join b*2           | joined b1..b2
        60s  position a1 b1 b2  | a1=unknown b1=6 b2=7
        61s  leave a3           | left a3
        61s  position b1 b2     | b1=5 b2=6
        62s  draw               | drawn
        62s  position b1 b2     | b1=5 b2=6
    ",
    );
}

#[test]
fn who_left_before_the_draw_leaves_no_gap() {
    let mut world = World::room("starts_at=60s draw=committed");
    world.line("1s commit");
    world.line("1s join a*20");
    world.line("2s lapse a3 a7");
    world.line("60s tick");
    world.line("61s leave a9");
    assert_eq!(world.line("62s draw"), "drawn");
    let mut places: Vec<u64> =
        (1..=20).filter_map(|i| world.position(world.ticket(&format!("a{i}")))).collect();
    places.sort_unstable();
    assert_eq!(places, (1..=17).collect::<Vec<u64>>());
}

#[test]
fn work_done_beside_the_writer_changes_nothing() {
    let script = |prepared: bool| {
        let mut world = World::room("starts_at=60s draw=committed lanes=1:1 returning=20%/60s");
        world.line("1s commit");
        world.line("1s join a*3000");
        world.line("1s join b*10 lane=1");
        world.line("60s tick");
        if prepared {
            world.line("60s prepare_draw");
        }
        world.line("61s lapse a3 a2500 b1");
        world.line("61s join c*5");
        assert_eq!(world.line("62s draw"), "drawn");
        world.line("63s position a1..a3000 b1..b10 c1..c5")
    };
    assert_eq!(script(true), script(false));
}

#[test]
fn work_for_another_seed_is_not_used() {
    let mut world = World::room("starts_at=60s draw=committed");
    world.line("1s commit seed=other");
    world.line("1s join a*50");
    world.line("60s tick");
    world.line("60s prepare_draw");
    assert_eq!(world.line("62s draw seed=other"), "drawn");
    world.replays_to_the_same();
}

#[test]
fn a_draw_without_people_is_a_draw() {
    check(
        "
        room  starts_at=60s draw=committed
         1s  commit     | draw_committed, doors_opened
        60s  tick       | draw_closed 0=0
        61s  draw       | drawn
        61s  join ana   | joined ana
        62s  tick       | admitted ana claim_by=152s
    ",
    );
}

#[test]
fn each_lane_is_drawn_by_itself() {
    let mut world = World::room("starts_at=60s draw=committed lanes=1:1");
    world.line("1s commit");
    world.line("1s join a*20");
    world.line("1s join b*20 lane=1");
    assert_eq!(world.line("60s tick"), "draw_closed 0=20 1=20");
    world.line("61s draw");
    let place = |name: String| world.position(world.ticket(&name)).expect("drawn");
    let first: Vec<u64> = (1..=20).map(|i| place(format!("a{i}"))).collect();
    let second: Vec<u64> = (1..=20).map(|i| place(format!("b{i}"))).collect();
    assert_ne!(first, second);
}

#[test]
fn a_lane_added_after_the_close_is_not_part_of_the_draw() {
    check(
        "
        room  starts_at=60s draw=committed
         1s  commit            | draw_committed, doors_opened
         1s  join a*3          | joined a1..a3
        60s  tick              | draw_closed 0=3
        61s  set lanes=1:1     | configured
        61s  join bo lane=1    | joined bo lane=1
        61s  draw              | drawn
        61s  position bo       | bo=1
    ",
    );
}

#[test]
fn nobody_joins_a_draw_that_is_not_committed_to() {
    check(
        "
        room  starts_at=60s draw=committed
         1s  join ana   | refused not_open_yet opens_at=0s
         1s  next       | never
        60s  tick       | nothing
        60s  join ana   | refused not_open_yet opens_at=0s
        60s  admit 1    | refused not_started
        99s  commit     | draw_committed, doors_opened
        99s  join ana   | joined ana
        99s  next       | 60s
        99s  tick       | draw_closed 0=1
    ",
    );
}

#[test]
fn a_commitment_before_the_opening_opens_no_doors() {
    check(
        "
        room  opens_at=10s starts_at=60s draw=committed
         1s  commit     | draw_committed
         1s  next       | 10s
         1s  join ana   | refused not_open_yet opens_at=10s
        10s  tick       | doors_opened
        10s  join ana   | joined ana
    ",
    );
}

#[test]
fn doors_that_are_due_wait_for_the_commitment() {
    check(
        "
        room  opens_at=10s starts_at=60s draw=committed
         1s  next       | never
        10s  tick       | nothing
        11s  join ana   | refused not_open_yet opens_at=10s
        12s  commit     | draw_committed, doors_opened
        12s  join ana   | joined ana
    ",
    );
}

#[test]
fn doors_that_stood_open_before_there_was_a_draw_let_nobody_in_until_it_is_committed() {
    check(
        "
        room  starts_at=60s        | configured, doors_opened
         1s  set draw=committed    | configured
         1s  join ana              | refused not_open_yet opens_at=1s
         2s  commit                | draw_committed
         2s  join ana              | joined ana
        60s  tick                  | draw_closed 0=1
    ",
    );
}

#[test]
fn the_end_of_the_sale_does_not_wait_for_a_commitment() {
    check(
        "
        room  starts_at=60s ends_at=90s draw=committed
         1s  next       | 90s
        90s  tick       | sale_ended schedule closed=0
        91s  commit     | refused draw too_late
    ",
    );
}

#[test]
fn a_commitment_is_made_once_and_fits_the_room() {
    check(
        "
        room  starts_at=60s draw=committed
         1s  commit sealed=513    | refused draw sealed_seed_too_large
         1s  commit beacon=r1     | refused draw wrong_beacon_round
         1s  commit sealed=512    | draw_committed, doors_opened
         2s  commit               | done
         2s  commit seed=other    | refused draw already_committed
    ",
    );
}

#[test]
fn a_room_without_a_draw_has_nothing_to_commit_to() {
    check(
        "
        room
         1s  commit   | refused draw no_draw
         1s  draw     | refused draw no_draw
    ",
    );
}

#[test]
fn the_seed_is_not_revealed_before_the_close() {
    check(
        "
        room  starts_at=60s draw=committed
         1s  commit            | draw_committed, doors_opened
        59s  draw              | refused draw not_closed
        60s  tick              | draw_closed 0=0
        60s  draw seed=other   | refused draw wrong_seed
        60s  draw beacon=x     | refused draw beacon_not_asked
        60s  draw              | drawn
        61s  draw              | done
        61s  draw seed=other   | refused draw already_drawn
    ",
    );
}

#[test]
fn a_missing_beacon_holds_the_room_until_an_operator_waives_it() {
    check(
        "
        room  starts_at=60s draw=drand:1
         1s  commit beacon=drand:2   | refused draw wrong_beacon_round
         1s  commit                  | refused draw wrong_beacon_round
         1s  commit beacon=drand:1   | draw_committed, doors_opened
        60s  tick                    | draw_closed 0=0
        60s  draw                    | refused draw beacon_missing
        60s  draw waive              | drawn waived
    ",
    );
}

#[test]
fn a_beacon_that_says_nothing_is_a_missing_one() {
    check(
        "
        room  starts_at=60s draw=drand:1
         1s  commit beacon=drand:1   | draw_committed, doors_opened
        60s  tick                    | draw_closed 0=0
        60s  draw beacon=            | refused draw beacon_missing
        60s  draw beacon= waive      | drawn waived
    ",
    );
}

#[test]
fn a_beacon_enters_the_order() {
    let order = |beacon: &str| {
        let mut world = World::room("starts_at=60s draw=drand:1");
        world.line("1s commit beacon=drand:1");
        world.line("1s join a*20");
        world.line("60s tick");
        assert_eq!(world.line(&format!("61s draw beacon={beacon} waive")), "drawn");
        world.line("61s position a1..a20")
    };
    assert_ne!(order("one"), order("two"));
    assert_eq!(order("one"), order("one"));
}

#[test]
fn what_the_draw_rests_on_does_not_change_any_more() {
    check("
        room  starts_at=60s draw=committed
         1s  set draw=drand:1    | configured
         1s  set draw=committed  | configured
         1s  commit              | draw_committed, doors_opened
         2s  set draw=none       | refused settings draw: changed does not fit; allowed: as it was: the draw is committed, or people have joined
         2s  set starts_at=70s   | configured
        70s  tick                | draw_closed 0=0
        71s  set starts_at=90s   | refused settings starts_at: changed does not fit; allowed: as it was: the draw has closed
    ");
}

#[test]
fn who_joined_without_a_draw_is_not_drawn() {
    check("
        room  starts_at=60s
         1s  join ana            | joined ana
         2s  set draw=committed  | refused settings draw: changed does not fit; allowed: as it was: the draw is committed, or people have joined
         3s  leave ana           | left ana
         4s  set draw=committed  | refused settings draw: changed does not fit; allowed: as it was: the draw is committed, or people have joined
    ");
}

#[test]
fn new_settings_close_no_draw() {
    check(
        "
        room  starts_at=60s draw=committed
         1s  commit                      | draw_committed, doors_opened
         1s  join a*3                    | joined a1..a3
        30s  set starts_at=20s lanes=1:1 | configured
        30s  join b*2 lane=1             | joined b1..b2 lane=1
        31s  tick                        | draw_closed 0=3 1=2
    ",
    );
}

#[test]
fn a_paused_draw_goes_on_and_admits_nobody() {
    check(
        "
        room  starts_at=60s draw=committed
         1s  commit       | draw_committed, doors_opened
         1s  join ana     | joined ana
        60s  tick         | draw_closed 0=1
        60s  pause jam    | paused jam
        61s  draw         | drawn
        62s  tick         | nothing
        62s  position ana | ana=1
        63s  resume       | resumed
        64s  tick         | admitted ana claim_by=154s
    ",
    );
}

#[test]
fn a_draw_leaves_no_burst_behind() {
    check(
        "
        room  starts_at=60s draw=committed rate=1/1s burst=50
         1s  commit       | draw_committed, doors_opened
         1s  join ana     | joined ana
        60s  tick         | draw_closed 0=1
        99s  draw         | drawn
        99s  tick         | nothing
       100s  tick         | admitted ana claim_by=190s
    ",
    );
}

#[test]
fn windows_begin_behind_the_draw() {
    check(
        "
        room  starts_at=60s draw=committed window=16
         1s  commit             | draw_committed, doors_opened
         1s  join a*20          | joined a1..a20
         1s  tick               | nothing
        60s  tick               | draw_closed 0=20
        60s  join b*16          | joined b1..b16
        60s  position b1 b16    | b1=36 b16=36
        60s  tick               | nothing
        61s  pause jam          | paused jam
        61s  draw               | drawn
        61s  tick               | sealed 0:20 len=16
    ",
    );
}

#[test]
fn a_ticket_moved_during_the_draw_stands_behind_it() {
    check(
        "
        room  starts_at=60s draw=committed lanes=1:1
         1s  commit                    | draw_committed, doors_opened
         1s  join a*3                  | joined a1..a3
         1s  join b*2 lane=1           | joined b1..b2 lane=1
        60s  tick                      | draw_closed 0=3 1=2
        61s  move a1 lane=1 to=new     | moved a1 to=new lane=1
        61s  position new              | new=3
        62s  draw                      | drawn
        62s  position new              | new=3
    ",
    );
}

#[test]
fn who_came_after_the_draw_stands_behind_those_it_drew() {
    let mut world = World::room("starts_at=60s draw=drand:1 rate=none");
    for line in ["1s commit beacon=drand:1", "1s join a*30", "60s tick", "61s join c*20"] {
        world.line(line);
    }
    world.line("62s draw beacon=b62");
    world.line("63s leave a7");
    let state = world.room.state();
    for (name, ahead) in [("c1", 29), ("c5", 33), ("c20", 48)] {
        let ticket = world.ticket(name);
        assert_eq!(state.position(ticket), Some(ahead + 1), "{name}");
        let standing = state.standing(ticket.lane, ahead).expect("everybody has their place");
        assert_eq!((standing.ticket, standing.ahead), (ticket, ahead), "{name}");
    }
    let all = state.stretches(world.ticket("c1").lane, 1)[0];
    assert_eq!((all.waiting, all.end), (49, 50));
}
