//! `cargo xtask long NAME`: jobs too long for CI. Each leaves a result file behind.
//!
//! To add a job: a line in [`JOBS`].

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Instant;

use clap::builder::PossibleValuesParser;

use super::tool::{Profile, Tool};
use super::{bench, sim};
use crate::failure::{Failure, OrFail, Outcome};
use crate::result_file::ResultFile;
use crate::shell::Run;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which job.
    #[arg(value_parser = PossibleValuesParser::new(JOBS.iter().map(|job| job.name)))]
    name: String,
    /// Only every N-th mutant, beginning with the K-th (from 0): `--shard K/N`. For `mutants`.
    #[arg(long, value_name = "K/N", value_parser = Shard::parse)]
    shard: Option<Shard>,
    /// How often the power is cut (kill-server, 100), a primary of Redis fails (redis, 50), or who
    /// tells of events is killed in each story (events, 300).
    #[arg(long)]
    cycles: Option<u64>,
}

struct Job {
    name: &'static str,
    command: fn(&Args) -> Outcome<Run>,
}

const JOBS: &[Job] = &[
    Job { name: "sim-many", command: |_| Ok(sim::command(SIM_MANY_SEEDS, None)) },
    Job { name: "mutants", command: mutants },
    // A billion tickets through one room: is its memory flat?
    Job { name: "billion", command: billion },
    // The server killed under a crowd: is anything lost that was acknowledged?
    Job { name: "kill-server", command: kill_server },
    // Servers of Redis that fail under load: is anything lost that was acknowledged?
    Job { name: "redis", command: redis },
    // Crowds at three and at five instances, owners that are killed, frozen and cut off.
    Job { name: "cluster", command: cluster },
    // Ten times more people than the server can take, and ten thousand idle sockets.
    Job { name: "overload", command: overload },
    // A bus that is away for a minute: do joins notice, and is what was missed told fast? And
    // hundreds of kills of whoever tells: is everything told, in order?
    Job { name: "events", command: events },
    // Coverage-guided fuzzing of everything that reads hostile bytes, minutes for each target.
    Job { name: "fuzz", command: fuzz },
];

const KILL_CYCLES: u64 = 100;
const REDIS_CYCLES: u64 = 50;
const EVENTS_KILLS: u64 = 300;

/// A sample of the mutants that can be taken again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shard {
    k: u32,
    of: u32,
}

