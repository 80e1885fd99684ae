//! The chores and their command lines, one file each.

mod bench;
mod ci;
mod console;
mod demo;
mod deny;
mod long;
mod screenshots;
mod setup;
mod sim;
mod tidy;
mod tool;

use clap::{Parser, Subcommand};

use crate::failure::Outcome;

/// The chores of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true)]
pub struct Chores {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Build everything and show it: a shop, a waiting room, a crowd, bots, the console.
    Demo(demo::Args),
    /// Install what the tests and benchmarks need on this machine, if it is missing.
    Setup,
    /// Run what CI runs, step by step, and print the time of each.
    Ci(ci::Args),
    /// Check the rules about the tree that no compiler checks.
    Tidy,
    /// Build the operator console, so that the binary can carry it; installs Node if it can.
    Console,
    /// Build a benchmark in the release profile and run it.
    Bench(bench::Args),
    /// Run the simulator.
    Sim(sim::Args),
    /// Run a long job and keep its result in results/, with commit and machine.
    Long(long::Args),
    /// Write pictures of the waiting page in every state, of the console and of the demo.
    Screenshots(screenshots::Args),
}

impl Chores {
    pub fn run(self) -> Outcome {
        match self.chore {
            Chore::Demo(args) => demo::run(&args),
            Chore::Setup => setup::run(),
            Chore::Ci(args) => ci::run(&args),
            Chore::Tidy => tidy::run(),
            Chore::Console => console::run(),
            Chore::Bench(args) => bench::run(&args),
            Chore::Sim(args) => sim::run(&args),
            Chore::Long(args) => long::run(&args),
            Chore::Screenshots(args) => screenshots::run(&args),
        }
    }
}
