//! What visitors are told of their waits comes true, and is left unsaid where it could not be known.

use crate::help::{config, configured, futures_joined, settings};
use crate::sale::{Sale, by};
use std::sync::Arc;
use waitroom_core::estimate::Unknown;
use waitroom_core::settings::{LaneSettings, Rate, Returning};
use waitroom_core::{
    Command, EndHow, FinishCause, Hold, Join, LaneId, Millis, Presented, Settings, Status,
    Timestamp,
};
use waitroom_engine::{Engine, RoomHandle};
use waitroom_store::{ManualClock, MemoryStore, Seams};

fn paced(per_second: u32) -> Settings {
    let rate = Some(Rate { count: per_second, per: Millis(1_000) });
    // Far more slots than anybody needs here, and nobody is silent.
    let heartbeat_timeout = Millis::from_secs(24 * 3_600);
    Settings { rate, max_active: 1_000_000, heartbeat_timeout, ..settings() }
}

#[test]
fn a_patient_line_at_a_known_pace_enters_when_it_was_told() {
    let mut sale = Sale::watched(paced(10));
    let people = sale.join_many(6_000);
    sale.run(300);
    let last = people[5_500];
    let ahead = sale.position(last).expect("waits") - 1;
    let told = sale.outlook().estimate(ahead, 0).expect("the pace is known");
    let waited = sale.wait_of(last);
    assert!((told.low_ms..=told.high_ms).contains(&waited), "{told:?}, waited {waited}");
    assert!(told.high_ms - told.low_ms <= 4_000, "{told:?}");
}

/// People give up all along, and nobody but the events tells the room.
#[test]
fn where_people_give_up_four_of_five_intervals_hold() {
    let mut sale = Sale::watched(paced(20));
    let mut people: Vec<Presented> = Vec::new();
    let mut asked: Vec<(Presented, Timestamp, u64, u64)> = Vec::new();
    let (mut held, mut told) = (0u64, 0u64);
    for second in 0..3_000u64 {
        let newcomers = if second < 600 { 40 } else { 10 };
        people.extend(sale.join_many(newcomers));
        // Each second one in two thousand of those who came gives up, if they still wait.
        for _ in 0..people.len() / 2_000 {
            let who = people[(sale.luck() * people.len() as f64) as usize];
            if sale.position(who).is_some() {
                sale.must(Command::Leave(who));
            }
        }
        sale.run(1);
        if second > 60 {
            let who = people[(sale.luck() * people.len() as f64) as usize];
            if let Some(position) = sale.position(who)
                && let Ok(told) = sale.outlook().estimate(position - 1, 0)
            {
                // Somewhere between two ticks, as people do.
                let at = Timestamp(sale.at.0 + (sale.luck() * 200.0) as u64);
                asked.push((who, at, told.low_ms, told.high_ms));
            }
        }
        let (state, at) = (sale.writer.state(), sale.at);
        asked.retain(|&(who, then, low, high)| {
            let view = state.look(at, &who).expect("nobody is forgotten so soon");
            if let Some(admitted_at) = view.admitted_at.filter(|at| *at >= then) {
                held += u64::from((low..=high).contains(&admitted_at.since(then).0));
                told += 1;
            }
            view.status == Status::Waiting
        });
    }
    let share = held as f64 / told as f64;
    println!("{held} of {told} held");
    assert!(told > 300 && (0.70..=0.92).contains(&share), "{held} of {told} held");
    let (held, told) = sale.outlook().coverage().expect("people were admitted");
    let measured = held as f64 / told as f64;
    println!("{held} of {told} held");
    assert!(told > 300 && (0.70..=0.92).contains(&measured), "{held} of {told} held");
}

#[test]
fn a_room_that_admits_nobody_says_why_at_once() {
    let mut sale = Sale::watched(paced(10));
    sale.join_many(1_000);
    sale.run(30);
    let known = |sale: &Sale| sale.outlook().estimate(500, 0);
    assert!(known(&sale).is_ok());
    sale.must(Command::Hold { hold: Hold::Paused { reason: "checkout is slow".into() }, by: by() });
    sale.round();
    assert_eq!(known(&sale), Err(Unknown::Paused));
    sale.run(600);
    assert_eq!(known(&sale), Err(Unknown::Paused));
    sale.must(Command::Resume { by: by() });
    sale.round();
    let again = known(&sale).expect("it goes on");
    assert!(again.likely_ms.abs_diff(50_000) < 5_000, "{again:?}");
    let (cause, reason) = (FinishCause::SoldOut, String::new());
    sale.must(Command::Finish { cause, reason, by: by() });
    sale.round();
    assert_eq!(known(&sale), Err(Unknown::Closed));
}

