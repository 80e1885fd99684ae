//! Visitors over real sockets, and the judge of what they saw.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::instance::KEY;

pub struct Crowd {
    child: Child,
    history: String,
}

impl Crowd {
    /// Nine hundred people within twelve seconds.
    pub fn start(public: &str, admin: &str) -> Crowd {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let (folder, id) = (env!("CARGO_TARGET_TMPDIR"), std::process::id());
        let history = format!("{folder}/cluster-{id}-{count}.jsonl");
        let child = Command::new(env!("CARGO_BIN_EXE_waitroom"))
            .args(["crowd", public, "--room", "sale", "--admin", admin])
            .args(["--visitors", "900", "--over", "12s", "--shape", "steady", "--duration", "120s"])
            .args(["--stay", "2s", "--speed", "3", "--rate-limit-exempt", "--quiet"])
            // A live ticket may be used once at each instance (docs/cluster.md).
            .args(["--misbehave", "0%"])
            .args(["--history", &history])
            .env("WAITROOM_ADMIN_KEY", KEY)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        Crowd { child, history }
    }

    /// Waits for the end, and has the history judged.
    pub fn judged(self) -> String {
        let crowd = self.child.wait_with_output().expect("it can be waited for");
        let words = String::from_utf8_lossy(&crowd.stdout).into_owned();
        assert!(crowd.status.success(), "{words}{}", String::from_utf8_lossy(&crowd.stderr));
        let judged = Command::new(env!("CARGO_BIN_EXE_waitroom"))
            .args(["check-history", &self.history])
            .output()
            .expect("the binary was built with this test");
        let verdict = String::from_utf8_lossy(&judged.stdout).into_owned();
        assert!(judged.status.success(), "{verdict}");
        let _ = std::fs::remove_file(&self.history);
        println!("{words}{verdict}");
        words
    }
}
