//! `waitroom room report` and `room log`: what happened in a room, in numbers and event by event.

use clap::Args;
use serde_json::Value;
use waitroom_sim::rehearsal::human::number;
use waitroom_store::RoomName;

use super::{name, path, told};
use crate::client::To;
use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Tells what happened in a room so far: totals, how long people waited, the course of time.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom room report spring-sale\n  \
    waitroom room report spring-sale --csv > spring-sale.csv")]
pub struct Report {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// Prints the course of time as CSV.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    #[command(flatten)]
    pub to: To,
}

impl Report {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let client = self.to.client()?;
        let fail = |refused| told(refused, &self.room);
        if self.csv {
            let text = client.get_text(&path(&self.room, "report?format=csv")).map_err(fail)?;
            text.lines().try_for_each(|line| out.line(line))?;
            return Ok(Exit::Fine);
        }
        let report = client.get(&path(&self.room, "report")).map_err(fail)?.body;
        if out.json {
            out.line(&report)?;
            return Ok(Exit::Fine);
        }
        let status = report["status"].as_str().unwrap_or("?");
        out.line(format!("room {}: {status}", self.room))?;
        for (words, key) in [
            ("joined", "joined"),
            ("waiting now", "waiting"),
            ("let in", "admissions"),
            ("inside now", "active"),
            ("completed", "completed"),
            ("left", "left"),
            ("expired", "expired"),
            ("of them no-shows", "no_shows"),
            ("revoked", "revoked"),
            ("closed", "closed"),
        ] {
            let count = report["totals"][key].as_u64().unwrap_or(0);
            out.line(format!("  {words:<17} {:>14}", number(count)))?;
        }
        let waits = &report["wait_s"];
        if let Some(half) = waits["p50"].as_f64() {
            let s = |key: &str| waits[key].as_f64().unwrap_or(0.0);
            out.line(format!(
                "  waited            half up to {half:.1} s, nine of ten up to {:.1} s, the longest {:.1} s",
                s("p90"),
                s("max")
            ))?;
        }
        if report["complete"] == false {
            out.line("  note              the log was trimmed: waits and course begin later")?;
        }
        Ok(Exit::Fine)
    }
}

/// Prints events of a room's log, oldest first.
///
/// `waitroom log` reads a data folder instead, and checks the hash chain.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom room log spring-sale --after 1000 --limit 50")]
pub struct Log {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// Events behind this one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u64).range(1..=1_000))]
    limit: u64,
    #[command(flatten)]
    pub to: To,
}

impl Log {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let what = format!("log?after={}&limit={}", self.after, self.limit);
        let answer = self.to.client()?.get(&path(&self.room, &what));
        let answer = answer.map_err(|refused| told(refused, &self.room))?.body;
        for event in answer["events"].as_array().into_iter().flatten() {
            if out.json { out.line(event)? } else { out.line(line(event))? }
        }
        if !out.json {
            let (next, head) = (answer["next"].as_u64(), answer["head"].as_u64());
            if let (Some(next), Some(head)) = (next, head)
                && next < head
            {
                eprintln!("more: --after {next} (up to {head})");
            }
        }
        Ok(Exit::Fine)
    }
}

/// Index, time, what, and the facts that are told.
fn line(event: &Value) -> String {
    let text = |key: &str| event[key].as_str().unwrap_or("?").to_owned();
    let index = event["index"].as_u64().unwrap_or(0);
    let mut line = format!("{index:>10}  {}  {:<14}", text("at"), text("event"));
    let facts = event.as_object().into_iter().flatten();
    for (key, fact) in facts.filter(|(key, fact)| !is_head(key) && !fact.is_null()) {
        let told = fact.as_str().map_or_else(|| fact.to_string(), str::to_owned);
        line += &format!("  {key} {told}");
    }
    line.truncate(line.trim_end().len());
    line
}

fn is_head(key: &str) -> bool {
    ["index", "at", "at_ms", "event"].contains(&key)
}
