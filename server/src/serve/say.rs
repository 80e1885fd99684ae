//! What the server says on its way up and down, to whoever watches the terminal or the journal.

use std::net::SocketAddr;
use std::time::Duration;

use waitroom_listen::{Outcome, TlsError};

use super::plan::Door;
use super::protects::Protects;
use crate::config::{Config, StoreKind};
use crate::failure::Failure;

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

/// What `waitroom protect` says: where to look, and what to do next.
pub fn protects(
    addresses: &Addresses,
    config: &Config,
    protects: &Protects,
    fresh_key: Option<&str>,
) {
    let version = env!("CARGO_PKG_VERSION");
    let public = addresses.public;
    let scheme = if config.tls.public.cert.is_some() { "https" } else { "http" };
    let open = format!("{scheme}://{public}");
    let Protects { origin, room, capacity, rate_text, queue_all, .. } = protects;
    let quiet =
        if *queue_all { "everyone waits for a turn" } else { "straight through when quiet" };
    eprintln!("waitroom {version} stands before {origin}");
    eprintln!("  visitors {open}   {capacity} inside at once, {rate_text}; {quiet}");
    eprintln!("  board    {open}/.waitroom/v1/rooms/{room}/board");
    if let Some(admin) = addresses.admin {
        eprintln!("  admin    http://{admin}");
        if let Some(key) = fresh_key {
            eprintln!("  key      {key}   (shown this once)");
        }
        eprintln!();
        eprintln!("next, in another terminal:");
        if let Some(key) = fresh_key {
            eprintln!("  export WAITROOM_SERVER=http://{admin} WAITROOM_ADMIN_KEY={key}");
        } else {
            eprintln!("  export WAITROOM_SERVER=http://{admin}");
        }
    }
    eprintln!(
        "  waitroom pause {room} --reason \"back in five minutes\"   nobody enters, places are kept"
    );
    eprintln!("  waitroom resume {room}");
    eprintln!("  waitroom admit {room} 10                                the next ten, now");
    eprintln!(
        "your site learns who was let in from the headers Waitroom-Ticket and Waitroom-Room,"
    );
    eprintln!("and ends a session by answering with Waitroom-Session: complete");
    if config.server.dev && !public.ip().is_loopback() {
        eprintln!("note: this is plain HTTP and others can reach it; put TLS before it and add");
        eprintln!("      --behind-tls, or give a certificate in --config FILE ([tls.public])");
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

pub fn reloaded(reloaded: Result<(), TlsError>) {
    match reloaded {
        Ok(()) => eprintln!("certificates were read again"),
        Err(error) => eprintln!("the old certificates stay in use: {error}"),
    }
}

pub fn trouble(failure: &Failure) {
    eprintln!("{failure}");
}

pub fn down() {
    eprintln!("all that was acknowledged is on disk; good night");
}
