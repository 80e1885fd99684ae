//! A store on Redis: which servers, at which level, and what to say when they will not do.
//!
//! Lives here: from the configuration to an open store. Stays out: how it is kept there
//! (`waitroom_redis`).

use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;
use waitroom_redis::{Level, Login, OpenError, Options, RedisStore, Tls, Where};
use waitroom_store::{LeaseName, RoomName, Seams, Store};

use super::say;
use crate::config::{Config, Durability, RedisMode, ReplicasWait};
use crate::failure::{Exit, Failure};

/// How long a room stays ours without a word from us: short enough that visitors of an instance
/// that died are served by another within three seconds.
pub const LEASE: Duration = Duration::from_secs(2);
/// How long a start waits for a Redis that is starting, too.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

pub async fn open(config: &Config, seams: Seams) -> Result<RedisStore, Failure> {
    let options = options(config)?;
    let (level, at) = (options.level, format!("{:?}", options.servers));
    let deadline = Instant::now() + PATIENCE;
    loop {
        match RedisStore::open(options.clone(), seams.clone()).await {
            Ok((store, fitness)) => {
                say::redis(&at, level, &fitness);
                return Ok(store);
            }
            Err(OpenError::Away(_)) if Instant::now() < deadline => {}
            Err(error) => return Err(refused(error)),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

fn refused(error: OpenError) -> Failure {
    match error {
        OpenError::Address(why) => Failure::new(Exit::Usage, format!("redis.urls: {why}"))
            .means("the server does not start"),
        OpenError::Away(_) => Failure::new(Exit::Unavailable, error.to_string())
            .means("the server does not start")
            .advise("start Redis, or correct [redis] of the configuration"),
        OpenError::Unfit(all) => {
            let why: Vec<String> =
                all.iter().map(|it| format!("{}: {}", it.server, it.why)).collect();
            let mut advice: Vec<&str> = all.iter().map(|it| it.advice.as_str()).collect();
            advice.dedup();
            Failure::new(Exit::Wrong, format!("Redis would lose places: {}", why.join("; ")))
                .coded("WR-2104")
                .means("the server does not start: it could not keep what it would promise")
                .advise(advice.join("; "))
        }
    }
}

fn options(config: &Config) -> Result<Options, Failure> {
    let redis = &config.redis;
    let servers = match redis.mode {
        RedisMode::Single => Where::Single { url: redis.urls.first().cloned().unwrap_or_default() },
        RedisMode::Sentinel => Where::Sentinel {
            sentinels: redis.urls.clone(),
            name: redis.primary.clone().unwrap_or_default(),
        },
        RedisMode::Cluster => Where::Cluster { seeds: redis.urls.clone() },
    };
    let level = match config.store.durability {
        Durability::RedisAsync => Level::Async,
        Durability::RedisSync | Durability::LocalSync => {
            Level::Sync { replicas_required: redis.replicas_required as u32 }
        }
    };
    let password = read("password_file", redis.password_file.as_deref())?;
    let first_line = |bytes: Vec<u8>| {
        String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().to_owned()
    };
    let (cert, key) =
        (read("tls_cert", redis.tls_cert.as_deref())?, read("tls_key", redis.tls_key.as_deref())?);
    let mut options = Options::new(servers, level);
    options.login = Login {
        user: redis.user.clone(),
        password: password.map(first_line),
        database: redis.database as i64,
    };
    options.tls = Tls { ca: read("tls_ca", redis.tls_ca.as_deref())?, client: cert.zip(key) };
    options.on_disks = redis.replicas_wait == ReplicasWait::Disk;
    options.prefix = redis.prefix.clone();
    options.queue_max = config.store.queue_max as usize;
    Ok(options)
}

/// What is in a file that a key of `[redis]` names.
fn read(key: &str, path: Option<&Path>) -> Result<Option<Vec<u8>>, Failure> {
    let Some(path) = path else { return Ok(None) };
    std::fs::read(path).map(Some).map_err(|error| {
        Failure::new(Exit::NotThere, format!("redis.{key} {}: {error}", path.display()))
            .means("the server does not start")
    })
}

/// Waits until nobody holds these rooms: whoever died held them for a moment longer. Somebody who
/// goes on holding them is alive.
pub async fn wait_for_leases<'a>(
    store: &impl Store,
    rooms: impl Iterator<Item = &'a RoomName>,
) -> Result<(), Failure> {
    let deadline = Instant::now() + PATIENCE;
    for room in std::iter::once(RoomName::system()).chain(rooms.cloned()) {
        loop {
            let holder = store.holder_of(&LeaseName::room(&room)).await.map_err(|error| {
                Failure::new(Exit::Unavailable, format!("room \"{room}\": {error}"))
                    .means("the server does not start")
            })?;
            let Some(holder) = holder else { break };
            if Instant::now() >= deadline {
                let said = format!("room \"{room}\" is held by {}", holder.who);
                return Err(Failure::new(Exit::Busy, said)
                    .means("the server does not start: another one runs on this Redis")
                    .advise("end the other one, or set redis.prefix to have rooms of its own"));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}
