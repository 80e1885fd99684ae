//! The seal: how secrets lie in the store, and how identities are remembered without being known.
//!
//! Lives here: the master key, sealing under it (AES-256-GCM), and keyed hashes (HMAC-SHA-256).
//! Stays out: which secrets there are (`system`), and tokens and passes, which have their own crate.
//!
//! The master key itself seals nothing and hashes nothing: each use has its own key derived from it
//! by a label, so that a sealed text can never be mistaken for a hash, or one purpose's hash for
//! another's. A sealed text is `1 ‖ nonce (12) ‖ ciphertext ‖ tag (16)`; the context it was sealed
//! for is authenticated, so a sealed secret moved to another name does not open.

use std::{
    fmt, fs, io,
    io::Write,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::Path,
};

use aes_gcm::{
    Aes256Gcm, KeyInit, Nonce,
    aead::{Aead, Payload},
};
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::seams::Entropy;

const VERSION: u8 = 1;
const NONCE: usize = 12;
const TAG: usize = 16;

/// The one key of an installation. Whoever has it and the store has every secret in the store.
#[derive(Clone)]
pub struct MasterKey([u8; 32]);

/// What is wrong with a key, without showing any of it.
#[derive(Debug)]
pub enum KeyError {
    /// Neither 64 hex digits nor 32 bytes in base64.
    NotAKey,
    /// Others on this machine can read the file.
    Exposed {
        path: String,
        mode: u32,
    },
    Io {
        path: String,
        error: io::Error,
    },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::NotAKey => {
                f.write_str("a master key is 32 bytes, written as 64 hex digits or in base64")
            }
            KeyError::Exposed { path, mode } => write!(
                f,
                "{path} can be read by others (mode {mode:04o})\n  do      chmod 600 {path}; if others may have read it, make a new one"
            ),
            KeyError::Io { path, error } => write!(f, "cannot read or write {path}: {error}"),
        }
    }
}

impl std::error::Error for KeyError {}

impl MasterKey {
    pub fn from_bytes(bytes: [u8; 32]) -> MasterKey {
        MasterKey(bytes)
    }

    /// A fresh key from the operating system's randomness.
    pub fn generate() -> MasterKey {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the operating system always has randomness to give");
        MasterKey(bytes)
    }

    /// As it stands in an environment variable or a file: 64 hex digits, or base64.
    pub fn from_text(text: &str) -> Result<MasterKey, KeyError> {
        let text = text.trim();
        let bytes = from_hex(text).or_else(|| from_base64(text)).ok_or(KeyError::NotAKey)?;
        Ok(MasterKey(bytes.try_into().map_err(|_| KeyError::NotAKey)?))
    }

    /// From a file that only its owner can read.
    pub fn from_file(path: &Path) -> Result<MasterKey, KeyError> {
        let shown = || path.display().to_string();
        let io = |error| KeyError::Io { path: shown(), error };
        let mode = fs::metadata(path).map_err(io)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeyError::Exposed { path: shown(), mode });
        }
        MasterKey::from_text(&fs::read_to_string(path).map_err(io)?)
    }

    /// From a file, making it with a fresh key if it is not there. A key that cannot be read again
    /// would lose every secret, so the file is synced before the key is used.
    pub fn from_file_or_new(path: &Path) -> Result<MasterKey, KeyError> {
        let io = |error| KeyError::Io { path: path.display().to_string(), error };
        let made = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        match made {
            Ok(mut file) => {
                let key = MasterKey::generate();
                let text: String = key.0.iter().map(|byte| format!("{byte:02x}")).collect();
                file.write_all(format!("{text}\n").as_bytes()).map_err(io)?;
                file.sync_all().map_err(io)?;
                if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty())
                {
                    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)?;
                }
                Ok(key)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                MasterKey::from_file(path)
            }
            Err(error) => Err(io(error)),
        }
    }

    /// Seals `plain` for one `context`, such as the name it is kept under.
    pub fn seal(&self, entropy: &dyn Entropy, context: &str, plain: &[u8]) -> Vec<u8> {
        let nonce: [u8; NONCE] =
            entropy.next_u128().to_le_bytes()[..NONCE].try_into().expect("twelve of sixteen");
        let payload = Payload { msg: plain, aad: context.as_bytes() };
        let sealed = self
            .cipher()
            .encrypt(&Nonce::from(nonce), payload)
            .expect("only a text of more than 64 GiB cannot be sealed");
        [&[VERSION], &nonce[..], &sealed].concat()
    }

    /// Opens what was sealed for `context` under this key; `None` for anything else.
    pub fn open(&self, context: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (&version, rest) = sealed.split_first()?;
        if version != VERSION || rest.len() < NONCE + TAG {
            return None;
        }
        let (nonce, sealed) = rest.split_first_chunk::<NONCE>()?;
        let payload = Payload { msg: sealed, aad: context.as_bytes() };
        self.cipher().decrypt(&Nonce::from(*nonce), payload).ok()
    }

    /// The key for hashing one kind of thing, such as the identities of one room.
    pub fn hash_key(&self, purpose: &str) -> HashKey {
        HashKey(hmac(&self.0, &[b"waitroom hash 1\0", purpose.as_bytes()]))
    }

    fn cipher(&self) -> Aes256Gcm {
        Aes256Gcm::new(&hmac(&self.0, &[b"waitroom seal 1\0"]).into())
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(…)")
    }
}

