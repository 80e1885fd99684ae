//! API keys as they are checked on every request: by hash, without waiting for the log.
//!
//! Lives here: the live keys, and when each was last used. Last use is soft: kept in memory,
//! written to the `_system` log at most once an hour and when the server stops. A crash loses up
//! to an hour of it; a log that grew with every request would cost more than the answer is worth.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use waitroom_api::caller::{ApiCaller, Role};
use waitroom_store::seal::HashKey;
use waitroom_store::system::ApiKey;

/// How often last use is written down at most.
pub const USE_NOTED_EVERY_MS: u64 = 3_600_000;

pub struct Keyring {
    /// What keys are hashed with, derived once.
    hash: HashKey,
    keys: Mutex<Arc<HashMap<[u8; 32], Arc<Held>>>>,
    /// When last use was written down, and up to when.
    noted_at_ms: AtomicU64,
}

struct Held {
    caller: ApiCaller,
    expires_at_ms: Option<u64>,
    used_at_ms: AtomicU64,
}

impl Keyring {
    pub fn new(hash: HashKey, now_ms: u64) -> Keyring {
        Keyring { hash, keys: Mutex::default(), noted_at_ms: AtomicU64::new(now_ms) }
    }

    /// Takes over the keys of the log. What is known of their use stays.
    pub fn take<'a>(&self, keys: impl Iterator<Item = &'a ApiKey>) {
        let before = self.keys();
        let held = keys.filter(|key| key.revoked_at_ms.is_none()).filter_map(|key| {
            let caller = ApiCaller { id: key.id.as_str().into(), role: Role::parse(&key.role)? };
            let used = before.get(&key.hash).map_or(0, |it| it.used_at_ms.load(Ordering::Relaxed));
            let used_at_ms = AtomicU64::new(used.max(key.last_used_at_ms.unwrap_or(0)));
            let held = Held { caller, expires_at_ms: key.expires_at_ms, used_at_ms };
            Some((key.hash, Arc::new(held)))
        });
        let held = Arc::new(held.collect());
        *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    /// Who presents this text, if it is a key that still opens something.
    pub fn caller(&self, secret: &str, now_ms: u64) -> Option<ApiCaller> {
        let keys = self.keys();
        let held = keys.get(&self.hash.hash(secret.as_bytes()))?;
        if held.expires_at_ms.is_some_and(|ends| now_ms >= ends) {
            return None;
        }
        held.used_at_ms.fetch_max(now_ms, Ordering::Relaxed);
        Some(held.caller.clone())
    }

    /// When a key was last used, as far as this instance knows.
    pub fn last_use(&self, hash: &[u8; 32]) -> Option<u64> {
        let used = self.keys().get(hash)?.used_at_ms.load(Ordering::Relaxed);
        (used > 0).then_some(used)
    }

    /// What was used since it was last written down; none when it is too early for that.
    pub fn to_note(&self, now_ms: u64, at_once: bool) -> Option<BTreeMap<String, u64>> {
        let noted = self.noted_at_ms.load(Ordering::Relaxed);
        if !at_once && now_ms < noted.saturating_add(USE_NOTED_EVERY_MS) {
            return None;
        }
        let keys = self.keys();
        let used = keys.values().map(|it| (it, it.used_at_ms.load(Ordering::Relaxed)));
        let used: BTreeMap<String, u64> = used
            .filter(|(_, at_ms)| *at_ms > noted)
            .map(|(it, at_ms)| (it.caller.id.to_string(), at_ms))
            .collect();
        (!used.is_empty()).then_some(used)
    }

    pub fn noted(&self, at_ms: u64) {
        self.noted_at_ms.store(at_ms, Ordering::Relaxed);
    }

    fn keys(&self) -> Arc<HashMap<[u8; 32], Arc<Held>>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waitroom_store::seal::MasterKey;

    fn key(ring: &Keyring, secret: &str, expires_at_ms: Option<u64>) -> ApiKey {
        ApiKey {
            id: secret.into(),
            hash: ring.hash.hash(secret.as_bytes()),
            role: "viewer".into(),
            note: String::new(),
            created_at_ms: 0,
            created_by: "test".into(),
            expires_at_ms,
            revoked_at_ms: None,
            replaced_by: None,
            last_used_at_ms: None,
        }
    }

    #[test]
    fn a_key_opens_until_it_expires_and_its_use_is_remembered_for_an_hour() {
        let ring = Keyring::new(MasterKey::from_bytes([7; 32]).hash_key("api-key"), 1_000);
        let keys = [key(&ring, "one", Some(9_000)), key(&ring, "two", None)];
        ring.take(keys.iter());
        assert!(ring.caller("one", 8_999).is_some() && ring.caller("one", 9_000).is_none());
        assert!(ring.caller("guess", 2_000).is_none());
        assert_eq!(ring.last_use(&keys[0].hash), Some(8_999));
        assert_eq!(ring.to_note(10_000, false), None, "too early");
        assert_eq!(ring.to_note(10_000, true), Some([("one".to_owned(), 8_999)].into()));
        let hour = 1_000 + USE_NOTED_EVERY_MS;
        assert_eq!(ring.to_note(hour, false), Some([("one".to_owned(), 8_999)].into()));
        ring.noted(hour);
        assert_eq!(ring.to_note(hour * 3, true), None, "nothing new");
        ring.take(keys.iter());
        assert_eq!(ring.last_use(&keys[0].hash), Some(8_999), "other keys change, use stays");
    }
}
