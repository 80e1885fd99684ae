//! API keys as the `_system` log keeps them: hashes, roles, ends, pairs.
//!
//! Lives here: [`ApiKey`], its fold, and the verbs that make, follow and end keys. A key is 256
//! random bits; only an HMAC of it under a key derived from the master key is written down, so
//! whoever reads the store, a backup or an export of it holds no key, and cannot even try guesses
//! without the master key.
//! Stays out: what a role may do, and when a key was used (whoever checks keys knows; the log is
//! told from time to time).

use std::collections::BTreeMap;

use super::{Entry, Folded, System, SystemError, What};
use crate::{
    contract::Store,
    seal::{from_hex, to_hex},
};

/// An API key as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub id: String,
    /// HMAC-SHA-256 of the key, under a key derived from the master key.
    pub hash: [u8; 32],
    pub role: String,
    pub note: String,
    pub created_at_ms: u64,
    pub created_by: String,
    /// From then on it is refused.
    pub expires_at_ms: Option<u64>,
    pub revoked_at_ms: Option<u64>,
    /// The key that follows it.
    pub replaced_by: Option<String>,
    pub last_used_at_ms: Option<u64>,
}

/// A key to be made. The caller shows `secret` once and forgets it.
#[derive(Clone, Copy)]
pub struct NewKey<'a> {
    pub id: &'a str,
    pub secret: &'a str,
    pub role: &'a str,
    pub note: &'a str,
    pub expires_at_ms: Option<u64>,
}

/// Says nothing of the secret.
impl std::fmt::Debug for NewKey<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ApiKey {
    /// Whether it opens anything at this moment.
    pub fn is_live(&self, now_ms: u64) -> bool {
        self.revoked_at_ms.is_none() && self.expires_at_ms.is_none_or(|ends| now_ms < ends)
    }
}

/// Folds an entry about keys in.
pub(super) fn absorb(keys: &mut BTreeMap<String, ApiKey>, entry: &Entry) {
    match &entry.what {
        What::ApiKeyCreated { id, hash, role, note, expires_at_ms } => {
            insert(keys, entry, id, hash, role, note, *expires_at_ms);
        }
        What::ApiKeyRotated { old, old_ends_at_ms, id, hash, expires_at_ms } => {
            let Some(followed) = keys.get_mut(old) else { return };
            let ends = followed.expires_at_ms.map_or(*old_ends_at_ms, |it| it.min(*old_ends_at_ms));
            followed.expires_at_ms = Some(ends);
            followed.replaced_by = Some(id.clone());
            let (role, note) = (followed.role.clone(), followed.note.clone());
            insert(keys, entry, id, hash, &role, &note, *expires_at_ms);
        }
        What::ApiKeyRevoked { id } => {
            if let Some(key) = keys.get_mut(id) {
                key.revoked_at_ms.get_or_insert(entry.at_ms);
            }
        }
        What::ApiKeysUsed { at_ms } => {
            for (id, at_ms) in at_ms {
                if let Some(key) = keys.get_mut(id) {
                    key.last_used_at_ms = key.last_used_at_ms.max(Some(*at_ms));
                }
            }
        }
        _ => {}
    }
}

fn insert(
    keys: &mut BTreeMap<String, ApiKey>,
    entry: &Entry,
    id: &str,
    hash: &str,
    role: &str,
    note: &str,
    expires_at_ms: Option<u64>,
) {
    // A hash that is none matches no key; the entry stays visible in the log.
    let Some(hash) = from_hex(hash).and_then(|hash| hash.try_into().ok()) else { return };
    let key = ApiKey {
        id: id.into(),
        hash,
        role: role.into(),
        note: note.into(),
        created_at_ms: entry.at_ms,
        created_by: entry.who.clone(),
        expires_at_ms,
        revoked_at_ms: None,
        replaced_by: None,
        last_used_at_ms: None,
    };
    keys.insert(id.into(), key);
}

impl<S: Store> System<S> {
    /// All API keys ever made, revoked and expired ones too.
    pub fn api_keys(&self) -> impl Iterator<Item = &ApiKey> {
        self.folded.keys.values()
    }

    pub fn api_key_named(&self, id: &str) -> Option<&ApiKey> {
        self.folded.keys.get(id)
    }

    /// The live API key that `secret` is, if any. Compared by keyed hash, so neither the log nor
    /// the time it takes tells anything about keys.
    pub fn api_key(&self, secret: &str) -> Option<&ApiKey> {
        let (hash, now_ms) = (self.hash_of(secret), self.seams.clock.wall_ms());
        self.folded.keys.values().find(|key| key.hash == hash && key.is_live(now_ms))
    }

    /// Remembers an API key by its hash.
    pub async fn create_api_key(&mut self, who: &str, key: &NewKey<'_>) -> Result<(), SystemError> {
        let NewKey { id, secret, role, note, expires_at_ms } = *key;
        let hash = to_hex(&self.hash_of(secret));
        let (role, note) = (role.into(), note.into());
        let what = What::ApiKeyCreated { id: id.into(), hash, role, note, expires_at_ms };
        self.add(who, what, |folded| is_free(folded, id)).await
    }

    /// Makes the key that follows `old`, which works on until `old_ends_at_ms`. Role and note of
    /// `next` are not looked at: a key is followed by one of its kind.
    pub async fn rotate_api_key(
        &mut self,
        who: &str,
        old: &str,
        old_ends_at_ms: u64,
        next: &NewKey<'_>,
    ) -> Result<(), SystemError> {
        let now_ms = self.seams.clock.wall_ms();
        let hash = to_hex(&self.hash_of(next.secret));
        let what = What::ApiKeyRotated {
            old: old.into(),
            old_ends_at_ms,
            id: next.id.into(),
            hash,
            expires_at_ms: next.expires_at_ms,
        };
        let allowed = |folded: &Folded| {
            is_free(folded, next.id)?;
            match folded.keys.get(old) {
                Some(key) if !key.is_live(now_ms) => Err(format!("the key {old:?} has ended")),
                Some(ApiKey { replaced_by: Some(by), .. }) => {
                    Err(format!("the key {old:?} was followed by {by:?} already"))
                }
                Some(_) => Ok(()),
                None => Err(format!("there is no key {old:?}")),
            }
        };
        self.add(who, what, allowed).await
    }

    pub async fn revoke_api_key(&mut self, who: &str, id: &str) -> Result<(), SystemError> {
        let live = |folded: &Folded| {
            let live = folded.keys.get(id).is_some_and(|key| key.revoked_at_ms.is_none());
            if live { Ok(()) } else { Err(format!("there is no live key {id:?}")) }
        };
        self.add(who, What::ApiKeyRevoked { id: id.into() }, live).await
    }

    /// Writes down when keys were last used.
    pub async fn note_use(
        &mut self,
        who: &str,
        at_ms: BTreeMap<String, u64>,
    ) -> Result<(), SystemError> {
        self.add(who, What::ApiKeysUsed { at_ms }, |_| Ok(())).await
    }

    fn hash_of(&self, secret: &str) -> [u8; 32] {
        self.master.hash_key("api-key").hash(secret.as_bytes())
    }
}

fn is_free(folded: &Folded, id: &str) -> Result<(), String> {
    let taken = folded.keys.contains_key(id);
    if taken { Err(format!("there is a key {id:?} already")) } else { Ok(()) }
}
