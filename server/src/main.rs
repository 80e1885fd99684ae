//! The one binary: reads the command line and hands over.
//!
//! One file per command. What they share: `failure.rs` (how they fail), `out.rs` (where results
//! go), `data.rs` (the data folder). To add a command: a file, a variant, an arm, a section in
//! `docs/commands.md`.

mod backup;
mod completions;
mod data;
mod export;
mod exported;
mod failure;
mod import;
mod log;
mod out;
mod place;
mod rehearse;
mod repair;
mod restore;
mod rooms;
mod verify;
mod when;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use failure::Exit;
use out::finish;

/// A virtual waiting room: a place in line for everyone, in at the pace the site can bear.
#[derive(Debug, Parser)]
#[command(name = "waitroom", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a whole sale under virtual time and tells how it went.
    Rehearse(Box<rehearse::Rehearse>),
    Verify(verify::Verify),
    Rooms(rooms::Rooms),
    Log(log::Log),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Export(export::Export),
    Import(import::Import),
    Repair(repair::Repair),
    Completions(completions::Completions),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(asked) => {
            // Help and version are answers, not mistakes. If even they cannot be printed, the
            // exit code is all that is left.
            let exit = if asked.use_stderr() { Exit::Usage } else { Exit::Fine };
            let _ = asked.print();
            return ExitCode::from(exit as u8);
        }
    };
    match cli.command {
        Command::Rehearse(it) => it.run(),
        Command::Verify(it) => finish(it.json, |out| it.run(out)),
        Command::Rooms(it) => finish(it.json, |out| it.run(out)),
        Command::Log(it) => finish(it.json, |out| it.run(out)),
        Command::Backup(it) => finish(it.json, |out| it.run(out)),
        Command::Restore(it) => finish(it.json, |out| it.run(out)),
        Command::Export(it) => finish(it.json, |out| it.run(out)),
        Command::Import(it) => finish(it.json, |out| it.run(out)),
        Command::Repair(it) => finish(it.json, |out| it.run(out)),
        Command::Completions(it) => it.run(Cli::command()),
    }
}
