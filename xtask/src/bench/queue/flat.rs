//! An always-on room: very many tickets go through it, few are alive, memory stays flat.
//!
//! A hundred thousand wait; with every arrival the oldest leaves. A ticket comes each
//! millisecond, so with the shortest memory of ten minutes 600,000 finished ones are remembered,
//! and ticks forget the others, block by block. The engine's writer does it all, liveness and
//! batches included.

use waitroom_core::{Command, Epoch, Reply, Room, Settings, Timestamp};
use waitroom_engine::writer::Writer;

use super::super::cpu::thread_cpu;
use super::super::part::Part;
use super::super::process::resident;
use super::super::report::Measure;
use super::crowd::{BEGIN, Crowd, configure, presented, settings};
use crate::failure::{Failure, Outcome};

const LIVE: u64 = 100_000;
/// The first forgetting comes after live and remembered tickets have filled up; the room's size
/// is taken when that has happened twice over.
const SETTLED: u64 = 2_000_000;
const LOOK_EVERY: u64 = 1_000_000;
const BATCH_EVERY: u64 = 1_024;

pub fn measure(tickets: u64) -> Outcome<Part> {
    let settings = Settings { memory: waitroom_core::KEY_MEMORY, ..settings() };
    let mut writer = Writer::open(Room::new(), 0, Epoch(1), BEGIN);
    apply(&mut writer, BEGIN, &configure(settings))?;
    let cpu = thread_cpu();
    let (mut settled, mut most) = (0, 0);
    for n in 0..tickets {
        let at = Timestamp(BEGIN.0 + n);
        apply(&mut writer, at, &Crowd::Anonymous.join(n))?;
        if let Some(oldest) = n.checked_sub(LIVE) {
            apply(&mut writer, at, &Command::Leave(presented(oldest)))?;
        }
        if n % BATCH_EVERY == 0 {
            while writer.tick(at, || [0; 16]) {}
            writer.cut();
        }
        if n >= SETTLED && n.is_multiple_of(LOOK_EVERY) {
            let now = resident()?;
            if settled == 0 {
                settled = now;
            }
            most = most.max(now);
        }
    }
    let spent = (thread_cpu() - cpu).as_nanos() as f64;
    let waiting = writer.state().waiting();
    if waiting != LIVE {
        return Err(Failure::new(format!("{waiting} wait, not {LIVE}")));
    }
    Ok(Part::of(vec![
        Measure::new("flat_tickets", tickets as f64, "tickets"),
        Measure::new("flat_resident_mb", most as f64 / 1e6, "MB"),
        Measure::new("flat_growth_mb", most.saturating_sub(settled) as f64 / 1e6, "MB"),
        Measure::new("flat_ticket_ns", spent / tickets as f64, "ns"),
    ]))
}

fn apply(writer: &mut Writer, at: Timestamp, command: &Command) -> Outcome {
    match writer.apply(at, command) {
        Reply::Refused(refusal) => {
            Err(Failure::new(format!("{command:?} was refused: {refusal:?}")))
        }
        _ => Ok(()),
    }
}
