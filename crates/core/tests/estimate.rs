//! What the estimator promises, told with small lines of people.

use proptest::prelude::*;
use waitroom_core::estimate::{
    Departure, Doors, Estimator, Interval, LanePart, Rate, Settings, Stretch, Takes, Unknown,
};

const TICK_MS: u64 = 200;

fn settings(per_s: u64) -> Settings {
    Settings {
        doors: Doors::Open,
        rate: Some(Rate { admissions: per_s, per_ms: 1_000 }),
        max_active: None,
        heartbeat_timeout_ms: 60_000,
        lanes: LanePart::weights([1]),
    }
}

/// A line with one lane that everybody waits out, or leaves at a constant pace.
struct Line {
    estimator: Estimator,
    at: u64,
    next: u64,
    alive: Vec<bool>,
    per_tick: u64,
    /// Of so many waiting, one leaves per tick; none for a patient crowd.
    one_leaves_of: Option<u64>,
}

impl Line {
    fn new(per_s: u64, one_leaves_of: Option<u64>) -> Self {
        Line {
            estimator: Estimator::new(TICK_MS, settings(per_s)),
            at: 0,
            next: 0,
            alive: Vec::new(),
            per_tick: per_s * TICK_MS / 1_000,
            one_leaves_of,
        }
    }

    fn join(&mut self, n: u64) {
        self.estimator.note_joined(self.at, 0, n);
        self.alive.resize(self.alive.len() + n as usize, true);
    }

    fn ahead(&self, order: u64) -> u64 {
        (self.next..order).filter(|&o| self.alive[o as usize]).count() as u64
    }

    fn tick(&mut self) {
        self.at += TICK_MS;
        if let Some(of) = self.one_leaves_of {
            let phase = self.at / TICK_MS % of;
            for order in self.next..self.alive.len() as u64 {
                if order % of == phase && self.alive[order as usize] {
                    self.alive[order as usize] = false;
                    self.estimator.note_departed(self.at, 0, order, Departure::Left);
                }
            }
        }
        let mut n = 0;
        while n < self.per_tick && self.next < self.alive.len() as u64 {
            n += u64::from(self.alive[self.next as usize]);
            self.next += 1;
        }
        if n > 0 {
            self.estimator.note_admitted(self.at, 0, n, self.next);
        }
        self.estimator.advance(self.at);
    }

    fn run_until(&mut self, at: u64) {
        while self.at < at {
            self.tick();
        }
    }

    /// Runs until `order` has entered; returns how long that took.
    fn wait_of(&mut self, order: u64) -> u64 {
        let from = self.at;
        while self.next <= order {
            self.tick();
        }
        self.at - from
    }
}

fn holds(interval: Interval, actual_ms: u64) -> bool {
    (interval.low_ms..=interval.high_ms).contains(&actual_ms)
}

#[test]
fn a_patient_line_at_a_known_rate_is_foretold_to_the_tick() {
    let mut line = Line::new(10, None);
    line.join(6_000);
    line.run_until(300_000);
    let order = 5_500;
    let interval = line.estimator.estimate(line.ahead(order), 0).expect("the line moves");
    let actual = line.wait_of(order);
    assert!(interval.likely_ms.abs_diff(actual) <= 2 * TICK_MS, "{interval:?}, waited {actual}");
    assert!(interval.high_ms - interval.low_ms <= 20 * TICK_MS, "{interval:?}");
}

#[test]
fn people_who_leave_shorten_the_wait_of_those_behind() {
    let mut line = Line::new(10, Some(3_000));
    line.join(30_000);
    line.run_until(400_000);
    let order = 29_000;
    let ahead = line.ahead(order);
    let without_leaving = ahead * 100;
    let interval = line.estimator.estimate(ahead, 0).expect("the line moves");
    let actual = line.wait_of(order);
    assert!(actual * 10 < without_leaving * 8, "the scene needs many who leave");
    assert!(holds(interval, actual), "{interval:?}, waited {actual}");
    assert!(interval.high_ms - interval.low_ms <= 2 * interval.likely_ms, "{interval:?}");
}

#[test]
fn low_likely_and_high_come_in_order_and_grow_with_the_line() {
    let mut line = Line::new(10, Some(4_000));
    line.join(20_000);
    line.run_until(300_000);
    let mut last = 0;
    for ahead in (0..10_000).step_by(500) {
        let i = line.estimator.estimate(ahead, 0).expect("the line moves");
        assert!(i.low_ms <= i.likely_ms && i.likely_ms <= i.high_ms, "{i:?}");
        // Classes of length are calibrated apart, so a step of a few per cent is no surprise.
        assert!(i.likely_ms * 20 >= last * 19, "{ahead} ahead: {i:?} after {last}");
        last = i.likely_ms;
    }
}

