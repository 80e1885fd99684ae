//! `waitroom check`: would a server start with this configuration?
//!
//! Lives here: telling what was read, or everything that is wrong. Stays out: reading it
//! (`config`), and whether ports are free and files are there: that can change until the start.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use waitroom_api::document::value::rate_text;
use waitroom_core::settings::Rate;
use waitroom_gate::Site;

use crate::config::{Config, Environment, Limits, TlsFiles};
use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Checks a configuration file together with the environment, and tells every mistake at once.
///
/// Without a file it checks the defaults and the environment.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom check waitroom.toml")]
pub struct Check {
    /// The file that the server would be started with.
    file: Option<PathBuf>,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

impl Check {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let config = match Config::load(self.file.as_deref(), &Environment::of_this_process()) {
            Ok(config) => config,
            Err(mistakes) => return out.mistakes(&mistakes),
        };
        let file = self.file.as_deref().map(|file| file.display().to_string());
        if out.json {
            let Config { server, rooms, .. } = &config;
            let shown = |address: Option<SocketAddr>| address.map(|it| it.to_string());
            out.line(json!({
                "file": file,
                "public": shown(Some(server.public)),
                "admin": shown(server.admin),
                "grpc": shown(server.grpc),
                "data": server.data,
                "rooms": rooms.keys().map(|name| name.as_str()).collect::<Vec<_>>(),
            }))?;
            return Ok(Exit::Fine);
        }
        out.line(format!("{}: no mistakes", file.as_deref().unwrap_or("defaults")))?;
        for (name, said) in facts(&config) {
            out.line(format!("  {name:7} {said}"))?;
        }
        Ok(Exit::Fine)
    }
}

/// What an operator looks at before the doors open.
fn facts(config: &Config) -> Vec<(&'static str, String)> {
    let Config { server, limits, tls, trust, pass, store, log, rooms, sites, master_key, .. } =
        config;
    let metrics = if config.metrics.open { "without a key" } else { "with a key" };
    let traces = match &config.telemetry.otlp {
        Some(_) => format!("{} % of requests", config.telemetry.sample * 100.0),
        None => "off".to_owned(),
    };
    let or_none = |words: Vec<String>| match &words[..] {
        [] => "none".to_owned(),
        words => words.join(", "),
    };
    let listener = |address: Option<SocketAddr>, files: &TlsFiles| match address {
        None => "none".into(),
        Some(address) if files.cert.is_some() => format!("{address}, TLS"),
        Some(address) => format!("{address}, plain"),
    };
    let pace = |rate: &Option<Rate>| rate.map_or("none".into(), rate_text);
    let key = match (master_key, &store.master_key_file) {
        (Some(_), _) => "in the environment".to_owned(),
        (None, Some(file)) => format!("in {}", file.display()),
        (None, None) => "in the data folder".to_owned(),
    };
    let site = |site: &Site| {
        let origins: Vec<String> = site.origins.iter().map(ToString::to_string).collect();
        format!("{} -> {}", site.name, origins.join(" "))
    };
    let Limits { join, status, heartbeat, session, connections_max, .. } = limits;
    let paces =
        [("join", join), ("status", status), ("heartbeat", heartbeat), ("session", session)];
    let paces: Vec<String> = paces.map(|(name, rate)| format!("{name} {}", pace(rate))).into();
    vec![
        ("public", listener(Some(server.public), &tls.public)),
        ("admin", listener(server.admin, &tls.admin)),
        ("grpc", listener(server.grpc, &tls.grpc)),
        ("trust", or_none(trust.proxies.clone())),
        ("limits", format!("{}; {connections_max} connections", paces.join(", "))),
        ("pass", pass.algorithm.to_string()),
        ("data", server.data.display().to_string()),
        ("store", format!("{}, {}; master key {key}", store.kind, store.durability)),
        ("log", format!("{}, {}; metrics {metrics}; traces {traces}", log.level, log.format)),
        ("rooms", or_none(rooms.keys().map(ToString::to_string).collect())),
        ("sites", or_none(sites.iter().map(site).collect())),
    ]
}
