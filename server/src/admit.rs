//! `waitroom admit`: lets the next people in now.
//!
//! Lives here: the call and its words. Stays out: who is next (`core`).

use clap::Args;
use serde_json::json;
use waitroom_sim::rehearsal::human::number;
use waitroom_store::RoomName;

use crate::client::To;
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::room::{call, name};

/// Lets the next N waiting people of a room in now, whatever its pace; never more than fit inside.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom admit spring-sale 50")]
pub struct Admit {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// How many.
    #[arg(value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    #[command(flatten)]
    pub to: To,
}

impl Admit {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let body = json!({ "count": self.count });
        let answer = call(&self.to, &self.room, "admit", &body)?;
        let asked = number(self.count);
        let said = match answer["admitted"].as_u64() {
            Some(n) if n == self.count => format!("{asked} let in"),
            Some(n) => {
                format!("{} let in of {asked}; no more waited, or no more fit inside", number(n))
            }
            None => format!("up to {asked} let in"),
        };
        out.tell(format!("room {}: {said}", self.room), &answer)?;
        Ok(Exit::Fine)
    }
}
