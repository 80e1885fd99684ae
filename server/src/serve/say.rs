//! What the server says on its way up and down, to whoever watches the terminal or the journal:
//! one line for each step.

use std::net::SocketAddr;
use std::time::Duration;

use tracing::{error, info, warn};
use waitroom_api::Problem;
use waitroom_listen::{Outcome, TlsError};
use waitroom_store::RoomName;

use super::plan::Door;
use super::protects::Protects;
use crate::config::{Config, Mistakes, StoreKind, TlsFiles};
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

pub fn starting(config: &Config) {
    let version = env!("CARGO_PKG_VERSION");
    info!(version, "waitroom starts");
    if config.server.dev {
        warn!("development mode: plain HTTP, never for people");
    }
    match config.store.kind {
        StoreKind::File => {
            let data = config.server.data.display();
            info!(%data, durability = "local-sync", "store opened: on disk before it is told");
        }
        // Said when it was opened, with what its servers are like.
        StoreKind::Redis => {}
        StoreKind::Memory => warn!("store in memory: forgotten at the end"),
    }
}

pub fn redis(at: &str, level: waitroom_redis::Level, fitness: &waitroom_redis::Fitness) {
    let durability = level.name();
    match level {
        waitroom_redis::Level::Sync { replicas_required } => {
            info!(
                at,
                durability, replicas_required, "store opened: replicas have it before it is told"
            );
        }
        waitroom_redis::Level::Async => {
            info!(
                at,
                durability, "store opened: Redis has it before it is told, its replicas after"
            );
        }
    }
    for server in &fitness.servers {
        info!(server, "store server");
    }
    for warning in &fitness.warnings {
        warn!("{warning}");
    }
}

pub fn up(addresses: &Addresses, config: &Config, rooms: usize, fresh_key: Option<&str>) {
    let doors = [
        (Door::Public, Some(addresses.public), &config.tls.public),
        (Door::Admin, addresses.admin, &config.tls.admin),
        (Door::Grpc, addresses.grpc, &config.tls.grpc),
    ];
    let scheme = |files: &TlsFiles| if files.cert.is_some() { "https" } else { "http" };
    for (door, address, files) in doors {
        if let Some(address) = address {
            let door = door.name();
            info!(door, address = %format_args!("{}://{address}", scheme(files)), "listening");
        }
    }
    info!(rooms, "ready: rooms are open");
    if let Some(key) = fresh_key {
        // For the eyes of whoever started it, and in no log.
        eprintln!("owner's API key, shown this once: {key}");
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
    warn!(wanted, possible, "fewer connections than wanted: raise the file limit (ulimit -n)");
}

pub fn stopping(why: &str, drain: Duration) {
    let drain_s = drain.as_secs();
    info!(why, drain_s, "stopping: no new connections; those in progress may end");
}

pub fn closed(door: Door, outcome: &Outcome) {
    let (served, cut) = (outcome.connections_served, outcome.cut_off);
    info!(door = door.name(), served, cut, "listener closed: connections served, cut off");
}

pub fn not_reloaded(mistakes: &Mistakes) {
    error!("reload refused: the old settings and certificates stay: {mistakes}");
}

pub fn room_not_reloaded(room: &RoomName, problem: &Problem) {
    let wrong: Vec<String> =
        problem.fields.iter().map(|it| format!("{}: {}", it.field, it.problem)).collect();
    let (why, wrong) = (&problem.detail, wrong.join("; "));
    error!("reload refused by room {room}: the old settings stay: {why} {wrong}");
}

pub fn rooms_reloaded(changed: &[String]) {
    match changed {
        [] => info!("configuration was read again: no room is set otherwise"),
        rooms => info!("configuration was read again: new settings for {}", rooms.join(", ")),
    }
}

pub fn reloaded(reloaded: Result<(), TlsError>) {
    match reloaded {
        Ok(()) => info!("certificates were read again"),
        Err(why) => error!(%why, "the old certificates stay in use"),
    }
}

/// What a visitor hears as "try again in a moment", for whoever can do something about it.
pub fn unwritable(room: &RoomName, why: &str) -> Failure {
    Failure::new(Exit::Io, format!("room \"{room}\": cannot write: {why}"))
        .coded("WR-2103")
        .means("nobody new is taken or let in; places are kept, and those inside stay inside")
        .advise("free some space, mend the disk or look after Redis; the room goes on by itself")
}

pub fn writes_again(room: &RoomName) {
    info!(%room, "room writes again");
}

/// Why one room is not served, while the others are.
pub fn unopened(room: &RoomName, why: &str) -> Failure {
    Failure::new(Exit::Wrong, format!("room \"{room}\": cannot be opened: {why}"))
        .coded("WR-2105")
        .means(
            "its visitors and operators are answered 503 and nobody is let in; its places are kept; \
             other rooms are served",
        )
        .advise("mend what is named; it is tried again by itself, and no restart is needed")
}

pub fn open_after_all(room: &RoomName) {
    info!(%room, "room is open after all");
}

pub fn trouble(failure: &Failure) {
    error!("{failure}");
}

pub fn down() {
    info!("stopped: all that was acknowledged is on disk; good night");
}

/// How the handover to the other instances went.
pub fn handed_over(rooms: usize, left: usize) {
    match left {
        0 => info!(rooms, "rooms handed over"),
        left => warn!(rooms, left, "some rooms could not be handed over; others take them later"),
    }
}
