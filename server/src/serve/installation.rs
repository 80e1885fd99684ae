//! What the interfaces need of the installation, over the store it was started with.
//!
//! Lives here: opening rooms with their secrets, checking API keys, writing audit entries. What
//! operators ask for besides is in `office.rs`.
//! Secrets are made when they are first needed, sealed in the `_system` log, and read from there
//! ever after, so that ids and tokens stay good over restarts and on every instance.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use waitroom_api::admin::office::Office;
use waitroom_api::caller::{ApiCaller, Role};
use waitroom_api::desk::{Installation, Pending, RoomKit, Turn};
use waitroom_api::{Code, Problem};
use waitroom_cluster::{Cluster, Rooms};
use waitroom_core::id::IdKey;
use waitroom_engine::{Engine, RoomHandle};
use waitroom_outbox::mirror::SealKey;
use waitroom_store::seal::MasterKey;
use waitroom_store::system::{NewKey, System, SystemError};
use waitroom_store::{Clock, Entropy, OsEntropy, RoomName, Seams, Store};

use super::keyring::Keyring;
use super::pen::Pen;
use super::turns::Turns;

pub struct House<S: Store + Clone> {
    pub engine: Engine<S>,
    pub system: Mutex<System<S>>,
    pub(super) store: S,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) keyring: Keyring,
    master: MasterKey,
    /// The other instances, where there are any.
    pub(super) cluster: Option<Arc<Cluster>>,
    turns: Turns,
    instance: String,
}

/// How long a write to the `_system` log waits for another instance that is writing.
const PEN_WITHIN: Duration = Duration::from_secs(5);
/// Between two tries: a write takes a few milliseconds.
const PEN_PAUSE: Duration = Duration::from_millis(20);

/// Who the server is in the audit, when it acts by itself.
pub const SERVER: &str = "server";

/// What the secrets of a room are called: that of its ids, and that of users' names.
pub fn secrets_of(room: &RoomName) -> [String; 2] {
    [format!("room/{room}/ids"), format!("room/{room}/users")]
}

impl<S: Store + Clone> House<S> {
    pub fn new(
        engine: Engine<S>,
        system: System<S>,
        store: S,
        seams: &Seams,
        master: MasterKey,
        instance: &str,
        cluster: Option<Arc<Cluster>>,
    ) -> House<S> {
        let clock = seams.clock.clone();
        let keyring = Keyring::new(master.hash_key("api-key"), clock.wall_ms());
        keyring.take(system.api_keys());
        let (system, turns) = (Mutex::new(system), Turns::default());
        let instance = instance.to_owned();
        House { engine, system, store, clock, keyring, master, cluster, turns, instance }
    }

