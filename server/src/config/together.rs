//! Keys that are each fine and do not fit together.
//!
//! Lives here: those rules. Stays out: what flags change afterwards; `serve` looks at that.

use std::net::SocketAddr;

use waitroom_api::document::Mistake;
use waitroom_outbox::mirror::Place;

use super::kafka::Way;
use super::sections::{EventsMirror, Redis, Sections};
use super::{Durability, Listener, RedisMode, StoreKind, TlsFiles};

pub fn check(sections: &Sections, wrong: &mut Vec<Mistake>) {
    let unread: Vec<String> = wrong.iter().map(|it| it.field.clone()).collect();
    let mut rules = Rules { unread, wrong };
    let Sections { server, tls, trust, pass, store, redis, cluster, events, .. } = sections;
    check_mirror(&events.mirror, &mut rules);
    for (name, files) in [("public", &tls.public), ("admin", &tls.admin), ("grpc", &tls.grpc)] {
        check_tls(name, files, &mut rules);
    }
    let public = Some(server.public);
    // Port 0 is another one each time.
    let same = |a: Option<SocketAddr>, b| a == b && a.is_some_and(|it| it.port() != 0);
    for (name, other, by, taken) in [
        ("server.admin", server.admin, "server.public", public),
        ("server.grpc", server.grpc, "server.public", public),
        ("server.grpc", server.grpc, "server.admin", server.admin),
    ] {
        if same(other, taken) {
            rules.broken(&[name, by], format!("the same address as {by}; each needs its own"));
        }
    }
    if !trust.proxy_protocol.is_empty() && trust.proxies.is_empty() {
        let problem = "nobody could connect: trust.proxies lists no network";
        rules.broken(&["trust.proxy_protocol", "trust.proxies"], problem);
    }
    for (listener, name, address) in [
        (Listener::Admin, "server.admin", server.admin),
        (Listener::Grpc, "server.grpc", server.grpc),
    ] {
        if trust.proxy_protocol.contains(&listener) && address.is_none() {
            let problem = format!("there is no such listener: {name} is \"none\"");
            rules.broken(&["trust.proxy_protocol", name], problem);
        }
    }
    let on_redis = store.kind == StoreKind::Redis;
    if on_redis != (store.durability != Durability::LocalSync) {
        let problem = match on_redis {
            true => "a store on Redis is \"redis-sync\" or \"redis-async\"; name which",
            false => "only a store of kind \"redis\" can be this",
        };
        rules.broken(&["store.durability", "store.kind"], problem);
    }
    if on_redis && redis.urls.is_empty() {
        rules.broken(&["redis.urls", "store.kind"], "no address; write [\"redis://…\"]");
    }
    if on_redis && redis.mode == RedisMode::Single && redis.urls.len() > 1 {
        let problem = "several addresses are for \"sentinel\" or \"cluster\"";
        rules.broken(&["redis.mode", "redis.urls"], problem);
    }
    if on_redis && (redis.mode == RedisMode::Sentinel) != redis.primary.is_some() {
        let problem =
            "the name by which sentinels watch the primary: needed for them, and only then";
        rules.broken(&["redis.primary", "redis.mode"], problem);
    }
    if on_redis && redis.mode == RedisMode::Cluster && redis.database != 0 {
        rules.broken(&["redis.database", "redis.mode"], "a cluster has only database 0");
    }
    if pass.adapter_key_file.is_some() && pass.adapter_key_file == pass.key_file {
        let problem =
            "the key of passes: a token would be taken for a pass; it needs one of its own";
        rules.broken(&["pass.adapter_key_file", "pass.key_file"], problem);
    }
    if cluster.listen.is_some() && !on_redis {
        let problem = "instances share a store of kind \"redis\", and no other";
        rules.broken(&["cluster.listen", "store.kind"], problem);
    }
    let files = [&cluster.cert, &cluster.key, &cluster.ca];
    if files.iter().any(|it| it.is_some()) && files.iter().any(|it| it.is_none()) {
        let problem = "instances need all three: a certificate, its key, and who signs them";
        rules.broken(&["cluster.cert", "cluster.key", "cluster.ca"], problem);
    }
    if cluster.listen.is_some_and(|it| it.ip().is_unspecified()) && cluster.advertise.is_none() {
        let problem = "others cannot call this address; name one that they can";
        rules.broken(&["cluster.advertise", "cluster.listen"], problem);
    }
    if on_redis {
        check_redis_tls(redis, &mut rules);
    }
    if pass.join_token_secret_file.is_some() && pass.join_token_key_file.is_some() {
        let keys = ["pass.join_token_key_file", "pass.join_token_secret_file"];
        rules.broken(&keys, "a shop signs with a secret or with a key; give one of the two files");
    }
}

/// Half of the way encrypted would look like all of it.
fn check_redis_tls(redis: &Redis, rules: &mut Rules<'_>) {
    let encrypted = redis.urls.iter().filter(|url| url.starts_with("rediss://")).count();
    if encrypted > 0 && encrypted < redis.urls.len() {
        rules.broken(&["redis.urls"], "some are \"rediss://\" and some are not; all or none");
    }
    for (key, file) in [
        ("redis.tls_ca", &redis.tls_ca),
        ("redis.tls_cert", &redis.tls_cert),
        ("redis.tls_key", &redis.tls_key),
    ] {
        if file.is_some() && encrypted == 0 {
            rules.broken(&[key, "redis.urls"], "is of use only with \"rediss://\" addresses");
        }
    }
    if redis.tls_cert.is_some() != redis.tls_key.is_some() {
        let problem = "a certificate and its key go together; give both files, or none";
        rules.broken(&["redis.tls_cert", "redis.tls_key"], problem);
    }
}

/// To Kafka there are more ways than to the others.
fn check_mirror(of: &EventsMirror, rules: &mut Rules<'_>) {
    let Some(to) = &of.to else { return };
    let way = Way::of_mirror(of);
    let to_kafka = to.starts_with("kafka://");
    if !to_kafka && way.is_special() {
        let problem = "only kafka:// takes tls and sasl here; others say it in their address";
        rules.broken(&["events.mirror.to"], problem);
        return;
    }
    let wrong = if to_kafka { way.mistakes("secret_file") } else { Vec::new() };
    for (key, problem) in &wrong {
        rules.broken(&[&format!("events.mirror.{key}")], problem.as_str());
    }
    if wrong.is_empty()
        && let Err(problem) = Place::parse(to, way.access())
    {
        rules.broken(&["events.mirror.secret_file", "events.mirror.to"], problem);
    }
}

fn check_tls(listener: &str, files: &TlsFiles, rules: &mut Rules<'_>) {
    let mut needs = |key: &str, other: &str| {
        let (key, other) = (format!("tls.{listener}.{key}"), format!("tls.{listener}.{other}"));
        rules.broken(&[&key, &other], format!("needs {other} as well"));
    };
    match (&files.cert, &files.key) {
        (Some(_), None) => needs("cert", "key"),
        (None, Some(_)) => needs("key", "cert"),
        (None, None) if files.client_ca.is_some() => needs("client_ca", "cert"),
        _ => {}
    }
}

struct Rules<'a> {
    /// Fields that have their mistake already; their defaults stand in for them here.
    unread: Vec<String>,
    wrong: &'a mut Vec<Mistake>,
}

impl Rules<'_> {
    /// A rule about these keys does not hold; the first is to blame.
    fn broken(&mut self, keys: &[&str], problem: impl Into<String>) {
        if !keys.iter().any(|key| self.unread.iter().any(|it| it == key)) {
            self.wrong.push(Mistake::new(keys[0], problem));
        }
    }
}
