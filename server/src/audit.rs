//! `waitroom audit`: what operators did, and whether the record of it was meddled with.
//!
//! Lives here: `list` (of a running server, or of a data folder), `export` and `verify`. How the
//! chain is followed is in `audit/verify.rs`. `docs/audit.md` says what is an entry and what is not.

mod verify;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use waitroom_api::admin::trail;
use waitroom_sim::rehearsal::human::number;
use waitroom_store::RoomName;
use waitroom_store::system::AuditLine;

use crate::client::{Refused, To, escaped};
use crate::data::{Data, each_batch, failed, must_be_new, now};
use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Shows what operators did, and checks that nobody changed the record of it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom audit list --room spring-sale\n  \
    waitroom audit verify --data data")]
pub struct Audit {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Lists acts, oldest first: who did what, and what it changed.
    List(List),
    /// Writes the whole audit to a portable file, for whoever keeps it elsewhere.
    Export(Export),
    /// Recomputes the hash chain over every entry; says where it breaks.
    Verify(verify::Verify),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom audit list --room spring-sale --after 120\n  \
    waitroom audit list --data data --json")]
struct List {
    /// Entries behind this index.
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = clap::value_parser!(u64).range(1..=1_000))]
    limit: u64,
    /// Only acts on this room.
    #[arg(long, value_name = "NAME", value_parser = crate::room::name)]
    room: Option<RoomName>,
    /// Reads a data folder instead of asking a server; no server may be running on it.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom audit export --data data --to audit.wrroom")]
struct Export {
    #[command(flatten)]
    data: Data,
    /// The file to write; it must not exist.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

impl Audit {
    pub fn json(&self) -> bool {
        match &self.what {
            What::List(it) => it.to.json,
            What::Export(it) => it.json,
            What::Verify(it) => it.json,
        }
    }

    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        match self.what {
            What::List(it) => it.run(out),
            What::Export(it) => it.run(out),
            What::Verify(it) => it.run(out),
        }
    }
}

/// Acts, and if it is known, where to go on and how far the audit goes.
struct Page {
    entries: Vec<Value>,
    more: Option<(u64, u64)>,
}

impl List {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let Page { entries, more } = match &self.data {
            Some(dir) => Page { entries: self.of_folder(dir.clone())?, more: None },
            None => self.of_server()?,
        };
        for entry in &entries {
            if out.json { out.line(entry)? } else { out.line(line(entry))? }
        }
        if let Some((next, head)) = more.filter(|(next, head)| next < head && !out.json) {
            eprintln!("more: --after {next} (up to {head})");
        }
        Ok(Exit::Fine)
    }

    fn of_server(&self) -> Result<Page, Failure> {
        let mut path = format!("/admin/v1/audit?after={}&limit={}", self.after, self.limit);
        if let Some(room) = &self.room {
            path += &format!("&room={}", escaped(room.as_str()));
        }
        let answer = self.to.client()?.get(&path);
        let answer = answer.map_err(|refused| match refused {
            Refused::Problem(problem) => problem.failure("the audit"),
            Refused::Failure(failure) => failure,
        })?;
        let more = answer.body["next"].as_u64().zip(answer.body["head"].as_u64());
        let entries = answer.body["entries"].as_array().cloned().unwrap_or_default();
        Ok(Page { entries, more })
    }

    fn of_folder(&self, dir: PathBuf) -> Result<Vec<Value>, Failure> {
        let store = Data { dir }.open()?;
        let mut found: Vec<Value> = Vec::new();
        each_batch(&store, &RoomName::system(), |batch| {
            for line in verify::lines(batch)? {
                let here =
                    self.room.as_ref().is_none_or(|it| line.room.as_deref() == Some(it.as_str()));
                if here && line.index > self.after && (found.len() as u64) < self.limit {
                    found.push(trail::line(&line));
                }
            }
            Ok(())
        })?;
        Ok(found)
    }
}

impl Export {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let to = must_be_new("export", &self.to)?;
        let store = self.data.open()?;
        let exported = now(store.export(&RoomName::system(), &to));
        let tip = exported.map_err(|error| failed("export the audit", &error))?;
        let said = format!(
            "exported the audit to {}: up to entry {}, chain {}",
            self.to.display(),
            number(tip.head.0),
            tip.chain
        );
        let json = json!({ "head": tip.head.0, "chain": tip.chain.to_string(), "to": self.to });
        out.tell(said, &json)?;
        Ok(Exit::Fine)
    }
}

/// One act in one line.
fn line(entry: &Value) -> String {
    let text = |key: &str| entry[key].as_str().unwrap_or("-").to_owned();
    let index = entry["index"].as_u64().unwrap_or(0);
    let (at, who, action, room) = (text("at"), text("who"), text("action"), text("room"));
    let short = |value: &Value| if value.is_null() { "-".to_owned() } else { value.to_string() };
    let (before, after) = (short(&entry["before"]), short(&entry["after"]));
    format!("{index:>8}  {at}  {who:<12}  {action:<12}  {room:<20}  {before} -> {after}")
}

/// For `verify`: a line that names an act.
fn described(line: &AuditLine) -> String {
    format!("entry {}: {} by {}", line.index, line.action, line.who)
}
