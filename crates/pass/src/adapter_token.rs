//! Tokens of the earlier interfaces: a place in line as a JWT, because their clients expect one.
//!
//! Minimal claims, no personal data, five minutes. A genuine token that ran out is told apart
//! from a forged one: it still refreshes a ticket that lives, so a phone that slept keeps its
//! place.

use std::fmt;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign, verify};
use serde::{Deserialize, Serialize};
use waitroom_core::{Holder, id::TicketId};
use waitroom_verifier::{Alg, KeySet, PublicKey, TYP, json, jws::Outside};

use crate::{
    jwt,
    secrets::{WrongSecrets, derive},
    signing_key::SigningKey,
};

/// As the queue API promises its clients.
pub const ADAPTER_TOKEN_LIFE_S: u64 = 300;

const HS256: &str = "HS256";
const NANOS: u64 = 1_000_000_000;

/// Which interface a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `position_id`, `queue_id`, `iat`, `exp`.
    Queue,
    /// `queue_id`, `issued_at` (nanoseconds, like the times of that API), `exp`, and
    /// `position_id` to find the ticket by.
    Demo,
}

/// What signs and checks adapter tokens.
pub enum AdapterKey {
    /// HS256 with a key made from this secret; the number is its id.
    Secret(u8, [u8; 32]),
    /// RS256. A key of its own, never one that signs passes: whoever checks passes with a plain
    /// JWT library would take these tokens for passes. Half a millisecond a signature, so for
    /// clients that insist on it.
    Rsa(SigningKey),
}

impl fmt::Debug for AdapterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdapterKey::Secret(id, _) => write!(f, "Secret({id})"),
            AdapterKey::Rsa(key) => write!(f, "Rsa({})", key.kid()),
        }
    }
}

/// What a genuine adapter token says. Whether the ticket lives is for the room to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdapterToken {
    pub id: TicketId,
    pub holder: Holder,
    pub issued_s: u64,
    pub expires_s: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    Fresh(AdapterToken),
    /// Ours, but over. Good for a heartbeat of a living ticket and for nothing else.
    Expired(AdapterToken),
}

/// Writes and reads adapter tokens.
#[derive(Debug)]
pub struct AdapterTokens {
    keys: Vec<Named>,
    life_s: u64,
}

struct Named {
    kid: String,
    header: String,
    how: How,
}

enum How {
    Hs256(Box<Key>),
    Rs256(Box<(SigningKey, PublicKey)>),
}

impl AdapterTokens {
    /// Oldest first: the last one signs, all check.
    pub fn new(keys: Vec<AdapterKey>, life_s: u64) -> Result<Self, WrongSecrets> {
        let mut named = Vec::<Named>::with_capacity(keys.len());
        for key in keys {
            let key = Named::of(key)?;
            if named.iter().any(|known| known.kid == key.kid) {
                return Err(WrongSecrets::SameKey);
            }
            named.push(key);
        }
        if named.is_empty() {
            return Err(WrongSecrets::None);
        }
        Ok(AdapterTokens { keys: named, life_s })
    }

    pub fn write(
        &self,
        form: Form,
        room: &str,
        id: TicketId,
        holder: Holder,
        now_s: u64,
    ) -> String {
        let key = self.keys.last().expect("an empty list is refused at the door");
        let (iat, issued_at) = match form {
            Form::Queue => (Some(now_s), None),
            Form::Demo => (None, Some(now_s.saturating_mul(NANOS))),
        };
        let claims = Claims {
            position_id: id,
            queue_id: room.into(),
            iat,
            issued_at,
            exp: now_s.saturating_add(self.life_s),
            hld: holder.0,
        };
        jwt::compact(&key.header, &claims, |message| key.how.sign(message))
    }

    /// What the token says, or `None` when we did not write it in this form for this room.
    pub fn read(&self, form: Form, room: &str, text: &str, now_s: u64) -> Option<Reading> {
        let outside = Outside::read(text).ok()?;
        let kid = outside.header.kid.as_deref()?;
        let key = self.keys.iter().find(|key| key.kid == kid)?;
        let named_rightly =
            outside.header.typ.as_deref() == Some(TYP) && outside.header.alg == key.how.alg_name();
        if !named_rightly || !key.how.verifies(outside.signed, &outside.signature) {
            return None;
        }
        let claims: Claims = json::object(&outside.payload().ok()?)?;
        let issued_s = match (form, claims.iat, claims.issued_at) {
            (Form::Queue, Some(iat), None) => iat,
            (Form::Demo, None, Some(issued_at)) => issued_at / NANOS,
            _ => return None,
        };
        if claims.queue_id != room {
            return None;
        }
        let token = AdapterToken {
            id: claims.position_id,
            holder: Holder(claims.hld),
            issued_s,
            expires_s: claims.exp,
        };
        Some(if now_s < claims.exp { Reading::Fresh(token) } else { Reading::Expired(token) })
    }
}

impl Named {
    fn of(key: AdapterKey) -> Result<Self, WrongSecrets> {
        let (kid, how) = match key {
            AdapterKey::Secret(id, secret) => {
                let derived = derive("adapter-token", &[(id, secret)])?;
                (format!("h{id}"), How::Hs256(Box::new(Key::new(HMAC_SHA256, &derived[0].1))))
            }
            AdapterKey::Rsa(key) if key.alg() != Alg::Rs256 => return Err(WrongSecrets::NotRsa),
            AdapterKey::Rsa(key) => {
                let set = KeySet::parse(&serde_json::json!({ "keys": [key.jwk()] }).to_string());
                let set = set.expect("a key of ours can be read back");
                let public = set.get(key.kid()).expect("by the name that it has").clone();
                (key.kid().to_owned(), How::Rs256(Box::new((key, public))))
            }
        };
        let header = jwt::header(how.alg_name(), &kid);
        Ok(Named { kid, header, how })
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kid)
    }
}

impl How {
    fn alg_name(&self) -> &'static str {
        match self {
            How::Hs256(_) => HS256,
            How::Rs256(key) => key.0.alg().name(),
        }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        match self {
            How::Hs256(key) => sign(key, message).as_ref().to_vec(),
            How::Rs256(key) => key.0.sign(message),
        }
    }

    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            How::Hs256(key) => verify(key, message, signature).is_ok(),
            How::Rs256(key) => key.1.verifies(message, signature),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Claims {
    position_id: TicketId,
    queue_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    iat: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    issued_at: Option<u64>,
    exp: u64,
    hld: u8,
}
