//! How a command ends when it cannot do what it was asked, in words for whoever is awake.
//!
//! Lives here: the exit codes, and [`Failure`], which names the thing, the cause, the effect and
//! the next step. `docs/commands.md` lists the codes for scripts.
//! Stays out: what can go wrong with a data folder; see `data.rs`.
//! To add a code `WR-dddd`: use it where the failure is made, and write `docs/errors/WR-dddd.md`;
//! `cargo xtask tidy` holds both sides to it.

use std::fmt;

use serde_json::{Value, json};

/// How the process ends. The numbers are those of sysexits.h, so that scripts and supervisors
/// read them as they are used to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, and nothing was wrong.
    Fine = 0,
    /// It was looked at and is wrong: a proof, a log, a backup, a journal.
    Wrong = 1,
    /// The command line asks for something that cannot be meant.
    Usage = 64,
    /// What was named is not there: a data folder, a room.
    NotThere = 66,
    /// The server cannot be reached, or cannot do it.
    Unavailable = 69,
    /// Where something was to be written there is something already.
    Taken = 73,
    /// A file could not be read or written.
    Io = 74,
    /// Another process is using it; later it may work.
    Busy = 75,
    /// The key is not known, or may not do this.
    Forbidden = 77,
}

/// What went wrong, what that means, and what to do.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    code: Option<&'static str>,
    said: String,
    means: Option<String>,
    advice: Option<String>,
}

impl Failure {
    pub fn new(exit: Exit, said: impl Into<String>) -> Failure {
        Failure { exit, code: None, said: said.into(), means: None, advice: None }
    }

    /// The code whose page tells more.
    pub fn coded(self, code: &'static str) -> Failure {
        Failure { code: Some(code), ..self }
    }

    pub fn means(self, means: impl Into<String>) -> Failure {
        Failure { means: Some(means.into()), ..self }
    }

    pub fn advise(self, advice: impl Into<String>) -> Failure {
        Failure { advice: Some(advice.into()), ..self }
    }

    /// Whoever read our output has enough. `head` does this; it is nobody's fault.
    pub fn reader_left() -> Failure {
        Failure::new(Exit::Io, "")
    }

    pub fn is_silent(&self) -> bool {
        self.said.is_empty()
    }

    /// What went wrong, in one sentence.
    pub fn said(&self) -> &str {
        &self.said
    }

    pub fn exit(&self) -> Exit {
        self.exit
    }

    pub fn json(&self) -> Value {
        json!({ "error": {
            "code": self.code,
            "exit": self.exit as u8,
            "said": self.said,
            "means": self.means,
            "do": self.advice,
        }})
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "error[{code}] {}", self.said)?,
            None => write!(f, "error: {}", self.said)?,
        }
        if let Some(means) = &self.means {
            write!(f, "\n  means   {means}")?;
        }
        if let Some(advice) = &self.advice {
            // Later lines of the advice stand below its first.
            write!(f, "\n  do      {}", advice.replace('\n', "\n          "))?;
        }
        if let Some(code) = self.code {
            write!(f, "\n  more    docs/errors/{code}.md")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_thing_the_effect_and_the_next_step() {
        let failure = Failure::new(Exit::Busy, "data folder data: in use by process 42")
            .coded("WR-2001")
            .means("nothing was read or changed")
            .advise("stop it\nor wait");
        let told = "error[WR-2001] data folder data: in use by process 42\n\
            \x20 means   nothing was read or changed\n\
            \x20 do      stop it\n\
            \x20         or wait\n\
            \x20 more    docs/errors/WR-2001.md";
        assert_eq!(failure.to_string(), told);
    }
}
