//! A program that is not ours, running on a port of its own until the test ends.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering::Relaxed};

use crate::instance::soon;

pub struct Part {
    child: Child,
    pub port: u16,
    pub folder: PathBuf,
}

impl Part {
    /// Runs `command` and waits until `port` takes connections. It must stay in the foreground
    /// and be one process, so that its end is the end of all of it.
    pub fn run(mut command: Command, port: u16, folder: PathBuf) -> Part {
        let log = folder.join("log");
        let file = File::create(&log).expect("a log");
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stderr(file.try_clone().expect("the log")).stdout(file);
        let child = command.spawn().unwrap_or_else(|error| {
            panic!("{name} is needed for this test ({error}): run cargo xtask setup")
        });
        let mut part = Part { child, port, folder };
        soon(&format!("{name} listens"), || {
            if let Some(status) = part.child.try_wait().expect("it can be asked") {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                panic!("{name} ended with {status}: {said}");
            }
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        part
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// An empty folder that nobody else has.
pub fn folder(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Relaxed);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{name}-{}-{count}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A port that is free, and that no outgoing connection can take before the part does: below the
/// range that the system gives to those. No port is given out twice.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = 10_000 + (std::process::id() % 500) as u16 * 40;
    loop {
        let port = begin + NEXT.fetch_add(1, Relaxed);
        assert!(port < 32_000, "no port is free");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A file of `deploy/` with its addresses and names changed. Each of them must be in it: a test
/// of a configuration that nobody hands out would show nothing.
pub fn deployed(name: &str, changes: &[(&str, &str)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(name);
    let mut text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    for (from, to) in changes {
        assert!(text.contains(from), "{name} has no {from:?}");
        text = text.replace(from, to);
    }
    text
}
