//! Whether servers can keep the level that was asked for, before anybody relies on it.
//!
//! Lives here: what is looked at, and what is wrong with it in words for whoever runs the servers.
//! A setting that is refused here is one with which an acknowledged place could be lost although
//! the level says it is not.
//! To add a rule: an arm in [`judge`], a row in docs/redis.md, a test below.

use std::{collections::BTreeMap, fmt};

use redis::Value;

use crate::{
    options::{Level, Options},
    place::Place,
    store::OpenError,
    trouble::Trouble,
    value,
    wire::{Server, Wire},
};

/// What the servers are like that were found fit.
#[derive(Debug, Clone, Default)]
pub struct Fitness {
    /// A line for each primary.
    pub servers: Vec<String>,
    /// What is not forbidden, and not good either.
    pub warnings: Vec<String>,
}

/// Why a server cannot keep the level, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    pub server: String,
    pub why: String,
    pub advice: String,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.server, self.why, self.advice)
    }
}

/// A server as it described itself.
#[derive(Debug, Clone)]
struct Seen {
    product: String,
    version: (u32, u32),
    /// `None`: the server does not tell.
    settings: Option<BTreeMap<String, String>>,
    replicas: u32,
    /// How many replicas `WAIT` counts; the refusal if it cannot be used.
    waits: Result<u32, String>,
    waits_for_disks: bool,
}

/// XTRIM by id, and ranges that leave their first out: the log needs both.
const OLDEST: (u32, u32) = (6, 2);
const SETTINGS: [&str; 4] = ["maxmemory-policy", "appendonly", "appendfsync", "save"];

impl Fitness {
    pub async fn of(place: &Place, options: &Options) -> Result<Fitness, OpenError> {
        let away = |trouble: Trouble| OpenError::Away(format!("{trouble:?}"));
        let (mut fitness, mut unfit) = (Fitness::default(), Vec::new());
        for server in place.primaries(options).await.map_err(away)? {
            let seen = look(&server, options).await.map_err(away)?;
            for (why, advice) in judge(options.level, options.on_disks, &seen) {
                let server = server.name.to_string();
                unfit.push(Unfit { server, why, advice: advice.to_owned() });
            }
            let warned = warn(options.on_disks, &seen);
            fitness.warnings.extend(warned.into_iter().map(|it| format!("{}: {it}", server.name)));
            let (major, minor) = seen.version;
            let (product, replicas) = (&seen.product, seen.replicas);
            let name = &server.name;
            fitness.servers.push(format!("{name}: {product} {major}.{minor}, replicas {replicas}"));
        }
        if unfit.is_empty() { Ok(fitness) } else { Err(OpenError::Unfit(unfit)) }
    }
}

