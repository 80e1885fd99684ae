//! `waitroom key`: API keys of a running server.
//!
//! Lives here: the calls and their words. The text of a new key goes to stdout, alone on its line,
//! so that a script can keep it; everything about it goes to stderr.

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use crate::client::{Refused, To, escaped};
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::subcommands::subcommands;

/// Makes, lists, follows and revokes API keys. Takes a key of role owner.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom key create --role operator --note \"night shift\" --expires-in 30d\n  \
    waitroom key list")]
pub struct Key {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Makes a key and prints it, this once.
    Create(Create),
    /// Lists all keys, without their texts.
    List(List),
    /// Makes the key that follows another; the old one works on until the overlap ends.
    Rotate(Rotate),
    /// Ends a key at once.
    Revoke(Revoke),
}

subcommands!(Key: Create, List, Rotate, Revoke);

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Role {
    /// Looks.
    Viewer,
    /// Acts in rooms, and for tickets.
    Operator,
    /// Makes rooms and keys.
    Owner,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom key create --role viewer --note grafana\n  \
    waitroom key create --role operator --note \"night shift\" --expires-in 30d")]
struct Create {
    /// What it may do.
    #[arg(long)]
    role: Role,
    /// What it is for.
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// How long it works, such as 12h or 30d; for ever unless given.
    #[arg(long, value_name = "SPAN")]
    expires_in: Option<String>,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom key list")]
struct List {
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom key rotate k3f81b2aa --overlap 48h")]
struct Rotate {
    /// The key's id, as `waitroom key list` shows it.
    id: String,
    /// How long the old one works on; a day unless given.
    #[arg(long, value_name = "SPAN")]
    overlap: Option<String>,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom key revoke k3f81b2aa")]
struct Revoke {
    /// The key's id, as `waitroom key list` shows it.
    id: String,
    #[command(flatten)]
    to: To,
}

impl Create {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let role = match self.role {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Owner => "owner",
        };
        let mut body = json!({ "role": role, "note": self.note });
        if let Some(span) = self.expires_in {
            body["expires_in"] = span.into();
        }
        let answer = self.to.client()?.post("/admin/v1/keys", &body);
        made(out, &answer.map_err(|refused| failed(refused, "a new key"))?.body)
    }
}

impl Rotate {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let mut body = Map::new();
        if let Some(span) = self.overlap {
            body.insert("overlap".into(), span.into());
        }
        let path = format!("/admin/v1/keys/{}/rotate", escaped(&self.id));
        let answer = self.to.client()?.post(&path, &Value::Object(body));
        made(out, &answer.map_err(|refused| failed(refused, &format!("key {}", self.id)))?.body)
    }
}

fn made(out: &mut Out, key: &Value) -> Result<Exit, Failure> {
    let text = |name: &str| key[name].as_str().unwrap_or("-").to_owned();
    if !out.json {
        let ends = key["expires_at"].as_str().map_or("never".into(), str::to_owned);
        eprintln!("key {}, role {}, ends {ends}; it is shown this once:", text("id"), text("role"));
    }
    out.tell(text("key"), key)?;
    Ok(Exit::Fine)
}

impl List {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let answer = self.to.client()?.get("/admin/v1/keys");
        let answer = answer.map_err(|refused| failed(refused, "keys"))?.body;
        if out.json {
            out.line(&answer)?;
            return Ok(Exit::Fine);
        }
        let row = |cells: [&str; 5]| {
            let [id, role, state, used, note] = cells;
            format!("{id:<12}  {role:<8}  {state:<34}  {used:<24}  {note}").trim_end().to_owned()
        };
        out.line(row(["id", "role", "state", "last used", "note"]))?;
        for key in answer["keys"].as_array().into_iter().flatten() {
            let text = |name: &str| key[name].as_str();
            let state = match (text("revoked_at"), text("replaced_by"), text("expires_at")) {
                (Some(at), ..) => format!("revoked {at}"),
                (None, Some(by), _) => format!("followed by {by}"),
                (None, None, Some(at)) => format!("until {at}"),
                (None, None, None) => "works".into(),
            };
            let used = text("last_used_at").unwrap_or("-");
            let (id, role) = (text("id").unwrap_or("-"), text("role").unwrap_or("-"));
            out.line(row([id, role, &state, used, text("note").unwrap_or("")]))?;
        }
        Ok(Exit::Fine)
    }
}

impl Revoke {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let path = format!("/admin/v1/keys/{}", escaped(&self.id));
        let answer = self.to.client()?.delete(&path);
        let answer = answer.map_err(|refused| failed(refused, &format!("key {}", self.id)))?;
        out.tell(format!("key {}: revoked", self.id), &answer.body)?;
        Ok(Exit::Fine)
    }
}

fn failed(refused: Refused, what: &str) -> Failure {
    match refused {
        Refused::Problem(problem) => problem.failure(what),
        Refused::Failure(failure) => failure,
    }
}
