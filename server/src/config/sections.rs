//! The sections of the configuration: every key with its type and how it is read.
//!
//! Lives here: the table of keys, as structs. Their meaning and reasons are in `default.toml`,
//! for the people who set them. Stays out: how single values are read, and keys that must fit
//! together (`together.rs`).

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use hyper::{StatusCode, Uri};
use serde_json::{Map, Value};
use waitroom_api::document::Mistake;
use waitroom_api::document::value::{Words, flag, or_none, shown, text as words};
use waitroom_core::settings::Rate;
use waitroom_gate::site::{Crawlers, Rule, Waiting, When};
use waitroom_outbox::Filter;
use waitroom_store::RoomName;

use super::events::{contact, database, hook_url, kinds, mail_server, mirror, servers, topic};
use super::gate::{
    gate_name, host_pattern, local_path, origin, room_name, rule, waiting_status, when,
};
use super::values::{
    address, collector, count, file, list, net, pace, plain, redis_url, share, size, span, url,
};

/// A struct of keys, each `name: type = how it is read`; and the reading of all of them, so that
/// every mistake is found and no key is forgotten in one of the two places.
macro_rules! section {
    ($name:ident { $($key:ident: $type:ty = $read:expr),* $(,)? }) => {
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $(pub $key: $type,)*
        }

        impl $name {
            fn read(table: &mut Table<'_>) -> $name {
                $(let $key = table.take(stringify!($key), $read);)*
                table.close(&[$(stringify!($key)),*]);
                $name { $($key,)* }
            }
        }
    };
}

/// A table of such structs.
macro_rules! tables {
    ($name:ident { $($key:ident: $type:ident),* $(,)? }) => {
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            $(pub $key: $type,)*
        }

        impl $name {
            fn read(table: &mut Table<'_>) -> $name {
                $(let $key = $type::read(&mut table.below(stringify!($key)));)*
                table.close(&[$(stringify!($key)),*]);
                $name { $($key,)* }
            }
        }
    };
}

tables!(Sections {
    server: Server,
    limits: Limits,
    tls: Tls,
    trust: Trust,
    pass: Pass,
    store: Store,
    redis: Redis,
    cluster: Cluster,
    log: Log,
    metrics: Metrics,
    telemetry: Telemetry,
    events: Events,
    notify: Notify,
    gate: Gate,
});

section!(Server {
    public: SocketAddr = address,
    admin: Option<SocketAddr> = |it| or_none(it, address),
    grpc: Option<SocketAddr> = |it| or_none(it, address),
    public_url: Option<String> = |it| or_none(it, url),
    data: PathBuf = file,
    dev: bool = flag,
    drain: Duration = span(Duration::ZERO..=HOUR),
});

section!(Limits {
    join: Option<Rate> = pace,
    join_burst: u64 = count(1..=MILLION),
    status: Option<Rate> = pace,
    heartbeat: Option<Rate> = pace,
    session: Option<Rate> = pace,
    address_prefix_v4: u64 = count(8..=32),
    address_prefix_v6: u64 = count(16..=128),
    addresses_max: u64 = count(1_000..=100 * MILLION),
    connections_max: u64 = count(1..=100 * MILLION),
    connections_per_address_max: u64 = count(0..=100 * MILLION),
    header_bytes_max: u64 = size(256..=1 << 20),
    headers_max: u64 = count(1..=10_000),
    body_bytes_max: u64 = size(1 << 10..=64 << 20),
    admin_body_bytes_max: u64 = size(1 << 10..=64 << 20),
    streams_max: u64 = count(1..=100_000),
    handshake_timeout: Duration = span(TIMEOUT_MIN..=HOUR),
    header_timeout: Duration = span(TIMEOUT_MIN..=HOUR),
    body_timeout: Duration = span(TIMEOUT_MIN..=HOUR),
    idle_timeout: Duration = span(TIMEOUT_MIN..=HOUR),
    write_timeout: Duration = span(TIMEOUT_MIN..=HOUR),
});

tables!(Tls { public: TlsFiles, admin: TlsFiles, grpc: TlsFiles });

section!(TlsFiles {
    cert: Option<PathBuf> = |it| or_none(it, file),
    key: Option<PathBuf> = |it| or_none(it, file),
    client_ca: Option<PathBuf> = |it| or_none(it, file),
});

section!(Trust {
    proxies: Vec<String> = list(net),
    proxy_protocol: Vec<Listener> = list(|it| LISTENERS.read(it)),
});

