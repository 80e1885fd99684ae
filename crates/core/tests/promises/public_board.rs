//! The board for the public: one small document from which everybody reads their own position.

use crate::script::{Bare, T0};
use proptest::prelude::*;
use waitroom_core::{
    Actor, Board, Command, FinishCause, Hold, LaneId, Millis, Order, Presented, PublicBoard,
    PublicLane, Room, draw,
};

/// So many at the front are exact.
const FRONT: u64 = 1_000;

const MILLION: u64 = 1_000_000;

fn board(bare: &Bare) -> PublicBoard {
    let board = Board::new(bare.room.state().clone(), 7, bare.now);
    board.public().expect("the board is public")
}

fn lane(bare: &Bare) -> PublicLane {
    board(bare).lanes.remove(0)
}

fn order(bare: &Bare, who: &Presented) -> Order {
    let view = bare.room.state().look(bare.now, who).expect("a ticket of ours");
    view.order.expect("its order is known")
}

fn exact(bare: &Bare, who: &Presented) -> u64 {
    bare.room.state().position(who.ticket).expect("it waits")
}

/// Exact in front, within `percent` behind.
fn assert_close(read: u64, exact: u64, percent: u64, who: &Presented) {
    if exact <= FRONT {
        assert_eq!(read, exact, "{} in front", who.ticket);
    } else {
        let off = read.abs_diff(exact);
        assert!(off * 100 <= exact * percent, "{}: {read} for {exact}", who.ticket);
    }
}

/// Everybody who waits, or a share of them, reads their position off the board.
fn everybody_reads_well(bare: &Bare, percent: u64) {
    let lane = lane(bare);
    let waiting = bare.waiting();
    let step = (waiting.len() / 20_000).max(1);
    for who in waiting.iter().step_by(step) {
        assert_close(lane.position(order(bare, who)), exact(bare, who), percent, who);
    }
}

/// A number that looks random and is the same in every run.
fn noise(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33
}

fn json(bare: &Bare) -> usize {
    serde_json::to_vec(&board(bare)).expect("a board is JSON").len()
}

/// A page: keeps the smallest position that it read.
struct Page {
    who: Presented,
    order: Order,
    shown: u64,
}

/// Boards follow each other while people leave and enter; each page reads all of them. Says how
/// often a page would have shown a rise, had it not kept its smallest.
fn pages_read_on(bare: &mut Bare, steps: &[(u64, u64, u64, u64)]) -> u64 {
    let mut rises = 0;
    let first = lane(bare);
    let page = |who: Presented| {
        let order = order(bare, &who);
        Page { who, order, shown: first.position(order) }
    };
    let waiting = bare.waiting();
    let step = (waiting.len() / 2_000).max(1);
    let mut pages: Vec<Page> = waiting.into_iter().step_by(step).map(page).collect();
    for (admitted, from, len, percent) in steps {
        bare.admit(*admitted);
        let issued = bare.room.state().issued(LaneId(0));
        let from = from % issued;
        let gone =
            (from..(from + len).min(issued)).filter(|n| noise(n ^ admitted) % 100 < *percent);
        bare.lapse(gone);
        let board = lane(bare);
        pages.retain(|page| bare.room.state().position(page.who.ticket).is_some());
        for page in &mut pages {
            let read = board.position(page.order);
            rises += (read > page.shown) as u64;
            page.shown = page.shown.min(read);
            // What never rises must also be right: an early low reading is kept for long.
            assert_close(page.shown, exact(bare, &page.who), 1, &page.who);
        }
    }
    rises
}

fn line_with_holes() -> impl Strategy<Value = (u64, Vec<(u64, u64, u64)>)> {
    let hole = (any::<u64>(), 1u64..30_000, prop_oneof![Just(90u64), 1u64..=100]);
    (1u64..60_000, prop::collection::vec(hole, 0..6))
}

