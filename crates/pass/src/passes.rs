//! The keys that sign passes, their rotation, and the set that the world checks against.
//!
//! Lives here: which keys there are. Stays out: when which of them signs (`schedule.rs`), where
//! they are kept: [`Passes::stored`] hands them out for sealing, [`Passes::load`] takes them back.
//! Readers (`sign`, `jwks`, verifiers) load a pointer and never wait; writers take turns.
//! Time comes in by [`Passes::advance`], called every few seconds. Called late, the present key
//! signs a little longer and stays published accordingly; called early or with a clock that
//! stepped back, it does nothing.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use arc_swap::ArcSwap;
use serde_json::json;
use waitroom_verifier::{Alg, KeySet, Keys, Rules, Unseen, Verifier};

use crate::{
    pass_claims::PassClaims,
    schedule::Rotation,
    signing_key::{KeyError, SigningKey},
};

/// A handful is plenty: one signs, one waits, some retire. Every key is in a document that all
/// verifiers fetch, so somebody who rotates in a loop is told to stop.
const KEYS_MAX: usize = 16;

/// Signs passes and publishes the keys to check them with.
#[derive(Debug)]
pub struct Passes {
    rotation: Rotation,
    now: ArcSwap<State>,
    public: Keys,
    /// Held by writers; the latest time that was given.
    latest_s: Mutex<u64>,
}

#[derive(Debug)]
struct State {
    /// By when they begin to sign. Never empty.
    keys: Vec<Arc<Entry>>,
    signer: usize,
    jwks: Arc<str>,
}

#[derive(Debug)]
struct Entry {
    key: SigningKey,
    signs_from_s: u64,
    /// The latest end of any pass that this instance signed with it.
    last_exp_s: AtomicU64,
}

/// A private key and when it begins to sign: all that is needed to go on after a restart.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredKey {
    pub pkcs8: Vec<u8>,
    pub signs_from_s: u64,
}

impl StoredKey {
    /// One run of bytes, to seal and to keep.
    pub fn to_bytes(&self) -> Vec<u8> {
        [&self.signs_from_s.to_be_bytes()[..], &self.pkcs8].concat()
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (from, pkcs8) = bytes.split_first_chunk()?;
        Some(StoredKey { pkcs8: pkcs8.to_vec(), signs_from_s: u64::from_be_bytes(*from) })
    }
}

/// Debug output ends up in logs.
impl fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredKey(signs from {})", self.signs_from_s)
    }
}

impl Passes {
    /// With one key that signs at once.
    pub fn new(key: SigningKey, rotation: Rotation, now_s: u64) -> Self {
        Self::of(vec![Arc::new(Entry::new(key, now_s))], rotation, now_s)
    }

    pub fn generate(alg: Alg, rotation: Rotation, now_s: u64) -> Self {
        Self::new(SigningKey::generate(alg), rotation, now_s)
    }

    /// With the keys that [`Passes::stored`] gave out, in any order. `None` without any.
    pub fn load(
        stored: &[StoredKey],
        rotation: Rotation,
        now_s: u64,
    ) -> Result<Option<Self>, KeyError> {
        let entry = |stored: &StoredKey| {
            let key = SigningKey::from_pkcs8(&stored.pkcs8)?;
            Ok(Arc::new(Entry::new(key, stored.signs_from_s)))
        };
        let mut keys = stored.iter().map(entry).collect::<Result<Vec<_>, KeyError>>()?;
        sort(&mut keys);
        keys.dedup_by(|a, b| a.key.kid() == b.key.kid());
        Ok((!keys.is_empty()).then(|| Self::of(keys, rotation, now_s)))
    }

    /// The private keys, to be sealed and kept. Ask again after every change.
    pub fn stored(&self) -> Vec<StoredKey> {
        let state = self.now.load();
        let stored = |entry: &Arc<Entry>| StoredKey {
            pkcs8: entry.key.to_pkcs8(),
            signs_from_s: entry.signs_from_s,
        };
        state.keys.iter().map(stored).collect()
    }

    /// A pass with these claims, by the key whose turn it is.
    pub fn sign(&self, claims: &PassClaims) -> String {
        let state = self.now.load();
        let entry = &state.keys[state.signer];
        entry.last_exp_s.fetch_max(claims.expires_s, Ordering::Relaxed);
        entry.key.token(claims)
    }

    /// The document of `/.well-known/jwks.json`.
    pub fn jwks(&self) -> Arc<str> {
        self.now.load().jwks.clone()
    }

    /// Checks the passes of a room with these keys, and follows every rotation by itself.
    pub fn verifier(&self, room: &str) -> Verifier {
        Verifier::with(self.public.clone(), Rules::of_room(room))
    }

    /// The same for whoever cannot see what a pass is bound to, and leaves that to the gate.
    pub fn verifier_anywhere(&self, room: &str) -> Verifier {
        let unseen = Unseen { nonce: true, ip: true, user_agent: true };
        Verifier::with(self.public.clone(), Rules::of_room(room).unseen(unseen))
    }

    /// The name of the key that signs.
    pub fn signer(&self) -> String {
        let state = self.now.load();
        state.keys[state.signer].key.kid().to_owned()
    }

    pub fn rotation(&self) -> Rotation {
        self.rotation
    }

    /// Publishes `key` now, to sign after `publish_for`. Then keep what [`Passes::stored`] says:
    /// a key that a restart forgets was published in vain, and its passes die with it. Where
    /// several instances share the keys, write the key to their log and [`Passes::adopt`] it.
    pub fn rotate(&self, key: SigningKey, now_s: u64) -> Result<(), RotateError> {
        let latest = self.at(now_s);
        let known = self.now.load();
        if known.keys.iter().any(|entry| entry.key.kid() == key.kid()) {
            return Err(RotateError::KnownAlready);
        }
        let newest = known.keys.last().map_or(0, |entry| entry.signs_from_s);
        let signs_from_s = latest.saturating_add(self.rotation.publish_for_s).max(newest);
        self.insert(Entry::new(key, signs_from_s), *latest)
    }

