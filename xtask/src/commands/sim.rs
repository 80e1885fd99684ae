//! `cargo xtask sim`: the simulator, over many seeds or over one.

use crate::failure::Outcome;
use crate::shell::Run;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// How many seeds to run.
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,
    /// The first seed, or with `--seeds 1` the only one: replays a failure exactly.
    #[arg(long)]
    seed: Option<u64>,
    /// Whole instances, with letters between them, in every seed; otherwise in every fifth.
    #[arg(long)]
    machines: bool,
    /// Runs each seed twice: both runs must be the same, letter for letter.
    #[arg(long)]
    twice: bool,
}

pub fn run(args: &Args) -> Outcome {
    let command = command(args.seeds, args.seed);
    let command = if args.machines { command.arg("--machines") } else { command };
    if args.twice { command.arg("--twice") } else { command }.run()
}

/// In the dev profile, as the tests are: optimised, but with every assertion and every
/// overflow check left on.
pub fn command(seeds: u64, first: Option<u64>) -> Run {
    let run = Run::new("cargo run --quiet -p waitroom-sim --bin sim -- --seeds");
    with(run, seeds, first)
}

/// The same with what is built already.
pub fn run_built(seeds: u64) -> Run {
    with(Run::new("target/debug/sim --seeds"), seeds, None)
}

fn with(run: Run, seeds: u64, first: Option<u64>) -> Run {
    let run = run.arg(seeds.to_string());
    match first {
        Some(seed) => run.arg("--seed").arg(seed.to_string()),
        None => run,
    }
}
