//! `waitroom pause`: nobody is let in, everybody keeps their place.
//!
//! Lives here: the call and its words. Stays out: what a pause does (`core`).

use clap::Args;
use serde_json::json;
use waitroom_store::RoomName;

use crate::client::To;
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::room::{call, name};

/// Pauses a room: nobody is let in, everybody keeps their place and sees the reason.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  waitroom pause spring-sale --reason \"Payment is down, back soon\""
)]
pub struct Pause {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// What visitors read.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    pub to: To,
}

impl Pause {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let answer = call(&self.to, &self.room, "pause", &json!({ "reason": self.reason }))?;
        out.tell(format!("room {}: paused; visitors read: {}", self.room, self.reason), &answer)?;
        Ok(Exit::Fine)
    }
}
