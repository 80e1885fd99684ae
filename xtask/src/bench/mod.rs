//! `bench NAME`: measures, prints a table for people, writes JSON for scripts.
//!
//! Lives here: the frame that every benchmark shares, the peers they are held against, and
//! one file per benchmark. `docs/benchmarks.md` says what each figure means.
//! Stays out: an exit code for a missed figure, unless asked for (`--strict`). The table says what
//! was expected; who reads it judges.
//! To add a benchmark: a file with `fn run(Scale) -> Outcome<Vec<Figure>>`, a variant of
//! [`Name`] and its line in `docs/benchmarks.md`.

pub mod classic;
pub mod cluster;
pub mod cpu;
pub mod data;
pub mod disk;
pub mod events;
pub mod gate;
pub mod http;
pub mod journal;
pub mod kill;
pub mod live;
pub mod load;
pub mod overload;
pub mod part;
pub mod process;
pub mod queue;
pub mod redis;
pub mod report;
pub mod rooms;
pub mod serving;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use self::report::Report;
use crate::failure::{Failure, OrFail, Outcome};

/// Measure, print a table, and with --json write the figures to a file.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench")]
struct Args {
    name: Name,
    /// Also write the figures to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Smaller sizes, done within a minute.
    #[arg(long)]
    quick: bool,
    /// Only these groups of figures, separated by commas (http: status, heartbeat, board,
    /// grpc_status, join, join_with_key; events: minute).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Fail when a figure is not what was expected of it.
    #[arg(long)]
    strict: bool,
    /// How often the power is cut (kill-server).
    #[arg(long, default_value_t = 100)]
    cycles: u64,
    /// One part of the benchmark, in a process of its own: words, figures as JSON on stdout.
    #[arg(long, hide = true)]
    part: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Name {
    /// The peer by itself: the classic waiting room on a real redis-server.
    Classic,
    /// The disk by itself: how fast a write of 4 KiB is made durable.
    Disk,
    /// The queue in memory: operations, bytes, stalls, draw, recovery.
    Queue,
    /// One billion tickets through a room with 100,000 live ones; takes minutes.
    Billion,
    /// The engine with the file store: durable joins and their acknowledgement.
    Journal,
    /// Engines on one Redis beside the classic design: its CPU time, its memory, a takeover.
    Cluster,
    /// The server over HTTP: status, heartbeat, board and join beside bare servers.
    Http,
    /// The gate before a site, beside nginx as a plain reverse proxy.
    Gate,
    /// A log through each sink of the outbox, beside the plain client; joins while the bus is away.
    Events,
    /// The server with thousands of live channels.
    Live,
    /// The server with ten times more people than it can take; takes minutes.
    Overload,
    /// The server killed again and again under a crowd, and the promises checked; takes minutes.
    KillServer,
}

/// How much to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    Full,
    Quick,
}

/// Parses the command line, measures, and says in one line what went wrong if it did.
pub fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Outcome {
    let scale = if args.quick { Scale::Quick } else { Scale::Full };
    if cfg!(debug_assertions) && args.part.is_none() {
        eprintln!("note: not a release build; times mean little. Use `cargo xtask bench`.");
    }
    if args.quick && args.part.is_none() {
        eprintln!("note: --quick: smaller sizes than the figures' names and documents speak of");
    }
    if let Some(part) = &args.part {
        return match args.name {
            Name::Queue => part::answer(queue::part(part)?),
            Name::Cluster => cluster::part(part),
            Name::Http => http::peer(part),
            Name::Live => live::part(part),
            Name::Overload => overload::part(part),
            _ => Err(Failure::new("this benchmark has no parts")),
        };
    }
    let (name, figures) = match args.name {
        Name::Classic => ("classic", classic::run(scale)?),
        Name::Disk => ("disk", disk::run(scale)?),
        Name::Queue => ("queue", queue::run(scale)?),
        Name::Billion => ("billion", queue::billion()?),
        Name::Journal => ("journal", journal::run(scale)?),
        Name::Cluster => ("cluster", cluster::run(scale)?),
        Name::KillServer => ("kill-server", kill::run(args.cycles)?),
        Name::Overload => ("overload", overload::run(scale)?),
        Name::Events => ("events", events::run(scale, &args.only)?),
        Name::Gate => ("gate", gate::run(scale)?),
        Name::Live => ("live", live::run(scale)?),
        Name::Http => ("http", http::run(scale, &http::Only(args.only.clone()))?),
    };
    let report = Report::new(name, scale, figures);
    match &args.json {
        None => print!("{}", report.table()),
        Some(file) => {
            eprint!("{}", report.table());
            std::fs::write(file, report.json()).or_fail(|| format!("write {}", file.display()))?;
        }
    }
    match report.missed()[..] {
        [_, ..] if args.strict => {
            Err(Failure::new(format!("missed: {}", report.missed().join(", "))))
        }
        _ => Ok(()),
    }
}