section!(Pass {
    algorithm: PassAlgorithm = |it| ALGORITHMS.read(it),
    key_file: Option<PathBuf> = |it| or_none(it, file),
    rotate_every: Duration = span(Duration::ZERO..=YEAR),
    publish_for: Duration = span(Duration::ZERO..=30 * DAY),
    binding: Vec<Binding> = list(|it| BINDINGS.read(it)),
    binding_prefix_v4: u64 = count(8..=32),
    binding_prefix_v6: u64 = count(16..=128),
    adapter_key_file: Option<PathBuf> = |it| or_none(it, file),
    join_token_secret_file: Option<PathBuf> = |it| or_none(it, file),
    join_token_key_file: Option<PathBuf> = |it| or_none(it, file),
});

section!(Store {
    kind: StoreKind = |it| STORES.read(it),
    durability: Durability = |it| DURABILITIES.read(it),
    segment_bytes: u64 = size(1 << 20..=4 << 30),
    snapshot_every: u64 = count(1_000..=1_000 * MILLION),
    archive: Option<PathBuf> = |it| or_none(it, file),
    queue_max: u64 = count(16..=16 * MILLION),
    queue_bytes_max: u64 = size(1 << 20..=64 << 30),
    master_key_file: Option<PathBuf> = |it| or_none(it, file),
});

section!(Redis {
    mode: RedisMode = |it| REDIS_MODES.read(it),
    urls: Vec<String> = list(redis_url),
    primary: Option<String> = |it| or_none(it, plain),
    user: Option<String> = |it| or_none(it, plain),
    password_file: Option<PathBuf> = |it| or_none(it, file),
    tls_ca: Option<PathBuf> = |it| or_none(it, file),
    tls_cert: Option<PathBuf> = |it| or_none(it, file),
    tls_key: Option<PathBuf> = |it| or_none(it, file),
    database: u64 = count(0..=1_000),
    replicas_required: u64 = count(0..=16),
    replicas_wait: ReplicasWait = |it| REPLICAS_WAITS.read(it),
    prefix: String = plain,
});

section!(Cluster {
    listen: Option<SocketAddr> = |it| or_none(it, address),
    advertise: Option<String> = |it| or_none(it, plain),
    cert: Option<PathBuf> = |it| or_none(it, file),
    key: Option<PathBuf> = |it| or_none(it, file),
    ca: Option<PathBuf> = |it| or_none(it, file),
});

section!(Log { level: LogLevel = |it| LEVELS.read(it), format: LogFormat = |it| FORMATS.read(it) });

section!(Metrics { open: bool = flag });

section!(Telemetry {
    otlp: Option<String> = |it| or_none(it, collector),
    sample: f64 = share,
});

tables!(Events {
    outbox: EventsOutbox,
    nats: EventsNats,
    kafka: EventsKafka,
    checkouts: EventsCheckouts,
    webhook: EventsWebhook,
    postgres: EventsPostgres,
    mirror: EventsMirror,
});

section!(EventsOutbox {
    keep_bytes: u64 = size(1 << 20..=1 << 50),
    keep_age: Duration = span(Duration::from_secs(60)..=YEAR),
    ready_token: bool = flag,
});

section!(EventsNats {
    servers: Option<String> = |it| or_none(it, servers),
    credentials: Option<PathBuf> = |it| or_none(it, file),
    events: Filter = kinds,
    rooms: Vec<RoomName> = list(room_name),
    replicas: u64 = count(1..=5),
    keep: Duration = span(Duration::from_secs(60)..=10 * YEAR),
    remember: Duration = span(Duration::from_secs(1)..=DAY),
    system_every: Option<Duration> = |it| or_none(it, span(Duration::from_secs(1)..=DAY)),
    checkouts: bool = flag,
});

section!(EventsKafka {
    brokers: Option<String> = |it| or_none(it, servers),
    tls: bool = flag,
    tls_ca: Option<PathBuf> = |it| or_none(it, file),
    tls_cert: Option<PathBuf> = |it| or_none(it, file),
    tls_key: Option<PathBuf> = |it| or_none(it, file),
    sasl: KafkaSasl = |it| KAFKA_SASL.read(it),
    user: Option<String> = |it| or_none(it, words),
    password_file: Option<PathBuf> = |it| or_none(it, file),
    joined: String = topic,
    left: String = topic,
    ready: String = topic,
    events: Filter = kinds,
    rooms: Vec<RoomName> = list(room_name),
    checkouts: bool = flag,
});

section!(EventsCheckouts {
    completed: String = topic,
    failed: String = topic,
    expired: String = topic,
    group: String = topic,
    dead_letter: String = topic,
});

section!(EventsWebhook {
    url: Option<Uri> = |it| or_none(it, hook_url),
    secret_file: Option<PathBuf> = |it| or_none(it, file),
    events: Filter = kinds,
    rooms: Vec<RoomName> = list(room_name),
    allow_private: bool = flag,
    ca: Option<PathBuf> = |it| or_none(it, file),
    timeout: Duration = span(TIMEOUT_MIN..=Duration::from_secs(120)),
    patience: Duration = span(Duration::from_secs(1)..=30 * DAY),
    retry_most: Duration = span(Duration::from_secs(1)..=HOUR),
});

