//! `waitroom ticket`: one person's place, looked at, looked for, moved, ended.
//!
//! Lives here: the calls and their words. Stays out: what they do (`core`).

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use waitroom_store::RoomName;

use crate::client::{To, escaped};
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::room::{name, path, told};
use crate::subcommands::subcommands;

/// Looks at single tickets of a running server, moves and revokes them.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom ticket find spring-sale --code K7P-4QX\n  \
    waitroom ticket show spring-sale 7b0c3f0e-1c5f-4c41-9b57-3f0a2f7f4b11")]
pub struct Ticket {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Shows how a ticket stands.
    Show(Show),
    /// Finds tickets by what a visitor reads out on the phone, or by the shop's name for the user.
    Find(Find),
    /// Puts a waiting ticket at the end of another lane.
    Move(Move),
    /// Ends a ticket or a session, for good.
    Revoke(Revoke),
}

subcommands!(Ticket: Show, Find, Move, Revoke);

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom ticket show spring-sale 7b0c3f0e-1c5f-4c41-9b57-3f0a2f7f4b11")]
struct Show {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// The ticket's id.
    ticket: String,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom ticket find spring-sale --code K7P-4QX\n  \
    waitroom ticket find spring-sale --user ana@example.org")]
struct Find {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// The support code, as it was read out.
    #[arg(long, value_name = "CODE", required_unless_present = "user", conflicts_with = "user")]
    code: Option<String>,
    /// The shop's name for the user.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom ticket move spring-sale 7b0c3f0e-1c5f-4c41-9b57-3f0a2f7f4b11 --lane members")]
struct Move {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// The ticket's id.
    ticket: String,
    /// The lane to move to.
    #[arg(long, value_name = "LANE")]
    lane: String,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom ticket revoke spring-sale 7b0c3f0e-1c5f-4c41-9b57-3f0a2f7f4b11")]
struct Revoke {
    /// The room.
    #[arg(value_parser = name)]
    room: RoomName,
    /// The ticket's id.
    ticket: String,
    #[command(flatten)]
    to: To,
}

impl Show {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let answer = self.to.client()?.get(&of(&self.room, &self.ticket, ""));
        let answer = answer.map_err(|refused| told(refused, &self.room))?;
        out.tell(line(&answer.body), &answer.body)?;
        Ok(Exit::Fine)
    }
}

impl Find {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let query = match (&self.code, &self.user) {
            (Some(code), _) => format!("support_code={}", escaped(code)),
            (None, user) => format!("user_id={}", escaped(user.as_deref().unwrap_or_default())),
        };
        let answer = self.to.client()?.get(&path(&self.room, &format!("tickets?{query}")));
        let answer = answer.map_err(|refused| told(refused, &self.room))?.body;
        let tickets = answer["tickets"].as_array().cloned().unwrap_or_default();
        if out.json {
            out.line(&answer)?;
        } else {
            tickets.iter().try_for_each(|ticket| out.line(line(ticket)))?;
        }
        if tickets.is_empty() {
            if !out.json {
                eprintln!("room {}: no such ticket, or it ended long ago", self.room);
            }
            return Ok(Exit::NotThere);
        }
        Ok(Exit::Fine)
    }
}

impl Move {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let to = of(&self.room, &self.ticket, "/move");
        let answer = self.to.client()?.post(&to, &json!({ "lane": self.lane }));
        let answer = answer.map_err(|refused| told(refused, &self.room))?;
        let said = format!("moved to lane {}; {}", self.lane, line(&answer.body));
        out.tell(said, &answer.body)?;
        Ok(Exit::Fine)
    }
}

impl Revoke {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let answer = self.to.client()?.post(&of(&self.room, &self.ticket, "/revoke"), &json!({}));
        let answer = answer.map_err(|refused| told(refused, &self.room))?;
        out.tell(line(&answer.body), &answer.body)?;
        Ok(Exit::Fine)
    }
}

fn of(room: &RoomName, ticket: &str, verb: &str) -> String {
    path(room, &format!("tickets/{}{verb}", escaped(ticket)))
}

/// A ticket in one line.
fn line(ticket: &Value) -> String {
    let text = |key: &str| ticket[key].as_str().unwrap_or("-").to_owned();
    let mut line = format!("ticket {}: {}", text("ticket"), text("status"));
    if let Some(position) = ticket["position"].as_u64().filter(|position| *position > 0) {
        line += &format!(", position {position}");
    }
    line += &format!(", code {}", text("support_code"));
    for key in ["joined_at", "admitted_at", "claim_by", "expires_at", "ended_because"] {
        if let Some(value) = ticket[key].as_str() {
            line += &format!(", {} {value}", key.replace('_', " "));
        }
    }
    line
}