fn with_holes(words: &str, people: u64, holes: &[(u64, u64, u64)]) -> Bare {
    let mut bare = Bare::room(words);
    bare.join(people);
    for (from, len, percent) in holes {
        let from = from % people;
        let hole = from..(from + len).min(people);
        bare.lapse(hole.filter(|number| noise(*number) % 100 < *percent));
    }
    bare
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn wherever_people_left_a_position_is_exact_in_front_and_within_one_percent_behind(
        (people, holes) in line_with_holes(),
    ) {
        everybody_reads_well(&with_holes("rate=none", people, &holes), 1);
    }

    #[test]
    fn a_page_that_keeps_its_smallest_stays_within_one_percent(
        (people, holes) in line_with_holes(),
        steps in prop::collection::vec(
            (prop_oneof![0u64..4, 0u64..2_000], any::<u64>(), 1u64..9_000, 0u64..=100),
            1..12,
        ),
    ) {
        let words = "rate=none max_active=1000000 public_board=full";
        pages_read_on(&mut with_holes(words, people, &holes), &steps);
    }

    #[test]
    fn a_coarse_board_is_exact_in_front_and_within_ten_percent_behind(
        (people, holes) in line_with_holes(),
    ) {
        let bare = with_holes("rate=none public_board=coarse", people, &holes);
        everybody_reads_well(&bare, 10);
        let waiting = bare.room.state().waiting();
        let told = lane(&bare).waiting;
        assert!(told >= waiting && told * 10 <= waiting * 11, "{told} for {waiting}");
        assert!(told.to_string().trim_end_matches('0').len() <= 2, "{told} tells too much");
    }
}

/// A bucket that is cut finer tells more than it did before, and what one reads off it may rise.
#[test]
fn a_page_keeps_its_smallest_because_the_board_alone_may_rise() {
    let mut bare = Bare::room("rate=none max_active=1000000");
    bare.join(30_000);
    bare.lapse((0..30_000).filter(|number| noise(number / 64).is_multiple_of(3)));
    let steps: Vec<_> = (0..300).map(|i| (1 + i % 3, 0, 0, 0)).collect();
    assert!(pages_read_on(&mut bare, &steps) > 0, "no page needs to keep its smallest any more");
}

#[test]
fn of_a_million_everybody_reads_well_when_a_region_lost_nine_in_ten() {
    for region in [0..400_000, 200_000..600_000, 999_000..1_000_000] {
        let mut bare = Bare::room("rate=none");
        bare.join(MILLION);
        bare.lapse(region.filter(|number| !noise(*number).is_multiple_of(10)));
        everybody_reads_well(&bare, 1);
    }
}

/// Measured, before any compression: 2,429 bytes with 998 buckets, where a bit for each would
/// take 125,000.
#[test]
fn the_board_of_a_million_who_all_wait_is_within_2_600_bytes() {
    let mut bare = Bare::room("rate=none");
    bare.join(MILLION);
    let bytes = json(&bare);
    assert!(bytes <= 2_600, "{bytes} bytes");
    everybody_reads_well(&bare, 1);
}

/// Measured, before any compression: 6,383 to 9,206 bytes over ways to leave that cut the line
/// into as many runs and stretches as we could think of.
#[test]
fn the_board_of_a_million_with_holes_is_within_10_000_bytes() {
    type Gone = fn(u64) -> bool;
    let ways: [(&str, Gone); 9] = [
        ("half of them", |n| noise(n).is_multiple_of(2)),
        ("nine in ten", |n| !noise(n).is_multiple_of(10)),
        ("99 in a hundred", |n| !noise(n).is_multiple_of(100)),
        ("nine in ten in front", |n| n < 400_000 && !noise(n).is_multiple_of(10)),
        ("every other", |n| n % 2 == 0),
        ("a hundred of two", |n| n / 100 % 2 == 0),
        ("a thousand of two", |n| n / 1_000 % 2 == 0),
        ("whole patches", |n| noise(n / 777).is_multiple_of(3) || noise(n).is_multiple_of(7)),
        ("patches of all sorts", |n| noise(n) % 64 < noise(n / 301) % 64),
    ];
    for (name, gone) in ways {
        let mut bare = Bare::room("rate=none");
        bare.join(MILLION);
        bare.lapse((0..MILLION).filter(|number| gone(*number)));
        let bytes = json(&bare);
        assert!(bytes <= 10_000, "{name} left: {bytes} bytes");
    }
}

