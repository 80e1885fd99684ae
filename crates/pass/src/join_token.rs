//! The join token: the shop says who is coming, signed with a key that it shares with us.
//!
//! Lives here: whether the shop said it, for this room, in time. Stays out: what it leads to.
//! The caller makes `jti` the idempotency key of the join, so a token shown twice is one place.

use std::fmt;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, verify};
use serde::Deserialize;
use serde_json::{Map, Value};
use waitroom_verifier::{PublicKey, Refused, json, jws::Outside};

use crate::{pem, signing_key::KeyError};

/// RFC 7518: a key of HS256 is at least as long as its hash.
const SECRET_BYTES_MIN: usize = 32;

/// Each key that fits a token's algorithm is tried, so their number is a cost of every forgery.
const KEYS_MAX: usize = 8;

/// Names of people and tokens: longer ones are no names.
const NAME_BYTES_MAX: usize = 256;

/// How far `nbf` may be ahead: clocks of two companies.
const AHEAD_MAX_S: u64 = 60;

/// A key of the shop.
pub struct JoinKey(Kind);

enum Kind {
    Secret(Box<Key>),
    Public(PublicKey),
}

impl JoinKey {
    /// A shared secret, for HS256.
    pub fn secret(secret: &[u8]) -> Result<Self, KeyError> {
        if secret.len() < SECRET_BYTES_MIN {
            return Err(KeyError::SecretShort { found: secret.len() });
        }
        Ok(JoinKey(Kind::Secret(Box::new(Key::new(HMAC_SHA256, secret)))))
    }

    /// A public key as a PEM file (`PUBLIC KEY`), for ES256, RS256 or EdDSA, whichever it is.
    pub fn public_pem(text: &str) -> Result<Self, KeyError> {
        let (label, der) = pem::read(text).ok_or(KeyError::NotPem)?;
        if label != "PUBLIC KEY" {
            return Err(KeyError::Label { found: label });
        }
        let key = PublicKey::from_spki(&der).ok_or(KeyError::Unusable)?;
        Ok(JoinKey(Kind::Public(key)))
    }

    fn alg_name(&self) -> &'static str {
        match &self.0 {
            Kind::Secret(_) => "HS256",
            Kind::Public(key) => key.alg().name(),
        }
    }

    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.0 {
            Kind::Secret(key) => verify(key, message, signature).is_ok(),
            Kind::Public(key) => key.verifies(message, signature),
        }
    }
}

impl fmt::Debug for JoinKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinKey({})", self.alg_name())
    }
}

/// What the shop says about somebody who comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinClaims {
    /// The shop's name for the person.
    pub sub: String,
    pub room: String,
    pub lane: Option<JoinLane>,
    pub expires_s: u64,
    /// The token's own name. Two joins with one name are one join.
    pub jti: String,
    pub metadata: Option<Map<String, Value>>,
}

/// A lane by its name or by its number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum JoinLane {
    Number(u8),
    Name(String),
}

/// Reads join tokens.
#[derive(Debug, Default)]
pub struct JoinTokens(Vec<JoinKey>);

impl JoinTokens {
    /// The keys of the shop; several while it changes them. Without any, every token is refused.
    /// Keys beyond the eighth are not taken.
    pub fn new(mut keys: Vec<JoinKey>) -> Self {
        keys.truncate(KEYS_MAX);
        JoinTokens(keys)
    }

    pub fn read(&self, room: &str, text: &str, now_s: u64) -> Result<JoinClaims, JoinRefused> {
        if self.0.is_empty() {
            return Err(JoinRefused::NoKeys);
        }
        let outside = Outside::read(text).map_err(|refused| match refused {
            Refused::TooLong => JoinRefused::TooLong,
            Refused::CritUnknown => JoinRefused::CritUnknown,
            _ => JoinRefused::Malformed,
        })?;
        let alg = outside.header.alg.as_str();
        let mut fitting = self.0.iter().filter(|key| key.alg_name() == alg).peekable();
        if fitting.peek().is_none() {
            return Err(JoinRefused::AlgWrong);
        }
        if !fitting.any(|key| key.verifies(outside.signed, &outside.signature)) {
            return Err(JoinRefused::SignatureWrong);
        }
        let payload = outside.payload().map_err(|_| JoinRefused::Malformed)?;
        let claims: Claims = json::object(&payload).ok_or(JoinRefused::ClaimsWrong)?;
        claims.accept(room, now_s)
    }
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    room: String,
    #[serde(default, deserialize_with = "json::present")]
    lane: Option<JoinLane>,
    exp: u64,
    jti: String,
    #[serde(default, deserialize_with = "json::present")]
    nbf: Option<u64>,
    #[serde(default, deserialize_with = "json::present")]
    metadata: Option<Map<String, Value>>,
}

impl Claims {
    fn accept(self, room: &str, now_s: u64) -> Result<JoinClaims, JoinRefused> {
        let is_name = |text: &str| !text.is_empty() && text.len() <= NAME_BYTES_MAX;
        if !is_name(&self.sub) || !is_name(&self.jti) {
            return Err(JoinRefused::ClaimsWrong);
        }
        if self.room != room {
            return Err(JoinRefused::RoomOther);
        }
        if self.nbf.is_some_and(|nbf| nbf > now_s.saturating_add(AHEAD_MAX_S)) {
            return Err(JoinRefused::NotYet);
        }
        if now_s >= self.exp {
            return Err(JoinRefused::Expired);
        }
        Ok(JoinClaims {
            sub: self.sub,
            room: self.room,
            lane: self.lane,
            expires_s: self.exp,
            jti: self.jti,
            metadata: self.metadata,
        })
    }
}

/// Why a join token counts for nothing. The codes are for the shop's developers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JoinRefused {
    /// This installation knows no key of the shop.
    NoKeys,
    TooLong,
    Malformed,
    CritUnknown,
    /// No key of the shop is for the header's `alg`.
    AlgWrong,
    SignatureWrong,
    /// `sub`, `room`, `exp` and `jti` are needed; one of them, or of the others, does not fit.
    ClaimsWrong,
    RoomOther,
    NotYet,
    Expired,
}

impl JoinRefused {
    pub const fn code(self) -> &'static str {
        match self {
            JoinRefused::NoKeys => "no_keys",
            JoinRefused::TooLong => "too_long",
            JoinRefused::Malformed => "malformed",
            JoinRefused::CritUnknown => "crit_unknown",
            JoinRefused::AlgWrong => "alg_wrong",
            JoinRefused::SignatureWrong => "signature_wrong",
            JoinRefused::ClaimsWrong => "claims_wrong",
            JoinRefused::RoomOther => "room_other",
            JoinRefused::NotYet => "not_yet",
            JoinRefused::Expired => "expired",
        }
    }
}

impl fmt::Display for JoinRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the join token was refused: {}", self.code())
    }
}

impl std::error::Error for JoinRefused {}
