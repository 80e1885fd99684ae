//! `cargo xtask ci`: what `.ci/run` runs, and nothing that `.ci/run` does not.
//!
//! A list of named steps, cheap ones first. The first that fails ends the run with its name;
//! the table of times is printed either way, so a slow step is seen before it hurts.
//! Each step is bounded: a machine of CI must never wait for a test that waits for nothing.
//! To add a step: a line in [`STEPS`].

use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;

use super::{console, demo, deny, setup, sim, tidy};
use crate::failure::{Failure, Outcome};
use crate::readme::Commands;
use crate::shell::Run;
use crate::table::{Lean, render};
use crate::tree::Tree;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these steps, separated by commas.
    #[arg(long, value_delimiter = ',', value_parser = step_names())]
    only: Vec<String>,
    /// All but these steps.
    #[arg(long, value_delimiter = ',', value_parser = step_names(), conflicts_with = "only")]
    skip: Vec<String>,
    /// Print the steps and what they are for, run nothing.
    #[arg(long)]
    list: bool,
}

struct Step {
    name: &'static str,
    about: &'static str,
    run: fn() -> Outcome,
}

const STEPS: &[Step] = &[
    Step { name: "setup", about: "what the tests need is installed", run: setup::run },
    Step { name: "fmt", about: "the code is formatted", run: fmt },
    Step { name: "tidy", about: "the rules that no compiler checks", run: tidy::run },
    Step { name: "console", about: "the operator console is built", run: console::run },
    Step { name: "clippy", about: "no lint complains", run: clippy },
    Step { name: "deny", about: "licences, sources and bans of what we depend on", run: deny::run },
    Step { name: "build", about: "everything builds", run: build },
    Step { name: "test", about: "every test", run: test },
    Step { name: "sim", about: "2,000 seeds within five minutes", run: simulate },
    Step { name: "bench", about: "the benchmarks run, quickly", run: bench },
    Step {
        name: "kill",
        about: "the server is killed under a crowd and keeps its word",
        run: kill,
    },
    Step { name: "demo", about: "the README's main command, told within a minute", run: demo_fast },
];

/// Seeds per run of CI; more are a long job.
const SIM_SEEDS: u64 = 2_000;
/// The promise is about running; building comes before, in a step of its own.
const SIM_LIMIT: Duration = Duration::from_secs(5 * 60);
/// Building all from nothing takes a few minutes on two cores; four times that is a hang.
const BUILD_LIMIT: Duration = Duration::from_secs(20 * 60);
/// Real browsers, proxies and runtimes take their time, one after the other.
const TEST_LIMIT: Duration = Duration::from_secs(25 * 60);
/// A quick benchmark takes at most a minute, after a release build.
const BENCH_LIMIT: Duration = Duration::from_secs(10 * 60);
/// The console once more, then a minute.
const DEMO_LIMIT: Duration = Duration::from_secs(10 * 60);
/// How often the server is killed; more is a long job.
const KILL_CYCLES: u64 = 3;
const KILL_LIMIT: Duration = Duration::from_secs(5 * 60);
/// The benchmarks that show that frame, peers and all that they measure still work.
const BENCH_SMOKE: [&str; 4] = ["queue", "journal", "http", "live"];

pub fn run(args: &Args) -> Outcome {
    let chosen: Vec<&Step> = STEPS.iter().filter(|step| is_chosen(args, step.name)).collect();
    if args.list {
        let rows: Vec<Vec<String>> =
            chosen.iter().map(|step| vec![step.name.into(), step.about.into()]).collect();
        print!("{}", render(&[Lean::Left, Lean::Left], &rows));
        return Ok(());
    }
    let mut rows = vec![];
    let mut failed = None;
    let began = Instant::now();
    for step in chosen {
        eprintln!("\n== {}: {}", step.name, step.about);
        let step_began = Instant::now();
        let outcome = (step.run)();
        let word = if outcome.is_ok() { "ok" } else { "FAILED" };
        rows.push(vec![step.name.into(), seconds(step_began.elapsed()), word.into()]);
        if let Err(failure) = outcome {
            failed = Some((step.name, failure));
            break;
        }
    }
    rows.push(vec!["all".into(), seconds(began.elapsed()), String::new()]);
    eprint!("\n{}", render(&[Lean::Left, Lean::Right, Lean::Left], &rows));
    match failed {
        Some((name, failure)) => Err(Failure::new(format!("step {name} failed: {failure}"))),
        None => Ok(()),
    }
}

fn is_chosen(args: &Args, name: &str) -> bool {
    let named = |list: &[String]| list.iter().any(|other| other == name);
    (args.only.is_empty() || named(&args.only)) && !named(&args.skip)
}

fn step_names() -> PossibleValuesParser {
    PossibleValuesParser::new(STEPS.iter().map(|step| step.name))
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn fmt() -> Outcome {
    Run::new("cargo fmt --all --check").run()
}

fn clippy() -> Outcome {
    Run::new("cargo clippy --locked --workspace --all-targets -- -D warnings")
        .within(BUILD_LIMIT)
        .run()
}

fn build() -> Outcome {
    // With all targets, so that the time of the test step is the time of the tests.
    Run::new("cargo build --locked --workspace --all-targets").within(BUILD_LIMIT).run()
}

fn test() -> Outcome {
    Run::new("cargo test --locked --workspace").within(TEST_LIMIT).run()
}

/// What the build step made: another selection of packages would build half of it again.
fn simulate() -> Outcome {
    build()?;
    sim::run_built(SIM_SEEDS).within(SIM_LIMIT).run()
}

/// In the profile of the tests, because all of it is built by then: whether it works is seen here,
/// how fast it is elsewhere.
fn bench() -> Outcome {
    build()?;
    BENCH_SMOKE.into_iter().try_for_each(|name| {
        Run::new("target/debug/bench").arg(name).arg("--quick").within(BENCH_LIMIT).run()
    })
}

fn kill() -> Outcome {
    build()?;
    Run::new("target/debug/bench kill-server --cycles")
        .arg(KILL_CYCLES.to_string())
        .within(KILL_LIMIT)
        .run()
}

fn demo_fast() -> Outcome {
    let tree = Tree::tracked()?;
    let commands = Commands::read(tree.text("README.md").unwrap_or_default())?;
    Run::new(&commands.main_job_fast()).env(demo::PROFILE, "dev").within(DEMO_LIMIT).run()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(only: &[&str], skip: &[&str]) -> Vec<&'static str> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let args = Args { only: owned(only), skip: owned(skip), list: false };
        STEPS.iter().map(|step| step.name).filter(|name| is_chosen(&args, name)).collect()
    }

    #[test]
    fn every_step_runs_unless_told_otherwise() {
        assert_eq!(chosen(&[], &[]).len(), STEPS.len());
    }

    #[test]
    fn steps_can_be_picked_and_left_out() {
        assert_eq!(chosen(&["tidy", "fmt"], &[]), ["fmt", "tidy"]);
        let all_but_one = chosen(&[], &["sim"]);
        assert_eq!(all_but_one.len(), STEPS.len() - 1);
        assert!(!all_but_one.contains(&"sim"));
    }
}
