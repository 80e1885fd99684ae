//! `waitroom completions`: lets the shell finish our commands and flags.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Command, ValueEnum};
use clap_complete::{Shell, generate};

use crate::failure::Exit;

/// Prints a script that lets the shell complete commands and flags.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  source <(waitroom completions bash)")]
pub struct Completions {
    /// The shell.
    shell: Name,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub fn run(self, mut commands: Command) -> ExitCode {
        let shell = match self.shell {
            Name::Bash => Shell::Bash,
            Name::Zsh => Shell::Zsh,
            Name::Fish => Shell::Fish,
        };
        let mut script = Vec::new();
        generate(shell, &mut commands, "waitroom", &mut script);
        match io::stdout().write_all(&script) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(Exit::Io as u8),
        }
    }
}
