//! The draw: its order is worked out beside the writer, then swapped in.
//!
//! Everybody joins before the start; the draw closes; while another thread works on the order,
//! ten thousand leave and as many join behind it. Then the reveal swaps the order in, and that
//! one moment is all that the writer feels of it.

use std::time::Instant;

use waitroom_core::settings::DrawSettings;
use waitroom_core::{Actor, Command, Phase, Settings, Timestamp, draw};

use super::super::cpu::thread_cpu;
use super::super::part::Part;
use super::super::report::Measure;
use super::crowd::{Crowd, House, after, presented, scattered, settings};

const SEED: [u8; 32] = [7; 32];
const CHAIN: [u8; 32] = [9; 32];
const LEAVERS: usize = 10_000;

pub fn measure(people: u64) -> Part {
    let mut house = House::open(with_draw(after(people)));
    house.must(
        after(0),
        &Command::CommitDraw {
            commitment: draw::commitment(&SEED),
            sealed_seed: vec![],
            beacon: None,
        },
    );
    for n in 0..people {
        house.must(after(n), &Crowd::Anonymous.join(n));
    }
    let at = after(people);
    house.must(at, &Command::Tick { entropy: [0; 16] });
    assert_eq!(house.room.state().phase(), Phase::Drawing, "the start has come");

    let job = house.room.draw_job(&SEED, &CHAIN, None);
    let worker = std::thread::spawn(move || {
        let (began, cpu) = (Instant::now(), thread_cpu());
        let prepared = job.run();
        (prepared, began.elapsed(), thread_cpu() - cpu)
    });
    for number in scattered(people).take(LEAVERS.min(people as usize / 10)) {
        house.must(at, &Command::Leave(presented(number)));
        house.must(at, &Crowd::Anonymous.join(number));
    }
    let (prepared, wall, cpu) = worker.join().expect("a draw never panics");

    let waiting = house.room.state().waiting();
    let (seed, chain, by) = (SEED, CHAIN, Actor::new("bench"));
    let reveal = Command::Draw { seed, chain, beacon: None, waive_beacon: false, by };
    let began = thread_cpu();
    house.room.offer_draw(prepared);
    house.must(at, &reveal);
    let stall = thread_cpu() - began;
    assert_eq!(house.room.state().phase(), Phase::Running, "everybody has an order");
    assert_eq!(house.room.state().waiting(), waiting, "and nobody was lost");
    let ms =
        |name: &str, time: std::time::Duration| Measure::new(name, time.as_secs_f64() * 1e3, "ms");
    Part::of(vec![ms("draw_ms", cpu), ms("draw_wall_ms", wall), ms("draw_swap_stall_ms", stall)])
}

fn with_draw(starts_at: Timestamp) -> Settings {
    let draw = Some(DrawSettings { beacon: None });
    Settings { starts_at: Some(starts_at), draw, ..settings() }
}
