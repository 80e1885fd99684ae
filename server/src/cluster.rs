//! `waitroom cluster`: who shares the rooms of a server, and who owns which.

use clap::Args;
use serde_json::Value;

use crate::client::{Refused, To};
use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Says which instances share the rooms of a server, and which of them owns each room.
///
/// Every instance tells what it knows itself; while a room changes hands they may differ for a
/// moment.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom cluster --server http://127.0.0.1:8081")]
pub struct Cluster {
    #[command(flatten)]
    pub to: To,
}

impl Cluster {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let answer = self.to.client()?.get("/admin/v1/cluster");
        let answer = answer.map_err(|refused| match refused {
            Refused::Problem(problem) => problem.failure("cluster"),
            Refused::Failure(failure) => failure,
        })?;
        out.tell(told(&answer.body).join("\n"), &answer.body)?;
        Ok(Exit::Fine)
    }
}

fn told(picture: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or("nobody").to_owned();
    let list = |of: &str| picture[of].as_array().cloned().unwrap_or_default();
    if list("instances").is_empty() {
        return vec!["this server shares its rooms with nobody ([cluster])".to_owned()];
    }
    let mut lines = Vec::new();
    for instance in list("instances") {
        let asked =
            if instance["instance"] == picture["instance"] { ", the one asked" } else { "" };
        let draining = if instance["draining"] == true { ", going down" } else { "" };
        let (name, address) = (word(&instance["instance"]), word(&instance["address"]));
        let rooms = instance["rooms"].as_u64().unwrap_or_default();
        lines.push(format!("{name} at {address}: {rooms} rooms{draining}{asked}"));
    }
    for room in list("rooms") {
        let (name, owner) = (word(&room["room"]), word(&room["owner"]));
        let moves = match room["preferred"].as_str() {
            Some(preferred) if room["owner"] != preferred => format!(", moves to {preferred}"),
            _ => String::new(),
        };
        lines.push(format!("room {name}: owned by {owner}{moves}"));
    }
    lines
}
