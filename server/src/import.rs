//! `waitroom import`: a room from a portable file into a data folder.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use waitroom_sim::rehearsal::human::number;
use waitroom_store::{Error, Store};

use crate::data::{Data, absolute, failed, now};
use crate::exported::{self, not_whole};
use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Takes a room in from a file made by `waitroom export`. The whole file is checked first.
///
/// A data folder that does not exist is made.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom import --data data --from spring-sale.wrroom")]
pub struct Import {
    #[command(flatten)]
    data: Data,
    /// The exported room.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

impl Import {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        // Before the data folder is opened, which may make it: a bad file leaves no trace.
        let room = exported::open(&self.from)?.import().room.clone();
        let store = self.data.open_or_make()?;
        let rooms = now(store.rooms()).map_err(|error| failed("list the rooms", &error))?;
        if rooms.contains(&room) {
            let dir = self.data.dir.display();
            let said = format!("room \"{room}\": data folder {dir} has a room of that name");
            return Err(Failure::new(Exit::Taken, said)
                .coded("WR-2011")
                .means("nothing was changed")
                .advise("import into another data folder"));
        }
        let imported = now(store.import(&absolute(&self.from)?)).map_err(|error| match error {
            Error::Damaged { why } => not_whole(&self.from, &why),
            other => failed(&format!("import room {room}"), &other),
        })?;
        let said = format!(
            "imported room \"{room}\": events {} to {} in {} batches, chain {}",
            number(imported.base.head.0 + 1),
            number(imported.tip.head.0),
            number(imported.batches),
            imported.tip.chain
        );
        let json = json!({
            "room": room.as_str(), "after": imported.base.head.0, "head": imported.tip.head.0,
            "batches": imported.batches, "chain": imported.tip.chain.to_string(),
            "snapshot": imported.snapshot.map(|at| at.0),
        });
        out.tell(said, &json)?;
        Ok(Exit::Fine)
    }
}