section!(Notify {
    rooms: Vec<RoomName> = list(room_name),
    near_ahead: u64 = count(0..=MILLION),
    near_wait: Duration = span(Duration::ZERO..=DAY),
    smtp: Option<(String, u16)> = |it| or_none(it, mail_server),
    smtp_tls: SmtpTls = |it| SMTP_TLS.read(it),
    smtp_user: Option<String> = |it| or_none(it, words),
    smtp_password_file: Option<PathBuf> = |it| or_none(it, file),
    smtp_ca: Option<PathBuf> = |it| or_none(it, file),
    from: Option<String> = |it| or_none(it, words),
    sms_url: Option<Uri> = |it| or_none(it, hook_url),
    sms_secret_file: Option<PathBuf> = |it| or_none(it, file),
    push_subject: Option<String> = |it| or_none(it, contact),
    push_hosts: Vec<String> = list(words),
    allow_private: bool = flag,
});

section!(EventsPostgres {
    url: Option<String> = |it| or_none(it, database),
    password_file: Option<PathBuf> = |it| or_none(it, file),
    rooms: Vec<RoomName> = list(room_name),
});

section!(EventsMirror {
    to: Option<String> = |it| or_none(it, mirror),
    secret_file: Option<PathBuf> = |it| or_none(it, file),
    tls: bool = flag,
    tls_ca: Option<PathBuf> = |it| or_none(it, file),
    tls_cert: Option<PathBuf> = |it| or_none(it, file),
    tls_key: Option<PathBuf> = |it| or_none(it, file),
    sasl: KafkaSasl = |it| KAFKA_SASL.read(it),
    user: Option<String> = |it| or_none(it, words),
    name: String = topic,
    replicas: u64 = count(1..=5),
    digest_every: Duration = span(Duration::from_secs(1)..=DAY),
});

section!(Gate {
    hosts: Vec<String> = list(host_pattern),
    origins: Vec<Uri> = list(origin),
    room: Option<RoomName> = |it| or_none(it, room_name),
    rules: Vec<Rule> = list(rule),
    bypass: Vec<When> = list(when),
    crawlers: Crawlers = |it| CRAWLERS.read(it),
    waiting: Waiting = |it| WAITINGS.read(it),
    waiting_status: StatusCode = waiting_status,
    fail: FailMode = |it| FAILS.read(it),
    fail_open_per_second: u64 = count(1..=MILLION),
    checked_for: Duration = span(Duration::from_secs(1)..=HOUR),
    only_way_in: bool = flag,
    gates: Vec<String> = list(gate_name),
    room_at: Option<Uri> = |it| or_none(it, origin),
    room_admin_at: Option<Uri> = |it| or_none(it, origin),
    room_key_file: Option<PathBuf> = |it| or_none(it, file),
    gate_name: Option<String> = |it| or_none(it, gate_name),
    origin_ca: Option<PathBuf> = |it| or_none(it, file),
    keep_host: bool = flag,
    connect_timeout: Duration = span(TIMEOUT_MIN..=HOUR),
    answer_timeout: Duration = span(TIMEOUT_MIN..=HOUR),
    idle_timeout: Duration = span(TIMEOUT_MIN..=HOUR),
    in_flight_max: u64 = count(1..=MILLION),
    idle_connections_max: u64 = count(0..=100_000),
    health_path: Option<String> = |it| or_none(it, local_path),
    health_every: Duration = span(Duration::from_secs(1)..=HOUR),
    adaptive: bool = flag,
    adaptive_floor: Option<Rate> = pace,
    adaptive_ceiling: Option<Rate> = pace,
    adaptive_fallback: Option<Rate> = pace,
    adaptive_slow: Duration = span(Duration::from_millis(1)..=HOUR),
    adaptive_bad_percent: u64 = count(0..=100),
    adaptive_in_flight: u64 = count(0..=MILLION),
    adaptive_window: Duration = span(Duration::from_secs(1)..=HOUR),
    adaptive_step_percent: u64 = count(1..=100),
    adaptive_cut_percent: u64 = count(1..=99),
});

/// A site: what it says, laid over `[gate]`. `path` is where it stands.
pub fn read_site(
    path: &str,
    site: Map<String, Value>,
    gate: &Map<String, Value>,
    wrong: &mut Vec<Mistake>,
) -> Gate {
    let mut entries = gate.clone();
    entries.extend(site);
    Gate::read(&mut Table { path: path.to_owned(), entries, defaults: gate, wrong })
}

/// A webhook: what it says, laid over what every webhook begins with.
pub fn read_hook(
    path: &str,
    hook: Map<String, Value>,
    defaults: &Map<String, Value>,
    wrong: &mut Vec<Mistake>,
) -> EventsWebhook {
    let mut entries = defaults.clone();
    entries.extend(hook);
    EventsWebhook::read(&mut Table { path: path.to_owned(), entries, defaults, wrong })
}

