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
//! To add a kind: a variant of [`What`], its arm in `absorb`, a line in `docs/store.md`.

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
    },
    ApiKeyRevoked {
        id: String,
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
    /// An operator's act that is not one of the above.
    Audit {
        room: Option<String>,
        action: String,
        detail: serde_json::Value,
    },
    /// Of a newer release.
    #[serde(other)]
    Unknown,
}

/// An API key as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub id: String,
    /// HMAC-SHA-256 of the key, under a key derived from the master key.
    pub hash: [u8; 32],
    pub role: String,
    pub note: String,
    pub created_at_ms: u64,
    pub revoked_at_ms: Option<u64>,
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
            What::ApiKeyCreated { id, hash, role, note } => {
                // A hash that is none matches no key; the entry stays visible in the log.
                let hash = from_hex(hash).and_then(|hash| hash.try_into().ok());
                if let Some(hash) = hash {
                    let key = ApiKey {
                        id: id.clone(),
                        hash,
                        role: role.clone(),
                        note: note.clone(),
                        created_at_ms: entry.at_ms,
                        revoked_at_ms: None,
                    };
                    self.keys.insert(id.clone(), key);
                }
            }
            What::ApiKeyRevoked { id } => {
                if let Some(key) = self.keys.get_mut(id) {
                    key.revoked_at_ms.get_or_insert(entry.at_ms);
                }
            }
            What::SecretSealed { name, sealed } => {
                if let Some(sealed) = from_hex(sealed) {
                    self.secrets.insert(name.clone(), sealed);
                }
            }
            What::SecretRetired { name } => {
                self.secrets.remove(name);
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
        };
        system.catch_up().await?;
        Ok(system)
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

    /// All API keys ever made, revoked ones too.
    pub fn api_keys(&self) -> impl Iterator<Item = &ApiKey> {
        self.folded.keys.values()
    }

    /// The live API key that `secret` is, if any. Compared by keyed hash, so neither the log nor
    /// the time it takes tells anything about keys.
    pub fn api_key(&self, secret: &str) -> Option<&ApiKey> {
        let hash = self.hash_of(secret);
        let live = self.folded.keys.values().filter(|key| key.revoked_at_ms.is_none());
        live.into_iter().find(|key| key.hash == hash)
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

    /// Remembers an API key by its hash. The caller shows `secret` once and forgets it.
    pub async fn create_api_key(
        &mut self,
        who: &str,
        id: &str,
        secret: &str,
        role: &str,
        note: &str,
    ) -> Result<(), SystemError> {
        let free = |folded: &Folded| {
            let taken = folded.keys.contains_key(id);
            if taken { Err(format!("there is a key {id:?} already")) } else { Ok(()) }
        };
        let hash = to_hex(&self.hash_of(secret));
        let (role, note) = (role.into(), note.into());
        self.add(who, What::ApiKeyCreated { id: id.into(), hash, role, note }, free).await
    }

    pub async fn revoke_api_key(&mut self, who: &str, id: &str) -> Result<(), SystemError> {
        let live = |folded: &Folded| {
            let live = folded.keys.get(id).is_some_and(|key| key.revoked_at_ms.is_none());
            if live { Ok(()) } else { Err(format!("there is no live key {id:?}")) }
        };
        self.add(who, What::ApiKeyRevoked { id: id.into() }, live).await
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

    fn hash_of(&self, secret: &str) -> [u8; 32] {
        self.master.hash_key("api-key").hash(secret.as_bytes())
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
            let mut writing = match self.writing.take() {
                Some(writing) => writing,
                None => self.take_lease().await?,
            };
            if let Err(why) = allowed(&self.folded) {
                self.writing = Some(writing);
                return Err(SystemError::Refused { why });
            }
            writing.number += 1;
            let batch = Batch { number: writing.number, events: 1, payload: payload.clone() };
            let room = RoomName::system();
            let done = self.store.append(&room, &writing.lease, self.at.head, batch).await;
            match done {
                Ok(at) => {
                    self.folded.absorb(&entry);
                    self.at = at;
                    self.writing = Some(writing);
                    return Ok(());
                }
                Err(AppendError::Unknown { why }) => return Err(SystemError::Unknown { why }),
                Err(AppendError::Refused { why }) => return Err(SystemError::Refused { why }),
                Err(AppendError::Stale { .. } | AppendError::Fenced { .. }) if !last => {}
                Err(_) => return Err(SystemError::Busy { left_ms: LEASE_MS }),
            }
        }
        unreachable!("the second try returns")
    }

    async fn take_lease(&mut self) -> Result<Writing, SystemError> {
        let name = LeaseName::room(&RoomName::system());
        let lease = match self.store.lease(&name, &self.instance, LEASE_MS).await {
            Err(Error::Held { left_ms, .. }) => return Err(SystemError::Busy { left_ms }),
            lease => lease.map_err(SystemError::Store)?,
        };
        self.catch_up().await?;
        Ok(Writing { lease, number: 0 })
    }
}

