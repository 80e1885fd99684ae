//! `bench kill-server`: the power is cut again and again while a crowd is at the door, and in the
//! end the crowd's history is held against the promises.
//!
//! The crowd is `waitroom crowd`, in a process of its own, and goes on through all cuts; the
//! judge is `waitroom check-history` with the server's own log. Both come from the program under
//! test but see only what a client sees.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::classic::scatter;
use super::data::DataFolder;
use super::disk::percentile;
use super::report::Figure;
use super::serving::Child;
use super::serving::ask::ask;
use super::serving::waitroom::{KEY, ROOM, Start, Waitroom, program};
use crate::failure::{Failure, OrFail, Outcome};

/// The room: everything that a cut could break is in use. People are let in at a pace and up to
/// a number, claim, stay, are renewed and time out.
const ROOM_DOCUMENT: &str = r#"{"queue_all": true, "rate": "200/s", "max_active": 2000,
    "claim_within": "3s", "session_timeout": "8s", "heartbeat_timeout": "60s"}"#;
/// How many come in a second; a few more than are let in, so that there is always a line.
const ARRIVALS_PER_S: u64 = 250;
/// Between the server's first answer and the next cut: long enough to give out places, and never
/// the same, so that cuts fall into every moment of a batch.
const UP_MS: std::ops::Range<u64> = 500..2_500;
/// A cycle with its restart, for the length of the crowd's plan.
const CYCLE: Duration = Duration::from_millis(2_000);
/// The crowd ends by itself; a minute later something is wrong with it.
const CROWD_GRACE: Duration = Duration::from_secs(60);

pub fn run(cycles: u64) -> Outcome<Vec<Figure>> {
    let folder = DataFolder::new("kill")?;
    let outcome = cut_and_judge(folder.path(), cycles);
    if outcome.is_err() {
        eprintln!("kept for you to look at: {}", folder.keep().display());
    }
    outcome
}

fn cut_and_judge(folder: &Path, cycles: u64) -> Outcome<Vec<Figure>> {
    let data = folder.join("data");
    let mut server = Waitroom::start(&data, &Start::default())?;
    let at = server.addresses;
    ask(at.admin, "PUT", &format!("/admin/v1/rooms/{ROOM}"), ROOM_DOCUMENT)?;
    let again = Start { at: Some(at), ..Start::default() };
    let history = folder.join("crowd.jsonl");
    let length = CYCLE * u32::try_from(cycles).or_fail(|| "count that far")? + CYCLE;
    let crowd = crowd(&server, &history, length)?;
    let mut recoveries = vec![];
    for cycle in 0..cycles {
        let up = UP_MS.start + scatter(cycle) % (UP_MS.end - UP_MS.start);
        std::thread::sleep(Duration::from_millis(up));
        server.kill()?;
        let cut = Instant::now();
        server = Waitroom::start(&data, &again)?;
        ask(at.public, "GET", "/health/ready", "")?;
        recoveries.push(cut.elapsed());
        eprintln!("cut {}: back after {:?}", cycle + 1, cut.elapsed());
    }
    let said = crowd.wait(length + CROWD_GRACE)?;
    server.kill()?;
    let judged = judge(&history, &data)?;
    println!("{said}\n{judged}");
    recoveries.sort_unstable();
    let ms = |percent| percentile(&recoveries, percent).as_secs_f64() * 1e3;
    Ok(vec![
        Figure::alone("kill_cycles", cycles as f64, "cuts"),
        Figure::alone("back_after_kill_p50_ms", ms(50), "ms"),
        Figure::alone("back_after_kill_longest_ms", ms(100), "ms"),
    ])
}

struct Crowd {
    child: Child,
    report: PathBuf,
}

fn crowd(server: &Waitroom, history: &Path, length: Duration) -> Outcome<Crowd> {
    let url = |address: std::net::SocketAddr| format!("http://{address}");
    let at = server.addresses;
    let report = history.with_extension("txt");
    let file = std::fs::File::create(&report).or_fail(|| format!("create {}", report.display()))?;
    let seconds = length.as_secs();
    let mut command = Command::new(program()?);
    command
        .arg("crowd")
        .arg(url(at.public))
        .args(["--room", ROOM, "--admin", &url(at.admin), "--key", KEY])
        .args(["--visitors", &(ARRIVALS_PER_S * seconds).to_string()])
        .args(["--over", &format!("{seconds}s"), "--duration", &format!("{seconds}s")])
        .args(["--shape", "steady", "--stay", "3s", "--timeout", "3s"])
        // Cuts come every other second; who is told to come back in ten would meet few of them.
        .args(["--speed", "4", "--rate-limit-exempt", "--quiet"])
        .arg("--history")
        .arg(history)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(Stdio::inherit());
    if let Some(grpc) = at.grpc {
        command.args(["--grpc", &url(grpc)]);
    }
    Ok(Crowd { child: Child::start("crowd", command, None)?, report })
}

impl Crowd {
    /// What it says in the end. A crowd that was told something wrong on the spot fails.
    fn wait(mut self, limit: Duration) -> Outcome<String> {
        let passed = self.child.wait(limit)?;
        let said = std::fs::read_to_string(&self.report).unwrap_or_default();
        if passed { Ok(said) } else { Err(Failure::new(format!("the crowd complains:\n{said}"))) }
    }
}

fn judge(history: &Path, data: &Path) -> Outcome<String> {
    let mut command = Command::new(program()?);
    command.arg("check-history").arg(history).arg("--log").arg(data).stdin(Stdio::null());
    let output = command.output().or_fail(|| "run check-history")?;
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    if output.status.success() {
        Ok(said.concat())
    } else {
        Err(Failure::new(format!("promises were broken:\n{}", said.concat())))
    }
}