impl Shard {
    fn parse(text: &str) -> Result<Shard, String> {
        let parts =
            text.split_once('/').and_then(|(k, of)| Some((k.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((k, of)) if k < of => Ok(Shard { k, of }),
            _ => Err(format!("{text:?} is no shard; write K/N with K from 0 to N - 1, as in 3/20")),
        }
    }

    /// Round-robin: a slice would be all of one file, and a sample should be of all of them.
    fn args(self) -> [String; 4] {
        ["--shard".into(), self.to_string(), "--sharding".into(), "round-robin".into()]
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.k, self.of)
    }
}

/// Fifty runs of CI.
const SIM_MANY_SEEDS: u64 = 100_000;
/// Enough for the totals and the survivors; a job that prints more keeps it in its own files.
const LAST_LINES_MAX: usize = 200;

/// Minutes for each target, as the corpus stands.
const FUZZ_SECONDS: u64 = 300;

const CARGO_FUZZ: Tool = Tool { name: "cargo-fuzz", version: "0.13.2", profile: Profile::Release };

const CARGO_MUTANTS: Tool =
    Tool { name: "cargo-mutants", version: "27.1.0", profile: Profile::Release };

pub fn run(args: &Args) -> Outcome {
    let job = JOBS.iter().find(|job| job.name == args.name).expect("clap has checked the name");
    if args.shard.is_some() && job.name != "mutants" {
        return Err(Failure::new("only `long mutants` can be run in shards"));
    }
    let command = (job.command)(args)?;
    eprintln!("$ {}", command.line());
    let began = Instant::now();
    let (passed, last_lines) = follow(&command)?;
    let mut result = ResultFile::new(job.name, command.line(), began.elapsed(), passed);
    result.last_lines = last_lines.into();
    let file = result.write()?;
    eprintln!("result: {}", file.display());
    if passed { Ok(()) } else { Err(Failure::new(format!("the long job {} failed", job.name))) }
}

/// Shows what the command prints on stdout while it prints it, and keeps the end of it.
fn follow(command: &Run) -> Outcome<(bool, VecDeque<String>)> {
    let attempt = || format!("run `{}`", command.line());
    let mut child = command.command().stdout(Stdio::piped()).spawn().or_fail(attempt)?;
    let stdout = child.stdout.take().expect("stdout was just piped");
    let mut last_lines = VecDeque::new();
    for line in BufReader::new(stdout).lines() {
        let line = line.or_fail(attempt)?;
        println!("{line}");
        if last_lines.len() == LAST_LINES_MAX {
            last_lines.pop_front();
        }
        last_lines.push_back(line);
    }
    Ok((child.wait().or_fail(attempt)?.success(), last_lines))
}

fn billion(_: &Args) -> Outcome<Run> {
    bench::build().run()?;
    Ok(bench::command().arg("billion"))
}

fn kill_server(args: &Args) -> Outcome<Run> {
    bench::build().run()?;
    let cycles = args.cycles.unwrap_or(KILL_CYCLES);
    Ok(bench::command().arg("kill-server").arg("--cycles").arg(cycles.to_string()))
}

/// The stories of CI, told more often: the store by itself, then one instance under a crowd. The
/// loss of `redis-async` is printed with them.
fn redis(args: &Args) -> Outcome<Run> {
    let cycles = args.cycles.unwrap_or(REDIS_CYCLES).to_string();
    // In one go, so that both are built before the first begins.
    let run = Run::new("cargo test --workspace --test failover --test redis -- --nocapture")
        .args(["--skip", "places_outlive", "--skip", "a_redis_that", "--skip", "killed_twice"]);
    Ok(run.env("WAITROOM_REDIS_CYCLES", &cycles))
}

/// A bus that is away for a minute under load; then the stories of CI told more often: buses that
/// are restarted and that forgot, relays and mirrors killed at random points, on both buses.
fn events(args: &Args) -> Outcome<Run> {
    bench::build().run()?;
    let kills = args.cycles.unwrap_or(EVENTS_KILLS);
    let minute = bench::command().args(["events", "--only", "minute", "--strict"]).line();
    let stories =
        "cargo test --workspace --test outbox -- --nocapture nats:: kafka:: relay:: mirror::";
    let script = format!("set -e; {minute}; WAITROOM_EVENTS_KILLS={kills} {stories}");
    Ok(Run::new("sh").arg("-c").arg(script))
}

fn cluster(_: &Args) -> Outcome<Run> {
    let run = Run::new("cargo test --workspace --test cluster -- --nocapture");
    Ok(run.env("WAITROOM_CLUSTER_SIZES", "3,5"))
}

fn overload(_: &Args) -> Outcome<Run> {
    bench::build().run()?;
    Ok(bench::command().arg("overload").arg("--strict"))
}

/// Needs a nightly toolchain; the kept corpus is tried on any in `cargo test -p waitroom-fuzz`.
fn fuzz(_: &Args) -> Outcome<Run> {
    let tool = CARGO_FUZZ.path()?;
    let script = format!(
        "set -e; cd fuzz/libfuzzer; for target in tokens ids documents proxy frames; do \
         PATH={}:$PATH cargo +nightly fuzz run --fuzz-dir . $target ../corpus/$target -- \
         -max_total_time={FUZZ_SECONDS} -print_final_stats=1; done",
        tool.parent().map(|it| it.display().to_string()).unwrap_or_default()
    );
    Ok(Run::new("sh").arg("-c").arg(script))
}

fn mutants(args: &Args) -> Outcome<Run> {
    let tool = CARGO_MUTANTS.path()?;
    let run = Run::new("").arg(tool.to_string_lossy()).args([
        "mutants",
        "--package",
        "waitroom-core",
        "--timeout",
        "120",
        "--output",
        "results",
    ]);
    Ok(match args.shard {
        Some(shard) => run.args(shard.args()),
        None => run,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_output_is_kept_and_the_exit_code_decides() {
        let (passed, lines) = follow(&Run::new("seq 1 500")).expect("seq runs");
        assert!(passed);
        assert_eq!(lines.len(), LAST_LINES_MAX);
        assert_eq!(lines.back().map(String::as_str), Some("500"));
        let (passed, lines) = follow(&Run::new("false")).expect("false runs");
        assert!(!passed && lines.is_empty());
    }

    #[test]
    fn a_shard_is_one_of_so_many_and_is_passed_on_as_it_was_written() {
        let shard = Shard::parse("3/20").expect("the fourth of twenty");
        assert_eq!(shard.args(), ["--shard", "3/20", "--sharding", "round-robin"]);
        for wrong in ["", "3", "3/", "/20", "20/20", "-1/20", "3/20/1", "a/b"] {
            let why = Shard::parse(wrong).expect_err("no shard");
            assert!(why.contains(wrong) && why.contains("K/N"), "{why}");
        }
    }
}
