//! `waitroom check-history`: were the promises kept?
//!
//! Lives here: flags and lines. Stays out: judging (`waitroom-crowd`). Client histories decide;
//! the log explains them, and is judged for what only a log can break.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use waitroom_crowd::judge::{Clocks, Verdict, judge, log};
use waitroom_crowd::report::number;

use crate::data::{Data, failed, now};
use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Judges recorded histories by the promises of the design (docs/history.md).
///
/// Exit 0 and a summary, or exit 1 and the first violations by promise.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom check-history crowd.jsonl --log data")]
pub struct CheckHistory {
    /// The histories, as `waitroom crowd --history` writes them.
    #[arg(value_name = "HISTORY", required = true)]
    histories: Vec<PathBuf>,
    /// The server's data folder; no server may be running on it.
    #[arg(long, value_name = "DIR")]
    log: Option<PathBuf>,
    /// All of them were written on one machine: their times are compared with each other's too.
    #[arg(long)]
    one_clock: bool,
    /// Prints the verdict as one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl CheckHistory {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let clocks = if self.one_clock { Clocks::One } else { Clocks::Each };
        let mut verdict = judge(&self.histories, clocks).map_err(|unread| {
            Failure::new(Exit::NotThere, unread.to_string())
                .means("nothing was judged")
                .advise("give files that `waitroom crowd --history` wrote; see docs/history.md")
        })?;
        let mut logged = None;
        if let Some(dir) = self.log {
            let store = Data { dir }.open()?;
            let judged = now(log::judge_log(&store, &mut verdict));
            logged = Some(judged.map_err(|error| failed("read the log", &error))?);
        }
        tell(out, &verdict, logged.as_ref())?;
        Ok(if verdict.found.is_empty() { Exit::Fine } else { Exit::Wrong })
    }
}

fn tell(out: &mut Out, verdict: &Verdict, logged: Option<&log::LogTotals>) -> Result<(), Failure> {
    let totals = &verdict.totals;
    if out.json {
        let violations: Vec<_> = verdict
            .found
            .first()
            .map(|it| json!({ "promise": it.promise, "said": it.said, "log": it.explained }))
            .collect();
        let counts: serde_json::Map<String, serde_json::Value> = verdict
            .found
            .counts()
            .map(|(promise, count)| (promise.to_string(), count.into()))
            .collect();
        return out.line(json!({
            "kept": verdict.found.is_empty(),
            "lines": totals.lines,
            "lost": totals.lost,
            "tickets": totals.tickets,
            "joins_acknowledged": totals.joins_acknowledged,
            "admitted": totals.admitted,
            "forgeries": totals.forgeries,
            "operator_calls": totals.operator_calls,
            "log": logged.map(|it| json!({ "rooms": it.rooms, "events": it.events })),
            "broken": counts,
            "first": violations,
            "notes": verdict.notes,
        }));
    }
    out.line(format!(
        "{} calls, {} without an answer; {} tickets, {} joins acknowledged, {} admitted; {} \
         forgeries, {} acts of operators",
        number(totals.lines),
        number(totals.lost),
        number(totals.tickets),
        number(totals.joins_acknowledged),
        number(totals.admitted),
        number(totals.forgeries),
        number(totals.operator_calls)
    ))?;
    if let Some(logged) = logged {
        let (rooms, events) = (number(logged.rooms), number(logged.events));
        out.line(format!("the log: {events} events in {rooms} rooms"))?;
    }
    for note in &verdict.notes {
        out.line(format!("note: {note}"))?;
    }
    for violation in verdict.found.first() {
        out.line(violation)?;
    }
    let broken: Vec<String> = verdict
        .found
        .counts()
        .map(|(promise, count)| format!("{promise} ({} times)", number(count)))
        .collect();
    match broken.as_slice() {
        [] => out.line("no promise is broken, as far as this can tell"),
        broken => out.line(format!("broken promises: {}", broken.join(", "))),
    }
}
