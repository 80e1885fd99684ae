//! One running demo.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use serde_json::Value;

pub struct Play {
    child: Child,
    pub public: String,
    pub admin: String,
    pub shop: String,
    pub key: String,
    out: Option<BufReader<std::process::ChildStdout>>,
    err: Option<JoinHandle<String>>,
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    pub exit: Option<i32>,
    pub report: Value,
    pub err: String,
}

impl Play {
    pub fn start(arguments: &[&str]) -> Play {
        let mut child = Command::new(env!("CARGO_BIN_EXE_waitroom"))
            .args(["demo", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(["--addresses-json", "--json"])
            .args(arguments)
            .env_remove("WAITROOM_ADMIN_KEY")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut stderr = child.stderr.take().expect("piped");
        let err = std::thread::spawn(move || {
            let mut said = String::new();
            let _ = stderr.read_to_string(&mut said);
            said
        });
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        let _ = out.read_line(&mut line);
        let Ok(at) = serde_json::from_str::<Value>(&line) else {
            let _ = child.kill();
            panic!("the demo did not start: {line}{}", err.join().unwrap_or_default());
        };
        let word = |name: &str| at[name].as_str().unwrap_or_else(|| panic!("{at}")).to_owned();
        Play {
            public: word("public"),
            admin: word("admin"),
            shop: word("shop"),
            key: word("key"),
            child,
            out: Some(out),
            err: Some(err),
        }
    }

    /// As Ctrl-C does.
    pub fn interrupt(&self) {
        let sent = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits for the end, and reads the report.
    pub fn end(mut self) -> Ended {
        let mut text = String::new();
        let mut out = self.out.take().expect("ended once");
        out.read_to_string(&mut text).expect("a text");
        let exit = self.child.wait().expect("it ends").code();
        let err = self.err.take().expect("ended once").join().expect("it was read");
        let report = serde_json::from_str(text.trim());
        let report = report.unwrap_or_else(|why| panic!("no report ({why}): {text}\n{err}"));
        Ended { exit, report, err }
    }
}

impl Drop for Play {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