/// All that is wrong with a server for a level, each with what to do.
fn judge(level: Level, on_disks: bool, seen: &Seen) -> Vec<(String, &'static str)> {
    let mut wrong = Vec::new();
    if seen.version < OLDEST {
        let (major, minor) = seen.version;
        let why = format!("version {major}.{minor} is too old");
        wrong.push((why, "use Redis 6.2 or later, or Valkey"));
    }
    let set = |name: &str| seen.settings.as_ref().and_then(|all| all.get(name)).map(String::as_str);
    if let Some(policy) = set("maxmemory-policy")
        && policy != "noeviction"
    {
        let why = format!("maxmemory-policy is {policy}: a full server would forget places");
        wrong.push((why, "CONFIG SET maxmemory-policy noeviction"));
    }
    let appends = set("appendonly") == Some("yes");
    match level {
        Level::Async => {
            let saves = set("save").is_some_and(|save| !save.is_empty());
            if seen.settings.is_some() && !appends && !saves && seen.replicas == 0 {
                let why = "nothing is kept anywhere: no appendonly, no save, no replica".to_owned();
                wrong.push((why, "CONFIG SET appendonly yes"));
            }
        }
        Level::Sync { replicas_required } => {
            if seen.settings.is_none() {
                let why = "CONFIG GET is not allowed, so nobody knows what it keeps".to_owned();
                wrong.push((why, "allow CONFIG GET, or choose durability = \"redis-async\""));
            } else if !appends {
                let why = "appendonly is not yes: a restart would lose places".to_owned();
                wrong.push((why, "CONFIG SET appendonly yes, or durability = \"redis-async\""));
            }
            match set("appendfsync") {
                Some("no") => {
                    let why = "appendfsync is no: the disk may be half a minute behind".to_owned();
                    wrong.push((why, "CONFIG SET appendfsync always (or everysec with replicas)"));
                }
                Some("everysec") if replicas_required == 0 => {
                    let why = "appendfsync is everysec and no replica is required: \
                               a power cut would lose a second of places";
                    let advice = "CONFIG SET appendfsync always, or require a replica";
                    wrong.push((why.to_owned(), advice));
                }
                _ => {}
            }
            if on_disks && !seen.waits_for_disks {
                let why = "WAITAOF is not there: it cannot say what is on disks".to_owned();
                wrong.push((why, "use Redis 7.2 or Valkey, or set replicas_wait = \"memory\""));
            }
            match &seen.waits {
                Err(said) => {
                    let why = format!("WAIT cannot be used: {said}");
                    wrong.push((why, "choose durability = \"redis-async\""));
                }
                Ok(_) if seen.replicas < replicas_required => {
                    let have = seen.replicas;
                    let why = format!("{have} of {replicas_required} required replicas are there");
                    wrong.push((why, "start the replicas, or lower replicas_required"));
                }
                Ok(_) => {}
            }
        }
    }
    wrong
}

fn warn(on_disks: bool, seen: &Seen) -> Vec<String> {
    let mut warned = Vec::new();
    let set = |name: &str| seen.settings.as_ref().and_then(|all| all.get(name)).map(String::as_str);
    if seen.settings.is_none() {
        warned.push("CONFIG GET is not allowed: whether it evicts or persists is unknown".into());
    }
    if on_disks && set("appendfsync") == Some("everysec") {
        let said = "appendfsync is everysec and answers wait for the disk: \
                    they take up to a second; set it to always on all servers";
        warned.push(said.into());
    }
    warned
}

async fn look(server: &Server, options: &Options) -> Result<Seen, Trouble> {
    let mut wire = Wire::open(server, options).await?;
    let mut seen = Seen {
        product: String::new(),
        version: (0, 0),
        settings: None,
        replicas: 0,
        waits: Ok(0),
        waits_for_disks: false,
    };
    let info = wire.one(redis::cmd("INFO")).await?;
    let info = String::from_utf8_lossy(&value::bytes(info)?).into_owned();
    let field = |name: &str| {
        let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        found.map(|found| found.trim().to_owned())
    };
    // The others say that they are a Redis, too, of the version whose commands they have.
    seen.product = match () {
        () if field("dragonfly_version").is_some() => "Dragonfly, as Redis".into(),
        () if field("valkey_version").is_some() => "Valkey, as Redis".into(),
        () => "Redis".into(),
    };
    let version = field("redis_version").unwrap_or_default();
    let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
    seen.version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let online = |line: &&str| line.starts_with("slave") && line.contains("state=online");
    seen.replicas = info.lines().filter(online).count() as u32;
    let mut settings = BTreeMap::new();
    for name in SETTINGS {
        let mut command = redis::cmd("CONFIG");
        command.arg("GET").arg(name);
        match wire.one(command).await {
            Ok(Value::Array(found)) => {
                let mut parts = value::Parts::of(Value::Array(found))?;
                if parts.left() >= 2 {
                    settings.insert(parts.text()?, parts.text()?);
                }
            }
            Ok(_) | Err(Trouble::Refused(_)) => {}
            Err(trouble) => return Err(trouble),
        }
    }
    seen.settings = (!settings.is_empty()).then_some(settings);
    if let Level::Sync { replicas_required } = options.level {
        let mut wait = redis::cmd("WAIT");
        wait.arg(replicas_required).arg(500);
        seen.waits = match wire.one(wait).await {
            Ok(Value::Int(replicas)) => Ok(u32::try_from(replicas).unwrap_or(0)),
            Ok(other) => Err(format!("it answered {other:?}")),
            Err(Trouble::Refused(said)) => Err(said),
            Err(trouble) => return Err(trouble),
        };
        seen.waits_for_disks = knows_waitaof(&mut wire).await?;
    }
    Ok(seen)
}

