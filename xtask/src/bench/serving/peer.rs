//! Peers that are this very program in another role: started with `bench NAME --part "…"`, they
//! say on a line where they listen, take orders on lines, and end with our end of their input.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use super::child::{Child, START_LIMIT};
use crate::failure::{OrFail, Outcome};

#[derive(Debug)]
pub struct Peer {
    child: Child,
    pub address: SocketAddr,
}

impl Peer {
    pub fn start(name: &str, words: &str, core: usize) -> Outcome<Self> {
        let child = start(name, words, core)?;
        let line = child.line(START_LIMIT)?;
        Ok(Self { child, address: line.parse().or_fail(|| format!("read {line:?}"))? })
    }

    /// Gives it an order.
    pub fn tell(&mut self, order: &str) -> Outcome {
        self.child.tell(order)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

/// This program again, on a core, with its input and output in our hands.
pub fn start(name: &str, words: &str, core: usize) -> Outcome<Child> {
    let mut command = Command::new(std::env::current_exe().or_fail(|| "find our own program")?);
    command.args([name, "--part", words]).stdin(Stdio::piped()).stdout(Stdio::piped());
    Child::start(words, command, Some(core))
}