/// A key for keyed hashes. Without it nobody can tell which identity a hash belongs to.
#[derive(Clone)]
pub struct HashKey([u8; 32]);

impl HashKey {
    pub fn hash(&self, what: &[u8]) -> [u8; 32] {
        hmac(&self.0, &[what])
    }

    /// The key itself, for parts that hash by themselves.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(…)")
    }
}

fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac =
        <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(key).expect("any length is a key");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Both alphabets, with or without padding: people paste what their tool gave them.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let (mut bits, mut held, mut bytes) = (0u32, 0, Vec::new());
    for byte in text.trim_end_matches('=').bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    (bits == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seams::{ManualClock, OsEntropy, Seams};

    fn key() -> MasterKey {
        MasterKey::from_bytes([7; 32])
    }

    #[test]
    fn what_was_sealed_opens_only_with_the_same_key_and_context() {
        let sealed = key().seal(&OsEntropy, "signing/1", b"secret");
        assert_eq!(key().open("signing/1", &sealed).as_deref(), Some(&b"secret"[..]));
        assert_eq!(key().open("signing/2", &sealed), None);
        assert_eq!(MasterKey::from_bytes([8; 32]).open("signing/1", &sealed), None);
        assert!(!sealed.windows(6).any(|part| part == b"secret"));
        for bit in 0..sealed.len() * 8 {
            let mut altered = sealed.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key().open("signing/1", &altered), None, "bit {bit}");
        }
        for len in 0..sealed.len() {
            assert_eq!(key().open("signing/1", &sealed[..len]), None, "cut at {len}");
        }
    }

    #[test]
    fn sealing_the_same_twice_looks_different() {
        let entropy = Seams::seeded(ManualClock::at(0), 1).entropy;
        assert_ne!(key().seal(&*entropy, "c", b"x"), key().seal(&*entropy, "c", b"x"));
    }

    #[test]
    fn hashes_differ_by_purpose_and_by_key() {
        let hash = |key: MasterKey, purpose: &str| key.hash_key(purpose).hash(b"ana@example.org");
        assert_eq!(hash(key(), "identity/a"), hash(key(), "identity/a"));
        assert_ne!(hash(key(), "identity/a"), hash(key(), "identity/b"));
        assert_ne!(hash(key(), "identity/a"), hash(MasterKey::from_bytes([8; 32]), "identity/a"));
    }

    /// The expected value was computed with Python's hmac module.
    #[test]
    fn the_hash_is_hmac_sha_256() {
        let expected = "b3f5087e558ceae42dfc0880616111e9bd7d31b88d9eef5732f736e72f9ce843";
        let key: [u8; 32] = std::array::from_fn(|n| n as u8 + 1);
        assert_eq!(to_hex(&hmac(&key, &[&[0xdd; 20], &[0xdd; 30]])), expected);
    }

    #[test]
    fn a_key_is_read_as_hex_or_base64_and_nothing_else() {
        let hex = "00".repeat(31) + "ff";
        let mut bytes = [0; 32];
        bytes[31] = 0xff;
        assert_eq!(MasterKey::from_text(&hex).unwrap().0, bytes);
        assert_eq!(MasterKey::from_text(&format!(" {}\n", hex.to_uppercase())).unwrap().0, bytes);
        let base64 = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAP8=";
        assert_eq!(MasterKey::from_text(base64).unwrap().0, bytes);
        assert_eq!(
            MasterKey::from_text(&base64.replace('/', "_").replace('=', "")).unwrap().0,
            bytes
        );
        for bad in ["", "ff", &hex[1..], &format!("{hex}00"), "not a key at all!", &base64[1..]] {
            assert!(matches!(MasterKey::from_text(bad), Err(KeyError::NotAKey)), "{bad}");
        }
        assert_eq!(format!("{:?}", key()), "MasterKey(…)");
    }

    #[test]
    fn a_key_file_is_made_once_and_must_be_private() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("waitroom-key-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        assert!(matches!(MasterKey::from_file(&path), Err(KeyError::Io { .. })));
        let made = MasterKey::from_file_or_new(&path).expect("writable");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(MasterKey::from_file_or_new(&path).expect("there").0, made.0);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(MasterKey::from_file(&path), Err(KeyError::Exposed { mode: 0o640, .. })));
        fs::remove_file(&path).unwrap();
    }
}
