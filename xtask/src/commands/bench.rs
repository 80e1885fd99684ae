//! `cargo xtask bench`: builds the benchmark binary in the release profile and hands over to it.
//!
//! Which names there are, and what their figures mean, only `src/bench/` knows.

use std::path::PathBuf;

use crate::failure::{OrFail, Outcome};
use crate::shell::Run;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which benchmark; `help` lists them.
    name: String,
    /// Also write the figures to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Smaller sizes, done within a minute. Figures say so.
    #[arg(long)]
    quick: bool,
}

pub fn run(args: &Args) -> Outcome {
    let mut run = command();
    if args.name == "help" {
        return run.arg("--help").run();
    }
    run = run.arg(&args.name);
    if let Some(file) = &args.json {
        // Our caller's folder decides what a relative name means; the benchmark runs in the root.
        let file = std::path::absolute(file).or_fail(|| format!("find {}", file.display()))?;
        run = run.arg("--json").arg(file.to_string_lossy());
    }
    if args.quick {
        run = run.arg("--quick");
    }
    run.run()
}

/// The benchmark binary, built if need be.
pub fn command() -> Run {
    Run::new("cargo run --quiet --release -p xtask --features bench --bin bench --")
}
