//! Shuffle windows: tickets that came close together are served in a random order.

use crate::script::{World, check};
use waitroom_core::{Actor, Command, What};

/// The names in the order of their admission.
fn served(world: &World) -> Vec<String> {
    let admitted = |event: &waitroom_core::Event| match event.what {
        What::Admitted { ticket, .. } => Some(world.name_of(ticket)),
        _ => None,
    };
    world.log.iter().filter_map(admitted).collect()
}

#[test]
fn an_open_window_shows_its_last_position() {
    check(
        "
        room  window=16 starts_at=60s
        1s  join a*2          | joined a1..a2
        1s  position a1..a2   | a1=16 a2=16
        1s  join a*13         | joined a3..a15
        1s  position a1 a15   | a1=16 a15=16
        1s  tick              | nothing
    ",
    );
}

#[test]
fn a_window_is_sealed_when_it_is_exactly_full() {
    let mut world = World::room("window=16 starts_at=60s");
    world.line("1s join a*15");
    assert_eq!(world.line("1s tick"), "nothing");
    assert_eq!(world.line("1s next"), "60s");
    world.line("1s join a*1");
    assert_eq!(world.line("1s next"), "1s");
    assert_eq!(world.line("1s tick"), "sealed 0:0 len=16");
    let mut places: Vec<u64> = (1..=16)
        .map(|i| world.position(world.ticket(&format!("a{i}"))).expect("a sealed window is known"))
        .collect();
    assert!(!places.is_sorted(), "sixteen people in their own order: {places:?}");
    places.sort_unstable();
    assert_eq!(places, (1..=16).collect::<Vec<u64>>());
}

#[test]
fn who_leaves_an_open_window_moves_those_behind() {
    check(
        "
        room  window=16 starts_at=60s
        1s  join a*20          | joined a1..a20
        1s  position a1 a17    | a1=16 a17=32
        1s  leave a1           | left a1
        1s  position a2 a17    | a2=15 a17=31
        1s  leave a18          | left a18
        1s  position a2 a17    | a2=15 a17=30
    ",
    );
}

#[test]
fn a_window_never_mixes_with_the_next() {
    let mut world = World::room("window=16 rate=none max_active=1000");
    world.line("1s join a*48");
    assert_eq!(world.line("1s tick"), "sealed 0:0 len=16, sealed 0:16 len=16, sealed 0:32 len=16");
    world.line("1s admit 48");
    let served = served(&world);
    for (i, window) in served.chunks(16).enumerate() {
        let mut numbers: Vec<usize> =
            window.iter().map(|name| name[1..].parse().expect("a number")).collect();
        assert!(!numbers.is_sorted());
        numbers.sort_unstable();
        assert_eq!(numbers, (16 * i + 1..=16 * i + 16).collect::<Vec<_>>());
    }
}

#[test]
fn a_room_does_not_wait_for_people_who_may_never_come() {
    let mut world = World::room("window=16 max_active=1000");
    world.line("1s join a*5");
    let said = world.line("2s tick");
    assert!(said.starts_with("sealed 0:0 len=5, admitted a"), "{said}");
    let mut served = served(&world);
    served.sort();
    assert_eq!(served, ["a1", "a2", "a3", "a4", "a5"]);
}

#[test]
fn an_open_window_stays_open_while_nobody_could_enter() {
    check(
        "
        room  window=16 max_active=1
        1s  join ana             | joined ana
        1s  tick                 | sealed 0:0 len=1, admitted ana claim_by=91s
        1s  join a*3             | joined a1..a3
        2s  tick                 | nothing
        2s  position a1          | a1=16
        3s  pause jam            | paused jam
        3s  leave ana            | completed ana
        4s  tick                 | nothing
        4s  resume               | resumed
        4s  position a1          | a1=16
    ",
    );
}

#[test]
fn a_window_whose_people_all_left_hinders_nobody() {
    check(
        "
        room  window=16 starts_at=60s
         1s  join a*16       | joined a1..a16
         1s  tick            | sealed 0:0 len=16
         1s  lapse a1..a16   | silent a1..a16
         1s  join b*1        | joined b1
        61s  tick            | sale_started
        62s  tick            | sealed 0:16 len=1, admitted b1 claim_by=152s
    ",
    );
}

#[test]
fn the_next_window_begins_behind_an_early_one() {
    check(
        "
        room  window=16 max_active=1
        1s  join ana             | joined ana
        1s  tick                 | sealed 0:0 len=1, admitted ana claim_by=91s
        1s  join a*16            | joined a1..a16
        1s  tick                 | sealed 0:1 len=16
    ",
    );
}

#[test]
fn with_windows_nobody_goes_straight_through() {
    check(
        "
        room  window=16 queue_all=no
        1s  join ana             | joined ana
    ",
    );
}