#[test]
fn a_room_that_admits_nobody_says_why() {
    for (doors, reason) in [
        (Doors::NotStarted, Unknown::NotStarted),
        (Doors::Paused, Unknown::Paused),
        (Doors::Closed, Unknown::Closed),
    ] {
        let mut estimator = Estimator::new(TICK_MS, settings(10));
        estimator.note_joined(0, 0, 100);
        estimator.note_settings(1_000, Settings { doors, ..settings(10) });
        assert_eq!(estimator.estimate(50, 0), Err(reason));
    }
}

#[test]
fn a_pause_teaches_nothing_wrong() {
    let mut line = Line::new(10, None);
    line.join(6_000);
    line.run_until(100_000);
    let paused = Settings { doors: Doors::Paused, ..settings(10) };
    line.estimator.note_settings(line.at, paused);
    for _ in 0..3_000 {
        line.at += TICK_MS;
        line.estimator.advance(line.at);
    }
    line.estimator.note_settings(line.at, settings(10));
    line.tick();
    let order = 4_000;
    let interval = line.estimator.estimate(line.ahead(order), 0).expect("the line moves again");
    let actual = line.wait_of(order);
    assert!(interval.likely_ms.abs_diff(actual) <= actual / 50, "{interval:?}, waited {actual}");
}

#[test]
fn a_new_rate_is_believed_at_once() {
    let mut line = Line::new(10, None);
    line.join(6_000);
    line.run_until(100_000);
    line.estimator.note_settings(line.at, settings(40));
    line.per_tick *= 4;
    let order = 5_000;
    let interval = line.estimator.estimate(line.ahead(order), 0).expect("the line moves");
    let actual = line.wait_of(order);
    assert!(interval.likely_ms.abs_diff(actual) <= actual / 20, "{interval:?}, waited {actual}");
}

#[test]
fn without_a_limit_and_without_a_sight_of_anyone_entering_nothing_is_said() {
    let unlimited = Settings { rate: None, ..settings(1) };
    let mut estimator = Estimator::new(TICK_MS, unlimited);
    estimator.note_joined(0, 0, 100);
    estimator.advance(10_000);
    assert_eq!(estimator.estimate(50, 0), Err(Unknown::NoData));
}

#[test]
fn manual_admissions_are_measured_where_no_rate_is_set() {
    let unlimited = Settings { rate: None, ..settings(1) };
    let mut estimator = Estimator::new(TICK_MS, unlimited);
    estimator.note_joined(0, 0, 10_000);
    // An operator lets in 20 every other second.
    let (mut at, mut next) = (0, 0);
    while at < 120_000 {
        at += 2_000;
        next += 20;
        estimator.note_admitted(at, 0, 20, next);
        estimator.advance(at);
    }
    let interval = estimator.estimate(3_000, 0).expect("admissions were seen");
    assert!(interval.likely_ms.abs_diff(300_000) < 30_000, "{interval:?}");
}

/// Twice as many enter as the rate says, because an operator lets in as many again.
#[test]
fn a_pace_other_than_the_rate_is_learned_while_slots_are_free() {
    let slots = Settings { max_active: Some(1_000_000), ..settings(10) };
    let mut estimator = Estimator::new(TICK_MS, slots);
    estimator.note_joined(0, 0, 20_000);
    for second in 1..=300 {
        estimator.note_admitted(second * 1_000, 0, 20, second * 20);
        estimator.advance(second * 1_000);
    }
    let likely = likely(&estimator, 2_999, 0);
    assert!(likely.abs_diff(150_000) < 10_000, "{likely}");
}

#[test]
fn lanes_share_the_pace_by_weight() {
    let two = Settings { lanes: LanePart::weights([1, 3]), ..settings(20) };
    let mut estimator = Estimator::new(TICK_MS, two);
    estimator.note_joined(0, 0, 3_000);
    estimator.note_joined(0, 1, 3_000);
    estimator.advance(0);
    // Lane 1 gets 15 of 20 per second. When it is empty after 200 s lane 0 has 2,000 left and
    // gets all 20: 100 s more.
    let heavy = estimator.estimate(2_999, 1).expect("the lane moves").likely_ms;
    let light = estimator.estimate(2_999, 0).expect("the lane moves").likely_ms;
    assert!(heavy.abs_diff(200_000) < 6_000, "{heavy}");
    assert!(light.abs_diff(300_000) < 9_000, "{light}");
}

