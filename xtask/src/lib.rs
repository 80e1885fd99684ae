//! The chores of this repository, each behind a subcommand of `cargo xtask`.
//!
//! Lives here: what `.ci/run` runs, the tidy rules, the doors to simulator and benchmarks.
//! Stays out: anything that ships. No crate of the product may depend on this one.
//! The benchmarks (`bench/`) run as a program of their own, because they want the release
//! profile and a chore such as `tidy` does not.
//! To add a chore: a file in `commands/` and a variant of [`commands::Chore`].

#[cfg(feature = "bench")]
pub mod bench;
pub mod commands;
pub mod commit;
pub mod failure;
pub mod machine;
pub mod readme;
pub mod result_file;
pub mod shell;
pub mod table;
pub mod tidy;
pub mod tree;

use std::process::ExitCode;

use clap::Parser;

/// Parses the command line, does the chore, and says in one line what went wrong if it did.
pub fn run() -> ExitCode {
    let chores = commands::Chores::parse();
    match chores.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