#[test]
fn other_entropy_is_another_order() {
    let mut one = World::room("window=16 starts_at=60s");
    one.line("1s join a*16");
    let mut two = World::room("window=16 starts_at=60s");
    two.line("1s tick");
    two.line("1s join a*16");
    let places = |world: &mut World| {
        world.line("1s tick");
        world.line("1s position a1..a16")
    };
    assert_ne!(places(&mut one), places(&mut two));
}

#[test]
fn two_windows_of_one_tick_have_two_orders() {
    let mut world = World::room("window=16 starts_at=60s");
    world.line("1s join a*32");
    world.line("1s tick");
    let place = |i: usize| world.position(world.ticket(&format!("a{i}"))).expect("sealed");
    let first: Vec<u64> = (1..=16).map(place).collect();
    let second: Vec<u64> = (17..=32).map(|i| place(i) - 16).collect();
    assert_ne!(first, second);
}

#[test]
fn the_size_is_fixed_by_the_first_ticket() {
    check("
        room  window=16
        1s  set window=32   | configured
        1s  join ana        | joined ana
        1s  set window=16   | refused settings shuffle_window: 16 does not fit; allowed: 32: it is fixed by the first ticket
    ");
}

#[test]
fn an_admit_by_hand_opens_the_open_window() {
    let mut world = World::room("window=16 rate=none");
    world.line("1s join a*15");
    assert_eq!(world.line("1s tick"), "nothing");
    let said = world.line("1s admit 5");
    assert!(said.starts_with("sealed 0:0 len=15, admitted_now asked=5 granted=5, "), "{said}");
    assert_eq!(served(&world).len(), 5);
    // The window has its order now, and the next hand only takes from it.
    let said = world.line("2s admit 99");
    assert!(said.starts_with("admitted_now asked=99 granted=10, "), "{said}");
    let mut served = served(&world);
    let came: Vec<String> = (1..=15).map(|i| format!("a{i}")).collect();
    assert_ne!(served, came, "fifteen people in their own order");
    served.sort_by_key(|name| name[1..].parse::<u64>().expect("a number"));
    assert_eq!(served, came);
    world.replays_to_the_same();
}

#[test]
fn an_admit_by_hand_leaves_the_open_window_while_sealed_ones_have_people() {
    let mut world = World::room("window=16 rate=none");
    world.line("1s join a*20");
    assert_eq!(world.line("1s tick"), "sealed 0:0 len=16");
    let said = world.line("1s admit 18");
    assert!(said.starts_with("admitted_now asked=18 granted=16, "), "{said}");
    assert_eq!(world.line("1s position a17"), "a17=16");
    let said = world.line("1s admit 1");
    assert!(said.starts_with("sealed 0:16 len=4, admitted_now asked=1 granted=1, "), "{said}");
}

#[test]
fn who_left_an_open_window_is_not_admitted_by_hand() {
    let mut world = World::room("window=16 rate=none");
    world.line("1s join a*6");
    world.line("1s lapse a2 a5");
    let said = world.line("1s admit 6");
    assert!(said.starts_with("sealed 0:0 len=6, admitted_now asked=6 granted=4, "), "{said}");
    let mut served = served(&world);
    served.sort();
    assert_eq!(served, ["a1", "a3", "a4", "a6"]);
}

#[test]
fn an_admit_by_hand_that_lets_nobody_in_seals_nothing() {
    check(
        "
        room  window=16 rate=none max_active=1
        1s  join ana    | joined ana
        1s  admit 1     | sealed 0:0 len=1, admitted_now asked=1 granted=1, admitted ana claim_by=91s manual
        1s  join a*3    | joined a1..a3
        1s  admit 1     | admitted_now asked=1 granted=0
        1s  position a1 | a1=16
        2s  leave ana   | completed ana
        2s  admit 0     | admitted_now asked=0 granted=0
        2s  position a1 | a1=16
    ",
    );
}

#[test]
fn other_entropy_of_the_hand_is_another_order() {
    let order = |entropy: u8| {
        let mut world = World::room("window=16 rate=none");
        world.line("1s join a*15");
        world.ask(&Command::AdmitNow { count: 15, entropy: [entropy; 16], by: Actor::new("op") });
        served(&world)
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}

/// Nobody ticked yet, so more than one window is open at once. Each stays a window of its own:
/// one of forty would push the first sixteen back behind people who came later.
#[test]
fn an_admit_by_hand_never_mixes_two_windows() {
    let mut world = World::room("window=16 rate=none");
    world.line("1s join a*40");
    assert_eq!(world.line("1s position a1 a40"), "a1=16 a40=48");
    world.line("1s admit 16");
    let mut served = served(&world);
    served.sort_by_key(|name| name[1..].parse::<u64>().expect("a number"));
    assert_eq!(served, (1..=16).map(|i| format!("a{i}")).collect::<Vec<_>>());
}
