//! The one binary: reads the command line and hands over.
//!
//! One file per command. What they share: `failure.rs` (how they fail), `out.rs` (where results
//! go), `data.rs` (the data folder). To add a command: a file, a variant, an arm, a section in
//! `docs/commands.md`.

mod admit;
mod audit;
mod backup;
mod check;
mod check_history;
mod client;
mod cluster;
mod completions;
mod config;
mod crowd;
mod data;
mod demo;
mod events;
mod export;
mod exported;
mod failure;
mod import;
mod key;
mod log;
mod out;
mod page;
mod pause;
mod place;
mod protect;
mod rebuild;
mod rehearse;
mod repair;
mod report;
mod restore;
mod resume;
mod room;
mod rooms;
mod serve;
mod subcommands;
mod telemetry;
mod ticket;
mod top;
mod verify;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use failure::Exit;
use out::finish;

/// Requests and live connections allocate and free small pieces on every thread; this allocator is
/// faster at that than the system's and gives memory back after a rush (docs/adr/0006).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A virtual waiting room: a place in line for everyone, in at the pace the site can bear.
#[derive(Debug, Parser)]
#[command(name = "waitroom", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(Box<demo::Demo>),
    /// Runs a whole sale under virtual time and tells how it went.
    Rehearse(Box<rehearse::Rehearse>),
    Protect(Box<protect::Protect>),
    Serve(Box<serve::Serve>),
    Verify(verify::Verify),
    Rooms(rooms::Rooms),
    Log(log::Log),
    Backup(backup::Backup),
    Restore(restore::Restore),
    Export(export::Export),
    Import(import::Import),
    Rebuild(rebuild::Rebuild),
    Repair(repair::Repair),
    Report(report::Report),
    Check(check::Check),
    Crowd(Box<crowd::Crowd>),
    CheckHistory(check_history::CheckHistory),
    Room(room::Room),
    Admit(admit::Admit),
    Pause(pause::Pause),
    Resume(resume::Resume),
    Ticket(ticket::Ticket),
    Key(key::Key),
    Audit(audit::Audit),
    Events(events::Events),
    Cluster(cluster::Cluster),
    Top(top::Top),
    Page(page::Page),
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
        Command::Demo(it) => finish(it.json, |out| it.run(out)),
        Command::Rehearse(it) => it.run(),
        Command::Protect(it) => finish(false, |_| it.run()),
        Command::Serve(it) => finish(false, |_| it.run()),
        Command::Verify(it) => finish(it.json, |out| it.run(out)),
        Command::Rooms(it) => finish(it.json, |out| it.run(out)),
        Command::Log(it) => finish(it.json, |out| it.run(out)),
        Command::Backup(it) => finish(it.json, |out| it.run(out)),
        Command::Restore(it) => finish(it.json, |out| it.run(out)),
        Command::Export(it) => finish(it.json, |out| it.run(out)),
        Command::Import(it) => finish(it.json, |out| it.run(out)),
        Command::Rebuild(it) => finish(it.json, |out| it.run(out)),
        Command::Repair(it) => finish(it.json, |out| it.run(out)),
        Command::Report(it) => finish(it.json, |out| it.run(out)),
        Command::Crowd(it) => finish(false, |out| it.run(out)),
        Command::CheckHistory(it) => finish(it.json, |out| it.run(out)),
        Command::Check(it) => finish(it.json, |out| it.run(out)),
        Command::Room(it) => finish(it.json(), |out| it.run(out)),
        Command::Admit(it) => finish(it.to.json, |out| it.run(out)),
        Command::Pause(it) => finish(it.to.json, |out| it.run(out)),
        Command::Resume(it) => finish(it.to.json, |out| it.run(out)),
        Command::Ticket(it) => finish(it.json(), |out| it.run(out)),
        Command::Key(it) => finish(it.json(), |out| it.run(out)),
        Command::Audit(it) => finish(it.json(), |out| it.run(out)),
        Command::Events(it) => finish(it.json(), |out| it.run(out)),
        Command::Cluster(it) => finish(it.to.json, |out| it.run(out)),
        Command::Page(it) => finish(it.json(), |out| it.run(out)),
        Command::Top(it) => finish(it.to.json, |out| it.run(out)),
        Command::Completions(it) => it.run(Cli::command()),
    }
}
