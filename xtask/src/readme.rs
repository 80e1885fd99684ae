//! The two commands of the README: one runs the main job, one runs all tests.
//!
//! They are read from the README itself, in that order, from its fenced `sh` blocks. CI runs
//! the first as it stands there (with a smaller crowd), so the README cannot rot.

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

    /// The main job with `visitors` people instead of the crowd the README shows.
    pub fn main_job_with(&self, visitors: u64) -> Outcome<String> {
        const FLAG: &str = "--visitors";
        let mut words: Vec<String> = self.main_job.split_whitespace().map(Into::into).collect();
        let Some(at) = words.iter().position(|word| word == FLAG) else {
            return Err(Failure::new(format!("README.md: the main job has no {FLAG} to shrink")));
        };
        match words.get_mut(at + 1) {
            Some(number) => *number = visitors.to_string(),
            None => return Err(Failure::new(format!("README.md: {FLAG} has no number behind it"))),
        }
        Ok(words.join(" "))
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

    const README: &str = "# x\n```sh\n# a sale\nrun rehearse --visitors 20M --seed 1\n```\n\
        ```text\noutput\n```\nand\n```sh\n.ci/run\n```\n";

    #[test]
    fn the_first_is_the_main_job_and_the_second_runs_the_tests() {
        let commands = Commands::read(README).expect("both are there");
        assert_eq!(commands.main_job, "run rehearse --visitors 20M --seed 1");
        assert_eq!(commands.all_tests, ".ci/run");
    }

    #[test]
    fn the_crowd_is_all_that_changes_in_the_smaller_job() {
        let commands = Commands::read(README).expect("both are there");
        let smaller = commands.main_job_with(200_000).expect("it has a crowd");
        assert_eq!(smaller, "run rehearse --visitors 200000 --seed 1");
    }

    #[test]
    fn a_readme_with_one_command_is_refused() {
        assert!(Commands::read("```sh\n.ci/run\n```").is_err());
    }
}
