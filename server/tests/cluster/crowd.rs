//! Visitors over real sockets, and the judge of what they saw.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::house::House;
use crate::instance::KEY;

pub struct Crowd {
    child: Child,
    history: PathBuf,
}

/// Who comes.
pub struct Crew {
    pub visitors: u32,
    /// Within so many seconds.
    pub over_s: u32,
    /// Crowds of one test have different people.
    pub seed: u32,
}

/// A name in the build's folder that nobody else has.
fn fresh(ending: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("cluster-{}-{count}{ending}", std::process::id());
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

impl Crowd {
    pub fn start(public: &str, admin: &str, crew: &Crew) -> Crowd {
        let history = fresh(".jsonl");
        let Crew { visitors, over_s, seed } = crew;
        let child = Command::new(env!("CARGO_BIN_EXE_waitroom"))
            .args(["crowd", public, "--room", "sale", "--admin", admin])
            .args(["--visitors", &visitors.to_string(), "--over", &format!("{over_s}s")])
            .args(["--seed", &seed.to_string(), "--shape", "steady", "--duration", "120s"])
            .args(["--stay", "2s", "--speed", "3", "--rate-limit-exempt", "--quiet"])
            .arg("--history")
            .arg(&history)
            .env("WAITROOM_ADMIN_KEY", KEY)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        Crowd { child, history }
    }

    /// Waits for the end. What it said, and its history.
    pub fn ended(self) -> (String, PathBuf) {
        let crowd = self.child.wait_with_output().expect("it can be waited for");
        let words = String::from_utf8_lossy(&crowd.stdout).into_owned();
        assert!(crowd.status.success(), "{words}{}", String::from_utf8_lossy(&crowd.stderr));
        (words, self.history)
    }
}

/// Has the histories of crowds that came at the same time judged together, and the log in Redis
/// with them: clients see bounds of what was decided, the log has every decision.
pub fn judged(house: &House, histories: &[PathBuf]) -> serde_json::Value {
    let (log, copy, config) = (fresh(".data"), fresh(".copy"), fresh(".toml"));
    let text = format!(
        "[store]\nkind = \"redis\"\ndurability = \"redis-sync\"\n\
         [redis]\nurls = [\"{}\"]\nreplicas_required = 0\n",
        house.redis.url()
    );
    std::fs::write(&config, text).expect("the build's folder is writable");
    let path = |path: &Path| path.display().to_string();
    run(&["backup", "--config", &path(&config), "--to", &path(&copy)]);
    let files = std::fs::read_dir(&copy).expect("it was just written").flatten();
    let sale = files.map(|it| it.path()).find(|it| path(it).contains("sale"));
    run(&["import", "--data", &path(&log), "--from", &path(&sale.expect("the room's file"))]);
    let files: Vec<String> = histories.iter().map(|it| path(it)).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let rest = ["--one-clock", "--json", "--log", &path(&log)];
    let verdict = run(&[&["check-history"][..], &files, &rest].concat());
    println!("{verdict}");
    for file in histories.iter().chain([&config]) {
        let _ = std::fs::remove_file(file);
    }
    for folder in [&log, &copy] {
        let _ = std::fs::remove_dir_all(folder);
    }
    serde_json::from_str(&verdict).expect("the verdict is JSON")
}

fn run(arguments: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(arguments)
        .output()
        .expect("the binary was built with this test");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let trouble = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{arguments:?}: {said}{trouble}");
    said
}
