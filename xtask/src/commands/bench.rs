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
    /// Only these groups of figures, separated by commas.
    #[arg(long)]
    only: Option<String>,
}

pub fn run(args: &Args) -> Outcome {
    build().run()?;
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
    if let Some(only) = &args.only {
        run = run.arg("--only").arg(only);
    }
    run.run()
}

/// Builds the benchmarks and the server that some of them start, in one go: apart, each would
/// have what both depend on built anew with features of its own.
pub fn build() -> Run {
    Run::new("cargo build --quiet --release -p waitroom -p xtask --features xtask/bench --bins")
}

/// The benchmark binary, after [`build`].
pub fn command() -> Run {
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    Run::new("").arg(format!("{target}/release/bench"))
}
