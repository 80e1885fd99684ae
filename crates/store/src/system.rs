//! The `_system` log: what belongs to the installation and to no room.
//!
//! Lives here: [`System`], the fold of that log, with the verbs that add to it: rooms made and
//! removed, API keys (as hashes), sealed secrets, audit entries. Every entry says who did it and
//! when, so the log is the audit trail; its chain is the log's chain ([`crate::verify::chain`]).
//! Stays out: what a role may do, what a secret is for, when a room opens.
//!
//! Entries are JSON, because operators read exports of this log, and there are few of them. Each
//! names its format version. Unknown kinds of a newer release are kept in the log and skipped by
//! the fold: an older instance must not fail to start because of them.
//! Which entries are audit entries, and how they read, is in `system/audit.rs`; what a key is, in
//! `system/keys.rs`.
//! To add a kind: a variant of [`What`], its arms in `absorb` and `audit.rs`, a line in
//! `docs/store.md`.

mod audit;
mod keys;
#[cfg(test)]
mod tests;

pub use audit::AuditLine;
pub use keys::{ApiKey, NewKey};

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{
    contract::Store,
    error::{AppendError, Error},
    lease::Lease,
    log::{Appended, Batch, Head},
    name::{LeaseName, RoomName},
    seal::{MasterKey, from_hex, to_hex},
    seams::Seams,
};

/// How long one instance may keep others from writing here, should it end in between. Nobody
/// renews: entries are rare, and whoever comes next takes the lease for itself.
const LEASE_MS: u64 = 2_000;
/// How much is read at once when opening.
const READ_BYTES: usize = 4 << 20;
const VERSION: u32 = 1;

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    #[serde(rename = "v")]
    version: u32,
    /// Wall clock of the instance that wrote it.
    pub at_ms: u64,
    /// The operator or part that did it: an API key's id, or the name of a part of ours.
    pub who: String,
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum What {
    RoomCreated {
        room: String,
    },
    RoomRemoved {
        room: String,
    },
    /// `hash` is of the key, in hex; the key itself is shown once and kept nowhere.
    ApiKeyCreated {
        id: String,
        hash: String,
        role: String,
        note: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at_ms: Option<u64>,
    },
    /// The key `old` is followed by the key `id`, of the same role and note, and ends with the
    /// overlap. One entry for both, so that there is never a pair of which half is missing.
    ApiKeyRotated {
        old: String,
        old_ends_at_ms: u64,
        id: String,
        hash: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at_ms: Option<u64>,
    },
    ApiKeyRevoked {
        id: String,
    },
    /// When keys were last used, as far as that was known. Soft: nobody's act, and a crash may
    /// lose some of it.
    ApiKeysUsed {
        at_ms: BTreeMap<String, u64>,
    },
    /// Sealed under the master key with `name` as its context, in hex.
    SecretSealed {
        name: String,
        sealed: String,
    },
    /// The secret is no longer used. Its sealed form stays in the log, as all of the log does.
    SecretRetired {
        name: String,
    },
    /// An operator's act on a room, or another that is not one of the above.
    Audit {
        room: Option<String>,
        action: String,
        detail: serde_json::Value,
    },
    /// Of a newer release.
    #[serde(other)]
    Unknown,
}

/// Why something could not be added or read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemError {
    /// Another instance is writing; try again after that time.
    Busy {
        left_ms: u64,
    },
    /// It may have been written or not. Ask for the fold, then decide.
    Unknown {
        why: String,
    },
    /// It was not written, and why.
    Refused {
        why: String,
    },
    /// A secret does not open: another master key, or damage.
    Sealed {
        name: String,
    },
    Store(Error),
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SystemError::Busy { left_ms } => {
                write!(f, "another instance writes the _system log; try again in {left_ms} ms")
            }
            SystemError::Unknown { why } => write!(f, "outcome unknown: {why}"),
            SystemError::Refused { why } => write!(f, "refused, nothing was written: {why}"),
            SystemError::Sealed { name } => {
                write!(
                    f,
                    "secret {name:?} does not open: is this the master key it was sealed with?"
                )
            }
            SystemError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SystemError {}

/// The `_system` log, folded.
#[derive(Debug)]
pub struct System<S: Store> {
    store: S,
    master: MasterKey,
    seams: Seams,
    instance: String,
    folded: Folded,
    at: Appended,
    writing: Option<Writing>,
    /// Others write here as well, and should not wait until our lease runs out.
    shared: bool,
}

#[derive(Debug)]
struct Writing {
    lease: Lease,
    number: u64,
}

#[derive(Debug, Default, Clone, PartialEq)]
struct Folded {
    rooms: BTreeMap<String, u64>,
    keys: BTreeMap<String, ApiKey>,
    secrets: BTreeMap<String, Vec<u8>>,
    /// The newest event of each room that has its audit entry.
    audited: BTreeMap<String, u64>,
}