fn likely(estimator: &Estimator, ahead: u64, lane: u8) -> u64 {
    estimator.estimate(ahead, lane).expect("the lane moves").likely_ms
}

#[test]
fn a_lane_without_weight_moves_when_the_others_are_empty() {
    let two = Settings { lanes: LanePart::weights([1, 0]), ..settings(20) };
    let mut estimator = Estimator::new(TICK_MS, two);
    estimator.note_joined(0, 0, 2_000);
    estimator.note_joined(0, 1, 2_000);
    estimator.advance(0);
    let (heavy, light) = (likely(&estimator, 1_999, 0), likely(&estimator, 1_999, 1));
    assert!(heavy.abs_diff(100_000) < 3_000, "{heavy}");
    assert!(light.abs_diff(200_000) < 6_000, "{light}");
}

#[test]
fn those_who_come_back_take_their_share_and_no_more() {
    let share = LanePart { lane: 255, takes: Takes::Share(20) };
    let mut lanes = LanePart::weights([1, 3]);
    lanes.push(share);
    let mut estimator = Estimator::new(TICK_MS, Settings { lanes, ..settings(20) });
    // Lane 1 stays empty: a fifth is a fifth beside lane 0 alone.
    estimator.note_joined(0, 0, 3_000);
    estimator.note_joined(0, 255, 400);
    estimator.advance(0);
    // Returning gets 4 of 20 a second for 100 s; lane 0 gets 16, then everything.
    let (back, main) = (likely(&estimator, 399, 255), likely(&estimator, 2_999, 0));
    assert!(back.abs_diff(100_000) < 3_000, "{back}");
    assert!(main.abs_diff(170_000) < 6_000, "{main}");
}

#[test]
fn a_lane_that_came_later_does_not_disturb_the_others() {
    let mut estimator = Estimator::new(TICK_MS, settings(10));
    let share = LanePart { lane: 255, takes: Takes::Share(50) };
    let with = |weights: &[u32]| {
        let mut lanes = LanePart::weights(weights.iter().copied());
        lanes.push(share);
        Settings { lanes, ..settings(10) }
    };
    estimator.note_settings(0, with(&[1]));
    estimator.note_settings(0, with(&[1, 1]));
    estimator.note_joined(0, 255, 500);
    estimator.note_joined(0, 1, 1_000);
    estimator.advance(1_000);
    assert_eq!([0, 1, 255].map(|lane| estimator.waiting(lane)), [0, 1_000, 500]);
    let (back, new) = (likely(&estimator, 499, 255), likely(&estimator, 999, 1));
    assert!(back.abs_diff(100_000) < 3_000, "{back}");
    // Alone after 100 s, or still sharing if people keep coming back as they just did.
    assert!((148_000..=202_000).contains(&new), "{new}");
}

#[test]
fn a_line_that_was_there_before_is_foretold_like_one_that_was_watched() {
    let mut estimator = Estimator::new(TICK_MS, settings(10));
    let row = (1..=100).map(|i| Stretch { end: 500 + i * 60, waiting: 50, joined_at: i * 100 });
    estimator.note_line(0, 6_500, row);
    estimator.advance(20_000);
    assert_eq!(estimator.waiting(0), 5_000);
    let found = likely(&estimator, 3_999, 0);
    assert!(found.abs_diff(400_000) < 8_000, "{found}");
    // Those behind the front are known by their orders, and more come behind them.
    estimator.note_departed(20_000, 0, 900, Departure::Left);
    estimator.note_admitted(20_000, 0, 50, 560);
    estimator.note_joined(20_000, 0, 10);
    assert_eq!(estimator.waiting(0), 5_000 - 1 - 50 + 10);
}

#[test]
fn after_a_draw_everyone_is_told_by_their_new_place() {
    let mut line = Line::new(10, None);
    line.join(6_000);
    line.at = 300_000;
    line.estimator.note_drawn(line.at, 0);
    for order in [1_000, 5_500] {
        let interval = line.estimator.estimate(line.ahead(order), 0).expect("the line moves");
        let actual = line.wait_of(order);
        assert!(interval.likely_ms.abs_diff(actual) <= 2 * TICK_MS, "{interval:?}, {actual}");
    }
    // Who leaves is known by their new place too, with the age that all have about.
    let gone = line.estimator.waiting(0);
    line.estimator.note_departed(line.at, 0, 5_900, Departure::Left);
    assert_eq!(line.estimator.waiting(0), gone - 1);
}