fn entries(payload: &[u8], head: Head) -> Result<Vec<Entry>, SystemError> {
    serde_json::from_slice(payload).map_err(|error| {
        SystemError::Store(Error::Damaged {
            why: format!("the _system log at event {head}: {error}"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{contract_tests::wait, memory::MemoryStore, seams::ManualClock, verify};

    fn seams() -> Seams {
        Seams::seeded(ManualClock::at(1_000), 1)
    }

    fn open(store: &MemoryStore, seams: &Seams, instance: &str) -> System<MemoryStore> {
        let master = MasterKey::from_bytes([7; 32]);
        wait(System::open(store.clone(), master, seams.clone(), instance)).expect("readable")
    }

    fn room(name: &str) -> RoomName {
        RoomName::parse(name).unwrap()
    }

    #[test]
    fn whoever_opens_the_log_knows_what_was_written() {
        let seams = seams();
        let store = MemoryStore::new(seams.clone());
        let mut system = open(&store, &seams, "one");
        wait(async {
            system.create_room("root", &room("sale")).await?;
            system.create_room("root", &room("old")).await?;
            system.remove_room("root", &room("old")).await?;
            system.create_api_key("root", "k1", "s3cret", "operator", "for ana").await?;
            system.create_api_key("root", "k2", "other", "viewer", "").await?;
            system.revoke_api_key("k1", "k2").await?;
            system.keep_secret("root", "signing/1", b"private key").await?;
            system.keep_secret("root", "id/sale", b"aes key").await?;
            system.retire_secret("root", "id/sale").await?;
            system
                .audit("k1", Some(&room("sale")), "pause", serde_json::json!({"reason": "x"}))
                .await
        })
        .expect("written");
        let again = open(&store, &seams, "two");
        assert_eq!(again.rooms().map(|(room, _)| room).collect::<Vec<_>>(), ["sale"]);
        assert_eq!(again.api_key("s3cret").map(|key| &*key.role), Some("operator"));
        assert_eq!(again.api_key("other"), None, "revoked");
        assert_eq!(again.api_key("guess"), None);
        assert_eq!(again.api_keys().count(), 2);
        assert_eq!(again.secret("signing/1"), Ok(Some(b"private key".to_vec())));
        assert_eq!(again.secret("id/sale"), Ok(None));
        assert_eq!(again.folded, system.folded);
        let trail = wait(again.entries_after(Head(9), 1 << 20)).expect("readable");
        assert_eq!(trail.len(), 1);
        assert_eq!((trail[0].0, &*trail[0].1.who), (Head(10), "k1"));
        assert_eq!(wait(verify::chain(&store, &RoomName::system())), Ok(system.tip()));
    }

    #[test]
    fn neither_keys_nor_secrets_stand_in_the_log() {
        let seams = seams();
        let store = MemoryStore::new(seams.clone());
        let mut system = open(&store, &seams, "one");
        wait(system.create_api_key("root", "k1", "s3cret-key", "owner", "")).expect("written");
        wait(system.keep_secret("root", "signing/1", b"private-key-bytes")).expect("written");
        let stored = wait(store.read(&RoomName::system(), Head(0), usize::MAX)).expect("readable");
        let all: Vec<u8> = stored.into_iter().flat_map(|stored| stored.payload).collect();
        let text = String::from_utf8(all).expect("JSON");
        assert!(!text.contains("s3cret-key") && !text.contains("private-key-bytes"));
        assert!(!text.contains(&to_hex(b"private-key-bytes")));
        let wrong = MasterKey::from_bytes([8; 32]);
        let other = wait(System::open(store, wrong, seams, "two")).expect("readable");
        assert_eq!(
            other.secret("signing/1"),
            Err(SystemError::Sealed { name: "signing/1".into() })
        );
        assert_eq!(other.api_key("s3cret-key"), None);
    }

    #[test]
    fn two_instances_take_turns_and_lose_nothing() {
        let clock = ManualClock::at(1_000);
        let seams = Seams::seeded(clock.clone(), 1);
        let store = MemoryStore::new(seams.clone());
        let (mut one, mut two) = (open(&store, &seams, "one"), open(&store, &seams, "two"));
        let act = |system: &mut System<MemoryStore>, what: &str| {
            wait(system.audit("me", None, what, serde_json::Value::Null))
        };
        act(&mut one, "a").expect("free");
        assert_eq!(act(&mut two, "b"), Err(SystemError::Busy { left_ms: 2_000 }));
        clock.advance(2_000);
        act(&mut two, "b").expect("free again");
        clock.advance(2_000);
        act(&mut one, "c").expect("caught up and went on");
        wait(two.catch_up()).expect("readable");
        assert_eq!(two.tip(), one.tip());
        let trail = wait(two.entries_after(Head(0), 1 << 20)).expect("readable");
        let actions: Vec<String> = trail
            .into_iter()
            .filter_map(|(_, entry)| match entry.what {
                What::Audit { action, .. } => Some(action),
                _ => None,
            })
            .collect();
        assert_eq!(actions, ["a", "b", "c"]);
    }

    #[test]
    fn of_two_instances_that_make_the_same_room_one_is_refused() {
        let clock = ManualClock::at(1_000);
        let seams = Seams::seeded(clock.clone(), 1);
        let store = MemoryStore::new(seams.clone());
        let (mut one, mut two) = (open(&store, &seams, "one"), open(&store, &seams, "two"));
        wait(one.audit("me", None, "first", serde_json::Value::Null)).expect("free");
        clock.advance(2_000);
        wait(two.create_room("two", &room("sale"))).expect("free");
        clock.advance(2_000);
        // `one` has not read that yet and still believes that it may write.
        let again = wait(one.create_room("one", &room("sale")));
        assert!(matches!(again, Err(SystemError::Refused { .. })), "{again:?}");
        assert_eq!(wait(store.committed_head(&RoomName::system())), Ok(Head(2)));
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_leaves_no_entry() {
        let seams = seams();
        let store = MemoryStore::new(seams.clone());
        let mut system = open(&store, &seams, "one");
        wait(system.create_room("root", &room("sale"))).expect("written");
        let refused =
            |done: Result<(), SystemError>| matches!(done, Err(SystemError::Refused { .. }));
        assert!(refused(wait(system.create_room("root", &room("sale")))));
        assert!(refused(wait(system.remove_room("root", &room("other")))));
        assert!(refused(wait(system.revoke_api_key("root", "k1"))));
        assert_eq!(system.tip().head, Head(1));
    }

    #[test]
    fn an_entry_of_a_newer_release_is_skipped_and_kept() {
        let text = br#"[{"v":2,"at_ms":5,"who":"x","what":{"kind":"teleported","to":"mars"}}]"#;
        let entries = entries(text, Head(1)).expect("understood as far as possible");
        assert_eq!(entries[0].what, What::Unknown);
        let mut folded = Folded::default();
        folded.absorb(&entries[0]);
        assert_eq!(folded, Folded::default());
    }
}
