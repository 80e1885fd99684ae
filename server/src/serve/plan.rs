//! The configuration, as the parts that are wired together want it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use waitroom_api::binding::Bind;
use waitroom_api::desk::Manners;
use waitroom_api::limits::{Limit, Limits};
use waitroom_api::{Code, Desk, Problem};
use waitroom_core::settings::Rate;
use waitroom_engine::Config as EngineConfig;
use waitroom_listen::{Nets, Protocols, Settings as ListenSettings, TlsFiles};
use waitroom_pass::{Alg, IpPrefix, JoinKey, JoinTokens, Rotation, SigningKey};
use waitroom_store::file::Options;

use super::upkeep::KeyRotation;
use crate::config::sections::Binding;
use crate::config::{self, Config, Listener, PassAlgorithm, StoreKind};
use crate::failure::{Exit, Failure};

/// One of the doors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    Public,
    Admin,
    Grpc,
    /// For other instances.
    Cluster,
}

impl Door {
    pub fn name(self) -> &'static str {
        match self {
            Door::Public => "public",
            Door::Admin => "admin",
            Door::Grpc => "grpc",
            Door::Cluster => "cluster",
        }
    }

    /// None for the one that no proxy stands before.
    fn listener(self) -> Option<Listener> {
        match self {
            Door::Public => Some(Listener::Public),
            Door::Admin => Some(Listener::Admin),
            Door::Grpc => Some(Listener::Grpc),
            Door::Cluster => None,
        }
    }

    fn tls(self, config: &Config) -> Option<TlsFiles> {
        if self == Door::Cluster {
            let of = &config.cluster;
            let (cert, key) = (of.cert.clone()?, of.key.clone()?);
            return Some(TlsFiles { cert, key, client_ca: of.ca.clone() });
        }
        let files = match self {
            Door::Public => &config.tls.public,
            Door::Admin => &config.tls.admin,
            Door::Grpc => &config.tls.grpc,
            Door::Cluster => return None,
        };
        let (cert, key) = (files.cert.clone()?, files.key.clone()?);
        Some(TlsFiles { cert, key, client_ca: files.client_ca.clone() })
    }
}

/// Whose `X-Forwarded-For` is believed.
pub fn trusted(config: &Config) -> Nets {
    let listed = config.trust.proxies.iter().map(|net| net.parse().expect("checked when read"));
    let listed: Nets = listed.collect();
    if config.server.dev && listed.is_empty() { Nets::loopback() } else { listed }
}

pub fn listener(config: &Config, door: Door, address: SocketAddr) -> ListenSettings {
    let limits = &config.limits;
    let mut settings = ListenSettings::new(vec![address]);
    settings.protocols = match door {
        Door::Grpc | Door::Cluster => Protocols::Http2,
        Door::Public | Door::Admin => Protocols::Both,
    };
    settings.connections_max = limits.connections_max as usize;
    // Whoever speaks only HTTP/2 would not understand it.
    if settings.protocols == Protocols::Both {
        let full = "this instance has as many connections as it may; nothing was done; try again";
        settings.full_answer = Some(Problem::new(Code::Overloaded, full).last_words());
    }
    settings.per_address_max = limits.connections_per_address_max as usize;
    settings.header_bytes_max = limits.header_bytes_max as usize;
    settings.headers_max = limits.headers_max as usize;
    settings.http2.concurrent_streams_max = limits.streams_max as u32;
    settings.timeouts.handshake = limits.handshake_timeout;
    settings.timeouts.header = limits.header_timeout;
    settings.timeouts.idle = limits.idle_timeout;
    settings.timeouts.write = limits.write_timeout;
    settings.timeouts.drain = config.server.drain;
    settings.tls = door.tls(config);
    settings.trusted_hops = trusted(config);
    if door.listener().is_some_and(|it| config.trust.proxy_protocol.contains(&it)) {
        settings.proxy_protocol = Some(trusted(config));
    }
    settings
}

/// `public` is where the public listener really is, for links where no address is configured.
/// `keyless` where the demo's interface takes operators at their word.
pub fn manners(config: &Config, public: SocketAddr, keyless: bool) -> Manners {
    let limits = &config.limits;
    let limit = |rate: Option<Rate>, burst: Option<u64>| {
        let Rate { count, per } = rate?;
        // As many at once as in a minute, so that a client that was away may catch up.
        let a_minute = u64::from(count) * 60_000 / per.0.max(1);
        let burst = burst.unwrap_or(a_minute.max(1)).min(u64::from(u32::MAX)) as u32;
        Some(Limit { count, per_ms: per.0, burst })
    };
    Manners {
        dev: config.server.dev,
        keyless,
        limits: Limits {
            join: limit(limits.join, Some(limits.join_burst)),
            status: limit(limits.status, None),
            heartbeat: limit(limits.heartbeat, None),
            session: limit(limits.session, None),
            prefix_v4: limits.address_prefix_v4 as u8,
            prefix_v6: limits.address_prefix_v6 as u8,
            callers_max: limits.addresses_max as usize,
        },
        body_bytes_max: limits.body_bytes_max as usize,
        admin_body_bytes_max: limits.admin_body_bytes_max as usize,
        body_timeout: limits.body_timeout,
        bind: bind(config),
        public_url: config.server.public_url.clone().unwrap_or_else(|| {
            let scheme = if config.tls.public.cert.is_some() { "https" } else { "http" };
            format!("{scheme}://{public}")
        }),
    }
}