#[test]
fn before_the_start_nobody_is_told_a_wait() {
    let sale = Sale::watched(paced(10));
    assert_eq!(sale.outlook().estimate(0, 0), Err(Unknown::NoData), "nobody is there");
    let starts_at = Some(sale.at.after(Millis::from_secs(60)));
    let mut sale = Sale::watched(Settings { starts_at, ..paced(10) });
    assert_eq!(sale.outlook().estimate(0, 0), Err(Unknown::NotStarted));
    sale.join_many(100);
    sale.run(30);
    assert_eq!(sale.outlook().estimate(50, 0), Err(Unknown::NotStarted));
    sale.run(31);
    assert!(sale.outlook().estimate(50, 0).is_ok());
}

#[test]
fn where_only_operators_let_people_in_their_pace_is_measured() {
    let mut sale = Sale::watched(Settings { rate: None, ..paced(1) });
    sale.join_many(5_000);
    sale.run(10);
    assert_eq!(sale.outlook().estimate(100, 0), Err(Unknown::NoData));
    for _ in 0..60 {
        sale.must(Command::AdmitNow { count: 20, entropy: [0; 16], by: by() });
        sale.run(2);
    }
    let told = sale.outlook().estimate(3_000, 0).expect("admissions were seen");
    assert!(told.likely_ms.abs_diff(300_000) < 30_000, "{told:?}");
}

#[test]
fn those_who_came_back_are_told_their_wait_too() {
    let returning = Some(Returning { share: 20, within: Millis::from_secs(3_600) });
    let mut sale = Sale::watched(Settings { returning, ..paced(20) });
    let people = sale.join_many(4_000);
    sale.run(2);
    for who in people.into_iter().rev().take(400) {
        sale.must(Command::Leave(who));
        let join = Join { holding: Some(who), ..Join::default() };
        let back = crate::help::presented(&sale.must(Command::Join(join)));
        assert_eq!(back.ticket.lane, LaneId::RETURNING);
    }
    sale.run(20);
    // Four of twenty a second are theirs.
    let ahead = sale.writer.state().lane_counts(LaneId::RETURNING).waiting - 1;
    let told = sale.outlook().estimate(ahead, LaneId::RETURNING.0).expect("the lane moves");
    assert!(told.likely_ms.abs_diff(ahead * 250) < 10_000, "{told:?} with {ahead} ahead");
}

/// A day of everything that changes a line: the feed must count as the room counts (the watch
/// asserts that in every round), and no byte of the log may depend on being watched.
#[test]
fn a_watched_room_decides_as_if_nobody_looked() {
    let lane = |name: &str, weight| LaneSettings { name: name.into(), weight };
    for shuffle_window in [1, 16] {
        let settings = Settings {
            lanes: vec![lane("main", 3), lane("vip", 1)],
            returning: Some(Returning { share: 30, within: Millis::from_secs(600) }),
            shuffle_window,
            max_active: 40,
            claim_within: Millis::from_secs(3),
            session_timeout: Millis::from_secs(8),
            heartbeat_timeout: Millis::from_secs(30),
            ticket_life: Millis::from_secs(400),
            ..paced(7)
        };
        let day = |mut sale: Sale| {
            let mut people: Vec<Presented> = Vec::new();
            for step in 0..4_000u64 {
                let who = |sale: &mut Sale, people: &[Presented]| {
                    let at = (sale.luck() * people.len() as f64) as usize;
                    people.get(at).copied()
                };
                for _ in 0..(sale.luck() * 5.0) as u64 {
                    let lane = u8::from(sale.luck() < 0.2);
                    people.push(sale.join(lane));
                }
                let Some(it) = who(&mut sale, &people) else { continue };
                let what = match (sale.luck() * 9.0) as u64 {
                    0 => Command::Leave(it),
                    1 => Command::Join(Join { holding: Some(it), ..Join::default() }),
                    2 => Command::Move { ticket: it, to: LaneId(1), by: by() },
                    3 => Command::End { ticket: it, how: EndHow::Revoked, by: by() },
                    4 => Command::Claim(it),
                    5 => Command::End { ticket: it, how: EndHow::Completed, by: by() },
                    6 => Command::AdmitNow { count: 3, entropy: [3; 16], by: by() },
                    7 => Command::Lapse { tickets: vec![it.ticket] },
                    _ => Command::HandOver(it),
                };
                sale.writer.apply(sale.at, &what);
                match step % 1_000 {
                    300 => {
                        let mut more = settings.clone();
                        more.lanes.push(lane("late", 2));
                        let settings = Box::new(more);
                        sale.must(Command::Configure { settings, by: by() });
                        people.push(sale.join(2));
                    }
                    500 => {
                        let hold = Hold::Paused { reason: String::new() };
                        sale.must(Command::Hold { hold, by: by() });
                    }
                    550 => drop(sale.must(Command::Resume { by: by() })),
                    700 => {
                        let (cause, reason) = (FinishCause::Operator, String::new());
                        sale.must(Command::Finish { cause, reason, by: by() });
                        sale.must(Command::Reopen { by: by() });
                        people.push(sale.join(0));
                    }
                    _ => {}
                }
                let ms = (sale.luck() * 400.0) as u64;
                sale.pass(ms);
            }
            assert!(sale.writer.state().counts().admissions > 1_000, "the scene needs admissions");
            sale
        };
        let (watched, alone) =
            (day(Sale::watched(settings.clone())), day(Sale::new(settings.clone())));
        assert_eq!(watched.rounds, alone.rounds);
        assert_eq!(watched.writer.state().digest(), alone.writer.state().digest());
        assert!(watched.outlook.is_some() && alone.outlook.is_none());
    }
}

