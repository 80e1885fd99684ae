//! `waitroom room drain`, `maintenance`, `finish` and `reopen`: what is done to a whole room.
//!
//! Lives here: the calls and their words. Stays out: what they do (`core`).

use clap::Args;
use serde_json::json;
use waitroom_store::RoomName;

use super::{call, name};
use crate::client::To;
use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Takes nobody new; those in line are still let in, and everybody reads the reason.
///
/// `waitroom resume` ends it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom room drain spring-sale --reason \"We close at nine\"")]
pub struct Drain {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// What visitors read.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    pub to: To,
}

/// Shows the maintenance page: nobody joins and nobody is let in; every place is kept.
///
/// `waitroom resume` ends it. Whether those inside stay inside is the setting `keep_inside`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom room maintenance spring-sale --reason \"Back at ten\"")]
pub struct Maintenance {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// What visitors read.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    #[command(flatten)]
    pub to: To,
}

/// Ends the sale: nobody joins, nobody is let in, and everybody in line is sent home.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom room finish spring-sale --reason \"Sold out\"")]
pub struct Finish {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// What visitors read.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    #[command(flatten)]
    pub to: To,
}

/// The sale goes on after all. Tickets that were closed stay closed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom room reopen spring-sale")]
pub struct Reopen {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    #[command(flatten)]
    pub to: To,
}

impl Drain {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let answer = call(&self.to, &self.room, "drain", &json!({ "reason": self.reason }))?;
        let said = format!("room {}: drains; visitors read: {}", self.room, self.reason);
        out.tell(said, &answer)?;
        Ok(Exit::Fine)
    }
}

impl Maintenance {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let body = json!({ "reason": self.reason });
        let answer = call(&self.to, &self.room, "maintenance", &body)?;
        out.tell(format!("room {}: in maintenance", self.room), &answer)?;
        Ok(Exit::Fine)
    }
}

impl Finish {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let answer = call(&self.to, &self.room, "finish", &json!({ "reason": self.reason }))?;
        out.tell(format!("room {}: the sale is over", self.room), &answer)?;
        Ok(Exit::Fine)
    }
}

impl Reopen {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let answer = call(&self.to, &self.room, "reopen", &json!({}))?;
        out.tell(format!("room {}: the sale goes on", self.room), &answer)?;
        Ok(Exit::Fine)
    }
}
