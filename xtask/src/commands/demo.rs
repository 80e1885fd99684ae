//! `cargo xtask demo`: builds everything and shows it. The first command of the README.
//!
//! The console needs Node to be built: it is installed where that can be done; where it cannot,
//! that is said and the demo goes on without the console.

use std::os::unix::process::CommandExt;
use std::process::Stdio;

use super::{console, setup};
use crate::failure::{Failure, Outcome};
use crate::shell::Run;

/// Which build the demo is shown with, where it is not the release.
pub const PROFILE: &str = "WAITROOM_DEMO_PROFILE";

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Handed to `waitroom demo`, such as --fast or --visitors 10k; docs/demo.md lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub fn run(args: &Args) -> Outcome {
    if let Err(failure) = console::run() {
        eprintln!("demo: the operator console cannot be built here: {failure}");
        eprintln!("demo: everything else works without it; /console/ will say how to have it");
    }
    // What the binary is built with besides Rust and a C compiler.
    if let Err(failure) = setup::only(&[
        "make",
        "c++",
        "/usr/include/zlib.h",
        "/usr/include/openssl/ssl.h",
        "pkg-config",
    ]) {
        eprintln!("demo: {failure}");
    }
    eprintln!("demo: the first build takes some minutes");
    let run = match std::env::var(PROFILE) {
        // CI has everything built in the profile of its tests by then, and a second build of all
        // would be a fifth of its time. To name the whole workspace keeps what was built.
        Ok(profile) => {
            let build = "cargo build --quiet --locked --workspace --bin waitroom --profile";
            Run::new(&format!("{build} {profile}")).run()?;
            let folder = if profile == "dev" { "debug" } else { &profile };
            Run::new(&format!("target/{folder}/waitroom demo"))
        }
        Err(_) => Run::new("cargo run --quiet --release --locked --bin waitroom -- demo"),
    };
    let run = run.args(args.rest.iter().cloned());
    eprintln!("$ {}", run.line());
    // In our own place, so that Ctrl-C ends the demo and nobody else waits for it.
    let failed = run.command().stdin(Stdio::inherit()).exec();
    Err(Failure::new(format!("start `{}`: {failed}", run.line())))
}
