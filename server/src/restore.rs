//! `waitroom restore`: a data folder of a backup.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::data::must_be_new;
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::serve::copies;

/// Makes a data folder of a backup, or fills an empty Redis: checks every sum, raises epochs.
///
/// Rooms that come back to a Redis (`--config`) are paused until an operator resumes them.
/// Tickets from the time between backup and loss are told that their place was lost; nobody
/// else gets their numbers under the same id.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom restore --from backups/monday --to data\n  \
    waitroom restore --from backups/monday --config waitroom.toml")]
pub struct Restore {
    /// The backup.
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// The data folder to make: new or empty.
    #[arg(long, value_name = "DIR", required_unless_present = "config")]
    to: Option<PathBuf>,
    /// The configuration of a server whose rooms are to be in Redis; none may be running on it.
    #[arg(long, value_name = "FILE", conflicts_with = "to")]
    config: Option<PathBuf>,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

impl Restore {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        if let Some(config) = &self.config {
            let copied = copies::restore(config, &self.from)?;
            let (rooms, events) = (copied.rooms, copied.events);
            let said = format!(
                "restored to Redis: rooms {rooms}, events {events}; every room is paused until \
                 somebody resumes it"
            );
            out.tell(said, &json!({"rooms": rooms, "events": events, "paused": true}))?;
            return Ok(Exit::Fine);
        }
        let wanted = self.to.clone().expect("one of the two is required");
        let (from, shown) = (self.from.display(), wanted.display());
        let to = must_be_new("data folder", &wanted)?;
        // The list is written last: without it a copy was never finished.
        if !self.from.join("BACKUP").is_file() {
            let said = format!("backup {from}: it has no file BACKUP, so it is no finished backup");
            return Err(Failure::new(Exit::Wrong, said)
                .coded("WR-2009")
                .means("nothing was written")
                .advise("give the folder that `waitroom backup --to` made, or an older backup"));
        }
        let report = waitroom_store::file::restore(&self.from, &to).map_err(|why| {
            Failure::new(Exit::Wrong, format!("backup {from}: cannot be restored: {why}"))
                .coded("WR-2009")
                .means(format!("{shown} holds an unfinished copy; do not start a server on it"))
                .advise(format!("delete {shown}, then restore again, or from an older backup"))
        })?;
        let json = json!({
            "rooms": report.rooms, "batches": report.batches, "bytes": report.bytes,
            "to": wanted,
        });
        out.tell(format!("restored to {shown}: {report}"), &json)?;
        Ok(Exit::Fine)
    }
}
