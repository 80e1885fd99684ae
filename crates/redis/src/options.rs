//! What a store on Redis is told when it is opened.

use std::{fmt, time::Duration};

/// Which servers, and how they belong together.
#[derive(Clone, PartialEq, Eq)]
pub enum Where {
    /// One server, or whatever stands behind one address.
    Single { url: String },
    /// Sentinels, and the name under which they watch the primary.
    Sentinel { sentinels: Vec<String>, name: String },
    /// Some servers of a Cluster; the others are learnt from them.
    Cluster { seeds: Vec<String> },
}

impl fmt::Debug for Where {
    /// Without user and password: this ends up in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = |urls: &[String]| {
            let host = |url: &String| url.rsplit(['@', '/']).next().unwrap_or_default().to_owned();
            urls.iter().map(host).collect::<Vec<_>>().join(", ")
        };
        match self {
            Where::Single { url } => {
                let host = url.split("://").nth(1).unwrap_or(url);
                f.write_str(host.rsplit('@').next().unwrap_or_default())
            }
            Where::Sentinel { sentinels, name } => {
                write!(f, "{name} by the sentinels {}", hosts(sentinels))
            }
            Where::Cluster { seeds } => write!(f, "the cluster at {}", hosts(seeds)),
        }
    }
}

/// What the servers ask for; sentinels are asked without it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Login {
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: i64,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("database", &self.database).finish_non_exhaustive()
    }
}

/// How servers at `rediss://` addresses prove who they are, and how we do. All of it is PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Whose signature a server must show; the machine's own list if there is none.
    pub ca: Option<Vec<u8>>,
    /// Our certificate and its key, where the servers ask for one.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for Tls {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ca, client) = (self.ca.is_some(), self.client.is_some());
        f.debug_struct("Tls").field("ca", &ca).field("client", &client).finish()
    }
}

/// What `Ok` promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `redis-sync`: the primary has it, and as many replicas as required said that they have it.
    Sync { replicas_required: u32 },
    /// `redis-async`: the primary has it.
    Async,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Sync { .. } => "redis-sync",
            Level::Async => "redis-async",
        }
    }
}

/// Whose clock leases, memberships and ages run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// The server's: the one clock that all instances share.
    OfTheServer,
    /// The clock that the store was given, for tests.
    Given,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub servers: Where,
    pub login: Login,
    pub tls: Tls,
    pub level: Level,
    /// Whether the replicas must have it on their disks, where the server can say so (`WAITAOF`).
    /// A replica tells of its disk once a second, so answers take up to a second more.
    pub on_disks: bool,
    /// Begins the name of every key, so that a server can be shared.
    pub prefix: String,
    pub time: Time,
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
    /// How long an answer may take, the wait for replicas apart.
    pub answer_timeout: Duration,
    /// How long to wait for the replicas.
    pub replicas_timeout: Duration,
    /// Appends that may wait in one line; more are refused at once.
    pub queue_max: usize,
}

impl Options {
    pub fn new(servers: Where, level: Level) -> Options {
        Options {
            servers,
            login: Login::default(),
            tls: Tls::default(),
            level,
            on_disks: false,
            prefix: "waitroom".into(),
            time: Time::OfTheServer,
            connect_timeout: Duration::from_secs(1),
            // A lease lasts two seconds: who has not answered by then is asked anew.
            answer_timeout: Duration::from_secs(2),
            replicas_timeout: Duration::from_secs(1),
            queue_max: 4_096,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let url = "redis://user:secret@10.0.0.1:6379/3".to_owned();
        let single = Where::Single { url: url.clone() };
        let cluster = Where::Cluster { seeds: vec![url.clone(), url.clone()] };
        let sentinels = vec![url];
        let sentinel = Where::Sentinel { sentinels, name: "shop".into() };
        let login =
            Login { user: Some("user".into()), password: Some("secret".into()), database: 0 };
        for shown in [
            format!("{single:?}"),
            format!("{cluster:?}"),
            format!("{sentinel:?}"),
            format!("{login:?}"),
        ] {
            assert!(!shown.contains("secret") && !shown.contains("user"), "{shown}");
        }
        assert_eq!(format!("{single:?}"), "10.0.0.1:6379/3");
    }
}
