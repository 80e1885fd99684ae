//! Public keys, and the set of them that a waiting room publishes.
//!
//! Lives here: the JWK set (RFC 7517) as far as passes need it, and the check of a signature.
//! A key knows its one algorithm; what a token's header claims is held against that and never
//! chooses anything. Symmetric keys have no business in a public document and are not even read.
//! Stays out: fetching the document. To add another algorithm, touch [`Alg`] and
//! [`PublicKey::from_jwk`], and the signing key in `waitroom-pass`.

use std::{collections::BTreeMap, fmt};

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
    RsaPublicKeyComponents, VerificationAlgorithm,
};
use serde::Deserialize;

use crate::{json, jws};

/// A set has the present key, the next and those of passes still alive. More than this is not
/// ours, and its owner shall not make us parse for ever.
const KEYS_MAX: usize = 64;
const JWKS_BYTES_MAX: usize = 256 * 1024;

/// RSA below 2,048 bits can be broken by those who want to; above 8,192 a check takes too long.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// The algorithms that a pass may be signed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Alg {
    Es256,
    Rs256,
    EdDsa,
}

impl Alg {
    pub const ALL: [Alg; 3] = [Alg::Es256, Alg::Rs256, Alg::EdDsa];

    /// As it stands in headers and key sets.
    pub const fn name(self) -> &'static str {
        match self {
            Alg::Es256 => "ES256",
            Alg::Rs256 => "RS256",
            Alg::EdDsa => "EdDSA",
        }
    }

    pub fn of_name(name: &str) -> Option<Alg> {
        Alg::ALL.into_iter().find(|alg| alg.name() == name)
    }

    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Alg::Es256 => &ECDSA_P256_SHA256_FIXED,
            Alg::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
            Alg::EdDsa => &ED25519,
        }
    }
}

/// A public key with the one algorithm it is for, parsed once.
#[derive(Clone)]
pub struct PublicKey {
    alg: Alg,
    key: ParsedPublicKey,
}

impl PublicKey {
    /// From SubjectPublicKeyInfo, the content of a PEM file that says `PUBLIC KEY`. What kind
    /// of key it is stands in it.
    pub fn from_spki(der: &[u8]) -> Option<Self> {
        Alg::ALL.into_iter().find_map(|alg| {
            let key = ParsedPublicKey::new(alg.verification(), der).ok()?;
            Some(PublicKey { alg, key })
        })
    }

    pub fn alg(&self) -> Alg {
        self.alg
    }

    /// Whether `signature` is this key's over `message`.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        self.key.verify_sig(message, signature).is_ok()
    }

    /// `None` for what we have no use for: other kinds of keys, other curves, encryption keys.
    fn from_jwk(jwk: &Jwk) -> Result<Option<Self>, WrongKeys> {
        let wrong = || WrongKeys::Key { kid: jwk.kid.clone().unwrap_or_default() };
        let bytes = |text: &Option<String>| text.as_deref().and_then(jws::decode).ok_or_else(wrong);
        let alg = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("EC", Some("P-256")) => Alg::Es256,
            ("RSA", _) => Alg::Rs256,
            ("OKP", Some("Ed25519")) => Alg::EdDsa,
            _ => return Ok(None),
        };
        let for_signatures = jwk.usage.as_deref().is_none_or(|usage| usage == "sig");
        if !for_signatures || jwk.alg.as_deref().is_some_and(|name| name != alg.name()) {
            return Ok(None);
        }
        let parsed = match alg {
            Alg::Es256 => {
                let (x, y) = (bytes(&jwk.x)?, bytes(&jwk.y)?);
                if x.len() != 32 || y.len() != 32 {
                    return Err(wrong());
                }
                ParsedPublicKey::new(alg.verification(), [&[4][..], &x, &y].concat())
            }
            Alg::Rs256 => {
                let (n, e) = (bytes(&jwk.n)?, bytes(&jwk.e)?);
                if !RSA_BITS.contains(&bits(&n)) || bits(&e) < 2 {
                    return Err(wrong());
                }
                RsaPublicKeyComponents { n, e }.to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA256)
            }
            Alg::EdDsa => {
                let x = bytes(&jwk.x)?;
                // Of another length it might be taken for a DER document with a key in it.
                if x.len() != 32 {
                    return Err(wrong());
                }
                ParsedPublicKey::new(alg.verification(), x)
            }
        };
        Ok(Some(PublicKey { alg, key: parsed.map_err(|_| wrong())? }))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.alg.name())
    }
}

/// The keys that a waiting room publishes, by `kid`.
#[derive(Clone, Debug, Default)]
pub struct KeySet(BTreeMap<String, PublicKey>);

