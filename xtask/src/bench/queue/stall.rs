//! The longest time that one operation keeps a room's writer busy while its room grows.
//!
//! Everybody has an identity, so every table grows; boards are published on the way, so memory
//! is shared and must be copied; some leave, some are let in, batches are encoded, and in the end
//! the sale closes over all who wait. Each operation of the engine's writer is timed by its
//! thread's CPU clock, which stands still while others run. What remains of the neighbours
//! (interrupts, a core taken away by the hypervisor) is told apart by doing the same in three
//! fresh processes: an operation is as slow as it was in the quickest of them.
//! The beginning of an epoch comes before anybody is served; it has a figure of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use waitroom_core::{Actor, Board, Command, Epoch, FinishCause, Reply, Room, Timestamp};
use waitroom_engine::writer::Writer;

use super::super::cpu::thread_cpu;
use super::super::part::Part;
use super::super::report::Measure;
use super::crowd::{BEGIN, Crowd, admit, after, configure, presented, settings};
use crate::failure::{Failure, OrFail, Outcome};

/// Shorter ones are not remembered.
const NOTEWORTHY: Duration = Duration::from_micros(200);
const RUNS: usize = 3;

/// Joins between two of each: as at some 500,000 joins a second.
const LEAVE_EVERY: u64 = 64;
const BATCH_EVERY: u64 = 8_192;
const BOARD_EVERY: u64 = 100_000;
const ADMIT_EVERY: u64 = 250_000;

/// What the writer does before it serves anybody: it stalls nobody, and is told apart.
const OPENING: &str = "open an epoch";

/// The longest stall over three runs, and what it was.
#[derive(Debug)]
pub struct Longest {
    pub ms: f64,
    pub what: String,
    /// Beginning an epoch over everybody inside.
    pub opening_ms: f64,
}

/// Compares three runs, each in its own process.
pub fn longest(people: u64) -> Outcome<Longest> {
    let mut quickest: Option<BTreeMap<String, f64>> = None;
    for _ in 0..RUNS {
        let part = Part::run("queue", &format!("stall {people}"))?;
        let run = part.measures.into_iter().map(|measure| (measure.name, measure.value));
        quickest = Some(match quickest {
            None => run.collect(),
            // What one run did not find noteworthy was short.
            Some(before) => {
                let both = run.filter_map(|(name, ms)| Some((before.get(&name)?.min(ms), name)));
                both.map(|(ms, name)| (name, ms)).collect()
            }
        });
    }
    let (opening, serving): (Vec<_>, Vec<_>) =
        quickest.into_iter().flatten().partition(|(name, _)| name.starts_with(OPENING));
    let short = || ("nothing noteworthy".to_owned(), NOTEWORTHY.as_secs_f64() * 1e3);
    let slowest = |all: Vec<(String, f64)>| {
        all.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or_else(short)
    };
    let (what, ms) = slowest(serving);
    let (_, opening_ms) = slowest(opening);
    Ok(Longest { ms, what, opening_ms })
}

/// One run. The measures are the noteworthy operations, each under its index.
pub fn measure(people: u64) -> Outcome<Part> {
    let mut run = Run::open()?;
    let mut board = None;
    for n in 0..people {
        run.apply("join", after(n), &Crowd::Identity.join(n))?;
        if n % LEAVE_EVERY == LEAVE_EVERY - 1 {
            // From the middle of all who ever joined; the front is left to the admissions.
            run.apply("leave", after(n), &Command::Leave(presented(n / 2 + n / 4)))?;
        }
        if n % BATCH_EVERY == BATCH_EVERY - 1 {
            run.writer.cut();
            run.done("encode a batch");
        }
        if n % BOARD_EVERY == BOARD_EVERY - 1 {
            // The old board goes when the new one comes; in the engine the writer may be the one
            // who lets it go.
            board = Some(Arc::new(Board::new(run.writer.state().clone(), n, after(n))));
            run.done("publish a board");
        }
        if n % ADMIT_EVERY == ADMIT_EVERY - 1 {
            run.apply("admit 1,000", after(n), &admit(1_000))?;
        }
    }
    let (cause, reason, by) = (FinishCause::SoldOut, "sold out".into(), Actor::new("bench"));
    let at = after(people);
    run.apply(OPENING, at, &Command::Open { epoch: Epoch(2) })?;
    run.apply("close the sale", at, &Command::Finish { cause, reason, by })?;
    drop(board);
    let noteworthy = run.noteworthy.iter();
    let measures = noteworthy.map(|(index, (what, took))| {
        Measure::new(&format!("{what}, operation {index}"), took.as_secs_f64() * 1e3, "ms")
    });
    Ok(Part::of(measures.collect()))
}

struct Run {
    writer: Writer,
    /// Which operation is next, and when it began.
    index: u64,
    began: Duration,
    noteworthy: BTreeMap<u64, (&'static str, Duration)>,
}

impl Run {
    fn open() -> Outcome<Self> {
        let mut writer = Writer::open(Room::new(), 0, Epoch(1), BEGIN);
        answered(writer.apply(BEGIN, &configure(settings())))?;
        Ok(Self { writer, index: 0, began: thread_cpu(), noteworthy: BTreeMap::new() })
    }

    fn apply(&mut self, what: &'static str, at: Timestamp, command: &Command) -> Outcome {
        let reply = self.writer.apply(at, command);
        self.done(what);
        answered(reply).or_fail(|| what)
    }

    fn done(&mut self, what: &'static str) {
        let now = thread_cpu();
        let took = now - self.began;
        if took > NOTEWORTHY {
            self.noteworthy.insert(self.index, (what, took));
        }
        self.index += 1;
        self.began = now;
    }
}

fn answered(reply: Reply) -> Outcome {
    match reply {
        Reply::Refused(refusal) => Err(Failure::new(format!("it was refused: {refusal:?}"))),
        _ => Ok(()),
    }
}