/// Whether a server can say what is on disks (Redis 7.2, Valkey).
async fn knows_waitaof(wire: &mut Wire) -> Result<bool, Trouble> {
    let mut command = redis::cmd("COMMAND");
    command.arg("INFO").arg("WAITAOF");
    match wire.one(command).await {
        Ok(Value::Array(found)) => Ok(matches!(found.first(), Some(Value::Array(_)))),
        // It was only a question: whoever does not know it has no such command, either.
        Ok(_) | Err(Trouble::Refused(_)) => Ok(false),
        Err(trouble) => Err(Trouble::Away(format!("{trouble:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(settings: [&str; 4], replicas: u32) -> Seen {
        let all = SETTINGS.iter().zip(settings).map(|(k, v)| (k.to_string(), v.to_string()));
        Seen {
            product: "Redis".into(),
            version: (7, 0),
            settings: Some(all.collect()),
            replicas,
            waits: Ok(replicas),
            waits_for_disks: false,
        }
    }

    const GOOD: [&str; 4] = ["noeviction", "yes", "always", ""];
    const ALONE: Level = Level::Sync { replicas_required: 0 };
    const WITH_ONE: Level = Level::Sync { replicas_required: 1 };

    #[test]
    fn a_good_server_is_fit() {
        assert_eq!(judge(ALONE, false, &server(GOOD, 0)), []);
        assert_eq!(judge(WITH_ONE, false, &server(["noeviction", "yes", "everysec", ""], 1)), []);
        assert_eq!(
            judge(Level::Async, false, &server(["noeviction", "no", "no", "3600 1"], 0)),
            []
        );
    }

    #[test]
    fn every_setting_that_could_lose_a_place_is_refused() {
        let old = Seen { version: (6, 0), ..server(GOOD, 0) };
        let mute = Seen { settings: None, ..server(GOOD, 0) };
        let no_wait = Seen { waits: Err("unknown command".into()), ..server(GOOD, 1) };
        let cases = [
            (ALONE, old, "too old"),
            (ALONE, server(["allkeys-lru", "yes", "always", ""], 0), "maxmemory-policy"),
            (Level::Async, server(["volatile-ttl", "yes", "always", ""], 0), "maxmemory-policy"),
            (ALONE, server(["noeviction", "no", "always", "3600 1"], 0), "appendonly"),
            (ALONE, server(["noeviction", "yes", "no", ""], 0), "appendfsync is no"),
            (ALONE, server(["noeviction", "yes", "everysec", ""], 0), "appendfsync is everysec"),
            (WITH_ONE, server(GOOD, 0), "0 of 1 required replicas"),
            (ALONE, mute, "CONFIG GET"),
            (WITH_ONE, no_wait, "WAIT cannot be used"),
            (Level::Async, server(["noeviction", "no", "no", ""], 0), "nothing is kept"),
        ];
        for (level, seen, word) in cases {
            let wrong = judge(level, false, &seen);
            assert_eq!(wrong.len(), 1, "{word}: {wrong:?}");
            assert!(wrong[0].0.contains(word), "{word}: {wrong:?}");
        }
        let wrong = judge(WITH_ONE, true, &server(GOOD, 1));
        assert!(wrong.len() == 1 && wrong[0].0.contains("WAITAOF"), "{wrong:?}");
    }
}
