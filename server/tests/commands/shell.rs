//! Runs the binary and looks at what it said.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

/// A folder of its own, gone when the test is.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("commands-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder for the test");
        Folder(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs a line in this folder; words are parted by blanks.
    pub fn run(&self, line: &str) -> Said {
        self.start(line, Stdio::piped())
    }

    /// The same, when nobody reads stdout any more.
    pub fn run_unread(&self, line: &str) -> Said {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        self.start(line, writer.into())
    }

    fn start(&self, line: &str, stdout: Stdio) -> Said {
        let words = line.split_whitespace().skip_while(|word| *word == "waitroom");
        let mut command = Command::new(env!("CARGO_BIN_EXE_waitroom"));
        command.args(words).current_dir(&self.0);
        command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
        let starting = nobody_starts();
        let child = command.spawn().expect("the binary was built with this test");
        drop(starting);
        let output = child.wait_with_output().expect("it ends");
        Said {
            line: line.to_owned(),
            exit: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Between fork and exec a child of any test holds every open file of this process, locks of data
/// folders too. Whoever closes a store here closes it while nobody starts, or the lock may outlive
/// it by a moment.
pub fn nobody_starts() -> MutexGuard<'static, ()> {
    static STARTING: Mutex<()> = Mutex::new(());
    STARTING.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What a run left behind.
#[derive(Debug)]
pub struct Said {
    line: String,
    exit: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    #[track_caller]
    pub fn exits(self, exit: i32) -> Said {
        assert_eq!(self.exit, Some(exit), "waitroom {}: {self:#?}", self.line);
        self
    }

    /// All of these, on stdout or stderr.
    #[track_caller]
    pub fn says(self, words: &[&str]) -> Said {
        for word in words {
            assert!(self.out.contains(word) || self.err.contains(word), "{word:?} in {self:#?}");
        }
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|why| panic!("{why}: {self:#?}"))
    }

    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
        self.out.lines().map(parse).collect()
    }
}

/// Every file below a folder with its bytes: to see that nothing was changed.
pub fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.push((path.clone(), std::fs::read(&path).expect("a file")));
        }
    }
    found.sort();
    found
}