    /// Takes a key that another instance published, or that came back from the log. A key that
    /// is known already is no mistake: logs are read again.
    pub fn adopt(&self, stored: &StoredKey, now_s: u64) -> Result<(), RotateError> {
        let key = SigningKey::from_pkcs8(&stored.pkcs8).map_err(RotateError::Key)?;
        let latest = self.at(now_s);
        let known = self.now.load().keys.iter().any(|entry| entry.key.kid() == key.kid());
        if known { Ok(()) } else { self.insert(Entry::new(key, stored.signs_from_s), *latest) }
    }

    /// Takes a key out at once, because others may have it. Its passes die now; that is the
    /// purpose. If it was signing, the newest of the others signs from now on. The last key
    /// cannot be withdrawn: rotate first.
    pub fn withdraw(&self, kid: &str) -> Result<(), RotateError> {
        let latest = self.at(0);
        let mut keys = self.now.load_full().keys.clone();
        let before = keys.len();
        keys.retain(|entry| entry.key.kid() != kid);
        if keys.is_empty() {
            return Err(RotateError::LastKey);
        }
        if keys.len() == before {
            return Err(RotateError::Unknown);
        }
        self.publish(State::of(keys, &self.rotation, *latest));
        Ok(())
    }

    /// Lets time pass: a key whose turn has come signs, a key without living passes goes. Says
    /// whether anything changed, in which case [`Passes::stored`] did too.
    pub fn advance(&self, now_s: u64) -> bool {
        let latest = self.at(now_s);
        let state = self.now.load_full();
        let signs_from = signs_from(&state.keys);
        let stays = |(index, entry): (usize, &Arc<Entry>)| {
            let last_exp_s = entry.last_exp_s.load(Ordering::Relaxed);
            let over = self.rotation.is_over(&signs_from, index, last_exp_s, *latest);
            // The one that signed until this moment is still in somebody's hands.
            (!over || index == state.signer).then(|| entry.clone())
        };
        let keys: Vec<_> = state.keys.iter().enumerate().filter_map(stays).collect();
        let next = State::of(keys, &self.rotation, *latest);
        let same_signer = Arc::ptr_eq(&next.keys[next.signer], &state.keys[state.signer]);
        if same_signer && next.keys.len() == state.keys.len() {
            return false;
        }
        self.publish(next);
        true
    }

    fn of(keys: Vec<Arc<Entry>>, rotation: Rotation, now_s: u64) -> Self {
        let state = State::of(keys, &rotation, now_s);
        let public = Keys::new(state.public());
        Passes { rotation, now: ArcSwap::from_pointee(state), public, latest_s: Mutex::new(now_s) }
    }

    /// Our own verifiers learn of a key before anything can be signed with it, even when
    /// `publish_for` is zero.
    fn publish(&self, state: State) {
        self.public.replace(state.public());
        self.now.store(Arc::new(state));
    }

    fn insert(&self, entry: Entry, latest_s: u64) -> Result<(), RotateError> {
        let mut keys = self.now.load().keys.clone();
        if keys.len() >= KEYS_MAX {
            return Err(RotateError::TooManyKeys);
        }
        keys.push(Arc::new(entry));
        sort(&mut keys);
        self.publish(State::of(keys, &self.rotation, latest_s));
        Ok(())
    }

    /// Takes the writers' turn, with time never running backwards. A writer that panicked left
    /// no half-made state behind: states are replaced whole.
    fn at(&self, now_s: u64) -> MutexGuard<'_, u64> {
        let mut latest = self.latest_s.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = now_s.max(*latest);
        latest
    }
}

impl State {
    fn of(keys: Vec<Arc<Entry>>, rotation: &Rotation, now_s: u64) -> Self {
        let signer = rotation.signer(&signs_from(&keys), now_s);
        let jwks: Vec<_> = keys.iter().map(|entry| entry.key.jwk()).collect();
        let jwks = json!({ "keys": jwks }).to_string().into();
        State { keys, signer, jwks }
    }

    /// By the same door as everybody: what others cannot parse we shall not check with either.
    fn public(&self) -> KeySet {
        KeySet::parse(&self.jwks).expect("our own key set has good keys with names of their own")
    }
}

impl Entry {
    fn new(key: SigningKey, signs_from_s: u64) -> Self {
        Entry { key, signs_from_s, last_exp_s: AtomicU64::new(0) }
    }
}

/// By when they begin to sign; of one moment by name, so that all instances agree.
fn sort(keys: &mut [Arc<Entry>]) {
    keys.sort_by(|a, b| (a.signs_from_s, a.key.kid()).cmp(&(b.signs_from_s, b.key.kid())));
}

fn signs_from(keys: &[Arc<Entry>]) -> Vec<u64> {
    keys.iter().map(|entry| entry.signs_from_s).collect()
}

/// Why the keys stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RotateError {
    KnownAlready,
    TooManyKeys,
    Unknown,
    LastKey,
    Key(KeyError),
}

impl fmt::Display for RotateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RotateError::KnownAlready => f.write_str("this key is published already"),
            RotateError::TooManyKeys => {
                f.write_str("too many keys are published: wait until old passes end")
            }
            RotateError::Unknown => f.write_str("no such key is published"),
            RotateError::LastKey => f.write_str("the last key cannot be withdrawn: rotate first"),
            RotateError::Key(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for RotateError {}