impl KeySet {
    /// Reads the document of `/.well-known/jwks.json`. Keys of kinds we do not know are left
    /// out, as the RFC asks; a key of a kind we know that is broken spoils the document, because
    /// going on with half of it would refuse people for a typing mistake.
    pub fn parse(jwks_json: &str) -> Result<Self, WrongKeys> {
        if jwks_json.len() > JWKS_BYTES_MAX {
            return Err(WrongKeys::Document);
        }
        let document: Jwks = json::object(jwks_json.as_bytes()).ok_or(WrongKeys::Document)?;
        if document.keys.len() > KEYS_MAX {
            return Err(WrongKeys::Document);
        }
        let mut keys = BTreeMap::new();
        for jwk in &document.keys {
            let Some(key) = PublicKey::from_jwk(jwk)? else { continue };
            let kid = jwk.kid.clone().ok_or(WrongKeys::Key { kid: String::new() })?;
            if keys.insert(kid.clone(), key).is_some() {
                return Err(WrongKeys::Key { kid });
            }
        }
        if keys.is_empty() {
            return Err(WrongKeys::None);
        }
        Ok(KeySet(keys))
    }

    pub fn get(&self, kid: &str) -> Option<&PublicKey> {
        self.0.get(kid)
    }

    pub fn kids(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// Why a document holds no keys to check passes with. The keys in use stay as they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongKeys {
    /// Not a JWK set, or a monstrous one.
    Document,
    /// This key is broken, has no `kid`, or shares it with another.
    Key { kid: String },
    /// Not one key that can check a pass.
    None,
}

impl fmt::Display for WrongKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WrongKeys::Document => f.write_str("this is not a JWK set"),
            WrongKeys::Key { kid } => write!(f, "the key {kid:?} is broken or not unique"),
            WrongKeys::None => f.write_str("the JWK set has no key for ES256, RS256 or EdDSA"),
        }
    }
}

impl std::error::Error for WrongKeys {}

#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
}

fn bits(number: &[u8]) -> usize {
    match number.first() {
        Some(first) => number.len() * 8 - first.leading_zeros() as usize,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

    fn set(keys: &str) -> Result<Vec<String>, WrongKeys> {
        let set = KeySet::parse(&format!(r#"{{"keys":[{keys}]}}"#))?;
        Ok(set.kids().map(str::to_owned).collect())
    }

    #[test]
    fn keys_of_other_kinds_are_left_out_and_ours_remain() {
        let others = r#"{"kty":"oct","kid":"h","alg":"HS256","k":"c2VjcmV0"},
            {"kty":"EC","crv":"P-384","kid":"p","x":"AA","y":"AA"},
            {"kty":"OKP","crv":"X25519","kid":"x","x":"AA"},
            {"kty":"OKP","crv":"Ed25519","kid":"e","use":"enc","x":"AA"},
            {"kty":"RSA","kid":"r","alg":"RSA-OAEP","n":"AA","e":"AQAB"}"#;
        let ours = format!(r#"{{"kty":"OKP","crv":"Ed25519","kid":"mine","x":"{ED}"}}"#);
        assert_eq!(set(others), Err(WrongKeys::None));
        assert_eq!(set(&format!("{others},{ours}")), Ok(vec!["mine".to_owned()]));
    }

    #[test]
    fn a_broken_key_of_a_kind_we_know_spoils_the_set() {
        let good = format!(r#"{{"kty":"OKP","crv":"Ed25519","kid":"good","x":"{ED}"}}"#);
        let small = jws::encode(&[0xff; 128]);
        for bad in [
            r#"{"kty":"OKP","crv":"Ed25519","kid":"bad","x":"AAAA"}"#.to_owned(),
            r#"{"kty":"OKP","crv":"Ed25519","kid":"bad"}"#.to_owned(),
            format!(r#"{{"kty":"EC","crv":"P-256","kid":"bad","x":"{ED}","y":"{ED}"}}"#),
            format!(r#"{{"kty":"RSA","kid":"bad","n":"{small}","e":"AQAB"}}"#),
        ] {
            let wrong = set(&format!("{good},{bad}"));
            assert_eq!(wrong, Err(WrongKeys::Key { kid: "bad".into() }), "{bad}");
        }
        assert_eq!(set(&format!("{good},{good}")), Err(WrongKeys::Key { kid: "good".into() }));
        let nameless = format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{ED}"}}"#);
        assert_eq!(set(&nameless), Err(WrongKeys::Key { kid: String::new() }));
    }

    #[test]
    fn what_is_no_jwk_set_is_named_as_such() {
        for text in ["", "[]", "{}", r#"{"keys":{}}"#, r#"{"keys":[],"keys":[]}"#] {
            assert_eq!(KeySet::parse(text).err(), Some(WrongKeys::Document), "{text}");
        }
    }
}
