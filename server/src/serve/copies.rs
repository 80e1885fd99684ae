//! Copies of everything that a store on Redis holds, as portable files, and Redis filled from them.
//!
//! Lives here: `backup --config`, `restore --config` and where `rebuild --config` ends. A copy is a folder with a file for each
//! room and one for `_system`, and a list that is written last: without it a copy was never
//! finished. Rooms that come back are paused: between the copy and the loss people were let in that
//! nobody knows of any more, so an operator looks first.
//! Stays out: the files' format (`waitroom_store`), and copies of a data folder.

use std::path::Path;
use std::sync::Arc;

use waitroom_cluster::About;
use waitroom_core::{Actor, Command, Hold, Reply};
use waitroom_engine::{Config as EngineConfig, Engine};
use waitroom_redis::RedisStore;
use waitroom_store::file::{Import, check_portable, export_of};
use waitroom_store::{Appended, Error, Head, RoomName, Seams, Store, disk::RealDisk};

use super::{master_key, plan, redis};
use crate::config::{Config, Environment, StoreKind};
use crate::data::absolute;
use crate::failure::{Exit, Failure};
use crate::rebuild::known;

/// The list of a finished copy: a line for each file, its name, head and chain.
const LIST: &str = "ROOMS";
/// What visitors of a room that came back read until an operator resumes it.
const REASON: &str = "The waiting room was rebuilt from a copy and is being looked after.";

/// What was copied, or came back.
#[derive(Debug)]
pub struct Copied {
    pub rooms: usize,
    pub events: u64,
}

/// Copies all rooms and `_system` of the Redis of a configuration into a new folder, while
/// instances run on it.
pub fn backup(config: &Path, to: &Path) -> Result<Copied, Failure> {
    let (config, seams) = (configured(config)?, Seams::real());
    let to = absolute(to)?;
    run(async {
        let store = redis::open(&config, seams).await?;
        let mut rooms = store.rooms().await.map_err(|error| away("list the rooms", &error))?;
        rooms.push(RoomName::system());
        let (mut list, mut events) = (String::new(), 0);
        for room in &rooms {
            let file = to.join(format!("{room}.wrroom"));
            let copied = export_of(&store, room, &file).await;
            let tip = copied.map_err(|error| away(&format!("copy room {room}"), &error))?;
            list += &line(room, tip);
            events += tip.head.0;
        }
        std::fs::write(to.join(LIST), list).map_err(|error| {
            Failure::new(Exit::Io, format!("backup {}: {error}", to.display()))
                .means("the copy is not finished")
        })?;
        Ok(Copied { rooms: rooms.len() - 1, events })
    })
}

/// Fills the Redis of a configuration from a copy, and pauses every room.
pub fn restore(config: &Path, from: &Path) -> Result<Copied, Failure> {
    let (config, seams) = (configured(config)?, Seams::real());
    let from = absolute(from)?;
    let copies = checked(&from)?;
    let master = master_key(&config)?;
    run(async {
        let store = redis::open(&config, seams.clone()).await?;
        must_be_empty(&store).await?;
        let engine_config = EngineConfig::new("restore", Arc::new(master));
        let engine_config = plan::engine(&config, engine_config);
        let engine = Engine::new(Arc::new(store.clone()), seams, engine_config);
        let (rooms, system): (Vec<&Import>, Vec<&Import>) =
            copies.iter().partition(|copy| !copy.room.is_system());
        for Import { room, .. } in &rooms {
            let file = from.join(format!("{room}.wrroom"));
            take_in(&store, &engine, room, &file, REASON, "restore").await?;
        }
        engine.stop().await;
        // Last: a server that starts meanwhile finds no rooms.
        for Import { room, .. } in &system {
            let taken = store.import(&from.join(format!("{room}.wrroom"))).await;
            taken.map_err(|error| unfinished("take the _system log in", &error))?;
        }
        let events = copies.iter().map(|copy| copy.tip.head.0).sum();
        Ok(Copied { rooms: rooms.len(), events })
    })
}

/// Takes a room in from a file and pauses it before anybody can be let in.
async fn take_in(
    store: &RedisStore,
    engine: &Engine<RedisStore>,
    room: &RoomName,
    file: &Path,
    reason: &str,
    by: &str,
) -> Result<(), Failure> {
    let taken = store.import(file).await;
    taken.map_err(|error| unfinished(&format!("take room {room} in"), &error))?;
    let paused = async {
        let handle = engine.open(room).await.map_err(|error| error.to_string())?;
        let hold = Hold::Paused { reason: reason.into() };
        let hold = Command::Hold { hold, by: Actor::new(by) };
        let answer = handle.send(hold).await.map_err(|error| format!("{error:?}"))?;
        match answer.reply {
            // A room that is held, or has no settings, lets nobody in as it is.
            Reply::Done | Reply::Refused(_) => Ok(()),
            other => Err(format!("pausing was answered {other:?}")),
        }
    };
    paused.await.map_err(|why| {
        let error = Error::Unavailable { why };
        unfinished(&format!("pause room {room}"), &error)
    })
}

