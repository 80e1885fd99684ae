//! Which server has a slot now: always the same, the one the sentinels name, or one of a Cluster.
//!
//! What is known is kept until a server says otherwise or cannot be reached; then it is asked anew.
//! `READONLY`, `MOVED` and broken connections all end here, so a failover is followed by everyone
//! who notices any of them.

use std::sync::Mutex;

use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, TlsCertificates,
    Value,
};

use crate::{
    keys::SLOTS,
    options::{Login, Options, Tls, Where},
    trouble::Trouble,
    value,
    wire::{Server, Wire},
};

#[derive(Debug)]
pub struct Place {
    kind: Kind,
    known: Mutex<Known>,
}

#[derive(Debug)]
enum Kind {
    Single(Server),
    /// `like` has no address of its own: what it is asked with is what the primary is asked with.
    Sentinel {
        sentinels: Vec<Server>,
        name: String,
        like: Server,
    },
    Cluster {
        seeds: Vec<Server>,
    },
}

/// Ranges of slots with their primaries; one range for all but a Cluster.
type Known = Vec<(u16, u16, Server)>;

impl Place {
    /// Fails with words for whoever wrote the addresses.
    pub fn new(options: &Options) -> Result<Place, String> {
        let Options { servers, login, tls, .. } = options;
        let several = |urls: &[String], login: &Login| -> Result<Vec<Server>, String> {
            match urls {
                [] => Err("no address".into()),
                urls => urls.iter().map(|url| server(url, login, tls)).collect(),
            }
        };
        let kind = match servers {
            Where::Single { url } => Kind::Single(server(url, login, tls)?),
            Where::Sentinel { sentinels, name } => {
                // Servers are spoken to as their sentinels are.
                let encrypted = sentinels.iter().any(|url| url.starts_with("rediss://"));
                let like = if encrypted { "rediss://127.0.0.1" } else { "redis://127.0.0.1" };
                Kind::Sentinel {
                    sentinels: several(sentinels, &Login::default())?,
                    name: name.clone(),
                    like: server(like, login, tls)?,
                }
            }
            Where::Cluster { seeds } => Kind::Cluster { seeds: several(seeds, login)? },
        };
        Ok(Place { kind, known: Mutex::default() })
    }

    /// Whether rooms can be on different servers.
    pub fn is_cluster(&self) -> bool {
        matches!(self.kind, Kind::Cluster { .. })
    }

    pub async fn server_of(&self, slot: u16, options: &Options) -> Result<Server, Trouble> {
        if let Some(server) = self.known_server(slot) {
            return Ok(server);
        }
        let known = self.find(options).await?;
        *self.known() = known;
        self.known_server(slot).ok_or_else(|| Trouble::Away(format!("nobody has slot {slot}")))
    }

    /// All primaries, for looking at their settings.
    pub async fn primaries(&self, options: &Options) -> Result<Vec<Server>, Trouble> {
        let mut servers: Vec<Server> =
            self.find(options).await?.into_iter().map(|(.., server)| server).collect();
        servers.sort_by(|a, b| a.name.cmp(&b.name));
        servers.dedup_by(|a, b| a.name == b.name);
        Ok(servers)
    }

    /// What was known is no longer true, or may not be.
    pub fn forget(&self) {
        self.known().clear();
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().expect("nobody panics while holding it")
    }

    fn known_server(&self, slot: u16) -> Option<Server> {
        let has = |(from, to, _): &&(u16, u16, Server)| (*from..=*to).contains(&slot);
        self.known().iter().find(has).map(|(.., server)| server.clone())
    }

