//! What each operation costs in a queue of some size: thread CPU time, best of five.

use std::hint::black_box;

use waitroom_core::{Board, LaneId, Millis, State, Ticket, Timestamp};
use waitroom_engine::liveness::Liveness;

use super::super::classic::scatter;
use super::super::cpu::{ROUNDS, best_ns, thread_cpu};
use super::super::part::Part;
use super::super::report::Measure;
use super::crowd::{Crowd, House, admit, after, presented, scattered};

/// Operations in a round: a few milliseconds, and more memory than the caches hold.
const ROUND: u64 = 200_000;
const ADMITTED: u64 = 1_000;
/// Every so many-th visitor has fallen silent when the sweeper comes.
const SILENT_EVERY: u64 = 200;

pub fn measure(crowd: Crowd, people: u64) -> Part {
    let mut house = House::full(crowd, people);
    let mut measures = vec![join(&mut house, crowd, people)];
    // What people bring along weighs on joining and on the snapshot; the rest is the same work.
    if crowd == Crowd::Anonymous {
        measures.extend(reading(house.room.state(), people));
        measures.extend(liveness(house.room.state(), people));
        measures.extend(snapshot(house.room.state()));
        measures.extend(leaving(&mut house, people));
        measures.push(admitting(&mut house));
    } else {
        measures.extend(snapshot(house.room.state()));
    }
    Part::of(measures)
}

fn ns(name: &str, value: f64) -> Measure {
    Measure::new(name, value, "ns")
}

fn join(house: &mut House, crowd: Crowd, people: u64) -> Measure {
    let round = ROUND.min(people / 10);
    let mut came = people;
    let prepare = || {
        let first = came;
        came += round;
        (first, (first..first + round).map(|n| crowd.join(n)).collect::<Vec<_>>())
    };
    let best = best_ns(round, prepare, |(first, commands)| {
        for (n, command) in (first..).zip(&commands) {
            house.must(after(n), command);
        }
    });
    ns("join_ns", best)
}

/// What any thread asks of a published board.
fn reading(state: &State, people: u64) -> Vec<Measure> {
    let at = state.last_at();
    let mut board = Board::new(state.clone(), 1, at);
    let publish = best_ns(1, || (), |()| board = Board::new(state.clone(), 1, at));
    let public = best_ns(1, || (), |()| drop(black_box(board.public())));
    let public_bytes = serde_json::to_vec(&board.public()).map_or(0, |json| json.len());
    let state = board.state();
    let mut asked = 0;
    let mut numbers = || {
        asked += ROUND;
        (asked..asked + ROUND).map(|n| scatter(n) % people).collect::<Vec<u64>>()
    };
    let position = best_ns(ROUND, &mut numbers, |numbers| {
        for number in numbers {
            let position = state.position(Ticket::new(0, number));
            assert_eq!(black_box(position), Some(number + 1), "nobody has left yet");
        }
    });
    let look = best_ns(ROUND, &mut numbers, |numbers| {
        for number in numbers {
            let view = state.look(at, &presented(number));
            assert!(black_box(view).is_ok(), "everybody is known");
        }
    });
    vec![
        ns("position_ns", position),
        ns("look_ns", look),
        Measure::new("board_publish_us", publish / 1e3, "us"),
        Measure::new("public_board_us", public / 1e3, "us"),
        Measure::new("public_board_json_bytes", public_bytes as f64, "bytes"),
    ]
}

/// Beats, and the sweep that looks at everybody.
fn liveness(state: &State, people: u64) -> Vec<Measure> {
    let opened = state.last_at();
    let liveness = Liveness::open(state, opened);
    let later = |seconds: u64| Timestamp(opened.0 + seconds * 1_000);
    let mut beaten = 0;
    let numbers = || {
        beaten += ROUND;
        (beaten..beaten + ROUND).map(|n| scatter(n) % people).collect::<Vec<u64>>()
    };
    let beat = best_ns(ROUND, numbers, |numbers| {
        for number in numbers {
            liveness.beat(Ticket::new(0, number), later(1));
        }
    });
    let issued = state.issued(LaneId(0));
    for number in (0..issued).filter(|number| number % SILENT_EVERY != 0) {
        liveness.beat(Ticket::new(0, number), later(100));
    }
    let silent = issued.div_ceil(SILENT_EVERY) as usize;
    let sweep = best_ns(
        1,
        || (),
        |()| {
            let found =
                liveness.silent(state, LaneId(0), later(200), Millis::from_secs(120), usize::MAX);
            assert_eq!(black_box(found).len(), silent, "the sweep finds the silent, and only them");
        },
    );
    vec![ns("heartbeat_ns", beat), Measure::new("sweep_ms", sweep / 1e6, "ms")]
}

fn snapshot(state: &State) -> Vec<Measure> {
    let mut bytes = 0;
    let took = best_ns(
        1,
        || (),
        |()| {
            bytes = state.snapshot().map(|part| black_box(part).len()).sum::<usize>();
        },
    );
    vec![
        Measure::new("snapshot_ms", took / 1e6, "ms"),
        Measure::new("snapshot_mb", bytes as f64 / 1e6, "MB"),
    ]
}

/// Leaving from anywhere in the line: with the room's memory to itself, and right after a board
/// was published, when the first write to each piece of memory copies it.
fn leaving(house: &mut House, people: u64) -> Vec<Measure> {
    let round = 50_000.min(people / 20);
    let at = house.room.state().last_at();
    let mut leavers = scattered(people);
    let mut prepare = || -> Vec<_> {
        let next = leavers.by_ref().take(round as usize);
        next.map(|number| waitroom_core::Command::Leave(presented(number))).collect()
    };
    let alone = best_ns(round, &mut prepare, |commands| {
        commands.iter().for_each(|command| house.must(at, command));
    });
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let commands = prepare();
        let board = Board::new(house.room.state().clone(), 1, at);
        let began = thread_cpu();
        commands.iter().for_each(|command| house.must(at, command));
        best = best.min((thread_cpu() - began).as_nanos() as f64 / round as f64);
        drop(board);
    }
    vec![ns("leave_ns", alone), ns("leave_after_publish_ns", best)]
}

fn admitting(house: &mut House) -> Measure {
    let at = house.room.state().last_at();
    let before = house.room.state().counts().admitted;
    let command = admit(ADMITTED);
    let best = best_ns(1, || (), |()| house.must(at, &command));
    let admitted = house.room.state().counts().admitted - before;
    assert_eq!(admitted, ADMITTED * ROUNDS as u64, "each round lets a thousand in");
    Measure::new("admit_1000_us", best / 1e3, "us")
}
