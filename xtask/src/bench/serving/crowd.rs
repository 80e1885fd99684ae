//! The people in line: they join over HTTP like anybody, and keep their tokens.

use std::net::SocketAddr;

use serde::Deserialize;

use super::waitroom::ROOM;
use crate::bench::load::requests::{Asker, Joins, Keys};
use crate::bench::load::{Drive, Requests};
use crate::failure::{OrFail, Outcome};

/// Everybody who stands in line, by what they got when they joined.
#[derive(Debug)]
pub struct Crowd {
    pub people: Vec<Person>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Person {
    pub ticket: String,
    pub token: String,
}

impl Crowd {
    /// Lets `count` people join, over so many connections.
    pub fn join(address: SocketAddr, count: u64, connections: usize) -> Outcome<Self> {
        let joins = Joins::new(&format!("/v1/rooms/{ROOM}/join"), Keys::None).count(count);
        let mut joining = Joining { joins, people: Vec::with_capacity(count as usize) };
        Drive::drain(connections, address, &mut joining)?;
        Ok(Self { people: joining.people })
    }

    /// The same request of each of them.
    pub fn requests(&self, method: &str, path: &str) -> Requests {
        Requests::new(self.people.iter().map(|person| {
            request(method, path, &format!("Authorization: Bearer {}\r\n", person.token))
        }))
    }
}

/// A request without a body.
pub fn request(method: &str, path: &str, headers: &str) -> String {
    let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
    format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}{length}\r\n")
}

/// Joins that remember what came back.
struct Joining {
    joins: Joins,
    people: Vec<Person>,
}

impl Asker for Joining {
    fn next(&mut self) -> Option<&[u8]> {
        self.joins.next()
    }

    fn heard(&mut self, status: u16, body: &[u8]) -> Outcome {
        self.joins.heard(status, body)?;
        let text = || String::from_utf8_lossy(body).into_owned();
        let person = serde_json::from_slice(body);
        self.people.push(person.or_fail(|| format!("read the answer to a join: {}", text()))?);
        Ok(())
    }
}
