//! What the server says on its way up and down, to whoever watches the terminal or the journal.

use std::net::SocketAddr;
use std::time::Duration;

use waitroom_api::Problem;
use waitroom_listen::{Outcome, TlsError};
use waitroom_store::RoomName;

use super::plan::Door;
use crate::config::{Config, Mistakes, StoreKind};
use crate::failure::{Exit, Failure};

#[derive(Debug)]
pub struct Addresses {
    pub public: SocketAddr,
    pub admin: Option<SocketAddr>,
    pub grpc: Option<SocketAddr>,
}

impl Addresses {
    /// One line that scripts read.
    pub fn print_json(&self) {
        let addresses = serde_json::json!({
            "public": self.public.to_string(),
            "admin": self.admin.map(|it| it.to_string()),
            "grpc": self.grpc.map(|it| it.to_string()),
        });
        println!("{addresses}");
    }
}

pub fn up(addresses: &Addresses, config: &Config, rooms: usize, fresh_key: Option<&str>) {
    let version = env!("CARGO_PKG_VERSION");
    let mode =
        if config.server.dev { ", development mode: plain HTTP, never for people" } else { "" };
    eprintln!("waitroom {version}{mode}");
    let scheme =
        |files: &crate::config::TlsFiles| if files.cert.is_some() { "https" } else { "http" };
    eprintln!("  public   {}://{}", scheme(&config.tls.public), addresses.public);
    if let Some(admin) = addresses.admin {
        eprintln!("  admin    {}://{admin}", scheme(&config.tls.admin));
    }
    if let Some(grpc) = addresses.grpc {
        eprintln!("  gRPC     {}://{grpc}", scheme(&config.tls.grpc));
    }
    match config.store.kind {
        StoreKind::File => {
            let data = config.server.data.display();
            eprintln!("  store    {data}; local-sync: on disk before it is told");
        }
        StoreKind::Memory => eprintln!("  store    memory: forgotten at the end"),
    }
    eprintln!("  rooms    {rooms} open");
    if let Some(key) = fresh_key {
        eprintln!("  owner's API key, shown this once: {key}");
    }
}

pub fn fewer_connections(wanted: usize, possible: usize) {
    eprintln!(
        "  note     {possible} connections at most, not {wanted}: raise the file limit (ulimit -n)"
    );
}

pub fn stopping(why: &str, drain: Duration) {
    let seconds = drain.as_secs();
    eprintln!("{why}: no new connections; those in progress have {seconds} s to end");
}

pub fn closed(door: Door, outcome: &Outcome) {
    let (served, cut) = (outcome.connections_served, outcome.cut_off);
    let name = door.name();
    eprintln!("  {name}: {served} connections served, {cut} cut off at the deadline");
}

pub fn not_reloaded(mistakes: &Mistakes) {
    eprintln!("the old settings and certificates stay: {mistakes}");
}

pub fn room_not_reloaded(room: &RoomName, problem: &Problem) {
    eprintln!("room {room}: the old settings stay: {}", problem.detail);
    for wrong in &problem.fields {
        eprintln!("  {}: {}", wrong.field, wrong.problem);
    }
}

pub fn rooms_reloaded(changed: &[String]) {
    match changed {
        [] => eprintln!("the configuration was read again: no room is set otherwise"),
        rooms => {
            eprintln!("the configuration was read again: new settings for {}", rooms.join(", "))
        }
    }
}

pub fn reloaded(reloaded: Result<(), TlsError>) {
    match reloaded {
        Ok(()) => eprintln!("certificates were read again"),
        Err(error) => eprintln!("the old certificates stay in use: {error}"),
    }
}

/// What a visitor hears as "try again in a moment", for whoever can do something about it.
pub fn unwritable(room: &RoomName, why: &str) -> Failure {
    Failure::new(Exit::Io, format!("room \"{room}\": cannot write: {why}"))
        .coded("WR-2103")
        .means("nobody new is taken or let in; places are kept, and those inside stay inside")
        .advise("free some space or mend the disk; the room goes on by itself")
}

pub fn writes_again(room: &RoomName) {
    eprintln!("room \"{room}\": writes again");
}

pub fn trouble(failure: &Failure) {
    eprintln!("{failure}");
}

pub fn down() {
    eprintln!("all that was acknowledged is on disk; good night");
}
