//! Cargo tools that a chore needs: found on the machine, or built once into `target/tools`.

use std::path::PathBuf;

use crate::failure::Outcome;
use crate::shell::{Run, find_program, root};

#[derive(Debug, Clone, Copy)]
pub struct Tool {
    pub name: &'static str,
    /// Fixed, so that a new release of a tool cannot turn CI red on its own.
    pub version: &'static str,
    /// Without optimisation where the tool's work is small: it builds in a fraction of the time.
    pub profile: Profile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    Debug,
    Release,
}

impl Tool {
    /// The path of the tool, building it if it is neither on the search path nor built yet.
    pub fn path(&self) -> Outcome<PathBuf> {
        let ours = root().join("target/tools/bin").join(self.name);
        if ours.is_file() {
            return Ok(ours);
        }
        if let Some(installed) = find_program(self.name) {
            return Ok(installed);
        }
        eprintln!("{} is not installed: building it into target/tools", self.name);
        let install = Run::new("cargo install --locked --root target/tools");
        // Its own build folder is kept apart from ours only while it builds: a tool's objects
        // are of no use afterwards and weigh more than the tool.
        let install = install.args(["--target-dir", BUILD, self.name, "--version", self.version]);
        match self.profile {
            // Nobody will debug it, and writing debug information is an eighth of the work.
            Profile::Debug => install.arg("--debug").env("CARGO_PROFILE_DEV_DEBUG", "false"),
            Profile::Release => install,
        }
        .run()?;
        if let Err(error) = std::fs::remove_dir_all(root().join(BUILD)) {
            eprintln!("note: {BUILD} could not be removed: {error}");
        }
        Ok(ours)
    }
}

const BUILD: &str = "target/tools-build";
