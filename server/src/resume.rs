//! `waitroom resume`: the end of a pause.
//!
//! Lives here: the call and its words. Stays out: what it does (`core`).

use clap::Args;
use serde_json::json;
use waitroom_store::RoomName;

use crate::client::To;
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::room::{call, name};

/// Resumes a paused room: people are let in again, at its pace and without catching up.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom resume spring-sale")]
pub struct Resume {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    #[command(flatten)]
    pub to: To,
}

impl Resume {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let answer = call(&self.to, &self.room, "resume", &json!({}))?;
        out.tell(format!("room {}: resumed", self.room), &answer)?;
        Ok(Exit::Fine)
    }
}
