//! `waitroom room`: rooms of a running server, written down and read back.
//!
//! Lives here: `put`, `get` and `list`, and the call that all commands about a room make. What is
//! done to a room is in `room/set.rs` and `room/hold.rs`, what happened in it in `room/report.rs`.
//! Stays out: the document itself (`waitroom_api::document`); its way from and to a file is in
//! `room/file.rs`.

mod file;
mod hold;
mod report;
mod set;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hyper::StatusCode;
use serde_json::{Value, json};
use waitroom_api::document::Mistake;
use waitroom_sim::rehearsal::human::number;
use waitroom_store::RoomName;

use crate::client::{Refused, To};
use crate::config::Mistakes;
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::subcommands::subcommands;
use file::Written;

/// Makes, changes and shows rooms of a running server.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom room put spring-sale.toml\n  \
    waitroom room set spring-sale rate=20/s\n  \
    waitroom room report spring-sale")]
pub struct Room {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Makes a room, or gives it these settings: all of them, what is not named is at its default.
    Put(Put),
    /// Shows a room's settings, as a file that `put` takes.
    Get(Get),
    /// Lists the rooms.
    List(List),
    Set(set::Set),
    Drain(hold::Drain),
    Maintenance(hold::Maintenance),
    Finish(hold::Finish),
    Reopen(hold::Reopen),
    Report(report::Report),
    Log(report::Log),
}

subcommands!(Room: Put, Get, List, Set, Drain, Maintenance, Finish, Reopen, Report, Log);

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom room put spring-sale.toml\n  \
    waitroom room get spring-sale | waitroom room put - --room autumn-sale")]
struct Put {
    /// A room document, TOML or JSON; "-" for stdin.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The room. Unless given: the file's `name`, or how the file is called.
    #[arg(long = "room", value_name = "NAME", value_parser = name)]
    room: Option<RoomName>,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom room get spring-sale > spring-sale.toml")]
struct Get {
    /// The room.
    #[arg(value_name = "NAME", value_parser = name)]
    room: RoomName,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom room list --json")]
struct List {
    #[command(flatten)]
    to: To,
}

impl Put {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let written = match Written::read(&self.file, self.room) {
            Ok(written) => written,
            Err(mistakes) => return out.mistakes(&mistakes),
        };
        let client = self.to.client()?;
        let room = &written.room;
        match client.put(&path(room, ""), &written.document) {
            Ok(answer) => {
                let made = answer.status == StatusCode::CREATED;
                let said = if made { "made" } else { "set" };
                out.tell(
                    format!("room {room}: {said}"),
                    &json!({ "room": room.as_str(), "made": made }),
                )?;
                Ok(Exit::Fine)
            }
            Err(refused) => match wrong_fields(&refused, &written) {
                Some(mistakes) => out.mistakes(&mistakes),
                None => Err(told(refused, room)),
            },
        }
    }
}

/// What the server finds wrong in a document, told like what we find ourselves: it may know more,
/// for a lane that gave out places cannot be taken away.
fn wrong_fields(refused: &Refused, written: &Written) -> Option<Mistakes> {
    let Refused::Problem(problem) = refused else { return None };
    let wrong = problem.errors.iter().map(|it| Mistake::new(&*it.field, &*it.problem));
    let wrong: Vec<Mistake> = wrong.collect();
    (!wrong.is_empty()).then(|| written.source.mistakes(wrong))
}

impl Get {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let answer = self.to.client()?.get(&path(&self.room, ""));
        let answer = answer.map_err(|refused| told(refused, &self.room))?;
        let document = file::settings_in(&answer.body);
        if out.json {
            out.line(&answer.body)?;
        } else {
            out.line(file::as_toml(&self.room, document).trim_end())?;
        }
        Ok(Exit::Fine)
    }
}

impl List {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let answer = self.to.client()?.get("/admin/v1/rooms");
        let answer = answer.map_err(|refused| match refused {
            Refused::Problem(problem) => problem.failure("rooms"),
            Refused::Failure(failure) => failure,
        })?;
        if out.json {
            out.line(&answer.body)?;
            return Ok(Exit::Fine);
        }
        let none = Vec::new();
        let rooms = answer.body["rooms"].as_array().or(answer.body.as_array()).unwrap_or(&none);
        let text = |room: &Value, keys: [&str; 2]| {
            let found = keys.iter().find_map(|key| room[*key].as_str());
            found.unwrap_or("-").to_owned()
        };
        let count = |room: &Value, key: &str| room[key].as_u64().map_or("-".into(), number);
        let names: Vec<String> = rooms.iter().map(|room| text(room, ["room", "name"])).collect();
        let width = names.iter().map(String::len).max().unwrap_or(0).max(4);
        if !rooms.is_empty() {
            let (waiting, active) = ("waiting", "inside");
            out.line(format!("{:width$}  {:11}  {waiting:>14}  {active:>14}", "room", "status"))?;
        }
        for (name, room) in names.iter().zip(rooms) {
            let status = text(room, ["room_status", "status"]);
            let (waiting, active) = (count(room, "waiting"), count(room, "active"));
            out.line(format!("{name:width$}  {status:11}  {waiting:>14}  {active:>14}"))?;
        }
        out.line(format!("rooms {}", number(rooms.len() as u64)))?;
        Ok(Exit::Fine)
    }
}

/// Asks the server to do something with a room.
pub fn call(to: &To, room: &RoomName, verb: &str, body: &Value) -> Result<Value, Failure> {
    let answer = to.client()?.post(&path(room, verb), body);
    let answer = answer.map_err(|refused| told(refused, room))?;
    Ok(match answer.body {
        Value::Null => json!({ "room": room.as_str() }),
        body => body,
    })
}

pub fn told(refused: Refused, room: &RoomName) -> Failure {
    match refused {
        Refused::Problem(problem) => problem.failure(&format!("room {room}")),
        Refused::Failure(failure) => failure,
    }
}

/// Names of rooms need no escape in a path.
pub fn path(room: &RoomName, verb: &str) -> String {
    match verb {
        "" => format!("/admin/v1/rooms/{room}"),
        verb => format!("/admin/v1/rooms/{room}/{verb}"),
    }
}

/// A room as it is typed.
pub fn name(text: &str) -> Result<RoomName, String> {
    RoomName::parse(text).map_err(|error| error.to_string())
}
