//! The two commands of the README: one runs the main job, one runs all tests.
//!
//! They are read from the README itself, in that order, from its fenced `sh` blocks. CI runs
//! the first as it stands there (with `--fast`), so the README cannot rot.

use crate::failure::{Failure, Outcome};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commands {
    pub main_job: String,
    pub all_tests: String,
}

impl Commands {
    pub fn read(readme: &str) -> Outcome<Self> {
        let mut lines = shell_lines(readme);
        match (lines.next(), lines.next()) {
            (Some(main_job), Some(all_tests)) => {
                Ok(Self { main_job: main_job.into(), all_tests: all_tests.into() })
            }
            _ => Err(Failure::new(
                "README.md needs two fenced sh blocks: the main job, then all tests",
            )),
        }
    }

    /// The main job as the impatient run it: the whole story within a minute.
    pub fn main_job_fast(&self) -> String {
        format!("{} --fast", self.main_job)
    }
}

/// The lines inside ```` ```sh ```` fences, without blank lines and comments.
pub fn shell_lines(readme: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    readme.lines().map(str::trim).filter(move |line| {
        if line.starts_with("```") {
            inside = *line == "```sh";
            return false;
        }
        inside && !line.is_empty() && !line.starts_with('#')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "# x\n```sh\n# a sale\ncargo xtask demo\n```\n\
        ```text\noutput\n```\nand\n```sh\n.ci/run\n```\n";

    #[test]
    fn the_first_is_the_main_job_and_the_second_runs_the_tests() {
        let commands = Commands::read(README).expect("both are there");
        assert_eq!(commands.main_job, "cargo xtask demo");
        assert_eq!(commands.all_tests, ".ci/run");
    }

    #[test]
    fn the_fast_job_is_the_same_job() {
        let commands = Commands::read(README).expect("both are there");
        assert_eq!(commands.main_job_fast(), "cargo xtask demo --fast");
    }

    #[test]
    fn a_readme_with_one_command_is_refused() {
        assert!(Commands::read("```sh\n.ci/run\n```").is_err());
    }
}
