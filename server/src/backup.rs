//! `waitroom backup`: the whole store into a new folder.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use waitroom_sim::rehearsal::human::number;

use crate::data::{Data, failed, must_be_new, now};
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::serve::copies;

/// Copies a whole data folder, or all that a Redis holds, into a new folder.
///
/// A Redis (`--config`) may be in use meanwhile. The master key is in no backup: keep it apart.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom backup --data data --to backups/monday\n  \
    waitroom backup --config waitroom.toml --to backups/monday")]
pub struct Backup {
    /// The data folder; no server may be running on it.
    #[arg(long, value_name = "DIR", required_unless_present = "config")]
    data: Option<PathBuf>,
    /// The configuration of a server whose rooms are in Redis.
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    config: Option<PathBuf>,
    /// The folder for the backup: new or empty.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

impl Backup {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let to = must_be_new("backup folder", &self.to)?;
        if let Some(config) = &self.config {
            let copied = copies::backup(config, &to)?;
            let shown = self.to.display();
            let (rooms, events) = (copied.rooms, copied.events);
            let said = format!("backed up: rooms {rooms}, events {}, in {shown}", number(events));
            out.tell(said, &json!({"rooms": rooms, "events": events, "to": self.to}))?;
            return Ok(Exit::Fine);
        }
        let dir = self.data.clone().expect("one of the two is required");
        let store = Data { dir }.open()?;
        let rooms = now(waitroom_store::Store::rooms(&store));
        let rooms = rooms.map_err(|error| failed("list the rooms", &error))?.len();
        let report = now(store.backup(&to)).map_err(|error| failed("back up", &error))?;
        let said = format!(
            "backed up: rooms {}, files {}, bytes {}, in {}",
            number(rooms as u64),
            number(report.files as u64),
            number(report.bytes),
            self.to.display()
        );
        let json = json!({
            "rooms": rooms, "files": report.files, "bytes": report.bytes, "to": self.to,
        });
        out.tell(said, &json)?;
        Ok(Exit::Fine)
    }
}