impl Folded {
    /// Folds one entry in. Touches, decides nothing.
    fn absorb(&mut self, entry: &Entry) {
        match &entry.what {
            What::RoomCreated { room } => {
                self.rooms.insert(room.clone(), entry.at_ms);
            }
            What::RoomRemoved { room } => {
                self.rooms.remove(room);
            }
            What::ApiKeyCreated { .. }
            | What::ApiKeyRotated { .. }
            | What::ApiKeyRevoked { .. }
            | What::ApiKeysUsed { .. } => keys::absorb(&mut self.keys, entry),
            What::SecretSealed { name, sealed } => {
                if let Some(sealed) = from_hex(sealed) {
                    self.secrets.insert(name.clone(), sealed);
                }
            }
            What::SecretRetired { name } => {
                self.secrets.remove(name);
            }
            What::Audit { room: Some(room), detail, .. } => {
                if let Some(version) = detail["version"].as_u64() {
                    let newest = self.audited.entry(room.clone()).or_default();
                    *newest = version.max(*newest);
                }
            }
            What::Audit { .. } | What::Unknown => {}
        }
    }
}

impl<S: Store> System<S> {
    /// Reads the log and folds it. Takes no lease: reading is for everyone.
    pub async fn open(
        store: S,
        master: MasterKey,
        seams: Seams,
        instance: &str,
    ) -> Result<System<S>, SystemError> {
        let mut system = System {
            store,
            master,
            seams,
            instance: instance.into(),
            folded: Folded::default(),
            at: Appended::default(),
            writing: None,
            shared: false,
        };
        system.catch_up().await?;
        Ok(system)
    }

    /// For an installation of several instances: none keeps the others waiting.
    pub fn share(&mut self) {
        self.shared = true;
    }

    /// Takes the lease, and with it the newest fold: what is looked at now is true until the next
    /// entry was added or [`System::put_down`] was called, which whoever calls this should do.
    pub async fn take_up(&mut self) -> Result<(), SystemError> {
        if self.writing.is_none() {
            self.take_lease().await?;
        }
        Ok(())
    }

    /// Lets the others write.
    pub async fn put_down(&mut self) {
        if let Some(lease) = self.let_go() {
            // Otherwise it runs out by itself.
            let _ = self.store.release(&lease).await;
        }
    }

    /// Writes no more under the lease there is, which is for the caller to give back. For whoever
    /// cannot wait for the store, such as a value that is dropped.
    pub fn let_go(&mut self) -> Option<Lease> {
        self.writing.take_if(|_| self.shared).map(|writing| writing.lease)
    }

    /// Folds in what others wrote meanwhile.
    pub async fn catch_up(&mut self) -> Result<(), SystemError> {
        loop {
            let room = RoomName::system();
            let batches = self.store.read(&room, self.at.head, READ_BYTES).await;
            let batches = batches.map_err(SystemError::Store)?;
            if batches.is_empty() {
                return Ok(());
            }
            for stored in batches {
                for entry in entries(&stored.payload, stored.head)? {
                    self.folded.absorb(&entry);
                }
                self.at = Appended { head: stored.head, chain: stored.chain };
            }
        }
    }

    /// Rooms that were made and not removed, with when.
    pub fn rooms(&self) -> impl Iterator<Item = (&str, u64)> {
        self.folded.rooms.iter().map(|(room, at_ms)| (room.as_str(), *at_ms))
    }

    /// A secret, opened.
    pub fn secret(&self, name: &str) -> Result<Option<Vec<u8>>, SystemError> {
        let Some(sealed) = self.folded.secrets.get(name) else { return Ok(None) };
        let opened = self.master.open(name, sealed);
        opened.map(Some).ok_or_else(|| SystemError::Sealed { name: name.into() })
    }

    pub fn secret_names(&self) -> impl Iterator<Item = &str> {
        self.folded.secrets.keys().map(String::as_str)
    }

    /// The newest event of a room that has its audit entry; 0 when none has.
    pub fn audited(&self, room: &str) -> u64 {
        self.folded.audited.get(room).copied().unwrap_or(0)
    }

    /// Where the log stands.
    pub fn tip(&self) -> Appended {
        self.at
    }

    pub async fn create_room(&mut self, who: &str, room: &RoomName) -> Result<(), SystemError> {
        let free = |folded: &Folded| {
            let taken = folded.rooms.contains_key(room.as_str());
            if taken { Err(format!("there is a room {room} already")) } else { Ok(()) }
        };
        self.add(who, What::RoomCreated { room: room.to_string() }, free).await
    }

    pub async fn remove_room(&mut self, who: &str, room: &RoomName) -> Result<(), SystemError> {
        let known = |folded: &Folded| {
            let known = folded.rooms.contains_key(room.as_str());
            if known { Ok(()) } else { Err(format!("there is no room {room}")) }
        };
        self.add(who, What::RoomRemoved { room: room.to_string() }, known).await
    }