const MILLION: u64 = 1_000_000;
/// Less cuts honest clients on slow links; zero cuts everybody.
const TIMEOUT_MIN: Duration = Duration::from_millis(100);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(366 * 86_400);

/// Words of the configuration, each with its meaning.
macro_rules! words {
    ($name:ident as $words:ident { $($word:literal = $variant:ident),* $(,)? }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($variant,)*
        }

        const $words: Words<$name> = Words(&[$(($word, $name::$variant)),*]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($name::$variant => $word,)* })
            }
        }
    };
}

words!(Listener as LISTENERS { "public" = Public, "admin" = Admin, "grpc" = Grpc, });
words!(PassAlgorithm as ALGORITHMS { "ES256" = Es256, "EdDSA" = EdDsa, "RS256" = Rs256, });
words!(Binding as BINDINGS { "nonce" = Nonce, "address" = Address, "agent" = Agent, });
words!(StoreKind as STORES { "file" = File, "memory" = Memory, "redis" = Redis, });
words!(Durability as DURABILITIES {
    "local-sync" = LocalSync,
    "redis-sync" = RedisSync,
    "redis-async" = RedisAsync,
});
words!(RedisMode as REDIS_MODES {
    "single" = Single,
    "sentinel" = Sentinel,
    "cluster" = Cluster,
});
words!(ReplicasWait as REPLICAS_WAITS { "memory" = Memory, "disk" = Disk, });
words!(KafkaSasl as KAFKA_SASL {
    "none" = None,
    "plain" = Plain,
    "scram-sha-256" = ScramSha256,
    "scram-sha-512" = ScramSha512,
});

impl std::str::FromStr for KafkaSasl {
    type Err = String;

    fn from_str(text: &str) -> Result<KafkaSasl, String> {
        KAFKA_SASL.read(&Value::from(text))
    }
}

words!(SmtpTls as SMTP_TLS { "always" = Always, "starttls" = StartTls, "never" = Never, });
words!(LogFormat as FORMATS { "text" = Text, "json" = Json, });
words!(FailMode as FAILS { "closed" = Closed, "open" = Open, });
/// These are the gate's own words.
const CRAWLERS: Words<Crawlers> = Words(&[("wait", Crawlers::Wait), ("pass", Crawlers::Pass)]);
const WAITINGS: Words<Waiting> = Words(&[("page", Waiting::Page), ("redirect", Waiting::Redirect)]);
words!(LogLevel as LEVELS {
    "error" = Error,
    "warn" = Warn,
    "info" = Info,
    "debug" = Debug,
    "trace" = Trace,
});

/// All sections. What could not be read is as in `defaults`, and is among the mistakes.
pub fn read(
    all: Map<String, Value>,
    defaults: &Map<String, Value>,
    wrong: &mut Vec<Mistake>,
) -> Sections {
    Sections::read(&mut Table { path: String::new(), entries: all, defaults, wrong })
}

/// A table that is being read, and where its mistakes go.
struct Table<'a> {
    path: String,
    entries: Map<String, Value>,
    defaults: &'a Map<String, Value>,
    wrong: &'a mut Vec<Mistake>,
}

/// Every file is laid over the defaults, and a test reads those alone.
const WHOLE: &str = "default.toml has every key";

impl Table<'_> {
    fn take<T>(&mut self, key: &str, read: impl Fn(&Value) -> Result<T, String>) -> T {
        let given = self.entries.remove(key).expect(WHOLE);
        read(&given).unwrap_or_else(|problem| {
            self.wrong.push(Mistake::new(self.path_of(key), problem));
            read(&self.defaults[key]).expect("every default can be read")
        })
    }

    fn below(&mut self, key: &str) -> Table<'_> {
        let path = self.path_of(key);
        let defaults = self.defaults[key].as_object().expect(WHOLE);
        let entries = match self.entries.remove(key).expect(WHOLE) {
            Value::Object(entries) => entries,
            other => {
                let problem = format!("{} is not a table; write [{path}]", shown(&other));
                self.wrong.push(Mistake::new(&path, problem));
                defaults.clone()
            }
        };
        Table { path, entries, defaults, wrong: self.wrong }
    }

    /// What nobody asked for is no key.
    fn close(&mut self, known: &[&str]) {
        for key in self.entries.keys() {
            // These are read apart, but whoever mistypes them means them.
            let apart =
                if self.path.is_empty() { &["rooms", "sites", "webhooks"][..] } else { &[] };
            let known = known.iter().chain(apart).copied();
            self.wrong.push(Mistake::unknown_key(self.path_of(key), key, known));
        }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}
