//! Asking the server: the rooms, and its page of figures.

use std::time::Instant;

use serde_json::{Value, json};

use super::scrape::Scrape;
use crate::client::{Client, Refused};
use crate::failure::Failure;

/// What one look found.
#[derive(Clone, Debug)]
pub struct Look {
    pub at: Instant,
    pub rooms: Vec<Told>,
    pub figures: Scrape,
}

/// What the operators' API says of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    pub name: String,
    pub status: String,
    pub reason: Option<String>,
}

pub struct Source {
    client: Client,
}

impl Source {
    pub fn new(client: Client) -> Source {
        Source { client }
    }

    pub fn look(&self) -> Result<Look, Failure> {
        let failed = |refused| match refused {
            Refused::Problem(problem) => crate::client::Problem::failure(&problem, "the server"),
            Refused::Failure(failure) => failure,
        };
        let rooms = self.client.get("/admin/v1/rooms").map_err(failed)?;
        let page = self.client.get_text("/metrics").map_err(failed)?;
        let text = |room: &Value, key: &str| room[key].as_str().map(str::to_owned);
        let told = |room: &Value| {
            let name = text(room, "room")?;
            let status = text(room, "status").unwrap_or_else(|| "?".to_owned());
            Some(Told { name, status, reason: text(room, "reason") })
        };
        let rooms = rooms.body["rooms"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(Look {
            at: Instant::now(),
            rooms: rooms.iter().filter_map(told).collect(),
            figures: Scrape::read(&page),
        })
    }

    pub fn pause(&self, room: &str, reason: &str) -> Result<(), String> {
        self.act(room, "pause", &json!({ "reason": reason }))
    }

    pub fn resume(&self, room: &str) -> Result<(), String> {
        self.act(room, "resume", &json!({}))
    }

    fn act(&self, room: &str, verb: &str, body: &Value) -> Result<(), String> {
        // Names of rooms need no escape in a path.
        let done = self.client.post(&format!("/admin/v1/rooms/{room}/{verb}"), body);
        done.map(|_| ()).map_err(|refused| match refused {
            Refused::Problem(problem) => problem.failure(&format!("room {room}")).said().to_owned(),
            Refused::Failure(failure) => failure.said().to_owned(),
        })
    }
}