    /// The `_system` log to write to. Where others write too, this waits for them, and what is read
    /// from it then is the newest.
    pub async fn pen(&self) -> Result<Pen<'_, S>, SystemError> {
        let deadline = Instant::now() + PEN_WITHIN;
        loop {
            // Before it is taken up: whoever gives up waiting while the log is read lets go of it.
            let mut pen = Pen::of(self.system.lock().await, &self.store);
            if self.cluster.is_none() {
                return Ok(pen);
            }
            match pen.take_up().await {
                Ok(()) => return Ok(pen),
                Err(SystemError::Busy { .. }) if Instant::now() < deadline => {}
                Err(error) => return Err(error),
            }
            drop(pen);
            tokio::time::sleep(PEN_PAUSE).await;
        }
    }

    /// A key of this id and role that `secret` is, made if there is none; others of the id are
    /// revoked: the newest word counts.
    pub async fn ensure_key(&self, id: &str, secret: &str, role: Role) -> Result<(), SystemError> {
        if self.system.lock().await.api_key(secret).is_some() {
            return Ok(());
        }
        let mut system = self.pen().await?;
        if system.api_key(secret).is_none() {
            let live: Vec<String> = system
                .api_keys()
                .filter(|key| key.revoked_at_ms.is_none())
                .filter(|key| key.id == id || key.id.starts_with(&format!("{id}-")))
                .map(|key| key.id.clone())
                .collect();
            for old in live {
                system.revoke_api_key(SERVER, &old).await?;
            }
            let number = system.api_keys().count();
            let name = if number == 0 { id.to_owned() } else { format!("{id}-{number}") };
            let note = "given to the server at start";
            let role = role.word();
            let key = NewKey { id: &name, secret, role, note, expires_at_ms: None };
            system.create_api_key(SERVER, &key).await?;
        }
        system.put_down().await;
        self.keyring.take(system.api_keys());
        Ok(())
    }

    /// What seals the pieces of mirrors.
    pub fn mirror_key(&self) -> SealKey {
        SealKey::of(&self.master)
    }

    /// A secret of 32 bytes under this name, made if there is none.
    pub async fn secret(&self, name: &str) -> Result<[u8; 32], SystemError> {
        let fresh =
            || [OsEntropy.next_u128(), OsEntropy.next_u128()].map(u128::to_be_bytes).concat();
        let kept = self.secret_or(name, fresh).await?;
        kept.try_into().map_err(|_| SystemError::Sealed { name: name.into() })
    }

    /// A secret of any kind under this name, made if there is none.
    pub async fn secret_or(
        &self,
        name: &str,
        fresh: impl FnOnce() -> Vec<u8>,
    ) -> Result<Vec<u8>, SystemError> {
        if let Some(kept) = self.system.lock().await.secret(name)? {
            return Ok(kept);
        }
        // Another instance may have made it meanwhile: two would be one too many.
        let mut system = self.pen().await?;
        if system.secret(name)?.is_none() {
            match system.make_secret(SERVER, name, &fresh()).await {
                // The pen ran out in our hand, and somebody else was first.
                Err(SystemError::Refused { .. }) if system.secret(name)?.is_some() => {}
                made => made?,
            }
        }
        system.put_down().await;
        Ok(system.secret(name)?.expect("it was made or found just now"))
    }

    /// Makes the room known to the installation, if it is not.
    async fn register(&self, room: &RoomName, who: &str) -> Result<(), SystemError> {
        let known = |system: &System<S>| system.rooms().any(|(name, _)| name == room.as_str());
        if known(&*self.system.lock().await) {
            return Ok(());
        }
        let mut system = self.pen().await?;
        if !known(&system) {
            system.create_room(who, room).await?;
            if let Some(cluster) = &self.cluster {
                cluster.found(room);
            }
        }
        system.put_down().await;
        Ok(())
    }

    async fn kit(&self, room: &RoomName, who: &str) -> Result<RoomKit, Problem> {
        let failed =
            |error: SystemError| Problem::new(Code::Unavailable, error.to_string()).in_room(room);
        self.register(room, who).await.map_err(failed)?;
        let [ids, users] = secrets_of(room);
        let secret = self.secret(&ids).await.map_err(failed)?;
        let users = self.secret(&users).await.map_err(failed)?;
        let handle = match self.engine.room(room) {
            Some(handle) => handle,
            None => self.engine.open(room).await.map_err(|error| {
                Problem::new(Code::Unavailable, error.to_string()).in_room(room)
            })?,
        };
        Ok(RoomKit {
            handle,
            ids: IdKey::derive(&secret),
            identities: self.master.hash_key(&format!("identity/{room}")),
            users: MasterKey::from_bytes(users),
        })
    }
}

impl<S: Store + Clone> std::fmt::Debug for House<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("House").finish_non_exhaustive()
    }
}

impl<S: Store + Clone> Installation for House<S> {
    fn open_room<'a>(
        &'a self,
        room: &'a RoomName,
        who: &'a str,
    ) -> Pending<'a, Result<RoomKit, Problem>> {
        Box::pin(self.kit(room, who))
    }

    fn api_key(&self, secret: &str) -> Option<ApiCaller> {
        self.keyring.caller(secret, self.clock.wall_ms())
    }

    fn begin_turn<'a>(&'a self, room: &'a RoomName) -> Pending<'a, Result<Turn, Problem>> {
        Box::pin(async move {
            match self.cluster {
                Some(_) => self.turns.begin(&self.store, &self.instance, room).await,
                None => Ok(Turn::default()),
            }
        })
    }

    fn end_turn<'a>(&'a self, room: &'a RoomName, turn: Turn) -> Pending<'a, ()> {
        Box::pin(self.turns.end(&self.store, room, turn))
    }

    fn office(&self) -> Option<&dyn Office> {
        Some(self)
    }

    fn audit<'a>(
        &'a self,
        who: &'a str,
        room: Option<&'a RoomName>,
        action: &'a str,
        detail: serde_json::Value,
    ) -> Pending<'a, Result<(), Problem>> {
        Box::pin(async move {
            let failed = |error: SystemError| Problem::new(Code::Unavailable, error.to_string());
            let mut system = self.pen().await.map_err(failed)?;
            let noted = system.audit(who, room, action, detail).await;
            system.put_down().await;
            noted.map_err(failed)
        })
    }
}

impl<S: Store + Clone> Rooms for House<S> {
    fn room(&self, name: &str) -> Option<RoomHandle> {
        self.engine.room(&RoomName::parse(name).ok()?)
    }

    fn names(&self) -> Vec<String> {
        self.engine.names().iter().map(RoomName::to_string).collect()
    }
}
