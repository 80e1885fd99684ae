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
}

struct Job {
    name: &'static str,
    command: fn() -> Outcome<Run>,
}

const JOBS: &[Job] = &[
    Job { name: "sim-many", command: || Ok(sim::command(SIM_MANY_SEEDS, None)) },
    Job { name: "mutants", command: mutants },
    // A billion tickets through one room: is its memory flat?
    Job { name: "billion", command: || Ok(bench::command().arg("billion")) },
];

/// Fifty runs of CI.
const SIM_MANY_SEEDS: u64 = 100_000;
/// Enough for the totals and the survivors; a job that prints more keeps it in its own files.
const LAST_LINES_MAX: usize = 200;

const CARGO_MUTANTS: Tool =
    Tool { name: "cargo-mutants", version: "27.1.0", profile: Profile::Release };

pub fn run(args: &Args) -> Outcome {
    let job = JOBS.iter().find(|job| job.name == args.name).expect("clap has checked the name");
    let command = (job.command)()?;
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

fn mutants() -> Outcome<Run> {
    let tool = CARGO_MUTANTS.path()?;
    Ok(Run::new("").arg(tool.to_string_lossy()).args([
        "mutants",
        "--package",
        "waitroom-core",
        "--timeout",
        "120",
        "--output",
        "results",
    ]))
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
}