    /// Seals a secret and keeps it under `name`, over whatever was there.
    pub async fn keep_secret(
        &mut self,
        who: &str,
        name: &str,
        plain: &[u8],
    ) -> Result<(), SystemError> {
        let sealed = to_hex(&self.master.seal(&*self.seams.entropy, name, plain));
        self.add(who, What::SecretSealed { name: name.into(), sealed }, |_| Ok(())).await
    }

    /// The same for a name that has none yet. Two instances may both find that something is
    /// missing; what one of them has given out must not be written over by the other.
    pub async fn make_secret(
        &mut self,
        who: &str,
        name: &str,
        plain: &[u8],
    ) -> Result<(), SystemError> {
        let sealed = to_hex(&self.master.seal(&*self.seams.entropy, name, plain));
        let free = |folded: &Folded| {
            let taken = folded.secrets.contains_key(name);
            if taken { Err(format!("there is a secret {name:?} already")) } else { Ok(()) }
        };
        self.add(who, What::SecretSealed { name: name.into(), sealed }, free).await
    }

    pub async fn retire_secret(&mut self, who: &str, name: &str) -> Result<(), SystemError> {
        self.add(who, What::SecretRetired { name: name.into() }, |_| Ok(())).await
    }

    /// Notes an operator's act. Exactly one entry per call that returned `Ok`.
    pub async fn audit(
        &mut self,
        who: &str,
        room: Option<&RoomName>,
        action: &str,
        detail: serde_json::Value,
    ) -> Result<(), SystemError> {
        let room = room.map(RoomName::to_string);
        self.add(who, What::Audit { room, action: action.into(), detail }, |_| Ok(())).await
    }

    /// Entries after `from`, for whoever shows the audit trail.
    pub async fn entries_after(
        &self,
        from: Head,
        max_bytes: usize,
    ) -> Result<Vec<(Head, Entry)>, SystemError> {
        let batches = self.store.read(&RoomName::system(), from, max_bytes).await;
        let mut found = Vec::new();
        for stored in batches.map_err(SystemError::Store)? {
            let entries = entries(&stored.payload, stored.head)?;
            found.extend((stored.after.0 + 1..).map(Head).zip(entries));
        }
        found.retain(|(head, _)| *head > from);
        Ok(found)
    }

    /// Adds an entry if `allowed`, which is asked when nobody else can write in between.
    async fn add(
        &mut self,
        who: &str,
        what: What,
        allowed: impl Fn(&Folded) -> Result<(), String>,
    ) -> Result<(), SystemError> {
        let at_ms = self.seams.clock.wall_ms();
        let entry = Entry { version: VERSION, at_ms, who: who.into(), what };
        let payload = serde_json::to_vec(&[&entry]).expect("entries are plain data");
        // Twice, because another instance may have written since: then the first try is told so,
        // catches up and takes the lease. A third party in between is a reason to come back later.
        for last in [false, true] {
            // It stays where it is while the store is asked: a caller who gives up waiting must not
            // take the lease along.
            if self.writing.is_none() {
                self.take_lease().await?;
            }
            let writing = self.writing.as_mut().expect("it was just taken");
            if let Err(why) = allowed(&self.folded) {
                return Err(SystemError::Refused { why });
            }
            writing.number += 1;
            let batch = Batch { number: writing.number, events: 1, payload: payload.clone() };
            let room = RoomName::system();
            let done = self.store.append(&room, &writing.lease, self.at.head, batch).await;
            let failed = match done {
                Ok(at) => {
                    self.folded.absorb(&entry);
                    self.at = at;
                    return Ok(());
                }
                Err(failed) => failed,
            };
            // Where the log stands is not known any more: whoever writes next reads it first, under
            // a lease of its own, and others need not wait until this one runs out.
            self.put_down().await;
            self.writing = None;
            match failed {
                AppendError::Unknown { why } => return Err(SystemError::Unknown { why }),
                AppendError::Refused { why } => return Err(SystemError::Refused { why }),
                AppendError::Stale { .. } | AppendError::Fenced { .. } if !last => {}
                _ => return Err(SystemError::Busy { left_ms: LEASE_MS }),
            }
        }
        unreachable!("the second try returns")
    }

    async fn take_lease(&mut self) -> Result<(), SystemError> {
        let name = LeaseName::room(&RoomName::system());
        let lease = match self.store.lease(&name, &self.instance, LEASE_MS).await {
            Err(Error::Held { left_ms, .. }) => return Err(SystemError::Busy { left_ms }),
            lease => lease.map_err(SystemError::Store)?,
        };
        // Held from here on, so that it is given back also by whoever gives up while it is read.
        self.writing = Some(Writing { lease, number: 0 });
        let read = self.catch_up().await;
        if read.is_err() {
            self.put_down().await;
            self.writing = None;
        }
        read
    }
}

fn entries(payload: &[u8], head: Head) -> Result<Vec<Entry>, SystemError> {
    serde_json::from_slice(payload).map_err(|error| {
        SystemError::Store(Error::Damaged {
            why: format!("the _system log at event {head}: {error}"),
        })
    })
}
