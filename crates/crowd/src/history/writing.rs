//! Writing a history while the crowd runs.
//!
//! One thread writes; everyone else hands lines over through a bounded channel. When the disk is
//! slower than the crowd the channel fills and visitors wait: a history with holes would accuse
//! or excuse the wrong one, so no line is ever dropped. A line that cannot be written ends the
//! run with an error.

use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::thread::JoinHandle;

use tokio::sync::mpsc;

use super::line::{Call, Header};

/// Lines on their way to the disk: about a megabyte, a fraction of a second of a large crowd.
const WAITING_MAX: usize = 4_096;

/// Hands lines to the writing thread. Cheap to clone; a recorder of nothing takes them too.
#[derive(Clone, Debug)]
pub struct Recorder {
    to: Option<mpsc::Sender<Call<'static>>>,
}

/// The writing thread; ask it in the end whether everything is on disk.
#[derive(Debug)]
pub struct Writing {
    thread: Option<JoinHandle<Result<u64, Unwritten>>>,
}

/// The history is not whole.
#[derive(Debug)]
pub struct Unwritten(pub std::io::Error);

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the history cannot be written: {}", self.0)
    }
}

impl std::error::Error for Unwritten {}

impl Recorder {
    pub fn nothing() -> (Recorder, Writing) {
        (Recorder { to: None }, Writing { thread: None })
    }

    /// Makes the file and writes the header; what follows comes by [`Recorder::note`].
    pub fn file(path: &Path, header: &Header) -> Result<(Recorder, Writing), Unwritten> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path).map_err(Unwritten)?);
        let written = serde_json::to_writer(&mut out, header).map_err(std::io::Error::from);
        written.and_then(|()| out.write_all(b"\n")).map_err(Unwritten)?;
        let (to, mut from) = mpsc::channel::<Call<'static>>(WAITING_MAX);
        let thread = std::thread::Builder::new().name("history".into()).spawn(move || {
            let mut lines = 1;
            while let Some(call) = from.blocking_recv() {
                let written = serde_json::to_writer(&mut out, &call).map_err(std::io::Error::from);
                written.and_then(|()| out.write_all(b"\n")).map_err(Unwritten)?;
                lines += 1;
            }
            out.flush().map_err(Unwritten)?;
            Ok(lines)
        });
        let thread = thread.map_err(Unwritten)?;
        Ok((Recorder { to: Some(to) }, Writing { thread: Some(thread) }))
    }

    /// Waits while the channel is full. When the writing thread is gone the line is lost, and
    /// [`Writing::finish`] says so.
    pub async fn note(&self, call: Call<'static>) {
        if let Some(to) = &self.to {
            let _ = to.send(call).await;
        }
    }

    pub fn is_recording(&self) -> bool {
        self.to.is_some()
    }
}

impl Writing {
    /// Whether the thread has given up; then nobody need go on.
    pub fn failed(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.is_finished())
    }

    /// How many lines there are, once every recorder is gone and everything is written.
    pub fn finish(self) -> Result<u64, Unwritten> {
        match self.thread {
            None => Ok(0),
            Some(thread) => thread.join().expect("the writing thread does not panic"),
        }
    }
}
