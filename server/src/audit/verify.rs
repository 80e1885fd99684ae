//! `waitroom audit verify`: the hash chain over every entry, from the first to the last.
//!
//! Each entry's hash holds the one before it, so an entry that is altered, left out or put
//! elsewhere breaks the chain right there. Whoever rewrites everything from some entry on makes a
//! chain that holds again, but not the same one: `--head` and `--chain`, as they were written down
//! elsewhere earlier, tell.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use waitroom_sim::rehearsal::human::number;
use waitroom_store::system::{AuditLine, Entry};
use waitroom_store::{Appended, Head, RoomName, Store, Stored};

use crate::data::{Data, each_batch, failed, now};
use crate::exported::{self, not_whole};
use crate::failure::{Exit, Failure};
use crate::log::walk::Walk;
use crate::out::Out;

/// Checks the audit of a data folder or of an export, entry by entry.
///
/// Exit 0 when every entry is where it was written and as it was written, 1 when not.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom audit verify --data data\n  \
    waitroom audit verify --export audit.wrroom --head 120 --chain 5d2c…")]
pub struct Verify {
    /// The data folder; no server may be running on it.
    #[arg(long, value_name = "DIR", required_unless_present = "export", conflicts_with = "export")]
    data: Option<PathBuf>,
    /// A file made by `waitroom audit export`.
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// An entry whose chain was written down earlier.
    #[arg(long, value_name = "N", requires = "chain")]
    head: Option<u64>,
    /// The chain at that entry, as `audit list`, `audit verify` or the API told it.
    #[arg(long, value_name = "HASH", requires = "head")]
    chain: Option<String>,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

impl Verify {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let mut check = Check::new(self.head.zip(self.chain.clone()));
        match (&self.data, &self.export) {
            (Some(dir), _) => check.folder(dir.clone())?,
            (None, Some(file)) => check.export(file)?,
            (None, None) => unreachable!("one of them is required"),
        }
        let tip = check.finish()?;
        let said = format!(
            "the audit holds: {} acts in {} entries, chain {}",
            number(check.acts),
            number(tip.head.0),
            tip.chain
        );
        let json = json!({
            "holds": true, "acts": check.acts, "head": tip.head.0, "chain": tip.chain.to_string(),
        });
        out.tell(said, &json)?;
        Ok(Exit::Fine)
    }
}

struct Check {
    walk: Walk,
    acts: u64,
    last: Option<String>,
    /// A chain that was written down elsewhere, and whether it was met.
    expected: Option<(u64, String)>,
    met: bool,
}

impl Check {
    fn new(expected: Option<(u64, String)>) -> Check {
        let walk = Walk::new(&RoomName::system(), Head::EMPTY);
        Check { walk, acts: 0, last: None, expected, met: false }
    }

    fn step(&mut self, batch: &Stored) -> Result<(), Failure> {
        self.walk.step(batch).map_err(|broken| {
            let behind = self.last.as_ref().map_or(String::new(), |it| format!(" (behind {it})"));
            meddled(format!("{broken}{behind}"))
        })?;
        for line in lines(batch)? {
            self.acts += 1;
            self.last = Some(super::described(&line));
        }
        let at = self.walk.at();
        self.met |= self.expected.as_ref().is_some_and(|(head, chain)| {
            at.head.0 == *head && at.chain.to_string() == chain.to_lowercase()
        });
        Ok(())
    }

    fn folder(&mut self, dir: PathBuf) -> Result<(), Failure> {
        let store = Data { dir }.open()?;
        let system = RoomName::system();
        each_batch(&store, &system, |batch| self.step(batch))?;
        let told = now(store.tip(&system)).map_err(|error| failed("read the audit", &error))?;
        match self.walk.at() == told {
            true => Ok(()),
            false => Err(meddled("it does not end in the chain that it should".into())),
        }
    }

    fn export(&mut self, file: &Path) -> Result<(), Failure> {
        let mut portable = exported::open(file)?;
        if !portable.import().room.is_system() {
            let said = format!("export {}: it is of a room, not the audit", file.display());
            return Err(Failure::new(Exit::Usage, said)
                .advise("make one with `waitroom audit export --data DIR --to FILE`"));
        }
        let bad = |error: waitroom_store::file::PortableError| not_whole(file, &error.to_string());
        while let Some(batch) = portable.next_batch().map_err(bad)? {
            self.step(&batch)?;
        }
        Ok(())
    }

    fn finish(&self) -> Result<Appended, Failure> {
        match &self.expected {
            Some((head, _)) if !self.met => Err(meddled(format!(
                "entry {head} does not have the chain that was written down: \
                 what is here was rewritten, or is of another installation"
            ))),
            _ => Ok(self.walk.at()),
        }
    }
}

/// The acts in a batch of the `_system` log.
pub fn lines(batch: &Stored) -> Result<Vec<AuditLine>, Failure> {
    let entries: Vec<Entry> = serde_json::from_slice(&batch.payload)
        .map_err(|_| meddled(format!("behind entry {} it cannot be read", batch.after)))?;
    let indices = (batch.after.0 + 1..).map(Head);
    Ok(indices.zip(&entries).filter_map(|(at, entry)| AuditLine::of(at, entry)).collect())
}

fn meddled(why: String) -> Failure {
    Failure::new(Exit::Wrong, format!("the audit does not hold: {why}"))
        .coded("WR-2014")
        .means("an entry was altered, left out or moved; what is before that place can be trusted")
        .advise("keep this copy as it is, and compare it with a backup or an export kept elsewhere")
}
