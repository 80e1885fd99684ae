//! A program that serves, from its start on a chosen core to its end.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crate::bench::cpu;
use crate::failure::{Failure, OrFail, Outcome};

#[derive(Debug)]
pub struct Child {
    name: String,
    process: std::process::Child,
    /// The lines it prints on stdout, if that was piped.
    said: Option<Receiver<String>>,
}

/// Recovery of a large room may take seconds; a machine under load ten times that.
pub const START_LIMIT: Duration = Duration::from_secs(60);

impl Child {
    /// Starts `command` so that all its threads run on `core`, or anywhere without one.
    pub fn start(name: &str, mut command: Command, core: Option<usize>) -> Outcome<Self> {
        // A child runs where the thread that starts it runs. Pinning it after its start would
        // miss the threads that it has by then, and it would count the cores it sees wrongly.
        let started = std::thread::scope(|scope| {
            let starter = scope.spawn(|| {
                if let Some(core) = core {
                    cpu::pin(None, core)?;
                }
                command.spawn().or_fail(|| format!("start {name}"))
            });
            starter.join().expect("starting a program does not panic")
        });
        let mut process = started?;
        let said = process.stdout.take().map(lines);
        Ok(Self { name: name.into(), process, said })
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The next line that it prints on stdout, which must have been piped.
    pub fn line(&self, limit: Duration) -> Outcome<String> {
        let said = self.said.as_ref().expect("the caller has piped it");
        said.recv_timeout(limit).map_err(|_| {
            Failure::new(format!("{} ended, or said nothing for {limit:?}", self.name))
        })
    }

    /// Writes a line to its stdin, which must have been piped.
    pub fn tell(&mut self, line: &str) -> Outcome {
        let stdin = self.process.stdin.as_mut().expect("the caller has piped it");
        let told = stdin.write_all(format!("{line}\n").as_bytes());
        told.or_fail(|| format!("tell {} to {line}", self.name))
    }

    /// Waits until somebody listens at `address`, or says that the program ended before.
    pub fn until_listening(&mut self, address: SocketAddr) -> Outcome<bool> {
        let began = Instant::now();
        while began.elapsed() < START_LIMIT {
            if self.process.try_wait().or_fail(|| format!("look after {}", self.name))?.is_some() {
                return Ok(false);
            }
            if TcpStream::connect(address).is_ok() {
                return Ok(true);
            }
            // Nobody listens yet, and the refusal came at once: do not spin on the core that
            // the program needs to start.
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(Failure::new(format!("{} does not listen after {START_LIMIT:?}", self.name)))
    }

    /// Waits for its end; whether it ended well.
    pub fn wait(&mut self, limit: Duration) -> Outcome<bool> {
        let began = Instant::now();
        while began.elapsed() < limit {
            let ended = self.process.try_wait().or_fail(|| format!("look after {}", self.name))?;
            if let Some(status) = ended {
                return Ok(status.success());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(Failure::new(format!("{} has not ended after {limit:?}", self.name)))
    }

    /// Ends it at once, as a power cut would.
    pub fn kill(&mut self) -> Outcome {
        let ended = self.process.kill().and_then(|()| self.process.wait());
        ended.map(drop).or_fail(|| format!("end {} {}", self.name, self.process.id()))
    }
}

impl Drop for Child {
    /// Ends the child by its id and waits for it, so that no benchmark leaves a server behind.
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(Some(_))) {
            return;
        }
        if let Err(failure) = self.kill() {
            eprintln!("note: {failure}");
        }
    }
}

/// Reads on a thread of its own: a pipe has no deadline, and a child must never wait for a reader.
fn lines(stdout: ChildStdout) -> Receiver<String> {
    let (say, said) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            // Nobody may be listening any more; the child is read all the same.
            let _ = say.send(line);
        }
    });
    said
}

/// For programs that take no port 0: the kernel is asked for a free one that is then given back.
pub fn free_address() -> Outcome<SocketAddr> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.or_fail(|| "find a free port on loopback")
}

/// A command without our standard input and output.
pub fn quiet(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_runs_on_its_core_alone_and_ends_with_its_value() {
        let core = cpu::Cores::split().expect("we run on some core").server;
        let mut command = quiet("sh");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.args(["-c", "grep Cpus_allowed_list /proc/self/status; read x"]);
        let child = Child::start("sh", command, Some(core)).expect("every machine has one");
        let line = child.line(START_LIMIT).expect("it speaks");
        assert_eq!(line.split_whitespace().last(), Some(core.to_string().as_str()));
        let pid = child.id();
        drop(child);
        assert!(crate::bench::process::Threads::of(pid).is_err(), "sh {pid} lives on");
    }
}