#[test]
fn an_unknown_lane_is_no_data_and_no_panic() {
    let mut estimator = Estimator::new(TICK_MS, settings(10));
    estimator.note_joined(0, 9, 5);
    estimator.note_admitted(0, 9, 5, 5);
    estimator.note_departed(0, 9, 1, Departure::Lapsed);
    estimator.note_drawn(0, 9);
    assert_eq!(estimator.estimate(0, 9), Err(Unknown::NoData));
}

#[test]
fn the_same_events_make_the_same_estimator() {
    let run = || {
        let mut line = Line::new(20, Some(1_000));
        line.join(10_000);
        line.run_until(150_000);
        (0..8_000).step_by(97).map(|a| line.estimator.estimate(a, 0)).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[derive(Clone, Debug)]
enum Fact {
    Joined(u64),
    Admitted(u64, u64),
    Departed(u64, bool),
    Freed(u64),
    Advance,
    Drawn,
    Found(u64, u64),
    Rate(u64),
    Doors(u8),
}

fn fact() -> impl Strategy<Value = (u64, u8, Fact)> {
    let kind = prop_oneof![
        (0..5_000u64).prop_map(Fact::Joined),
        (0..500u64, any::<u64>()).prop_map(|(n, next)| Fact::Admitted(n, next >> (n % 64))),
        (any::<u64>(), any::<bool>()).prop_map(|(o, left)| Fact::Departed(o >> (o % 64), left)),
        any::<u64>().prop_map(Fact::Freed),
        Just(Fact::Advance),
        Just(Fact::Drawn),
        (any::<u64>(), 1..400u64).prop_map(|(o, n)| Fact::Found(o >> (o % 64), n)),
        (0..1_000_000u64).prop_map(Fact::Rate),
        (0..4u8).prop_map(Fact::Doors),
    ];
    (0..100_000u64, 0..3u8, kind)
}

proptest! {
    /// The feed may be wrong (a follower that missed events, a clock that stood still): answers
    /// may then be poor, but they stay answers.
    #[test]
    fn no_order_of_facts_breaks_it(facts in prop::collection::vec(fact(), 1..200)) {
        let two = Settings { lanes: LanePart::weights([1, 2]), max_active: Some(100), ..settings(10) };
        let mut estimator = Estimator::new(TICK_MS, two.clone());
        let mut at = 0;
        for (passed, lane, fact) in facts {
            at += passed;
            match fact {
                Fact::Joined(n) => estimator.note_joined(at, lane, n),
                Fact::Admitted(n, next) => estimator.note_admitted(at, lane, n, next),
                Fact::Departed(order, left) => {
                    let how = if left { Departure::Left } else { Departure::Lapsed };
                    estimator.note_departed(at, lane, order, how);
                }
                Fact::Freed(since) => estimator.note_freed(at, since),
                Fact::Advance => {
                    estimator.advance(at);
                }
                Fact::Found(orders, waiting) => {
                    let row = (1..=waiting).map(|i| Stretch {
                        end: orders / waiting * i,
                        waiting: i,
                        joined_at: at.saturating_sub(i),
                    });
                    estimator.note_line(lane, orders, row);
                }
                Fact::Drawn => estimator.note_drawn(at, lane),
                Fact::Rate(n) => {
                    let rate = Some(Rate { admissions: n, per_ms: n % 7 });
                    estimator.note_settings(at, Settings { rate, ..two.clone() });
                }
                Fact::Doors(n) => {
                    let doors = [Doors::Open, Doors::NotStarted, Doors::Paused, Doors::Closed];
                    let doors = doors[usize::from(n)];
                    estimator.note_settings(at, Settings { doors, ..two.clone() });
                }
            }
            for ahead in [0, 1, 1_000, u64::MAX] {
                if let Ok(i) = estimator.estimate(ahead, lane) {
                    prop_assert!(i.low_ms <= i.likely_ms && i.likely_ms <= i.high_ms, "{i:?}");
                    prop_assert!(i.high_ms - i.low_ms <= 2 * i.likely_ms + 2, "{i:?}");
                }
                let outlook = estimator.outlook().estimate(ahead, lane);
                prop_assert_eq!(outlook, estimator.estimate(ahead, lane));
            }
        }
    }
}
