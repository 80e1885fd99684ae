//! Running other programs: said aloud first, bounded in time where it matters.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::failure::{Failure, OrFail, Outcome};

/// The root of the repository: the folder above this package.
///
/// Known when we are compiled, which is right: `cargo xtask` always builds the copy of the
/// tree that it is called in.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is a folder of the repository")
        .to_owned()
}

/// A program to run in the root of the repository.
#[derive(Debug, Clone)]
pub struct Run {
    words: Vec<String>,
    limit: Option<Duration>,
    env: Vec<(String, String)>,
}

impl Run {
    /// `line` is split at blanks; what may hold a blank goes through [`Run::arg`].
    pub fn new(line: &str) -> Self {
        Self { words: line.split_whitespace().map(Into::into).collect(), limit: None, env: vec![] }
    }

    pub fn arg(mut self, word: impl Into<String>) -> Self {
        self.words.push(word.into());
        self
    }

    pub fn args(mut self, words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.words.extend(words.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// Ends the program and all it started once `limit` has passed.
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The line as a person would type it.
    pub fn line(&self) -> String {
        self.words.join(" ")
    }

    /// Runs with our own stdout and stderr; anything but exit code 0 is a failure.
    pub fn run(&self) -> Outcome {
        eprintln!("$ {}", self.line());
        let status = self.command().status().or_fail(|| format!("start `{}`", self.line()))?;
        match status.code() {
            Some(0) => Ok(()),
            Some(TIMEOUT_EXIT) if self.limit.is_some() => Err(Failure::new(format!(
                "`{}` was stopped: it took longer than {:?}",
                self.line(),
                self.limit.expect("the guard has just seen a limit")
            ))),
            _ => Err(Failure::new(format!("`{}` ended with {status}", self.line()))),
        }
    }

    /// Runs quietly and hands back what was printed on stdout.
    pub fn read(&self) -> Outcome<String> {
        let output = self.command().output().or_fail(|| format!("start `{}`", self.line()))?;
        if !output.status.success() {
            return Err(Failure::new(format!(
                "`{}` ended with {}: {}",
                self.line(),
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            )));
        }
        String::from_utf8(output.stdout).or_fail(|| format!("read the output of `{}`", self.line()))
    }

    /// The prepared command, for callers that need the child itself.
    pub fn command(&self) -> Command {
        let mut command = match self.limit {
            // coreutils' `timeout` puts itself in a process group and ends the whole group:
            // ending only cargo would leave the test it runs behind. A group of its own does
            // not hear Ctrl-C, so util-linux' `setpriv` has it ended when we end.
            Some(limit) => {
                let mut command = Command::new("setpriv");
                command.args(["--pdeathsig", "TERM", "timeout", "--kill-after=10"]);
                command.arg(limit.as_secs().to_string());
                command.args(&self.words);
                command
            }
            None => {
                let mut command = Command::new(&self.words[0]);
                command.args(&self.words[1..]);
                command
            }
        };
        command.current_dir(root()).stdin(std::process::Stdio::null());
        command.envs(self.env.iter().map(|(key, value)| (key, value)));
        command
    }
}

/// What coreutils' `timeout` exits with when it had to end its program.
const TIMEOUT_EXIT: i32 = 124;

/// Where `program` is found on the search path, if it is.
pub fn find_program(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program.as_ref()))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_overruns_is_ended_and_the_failure_names_it() {
        let failure = Run::new("tail -f /dev/null")
            .within(Duration::from_secs(1))
            .run()
            .expect_err("tail -f never ends by itself");
        assert!(failure.to_string().contains("tail -f /dev/null"), "{failure}");
        assert!(failure.to_string().contains("longer than 1s"), "{failure}");
    }

    #[test]
    fn a_failing_program_is_a_failure_with_its_line() {
        let failure = Run::new("false").run().expect_err("false fails");
        assert!(failure.to_string().starts_with("`false` ended with"), "{failure}");
    }

    #[test]
    fn a_missing_program_is_a_failure_that_says_what_was_tried() {
        let failure = Run::new("no-such-program --flag").run().expect_err("it does not exist");
        assert!(failure.to_string().contains("start `no-such-program --flag`"), "{failure}");
    }
}
