//! A part in a process of its own that is told what to do, line by line.

use std::io::{self, BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::thread::Pid;

use super::super::cpu;
use crate::failure::{Failure, OrFail, Outcome};

pub struct Hand {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Hand {
    /// Starts it on a core, and waits until it is ready.
    pub fn start(words: &str, core: usize) -> Outcome<Hand> {
        let attempt = || format!("start the part {words:?} of bench cluster");
        let program = std::env::current_exe().or_fail(attempt)?;
        let mut child = Command::new(program)
            .args(["cluster", "--part", words])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .or_fail(attempt)?;
        // At once: threads that come later are where the first one is.
        cpu::pin(Pid::from_raw(child.id().cast_signed()), core)?;
        let orders = child.stdin.take().expect("stdin was just piped");
        let answers = BufReader::new(child.stdout.take().expect("stdout was just piped")).lines();
        let mut hand = Hand { child, orders, answers };
        match hand.line()?.as_str() {
            "ready" => Ok(hand),
            other => Err(Failure::new(format!("the part {words:?} said {other:?}"))),
        }
    }

    pub fn say(&mut self, order: &str) -> Outcome {
        writeln!(self.orders, "{order}").or_fail(|| format!("say {order:?} to a part"))
    }

    pub fn number(&mut self) -> Outcome<f64> {
        let line = self.line()?;
        line.parse().or_fail(|| format!("read {line:?} as a number"))
    }

    fn line(&mut self) -> Outcome<String> {
        let line = self.answers.next().ok_or_else(|| Failure::new("a part ended early"))?;
        line.or_fail(|| "read what a part says")
    }

    /// kill -9, and gone when this returns.
    pub fn kill(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Lets it end by itself.
    pub fn end(self) -> Outcome {
        let Hand { mut child, orders, answers } = self;
        drop((orders, answers));
        let ended = child.wait().or_fail(|| "wait for a part")?;
        if ended.success() { Ok(()) } else { Err(Failure::new(format!("a part ended: {ended}"))) }
    }
}
