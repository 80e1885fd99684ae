//! A private key that signs passes: made here or brought in, kept by the caller.
//!
//! Lives here: the three algorithms, PKCS#8 and PEM, the public half as a JWK, and the key's
//! name: `kid` is the thumbprint of the public half (RFC 7638), so the same key has the same
//! name on every instance and after every restart, and nobody has to invent one.

use std::fmt;

use aws_lc_rs::{
    digest::{SHA256, digest},
    encoding::{AsDer, Pkcs8V1Der},
    rand::SystemRandom,
    rsa::KeySize,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
        RsaKeyPair,
    },
};
use serde::Serialize;
use serde_json::{Value, json};
use waitroom_verifier::{Alg, jws, low_s};

use crate::{jwt, pem};

/// RSA below this is refused everywhere, so it is refused here first.
const RSA_BYTES_MIN: usize = 256;
/// Above it a single check takes longer than a visitor's whole request.
const RSA_BYTES_MAX: usize = 1024;

/// Signs passes. `Debug` shows the name only.
pub struct SigningKey {
    pair: Pair,
    kid: String,
    header: String,
    jwk: Value,
}

enum Pair {
    Es256(EcdsaKeyPair),
    Rs256(Box<RsaKeyPair>),
    EdDsa(Ed25519KeyPair),
}

impl SigningKey {
    /// A new key. RSA takes a good part of a second: not on a thread that serves.
    pub fn generate(alg: Alg) -> Self {
        const WHY: &str = "key generation fails only without a random source or memory";
        Self::of(match alg {
            Alg::Es256 => {
                Pair::Es256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect(WHY))
            }
            Alg::Rs256 => Pair::Rs256(Box::new(RsaKeyPair::generate(KeySize::Rsa2048).expect(WHY))),
            Alg::EdDsa => Pair::EdDsa(Ed25519KeyPair::generate().expect(WHY)),
        })
    }

    /// From a PEM file: `PRIVATE KEY` (PKCS#8), `EC PRIVATE KEY` or `RSA PRIVATE KEY`. Which
    /// algorithm it is for stands in it. Encrypted files are refused.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let (label, der) = pem::read(text).ok_or(KeyError::NotPem)?;
        match label.as_str() {
            "PRIVATE KEY" => Self::from_pkcs8(&der),
            "EC PRIVATE KEY" => {
                let pair =
                    EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, &der);
                Ok(Self::of(Pair::Es256(pair.map_err(|_| KeyError::Unusable)?)))
            }
            "RSA PRIVATE KEY" => {
                Self::of_rsa(RsaKeyPair::from_der(&der).map_err(|_| KeyError::Unusable)?)
            }
            _ => Err(KeyError::Label { found: label }),
        }
    }

    pub fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der) {
            return Ok(Self::of(Pair::Es256(pair)));
        }
        // Files of other tools leave the public half out; it is worked out then.
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            return Ok(Self::of(Pair::EdDsa(pair)));
        }
        Self::of_rsa(RsaKeyPair::from_pkcs8(der).map_err(|_| KeyError::Unusable)?)
    }

    /// The private key in PKCS#8, for the caller to seal.
    pub fn to_pkcs8(&self) -> Vec<u8> {
        const WHY: &str = "a key that was made or parsed can be written";
        match &self.pair {
            Pair::Es256(pair) => pair.to_pkcs8v1().expect(WHY).as_ref().to_vec(),
            Pair::EdDsa(pair) => pair.to_pkcs8v1().expect(WHY).as_ref().to_vec(),
            Pair::Rs256(pair) => {
                AsDer::<Pkcs8V1Der<'_>>::as_der(&**pair).expect(WHY).as_ref().to_vec()
            }
        }
    }

    /// The private key as a PEM file.
    pub fn to_pem(&self) -> String {
        pem::write("PRIVATE KEY", &self.to_pkcs8())
    }

    pub fn alg(&self) -> Alg {
        match self.pair {
            Pair::Es256(_) => Alg::Es256,
            Pair::Rs256(_) => Alg::Rs256,
            Pair::EdDsa(_) => Alg::EdDsa,
        }
    }

    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The public half, as it stands in the key set.
    pub fn jwk(&self) -> &Value {
        &self.jwk
    }

    /// The signature of `message`. ECDSA draws a random number each time, so two signatures of
    /// the same message differ; what they say does not.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        const WHY: &str = "signing fails only without a random source or memory";
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Es256(pair) => {
                let mut signature = pair.sign(&random, message).expect(WHY).as_ref().to_vec();
                low_s::lower(&mut signature);
                signature
            }
            Pair::Rs256(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).expect(WHY);
                signature
            }
            Pair::EdDsa(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// The claims as a signed token of this key.
    pub(crate) fn token(&self, claims: &impl Serialize) -> String {
        jwt::compact(&self.header, claims, |message| self.sign(message))
    }

    fn of_rsa(pair: RsaKeyPair) -> Result<Self, KeyError> {
        let bytes = pair.public_modulus_len();
        if !(RSA_BYTES_MIN..=RSA_BYTES_MAX).contains(&bytes) {
            return Err(KeyError::RsaBits { found: bytes * 8 });
        }
        Ok(Self::of(Pair::Rs256(Box::new(pair))))
    }

    fn of(pair: Pair) -> Self {
        // Exactly the required members in alphabetical order, without spaces: this very text is
        // what RFC 7638 hashes.
        let mut jwk = match &pair {
            Pair::Es256(pair) => {
                let point = pair.public_key().as_ref();
                json!({"crv": "P-256", "kty": "EC",
                    "x": jws::encode(&point[1..33]), "y": jws::encode(&point[33..])})
            }
            Pair::Rs256(pair) => {
                let public = pair.public_key();
                let number = |bytes: &[u8]| jws::encode(bytes);
                json!({"e": number(public.exponent().big_endian_without_leading_zero()),
                    "kty": "RSA",
                    "n": number(public.modulus().big_endian_without_leading_zero())})
            }
            Pair::EdDsa(pair) => {
                json!({"crv": "Ed25519", "kty": "OKP", "x": jws::encode(pair.public_key().as_ref())})
            }
        };
        let kid = jws::encode(digest(&SHA256, jwk.to_string().as_bytes()).as_ref());
        let mut key = SigningKey { pair, kid, header: String::new(), jwk: Value::Null };
        key.header = jwt::header(key.alg().name(), &key.kid);
        jwk["alg"] = key.alg().name().into();
        jwk["use"] = "sig".into();
        jwk["kid"] = key.kid.clone().into();
        key.jwk = jwk;
        key
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({} {})", self.alg().name(), self.kid)
    }
}

/// Why a key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyError {
    NotPem,
    /// The PEM block holds something else, such as a certificate or an encrypted key.
    Label {
        found: String,
    },
    /// Damaged, or of a kind other than P-256, Ed25519 and RSA.
    Unusable,
    RsaBits {
        found: usize,
    },
    /// A shared secret below 32 bytes can be guessed by whoever holds one token.
    SecretShort {
        found: usize,
    },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::NotPem => f.write_str("this is not a PEM file with one block"),
            KeyError::Label { found } => write!(f, "a PEM block {found:?} is no key for this"),
            KeyError::Unusable => {
                f.write_str("the key is damaged, or none of P-256, Ed25519 and RSA")
            }
            KeyError::RsaBits { found } => {
                write!(f, "an RSA key has 2048 to 8192 bits, this has {found}")
            }
            KeyError::SecretShort { found } => {
                write!(f, "a shared secret has at least 32 bytes, this has {found}")
            }
        }
    }
}

impl std::error::Error for KeyError {}