#[test]
fn a_board_survives_json() {
    let bare = with_holes("rate=none", 20_000, &[(5_000, 9_000, 90)]);
    let board = board(&bare);
    let text = serde_json::to_string(&board).expect("a board is JSON");
    assert_eq!(serde_json::from_str::<PublicBoard>(&text).expect("and back"), board);
    assert_eq!((board.version, board.at), (7, bare.now));
}

#[test]
fn an_empty_line_is_an_empty_board() {
    let mut bare = Bare::room("rate=none");
    assert_eq!((lane(&bare).waiting, lane(&bare).position(Order(0))), (0, 1));
    bare.join(20);
    bare.lapse(0..20);
    let lane = lane(&bare);
    assert_eq!((lane.waiting, lane.front.as_slice(), lane.stretches.len()), (0, &[][..], 0));
}

#[test]
fn a_room_that_keeps_its_length_to_itself_has_no_board() {
    let bare = Bare::room("rate=none public_board=off");
    assert!(Board::new(bare.room.state().clone(), 1, bare.now).public().is_none());
    assert!(Board::new(Room::new().state().clone(), 1, T0).public().is_none(), "no settings yet");
}

#[test]
fn before_the_draw_the_board_gives_no_position_away_and_after_it_the_drawn_ones() {
    let mut bare = Bare::room("rate=none starts_at=60s draw=committed");
    let commitment = draw::commitment(&[7; 32]);
    bare.ask(&Command::CommitDraw { commitment, sealed_seed: vec![], beacon: None });
    bare.join(5_000);
    let silent = |bare: &Bare, waiting: u64| {
        let board = board(bare);
        assert!(board.draw_pending);
        let lane = &board.lanes[0];
        assert_eq!(lane.waiting, waiting);
        assert!(lane.front.is_empty() && lane.stretches.is_empty(), "{lane:?}");
    };
    silent(&bare, 5_000);
    bare.now = bare.now.after(Millis::from_secs(60));
    bare.tick();
    bare.join(100);
    silent(&bare, 5_100);
    let (seed, chain) = ([7; 32], [9; 32]);
    let by = Actor::new("operator");
    bare.ask(&Command::Draw { seed, chain, beacon: None, waive_beacon: false, by });
    assert!(!board(&bare).draw_pending);
    everybody_reads_well(&bare, 1);
    bare.admit(700);
    bare.lapse((0..5_000).filter(|number| noise(*number).is_multiple_of(3)));
    everybody_reads_well(&bare, 1);
}

#[test]
fn an_open_window_is_counted_and_not_placed() {
    let mut bare = Bare::room("rate=none window=16");
    bare.join(40);
    bare.tick();
    let lane = lane(&bare);
    assert_eq!(lane.waiting, 40);
    assert_eq!(lane.front, [32], "two windows are sealed, eight people stand in the third");
    for who in bare.waiting().iter().take(32) {
        assert_eq!(lane.position(order(&bare, who)), exact(&bare, who));
    }
}

#[test]
fn the_board_says_why_nobody_enters() {
    let mut bare = Bare::room("rate=none starts_at=60s");
    let says = |bare: &Bare| {
        let board = board(bare);
        (board.phase, board.reason.unwrap_or_default())
    };
    let by = || Actor::new("operator");
    let both = |one: &str, other: &str| (one.to_owned(), other.to_owned());
    assert_eq!(says(&bare), both("held", ""));
    bare.now = bare.now.after(Millis::from_secs(60));
    bare.tick();
    assert_eq!(says(&bare), both("running", ""));
    let hold = Hold::Paused { reason: "jam".into() };
    bare.ask(&Command::Hold { hold, by: by() });
    assert_eq!(says(&bare), both("paused", "jam"));
    let hold = Hold::Maintenance { reason: "till".into() };
    bare.ask(&Command::Hold { hold, by: by() });
    assert_eq!(says(&bare), both("maintenance", "till"));
    let cause = FinishCause::SoldOut;
    bare.ask(&Command::Finish { cause, reason: "gone".into(), by: by() });
    assert_eq!(says(&bare), both("ended", "gone"));
    bare.ask(&Command::Reopen { by: by() });
    bare.ask(&Command::Resume { by: by() });
    assert_eq!(says(&bare), both("running", ""));
}