fn bind(config: &Config) -> Bind {
    let pass = &config.pass;
    let with = |tie| pass.binding.contains(&tie);
    let prefix =
        IpPrefix { v4_bits: pass.binding_prefix_v4 as u8, v6_bits: pass.binding_prefix_v6 as u8 };
    Bind {
        nonce: with(Binding::Nonce),
        address: with(Binding::Address).then_some(prefix),
        agent: with(Binding::Agent),
    }
}

/// Tells the page of figures who may read it, and where connections are counted.
pub fn metrics(
    config: &Config,
    desk: &Desk,
    public: &waitroom_listen::Listener,
    admin: Option<&waitroom_listen::Listener>,
    grpc: Option<&waitroom_listen::Listener>,
) {
    if config.metrics.open {
        desk.metrics.open_to_all();
    }
    let doors = [(Door::Public, Some(public)), (Door::Admin, admin), (Door::Grpc, grpc)];
    let counted = doors.into_iter().filter_map(|(door, it)| Some((door.name(), it?.stats())));
    desk.metrics.listeners(counted.collect());
}

pub fn engine(config: &Config, mut engine: EngineConfig) -> EngineConfig {
    engine.snapshot_every = config.store.snapshot_every;
    if config.store.kind == StoreKind::Redis {
        // Others may open this store, so a room is ours only as long as we say so.
        engine.lease = Some(super::redis::LEASE);
    }
    engine
}

pub fn store(config: &Config) -> Options {
    Options {
        segment_bytes: config.store.segment_bytes,
        archive: config.store.archive.clone(),
        queue_max: config.store.queue_max as usize,
        queue_bytes_max: config.store.queue_bytes_max as usize,
    }
}

pub fn algorithm(config: &Config) -> Alg {
    match config.pass.algorithm {
        PassAlgorithm::Es256 => Alg::Es256,
        PassAlgorithm::EdDsa => Alg::EdDsa,
        PassAlgorithm::Rs256 => Alg::Rs256,
    }
}

pub fn rotation(config: &Config) -> Rotation {
    Rotation { publish_for_s: config.pass.publish_for.as_secs(), ..Rotation::default() }
}

/// An operator's own key is the operator's to follow by another.
pub fn key_rotation(config: &Config) -> KeyRotation {
    let own = config.pass.key_file.is_some();
    let every = if own { Duration::ZERO } else { config.pass.rotate_every };
    KeyRotation { every, alg: algorithm(config) }
}

/// The operator's own signing key, if there is one.
pub fn signing_key(config: &Config) -> Result<Option<SigningKey>, Failure> {
    let Some(path) = &config.pass.key_file else { return Ok(None) };
    let key = SigningKey::from_pem(&read(path)?);
    key.map(Some).map_err(|error| wrong_key("pass.key_file", path, &error.to_string()))
}

/// The operator's key for tokens of the earlier interfaces, if there is one.
pub fn adapter_key(pass: &config::Pass) -> Result<Option<SigningKey>, Failure> {
    let Some(path) = &pass.adapter_key_file else { return Ok(None) };
    let wrong = |error: &str| wrong_key("pass.adapter_key_file", path, error);
    let key = SigningKey::from_pem(&read(path)?).map_err(|error| wrong(&error.to_string()))?;
    if key.alg() != Alg::Rs256 {
        return Err(wrong("it is not an RSA key"));
    }
    Ok(Some(key))
}

/// How the shop's join tokens are checked.
pub fn join_tokens(pass: &config::Pass) -> Result<JoinTokens, Failure> {
    let mut keys = Vec::new();
    if let Some(path) = &pass.join_token_secret_file {
        let key = JoinKey::secret(read(path)?.trim().as_bytes());
        let wrong = |error: waitroom_pass::KeyError| {
            wrong_key("pass.join_token_secret_file", path, &error.to_string())
        };
        keys.push(key.map_err(wrong)?);
    }
    if let Some(path) = &pass.join_token_key_file {
        let key = JoinKey::public_pem(&read(path)?);
        let wrong = |error: waitroom_pass::KeyError| {
            wrong_key("pass.join_token_key_file", path, &error.to_string())
        };
        keys.push(key.map_err(wrong)?);
    }
    Ok(JoinTokens::new(keys))
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::new(Exit::NotThere, format!("{}: {error}", path.display()))
            .means("the server does not start")
    })
}

fn wrong_key(field: &str, path: &Path, why: &str) -> Failure {
    Failure::new(Exit::Usage, format!("{field}: {} cannot be used: {why}", path.display()))
        .means("the server does not start")
}
