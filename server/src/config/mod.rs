//! The server's configuration: one file, the environment, and what is wrong with them.
//!
//! `default.toml` is compiled in and gives every value that nobody set; a file is laid over it,
//! the environment over both, and only then is it read. So there is no default in the code, and
//! what is not in `default.toml` is no key.
//!
//! Lives here: [`Config`] and how it is put together. Stays out: room documents
//! (`waitroom_api::document`) and command-line flags, which the command lays over the result.
//! To add a key: a line in `sections.rs`, and one in `default.toml` with its reason.

mod environment;
mod events;
pub mod gate;
pub mod kafka;
mod mistakes;
pub mod sections;
mod size;
mod source;
#[cfg(test)]
mod tests;
mod together;
mod values;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};
use waitroom_api::document::{self, Mistake};
use waitroom_core::Settings;
use waitroom_gate::Site;
use waitroom_store::RoomName;
use waitroom_store::seal::MasterKey;

use crate::failure::Exit;

pub use environment::Environment;
pub use events::Hook;
pub use mistakes::Mistakes;
pub use sections::{
    Cluster, Durability, Events, EventsMirror, KafkaSasl, Limits, Listener, Log, LogFormat,
    LogLevel, Metrics, Notify, Pass, PassAlgorithm, Redis, RedisMode, ReplicasWait, Server,
    SmtpTls, Store, StoreKind, Telemetry, Tls, TlsFiles, Trust,
};
pub use source::Source;

/// Default, reference and example.
pub const DEFAULT: &str = include_str!("../../default.toml");

/// What is called so where there is no file.
const NO_FILE: &str = "configuration";

/// Everything that can be set about a server, read and possible.
#[derive(Clone, Debug)]
pub struct Config {
    pub server: Server,
    pub limits: Limits,
    pub tls: Tls,
    pub trust: Trust,
    pub pass: Pass,
    pub store: Store,
    pub redis: Redis,
    pub cluster: Cluster,
    pub log: Log,
    pub metrics: Metrics,
    pub telemetry: Telemetry,
    pub events: Events,
    pub notify: Notify,
    pub rooms: BTreeMap<RoomName, Settings>,
    /// Where events are posted to.
    pub hooks: Vec<Hook>,
    /// The sites that this server stands before.
    pub sites: Vec<Site>,
    /// What every site begins with.
    pub gate: Site,
    /// The master key, where the environment gives it.
    pub master_key: Option<MasterKey>,
}

impl Config {
    /// The defaults, the file over them if there is one, the environment over both. Every mistake
    /// comes back at once.
    pub fn load(file: Option<&Path>, environment: &Environment) -> Result<Config, Mistakes> {
        let Some(path) = file else {
            return Config::read(NO_FILE, "", environment);
        };
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Config::read(&name, &text, environment),
            Err(error) => {
                let exit = match error.kind() {
                    std::io::ErrorKind::NotFound => Exit::NotThere,
                    _ => Exit::Io,
                };
                Err(Mistakes::unread(&name, &error, exit))
            }
        }
    }

    /// The same, of a text that is called `name`.
    pub fn read(name: &str, text: &str, environment: &Environment) -> Result<Config, Mistakes> {
        let mut source = Source::of_toml(name, text)?;
        let mut all = defaults();
        lay_over(&mut all, source.take_root());
        let mut wrong = environment.lay_over(&mut all, &mut source);
        let rooms = read_rooms(all.remove("rooms"), &mut wrong);
        let sites = gate::read_sites(all.remove("sites"), &all, &mut wrong);
        let more_hooks = events::read_hooks(all.remove("webhooks"), &mut wrong);
        let sections = sections::read(all, &defaults(), &mut wrong);
        let first_hook = events::first_hook(&sections.events.webhook, &mut wrong);
        let hooks = first_hook.into_iter().chain(more_hooks).collect();
        events::check_notices(&sections.notify, &mut wrong);
        events::check_kafka(&sections.events.kafka, &mut wrong);
        together::check(&sections, &mut wrong);
        let master_key = environment.master_key(&mut wrong);
        if !wrong.is_empty() {
            return Err(source.mistakes(wrong));
        }
        let sections::Sections {
            server,
            limits,
            tls,
            trust,
            pass,
            store,
            redis,
            cluster,
            log,
            metrics,
            telemetry,
            events,
            notify,
            gate,
        } = sections;
        let gate = gate::site_of("gate".to_owned(), gate);
        Ok(Config {
            server,
            limits,
            tls,
            trust,
            pass,
            store,
            redis,
            cluster,
            log,
            metrics,
            telemetry,
            events,
            notify,
            rooms,
            hooks,
            sites,
            gate,
            master_key,
        })
    }
}

/// What stands in `default.toml`.
fn defaults() -> Map<String, Value> {
    let source = Source::of_toml("default.toml", DEFAULT);
    source.expect("default.toml is well formed; a test reads it").take_root()
}

/// Tables are laid over tables, anything else takes the place of what was there.
fn lay_over(below: &mut Map<String, Value>, above: Map<String, Value>) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(above)) => lay_over(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// The rooms that could be read.
fn read_rooms(given: Option<Value>, wrong: &mut Vec<Mistake>) -> BTreeMap<RoomName, Settings> {
    let mut read = BTreeMap::new();
    let rooms = match given {
        None => return read,
        Some(Value::Object(rooms)) => rooms,
        Some(_) => {
            wrong.push(Mistake::new("rooms", "rooms are tables [rooms.NAME]"));
            return read;
        }
    };
    for (name, room) in rooms {
        let path = format!("rooms.{name}");
        let parsed = RoomName::parse(&name);
        if let Err(error) = &parsed {
            wrong.push(Mistake::new(&path, error.to_string()));
        }
        match (parsed, document::from_json(&room, &Settings::default())) {
            (Ok(name), Ok(settings)) => {
                read.insert(name, settings);
            }
            (_, Err(mistakes)) => wrong.extend(mistakes.into_iter().map(|it| below(&path, it))),
            (Err(_), Ok(_)) => {}
        }
    }
    read
}

/// A mistake of a document that stands inside another one.
fn below(path: &str, mistake: Mistake) -> Mistake {
    match &*mistake.field {
        "" => Mistake::new(path, mistake.problem),
        field => Mistake::new(format!("{path}.{field}"), mistake.problem),
    }
}