    async fn find(&self, options: &Options) -> Result<Known, Trouble> {
        match &self.kind {
            Kind::Single(server) => Ok(vec![(0, SLOTS - 1, server.clone())]),
            Kind::Sentinel { sentinels, name, like } => {
                let mut last = Trouble::Away("no sentinel".into());
                for sentinel in sentinels {
                    match primary(sentinel, name, like, options).await {
                        Ok(server) => return Ok(vec![(0, SLOTS - 1, server)]),
                        Err(trouble) => last = trouble,
                    }
                }
                Err(last)
            }
            Kind::Cluster { seeds } => {
                let mut last = Trouble::Away("no server of the cluster".into());
                for seed in seeds {
                    match slots(seed, options).await {
                        Ok(known) if !known.is_empty() => return Ok(known),
                        Ok(_) => last = Trouble::Away("the cluster has no slots yet".into()),
                        Err(trouble) => last = trouble,
                    }
                }
                Err(last)
            }
        }
    }
}

fn server(url: &str, login: &Login, tls: &Tls) -> Result<Server, String> {
    let info: Result<ConnectionInfo, _> = url.into_connection_info();
    // The address may hold a password, and is not repeated.
    let info = info.map_err(|error| format!("not an address of Redis: {error}"))?;
    let mut settings = info.redis_settings().clone();
    if let Some(user) = &login.user {
        settings = settings.set_username(user);
    }
    if let Some(password) = &login.password {
        settings = settings.set_password(password);
    }
    if login.database != 0 {
        settings = settings.set_db(login.database);
    }
    let info = info.set_redis_settings(settings);
    Ok(Server::new(match info.addr() {
        ConnectionAddr::TcpTls { .. } => encrypted(info, tls)?,
        _ => info,
    }))
}

/// The same address, with what its certificate is held against.
fn encrypted(info: ConnectionInfo, tls: &Tls) -> Result<ConnectionInfo, String> {
    // The one that all of ours use. Whoever was first has chosen the same.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let client_tls = tls.client.clone();
    let client_tls =
        client_tls.map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
    let certificates = TlsCertificates { client_tls, root_cert: tls.ca.clone() };
    let client = Client::build_with_tls(info, certificates);
    let client = client.map_err(|error| format!("its certificates cannot be read: {error}"))?;
    Ok(client.get_connection_info().clone())
}

/// Whom one sentinel takes for the primary, if that one agrees.
async fn primary(
    sentinel: &Server,
    name: &str,
    like: &Server,
    options: &Options,
) -> Result<Server, Trouble> {
    let mut wire = Wire::plain(sentinel, options).await?;
    let mut command = redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let Value::Array(found) = wire.one(command).await? else {
        return Err(Trouble::Away(format!("the sentinels know no primary {name:?}")));
    };
    let mut parts = value::Parts::of(Value::Array(found))?;
    let (host, port) = (parts.text()?, parts.number()?);
    let port = u16::try_from(port).map_err(|_| Trouble::Away("no port".into()))?;
    let server = like.at(&host, port);
    // A sentinel that was cut off may name one that was replaced.
    let mut wire = Wire::plain(&server, options).await?;
    let role = wire.one(redis::cmd("ROLE")).await?;
    let role = value::Parts::of(role)?.text()?;
    if role != "master" {
        return Err(Trouble::Away(format!("{} is no primary now, but {role}", server.name)));
    }
    Ok(server)
}

/// The slots as one server of the Cluster knows them.
async fn slots(seed: &Server, options: &Options) -> Result<Known, Trouble> {
    let mut wire = Wire::plain(seed, options).await?;
    let mut command = redis::cmd("CLUSTER");
    command.arg("SLOTS");
    let mut ranges = value::Parts::of(wire.one(command).await?)?;
    let mut known = Vec::new();
    while ranges.left() > 0 {
        let mut range = ranges.parts()?;
        let (from, to) = (range.number()?, range.number()?);
        let mut node = range.parts()?;
        // A server that was not told its own address says nothing: it is where we found it.
        let host = node.text().unwrap_or_default();
        let host = if host.is_empty() { seed.host().to_owned() } else { host };
        let port = node.number()?;
        let small = |number: u64| u16::try_from(number).map_err(|_| odd(number));
        known.push((small(from)?, small(to)?, seed.at(&host, small(port)?)));
    }
    Ok(known)
}

fn odd(number: u64) -> Trouble {
    Trouble::Away(format!("{number} is neither a slot nor a port"))
}
