//! Secrets that sign by HMAC: several at a time, each with a short name, one key per purpose.
//!
//! The newest signs, all check, so a secret can be replaced while texts of the old one live. No
//! secret signs anything itself: each purpose has a key made from it, so a text made for one
//! purpose cannot serve another, whatever its bytes.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// HMAC-SHA-256 with the key already taken in: a copy of it is ready for a message. A message of
/// ours fits one block, so that a MAC costs two and nothing is set up; with the library that signs
/// passes the setting up cost more than the hashing.
pub(crate) type Keyed = Hmac<Sha256>;

/// Keys of one purpose, oldest first.
pub(crate) struct Secrets(Vec<(u8, Keyed)>);

impl Secrets {
    pub(crate) fn for_purpose(
        purpose: &str,
        keys: &[(u8, [u8; 32])],
    ) -> Result<Self, WrongSecrets> {
        let derived = derive(purpose, keys)?;
        let keyed = |(id, key): (u8, [u8; 32])| (id, keyed(&key));
        Ok(Secrets(derived.into_iter().map(keyed).collect()))
    }

    pub(crate) fn newest(&self) -> (u8, &Keyed) {
        let (id, key) = self.0.last().expect("an empty list is refused at the door");
        (*id, key)
    }

    pub(crate) fn get(&self, id: u8) -> Option<&Keyed> {
        self.0.iter().find(|(known, _)| *known == id).map(|(_, key)| key)
    }
}

/// A key of this purpose for every secret, in the order given: HMAC of a label under the secret.
pub(crate) fn derive(
    purpose: &str,
    keys: &[(u8, [u8; 32])],
) -> Result<Vec<(u8, [u8; 32])>, WrongSecrets> {
    if keys.is_empty() {
        return Err(WrongSecrets::None);
    }
    let label = format!("waitroom/v1/{purpose}\0");
    let mut derived = Vec::<(u8, [u8; 32])>::with_capacity(keys.len());
    for (id, secret) in keys {
        if derived.iter().any(|(known, _)| known == id) {
            return Err(WrongSecrets::SameId { id: *id });
        }
        let tag = keyed(secret).chain_update(label.as_bytes()).finalize();
        derived.push((*id, tag.into_bytes().into()));
    }
    Ok(derived)
}

fn keyed(secret: &[u8; 32]) -> Keyed {
    Keyed::new_from_slice(secret).expect("any length is a key")
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(id, _)| id)).finish()
    }
}

/// Why a list of secrets is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongSecrets {
    None,
    /// Two secrets share an id: a text could not say which of them signed it.
    SameId {
        id: u8,
    },
    /// The same key twice.
    SameKey,
    /// Adapter tokens are signed with a shared secret or with RSA, nothing else.
    NotRsa,
}

impl fmt::Display for WrongSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WrongSecrets::None => f.write_str("there is no secret to sign with"),
            WrongSecrets::SameId { id } => write!(f, "two secrets have the id {id}"),
            WrongSecrets::SameKey => f.write_str("a key is listed twice"),
            WrongSecrets::NotRsa => f.write_str("this signing key is not an RSA key"),
        }
    }
}

impl std::error::Error for WrongSecrets {}