/// Looks whether `waitroom rebuild` may bring a room back to the Redis of a configuration; says
/// whether nothing at all is there yet, so that the installation's keys come along.
pub fn may_rebuild(config: &Config, room: &RoomName) -> Result<bool, Failure> {
    run(async {
        let store = redis::open(config, Seams::real()).await?;
        let running = store.instances().await;
        let mut running = running.map_err(|error| away("look who runs on it", &error))?;
        // Whoever said goodbye is listed a moment longer, and runs no more.
        running.retain(|it| !About::from_bytes(&it.about).is_some_and(|about| about.left));
        if !running.is_empty() {
            let said = format!("{} instances run on this Redis", running.len());
            return Err(Failure::new(Exit::Busy, said)
                .means("nothing was changed")
                .advise("stop them first: one of them could let people in before it is paused"));
        }
        let head = store.committed_head(room).await;
        if head.map_err(|error| away("look for the room", &error))? > Head::EMPTY {
            return Err(Failure::new(Exit::Taken, format!("this Redis has a room \"{room}\""))
                .coded("WR-2011")
                .means("nothing was changed")
                .advise("rebuild under another redis.prefix"));
        }
        let system = store.committed_head(&RoomName::system()).await;
        Ok(system.map_err(|error| away("look for a _system log", &error))? == Head::EMPTY)
    })
}

/// What the installation on the Redis of a configuration lacks to serve a room, if anything.
pub fn lacks(config: &Config, room: &RoomName) -> Result<Option<String>, Failure> {
    let master = master_key(config)?;
    run(async {
        let store = redis::open(config, Seams::real()).await?;
        Ok(known::knows(store, &master, room).await.err())
    })
}

/// Brings a room back to the Redis of a configuration from files, paused, and the `_system` log
/// where there is none.
pub fn rebuild(
    config: &Config,
    room: &RoomName,
    file: &Path,
    system: Option<&Path>,
    reason: &str,
) -> Result<(), Failure> {
    let (seams, master) = (Seams::real(), master_key(config)?);
    run(async {
        let store = redis::open(config, seams.clone()).await?;
        let engine_config = EngineConfig::new("rebuild", Arc::new(master));
        let engine_config = plan::engine(config, engine_config);
        let engine = Engine::new(Arc::new(store.clone()), seams, engine_config);
        take_in(&store, &engine, room, file, reason, "rebuild").await?;
        engine.stop().await;
        // Last: a server that starts meanwhile finds no rooms.
        if let Some(system) = system {
            let taken = store.import(system).await;
            taken.map_err(|error| unfinished("take the _system log in", &error))?;
        }
        Ok(())
    })
}

fn line(room: &RoomName, tip: Appended) -> String {
    format!("{room} {} {}\n", tip.head, tip.chain)
}

/// Every file of a copy, read to its end and held against the list.
fn checked(from: &Path) -> Result<Vec<Import>, Failure> {
    let wrong = |why: String| {
        Failure::new(Exit::Wrong, format!("backup {}: {why}", from.display()))
            .coded("WR-2009")
            .means("nothing was written")
            .advise("give the folder that `waitroom backup --config` made, or an older one")
    };
    let list = std::fs::read_to_string(from.join(LIST)).map_err(|_| {
        wrong(format!("it has no file {LIST}, so it is no finished copy of a Redis"))
    })?;
    let mut copies = Vec::new();
    for entry in list.lines() {
        let name = entry.split(' ').next().unwrap_or_default();
        let file = from.join(format!("{name}.wrroom"));
        let copy = check_portable(&RealDisk::new(""), &file);
        let copy = copy.map_err(|error| wrong(error.to_string()))?;
        if line(&copy.room, copy.tip).trim_end() != entry {
            return Err(wrong(format!("{name}.wrroom is not the file of the list")));
        }
        copies.push(copy);
    }
    match copies.iter().any(|copy| copy.room.is_system()) {
        true => Ok(copies),
        false => Err(wrong("it has no _system log".into())),
    }
}

async fn must_be_empty(store: &RedisStore) -> Result<(), Failure> {
    let rooms = store.rooms().await.map_err(|error| away("list the rooms", &error))?;
    let system = store.committed_head(&RoomName::system()).await;
    let system = system.map_err(|error| away("look for a _system log", &error))?;
    if rooms.is_empty() && system == Head::EMPTY {
        return Ok(());
    }
    let said = format!("this Redis has {} rooms under redis.prefix", rooms.len());
    Err(Failure::new(Exit::Taken, said)
        .coded("WR-2011")
        .means("nothing was changed")
        .advise("restore to an empty Redis, or under another redis.prefix"))
}

pub fn configured(file: &Path) -> Result<Config, Failure> {
    let loaded = Config::load(Some(file), &Environment::of_this_process());
    let config = loaded.map_err(|mistakes| {
        Failure::new(mistakes.exit(), mistakes.to_string()).means("nothing was done")
    })?;
    match config.store.kind {
        StoreKind::Redis => Ok(config),
        _ => Err(Failure::new(Exit::Usage, "the store of this configuration is not on Redis")
            .means("nothing was done")
            .advise("give the data folder with --data instead")),
    }
}

fn run<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::new(Exit::Io, format!("no threads to run on: {error}")))?;
    runtime.block_on(work)
}

fn away(doing: &str, error: &Error) -> Failure {
    Failure::new(Exit::Unavailable, format!("cannot {doing}: {error}"))
        .means("the copy is not finished; Redis was not changed")
        .advise("try again when Redis answers")
}

fn unfinished(doing: &str, error: &Error) -> Failure {
    Failure::new(Exit::Unavailable, format!("cannot {doing}: {error}"))
        .means("Redis holds a part of the copy; do not start a server on it")
        .advise("restore again under another redis.prefix")
}
