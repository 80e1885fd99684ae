//! `waitroom events dead`: messages that a webhook did not take.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use waitroom_store::RoomName;

use crate::client::{Refused, To, escaped};
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::room::{call, name, path, told};
use crate::subcommands::subcommands;

/// Shows the messages that a webhook did not take; sends them again or throws them away.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom events dead list\n  \
    waitroom events dead replay spring-sale webhook.4211.0")]
pub struct Dead {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// What there is, and why.
    List(List),
    /// One letter with its body, which may hold a pass.
    Show(Show),
    /// Sends a letter once more; it goes when it is taken.
    Replay(Replay),
    /// Throws a letter away.
    Drop(Throw),
}

subcommands!(Dead: List, Show, Replay, Drop);

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom events dead list")]
struct List {
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom events dead show spring-sale webhook.4211.0")]
struct Show {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom events dead replay spring-sale webhook.4211.0\n  \
    waitroom events dead replay spring-sale --all")]
struct Replay {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// The letter, as `waitroom events dead list` shows it.
    #[arg(required_unless_present = "all")]
    letter: Option<String>,
    /// Every letter of the room, oldest first, until one is not taken.
    #[arg(long, conflicts_with = "letter")]
    all: bool,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom events dead drop spring-sale webhook.4211.0")]
struct Throw {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
struct Which {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// The letter, as `waitroom events dead list` shows it.
    letter: String,
}

fn letters(to: &To) -> Result<Value, Failure> {
    let answer = to.client()?.get("/admin/v1/dead-letters");
    let answer = answer.map_err(|refused| match refused {
        Refused::Problem(problem) => problem.failure("events"),
        Refused::Failure(failure) => failure,
    })?;
    Ok(answer.body)
}

fn word(letter: &Value, key: &str) -> String {
    letter[key].as_str().unwrap_or_default().to_owned()
}

impl List {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let answer = letters(&self.to)?;
        let line = |letter: &Value| {
            format!(
                "{} {}  {}  {} tries since {}: {}",
                word(letter, "room"),
                word(letter, "letter"),
                word(letter, "type"),
                letter["tries"],
                word(letter, "first_tried_at"),
                word(letter, "why")
            )
        };
        let all = answer["letters"].as_array().map_or(&[][..], Vec::as_slice);
        let mut lines: Vec<String> = all.iter().map(line).collect();
        if lines.is_empty() {
            lines.push("no dead letters".to_owned());
        }
        out.tell(lines.join("\n"), &answer)?;
        Ok(Exit::Fine)
    }
}

impl Show {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let Which { room, letter } = &self.which;
        let at = path(room, &format!("dead-letters/{}", escaped(letter)));
        let answer = self.to.client()?.get(&at).map_err(|refused| told(refused, room))?.body;
        let mut lines = Vec::new();
        for key in ["room", "letter", "sink", "type", "why", "first_tried_at", "dead_at"] {
            lines.push(format!("{key:<14}  {}", word(&answer, key)));
        }
        lines.push(format!("{:<14}  {}", "tries", answer["tries"]));
        lines.push(format!("{:#}", answer["body"]));
        out.tell(lines.join("\n"), &answer)?;
        Ok(Exit::Fine)
    }
}

impl Replay {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let room = &self.room;
        let which: Vec<String> = match &self.letter {
            Some(letter) => vec![letter.clone()],
            None => {
                let all = letters(&self.to)?;
                let all = all["letters"].as_array().map_or(&[][..], Vec::as_slice);
                let here = all.iter().filter(|it| it["room"] == room.as_str());
                here.map(|it| word(it, "letter")).collect()
            }
        };
        for letter in &which {
            let verb = format!("dead-letters/{}/replay", escaped(letter));
            call(&self.to, room, &verb, &json!({}))?;
        }
        let said = format!("room {room}: {} taken", counted(which.len()));
        out.tell(said, &json!({ "room": room.as_str(), "taken": which }))?;
        Ok(Exit::Fine)
    }
}

fn counted(letters: usize) -> String {
    if letters == 1 { "1 letter was".to_owned() } else { format!("{letters} letters were") }
}

impl Throw {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let Which { room, letter } = &self.which;
        let at = path(room, &format!("dead-letters/{}", escaped(letter)));
        let answer = self.to.client()?.delete(&at).map_err(|refused| told(refused, room))?;
        out.tell(format!("room {room}: letter {letter} is gone"), &answer.body)?;
        Ok(Exit::Fine)
    }
}
