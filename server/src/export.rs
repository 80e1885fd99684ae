//! `waitroom export`: one room in one file, to take elsewhere or to hand to an auditor.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use waitroom_sim::rehearsal::human::number;

use crate::data::{Data, Room, failed, must_be_new, now};
use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Writes one room to a portable file: its log, and its newest snapshot if the log was trimmed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom export --data data --room spring-sale --to spring-sale.wrroom")]
pub struct Export {
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    room: Room,
    /// The file to write; it must not exist.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

impl Export {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let to = must_be_new("export", &self.to)?;
        let store = self.data.open()?;
        let room = self.room.find(&self.data, &store)?;
        let exported = now(store.export(room, &to));
        let tip = exported.map_err(|error| failed(&format!("export room {room}"), &error))?;
        let shown = self.to.display();
        let said = format!(
            "exported room \"{room}\" to {shown}: up to event {}, chain {}",
            number(tip.head.0),
            tip.chain
        );
        let json = json!({
            "room": room.as_str(), "head": tip.head.0, "chain": tip.chain.to_string(),
            "to": self.to,
        });
        out.tell(said, &json)?;
        Ok(Exit::Fine)
    }
}
