//! `waitroom events`: how sinks fare, telling one of them things again, and dead letters (`dead.rs`).
//!
//! Lives here: the calls and their words. Stays out: what is told (`outbox`).

mod dead;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use waitroom_store::RoomName;

use crate::client::{Refused, To, escaped};
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::room::{call, name};

/// Says where events go and how far each sink is behind; tells a sink things again.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom events status\n  \
    waitroom events replay spring-sale nats --from 1\n  \
    waitroom events dead list")]
pub struct Events {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// How far each sink is behind in each room, and what is wrong with it.
    Status(Status),
    /// Tells a sink the events of a room again, from one on.
    Replay(Replay),
    Dead(dead::Dead),
    /// Makes the tables of a room in PostgreSQL anew.
    Project(Project),
}

impl Events {
    pub fn json(&self) -> bool {
        match &self.what {
            What::Status(it) => it.to.json,
            What::Replay(it) => it.to.json,
            What::Dead(it) => it.json(),
            What::Project(it) => it.to.json,
        }
    }

    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        match self.what {
            What::Status(it) => it.run(out),
            What::Replay(it) => it.run(out),
            What::Dead(it) => it.run(out),
            What::Project(it) => it.run(out),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom events status")]
struct Status {
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom events replay spring-sale kafka --from 120000")]
struct Replay {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// The sink, as `waitroom events status` shows it.
    sink: String,
    /// The index of the first event to tell again; 1 is the first of all.
    #[arg(long, value_name = "EVENT", value_parser = clap::value_parser!(u64).range(1..))]
    from: u64,
    #[command(flatten)]
    to: To,
}

/// Drops what the tables of PostgreSQL hold of a room and tells them its whole log again.
///
/// Needs the log from its first event on; until it is done, figures of the room are incomplete.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom events project spring-sale --rebuild")]
struct Project {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// Says that the tables of the room are to be dropped.
    #[arg(long, required = true)]
    rebuild: bool,
    #[command(flatten)]
    to: To,
}

impl Project {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let answer = call(&self.to, &self.room, "events/postgres/replay", &json!({ "from": 1 }))?;
        let said = format!("room {}: its tables are made anew from event 1", self.room);
        out.tell(said, &answer)?;
        Ok(Exit::Fine)
    }
}

impl Status {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let answer = self.to.client()?.get("/admin/v1/events");
        let answer = answer.map_err(|refused| match refused {
            Refused::Problem(problem) => problem.failure("events"),
            Refused::Failure(failure) => failure,
        })?;
        let answer = answer.body;
        let sinks = answer["sinks"].as_array().map_or(&[][..], Vec::as_slice);
        let mut lines: Vec<String> = sinks.iter().flat_map(told).collect();
        if lines.is_empty() {
            lines.push("events go nowhere: no sink is configured ([events])".to_owned());
        }
        out.tell(lines.join("\n"), &answer)?;
        Ok(Exit::Fine)
    }
}

fn told(sink: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    let name = word(&sink["sink"]);
    let (sent, failures) = (count(&sink["sent"]), count(&sink["failures"]));
    let mut lines = vec![format!("{name}: {sent} sent, {failures} failures")];
    if let Some(why) = sink["trouble"].as_str() {
        lines.push(format!("  takes no events: {why}"));
    }
    if count(&sink["gaps"]) > 0 {
        lines.push(format!("  {} stretches were given up", count(&sink["gaps"])));
    }
    if count(&sink["dead_letters"]) > 0 {
        let dead = count(&sink["dead_letters"]);
        lines.push(format!("  {dead} dead letters (waitroom events dead list)"));
    }
    for room in sink["rooms"].as_array().into_iter().flatten() {
        let (at, behind) = (count(&room["at"]), count(&room["lag_events"]));
        let seconds = room["lag_seconds"].as_f64().unwrap_or_default();
        let room = word(&room["room"]);
        lines.push(format!("  {room}: at event {at}, {behind} behind, {seconds:.1} s"));
    }
    lines
}

impl Replay {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let verb = format!("events/{}/replay", escaped(&self.sink));
        let answer = call(&self.to, &self.room, &verb, &json!({ "from": self.from }))?;
        let Replay { room, sink, from, .. } = &self;
        out.tell(
            format!("room {room}: {sink} is told everything from event {from} again"),
            &answer,
        )?;
        Ok(Exit::Fine)
    }
}
