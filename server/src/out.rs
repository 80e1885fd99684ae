//! Where results go: stdout, for people or as JSON. Everything else goes to stderr.
//!
//! Lives here: [`Out`], and [`finish`], which runs a command and turns its outcome into an exit
//! code. Stays out: what is said.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::process::ExitCode;

use serde_json::Value;

use crate::config::Mistakes;
use crate::failure::{Exit, Failure};

/// Runs a command; whatever became of it, it is told once and the exit code says the same.
pub fn finish(json: bool, run: impl FnOnce(&mut Out) -> Result<Exit, Failure>) -> ExitCode {
    let mut out = Out { to: BufWriter::new(io::stdout().lock()), json };
    let done = run(&mut out).and_then(|exit| out.flush().map(|()| exit));
    let exit = done.unwrap_or_else(|failure| {
        if !failure.is_silent() {
            // Scripts read stdout, people stderr; both should learn of it. If stdout is gone,
            // stderr and the exit code still tell.
            if json {
                let _ = out.line(failure.json());
            }
            let _ = out.flush();
            eprintln!("{failure}");
        }
        failure.exit()
    });
    ExitCode::from(exit as u8)
}

/// Stdout, buffered: a log has millions of lines.
pub struct Out {
    to: BufWriter<StdoutLock<'static>>,
    /// Whether JSON was asked for.
    pub json: bool,
}

impl Out {
    pub fn line(&mut self, text: impl Display) -> Result<(), Failure> {
        writeln!(self.to, "{}", visible(&text.to_string())).map_err(unwritten)
    }

    /// A line that somebody waits for while the command goes on.
    pub fn line_now(&mut self, text: impl Display) -> Result<(), Failure> {
        self.line(text)?;
        self.flush()
    }

    /// The same result in both forms; the one that was asked for is shown.
    pub fn tell(&mut self, text: impl Display, json: &Value) -> Result<(), Failure> {
        if self.json { self.line(json) } else { self.line(text) }
    }

    /// What is wrong with a text that was given: for people on stderr, as JSON on stdout too.
    pub fn mistakes(&mut self, mistakes: &Mistakes) -> Result<Exit, Failure> {
        if self.json {
            self.line(mistakes.json())?;
        }
        eprintln!("{}", visible(&mistakes.to_string()));
        Ok(mistakes.exit())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.to.flush().map_err(unwritten)
    }
}

/// Proofs and logs come from strangers; their texts must not steer the reader's terminal.
fn visible(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && c != '\n';
    if !text.contains(steers) {
        return text.into();
    }
    let shown = |c: char| if steers(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect::<String>().into()
}

fn unwritten(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::reader_left(),
        _ => Failure::new(Exit::Io, format!("cannot write to stdout: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_steer_the_terminal() {
        assert_eq!(visible("two\nlines, ünïcode"), "two\nlines, ünïcode");
        assert_eq!(visible("\u{1b}[2Jclean\r\u{9b}"), "\\u{1b}[2Jclean\\r\\u{9b}");
    }
}
