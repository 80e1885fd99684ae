//! Python programs: their packages installed once below `target/tools`, started, talked to by lines.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;

use crate::instance::{Instance, soon};

/// Pinned, so that the test means the same tomorrow.
const PACKAGES: [&str; 6] = [
    "aiosmtpd==1.4.6",
    "http-ece==1.2.1",
    "nats-py==2.11.0",
    "confluent-kafka==2.11.1",
    "pyjwt[crypto]==2.10.1",
    "standardwebhooks==1.0.1",
];

pub struct Shop(Program);

impl Shop {
    pub fn open(bus: &str, address: &str, server: &Instance) -> Shop {
        let keys = format!("{}/.well-known/jwks.json", server.public);
        Shop(Program::start("shop.py", &[bus, address, &keys]))
    }

    /// The first message that fits, once it is there.
    pub fn reads(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.0.reads(what, fits)
    }

    pub fn says(&mut self, topic: &str, body: &Value) {
        self.0.says(&format!("{topic} {body}"));
    }
}

/// A program that prints lines of JSON.
pub struct Program {
    child: Child,
    stdin: ChildStdin,
    read: Arc<Mutex<Vec<Value>>>,
}

impl Program {
    pub fn start(script: &str, arguments: &[&str]) -> Program {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/events").join(script);
        let mut child = Command::new(python())
            .arg(script)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python starts");
        let stdin = child.stdin.take().expect("piped");
        let stdout = child.stdout.take().expect("piped");
        let read: Arc<Mutex<Vec<Value>>> = Arc::default();
        let into = read.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("lines of JSON");
                into.lock().expect("nobody panics holding it").push(line);
            }
        });
        Program { child, stdin, read }
    }

    /// Everything so far.
    pub fn read(&self) -> Vec<Value> {
        self.read.lock().expect("nobody panics holding it").clone()
    }

    /// The first line that fits, once it is there.
    pub fn reads(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        soon(what, || {
            let read = self.read.lock().expect("nobody panics holding it");
            read.iter().find(|it| fits(it)).cloned()
        })
    }

    pub fn says(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").expect("it listens");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target").join("tools");
        let (folder, done) = (tools.join("shop"), tools.join("shop").join(PACKAGES.join("+")));
        if !done.exists() {
            let run = |program: &Path, arguments: &[&str]| {
                let output = Command::new(program).args(arguments).output();
                let output = output.expect("python3 with venv is needed: cargo xtask setup");
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(output.status.success(), "{program:?} {arguments:?}: {said}");
            };
            run(Path::new("python3"), &["-m", "venv", folder.to_str().expect("a plain path")]);
            let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
            run(&folder.join("bin/python"), &[&install[..], &PACKAGES[..]].concat());
            std::fs::write(done, "").expect("a mark");
        }
        folder.join("bin/python")
    })
}
