//! `waitroom backup`: the whole store into a new folder.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use waitroom_sim::rehearsal::human::number;

use crate::data::{Data, failed, must_be_new, now};
use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Copies a whole data folder into a new one, with a list of checksums.
///
/// The master key is in no backup: keep it apart.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom backup --data data --to backups/monday")]
pub struct Backup {
    #[command(flatten)]
    data: Data,
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
        let store = self.data.open()?;
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