#[test]
fn an_empty_room_is_not_watched_and_wakes_nobody() {
    let mut sale = Sale::watched(Settings { pass_leeway: Millis(0), ..paced(10) });
    assert_eq!(sale.writer.outlook_due(), None);
    let who = sale.join(0);
    sale.round();
    sale.pass(200);
    assert_eq!(sale.position(who), None, "straight in");
    let crowd = sale.join_many(50);
    sale.pass(200);
    let due = sale.writer.outlook_due().expect("while people wait their outlook is made anew");
    assert!(due > sale.at && due.since(sale.at) <= Millis(1_000));
    sale.run(10);
    assert_eq!(sale.writer.state().waiting(), 0);
    assert_eq!(sale.writer.outlook_due(), None, "nobody waits");
    assert!(sale.outlook().estimate(10, 0).is_ok(), "but what was learned is kept");
    for who in crowd.into_iter().chain([who]) {
        sale.must(Command::Leave(who));
    }
    sale.run(1);
    assert_eq!(sale.writer.state().slots_taken(), 0);
    assert_eq!(sale.outlook().estimate(10, 0), Err(Unknown::NoData), "nobody is left");
}

fn engine(clock: &Arc<ManualClock>, store: &MemoryStore) -> Engine<MemoryStore> {
    let seams = Seams::seeded(clock.clone(), 1);
    Engine::new(Arc::new(store.clone()), seams, config())
}

async fn crowd(handle: &RoomHandle, people: usize) {
    let join = || handle.send(Command::Join(Join::default()));
    let answers = futures_joined((0..people).map(|_| join())).await;
    assert!(answers.iter().all(Result::is_ok));
}

#[tokio::test]
async fn who_has_just_joined_finds_an_outlook_that_knows_of_them() {
    let clock = ManualClock::at(1_000);
    let store = MemoryStore::new(Seams::seeded(clock.clone(), 1));
    let engine = engine(&clock, &store);
    let handle = configured(&engine, paced(10)).await;
    assert_eq!(handle.outlook().estimate(0, 0), Err(Unknown::NoData));
    crowd(&handle, 500).await;
    // The line is projected once a second; whoever came in between is told by what is known.
    for _ in 0..5 {
        clock.advance(200);
        handle.send(Command::Resume { by: by() }).await.expect("a tick goes by");
    }
    let answer = handle.send(Command::Join(Join::default())).await.expect("joins");
    let ahead = answer.view.and_then(|view| view.position).expect("waits") - 1;
    let told = handle.outlook_guard().estimate(ahead, 0).expect("the pace is known");
    assert!(told.likely_ms.abs_diff(ahead * 100) < 3_000, "{told:?} with {ahead} ahead");
    assert_eq!(handle.outlook().coverage(), None, "nobody was asked and admitted yet");
    let hold = Hold::Paused { reason: "a moment".into() };
    handle.send(Command::Hold { hold, by: by() }).await.expect("pauses");
    assert_eq!(handle.outlook().estimate(ahead, 0), Err(Unknown::Paused));
    engine.stop().await;
}

#[tokio::test]
async fn a_new_owner_begins_with_the_line_as_it_stands() {
    let clock = ManualClock::at(1_000);
    let store = MemoryStore::new(Seams::seeded(clock.clone(), 1));
    let first = engine(&clock, &store);
    let handle = configured(&first, paced(10)).await;
    crowd(&handle, 3_000).await;
    first.stop().await;
    clock.advance(60_000);
    let second = engine(&clock, &store);
    let handle = second.open(&crate::help::room()).await.expect("the room comes back");
    let told = handle.outlook().estimate(1_999, 0).expect("line and pace are known");
    assert!(told.likely_ms.abs_diff(200_000) < 10_000, "{told:?}");
    second.stop().await;
}
