//! An engine on the file store, as a server would run it, and rooms of any engine, for benchmarks
//! to send commands to.

use std::path::Path;
use std::sync::Arc;

use waitroom_core::{Actor, Command, Fresh, Millis, Reply, Settings};
use waitroom_engine::{Config, Engine, RoomHandle, Vault};
use waitroom_store::file::Options;
use waitroom_store::{FileStore, RoomName, Seams, Store};

use crate::failure::{Failure, OrFail, Outcome};

/// Needs a tokio runtime around it.
pub fn engine(folder: &Path) -> Outcome<Engine<FileStore>> {
    let seams = Seams::real();
    let opened = FileStore::open(folder, Options::default(), seams.clone());
    let (store, _) = opened.or_fail(|| format!("open a store in {}", folder.display()))?;
    Ok(Engine::new(Arc::new(store), seams, Config::new("bench", Arc::new(NoVault))))
}

/// Longer than any benchmark runs: nobody beats here, and nobody is to lapse for it.
const SILENCE: Millis = Millis(3_600_000);

/// A room in which everybody queues and nobody is let in.
pub async fn room<S: Store>(engine: &Engine<S>, name: &str) -> Outcome<RoomHandle> {
    let name = RoomName::parse(name).or_fail(|| format!("name a room {name}"))?;
    let room = engine.open(&name).await.or_fail(|| format!("open the room {name}"))?;
    let settings =
        Settings { rate: None, queue_all: true, heartbeat_timeout: SILENCE, ..Settings::default() };
    let settings = Box::new(settings);
    let configure = Command::Configure { settings, by: Actor::new("bench") };
    let answer = room.send(configure).await.or_fail(|| format!("configure the room {name}"))?;
    match answer.reply {
        Reply::Done => Ok(room),
        other => Err(Failure::new(format!("settings of {name} were answered {other:?}"))),
    }
}

/// An answer counts only if it is a new place.
pub fn is_new_place(reply: &Reply) -> bool {
    matches!(reply, Reply::Joined { fresh: Fresh::New, .. })
}

/// There is no draw in these rooms, so there is no secret to keep.
#[derive(Debug)]
pub struct NoVault;

impl Vault for NoVault {
    fn seal(&self, _: &str, secret: &[u8]) -> Vec<u8> {
        secret.to_vec()
    }

    fn open(&self, _: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        Some(sealed.to_vec())
    }
}
