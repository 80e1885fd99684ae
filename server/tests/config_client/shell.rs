//! Runs the binary against a server and looks at what it said.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::server::Server;

#[derive(Debug)]
pub struct Said {
    line: String,
    exit: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs a line with the server and a key in the environment; words are parted by blanks. `text`
/// is on stdin, and in `spring-sale.toml`, which `{FILE}` stands for.
pub fn run(server: &Server, line: &str, text: &str) -> Said {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("client-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    std::fs::write(folder.join("spring-sale.toml"), text).expect("a file");
    let line = line.replace("{FILE}", "spring-sale.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_waitroom"));
    command.args(line.split(' ')).current_dir(&folder).env_clear();
    command.env("WAITROOM_SERVER", server.url()).env("WAITROOM_ADMIN_KEY", "wrk_secret");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary was built with this test");
    // A command that reads no stdin closes it; that is no failure of the test.
    let _ = child.stdin.take().expect("a pipe").write_all(text.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    std::fs::remove_dir_all(&folder).expect("the folder of the test");
    Said {
        line,
        exit: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

impl Said {
    #[track_caller]
    pub fn exits(self, exit: i32) -> Said {
        assert_eq!(self.exit, Some(exit), "waitroom {}: {self:#?}", self.line);
        self
    }

    #[track_caller]
    pub fn says(self, words: &str) -> Said {
        assert!(self.out.contains(words) || self.err.contains(words), "{words:?} in {self:#?}");
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|why| panic!("{why}: {self:#?}"))
    }

    pub fn both(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}
