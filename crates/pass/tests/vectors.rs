//! The vectors of `docs/vectors/passes.json`, made by another implementation, hold here.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;
use waitroom_pass::{Alg, Pass, Presented, Refused, SigningKey, Verifier};

const VECTORS: &str = include_str!("../../../docs/vectors/passes.json");

#[derive(Deserialize)]
struct Vectors {
    room: String,
    now: u64,
    jwks: Value,
    good: Vec<Vector>,
    refused: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    why: String,
    alg: String,
    pass: String,
    #[serde(default)]
    presented: Shown,
    claims: Option<Value>,
    code: Option<String>,
}

#[derive(Default, Deserialize)]
struct Shown {
    nonce: Option<String>,
    ip: Option<std::net::IpAddr>,
    user_agent: Option<String>,
}

impl Vectors {
    fn read() -> Self {
        serde_json::from_str(VECTORS).expect("the vectors are JSON")
    }

    fn verify(&self, vector: &Vector) -> Result<Pass, Refused> {
        let verifier = Verifier::new(&self.jwks.to_string(), &self.room).expect("a key set");
        let shown = &vector.presented;
        let presented = Presented {
            nonce: shown.nonce.as_deref(),
            ip: shown.ip,
            user_agent: shown.user_agent.as_deref(),
        };
        verifier.verify(&vector.pass, self.now, &presented)
    }
}

#[test]
fn every_good_vector_is_accepted_for_what_it_says() {
    let vectors = Vectors::read();
    for vector in &vectors.good {
        let pass = vectors.verify(vector);
        let pass = pass.unwrap_or_else(|why| panic!("{}, {}: {why}", vector.alg, vector.why));
        let claims = vector.claims.as_ref().expect("good vectors say their claims");
        assert_eq!(claims["sub"], pass.ticket);
        assert_eq!(claims["room"], pass.room);
        assert_eq!(claims["iat"], pass.issued_at);
        assert_eq!(claims["exp"], pass.expires_at);
        assert_eq!(claims["user_id"].as_str(), pass.user_id.as_deref());
    }
}

#[test]
fn every_bad_vector_is_refused_for_its_reason() {
    let vectors = Vectors::read();
    for vector in &vectors.refused {
        let refused = vectors.verify(vector).err().map(Refused::code);
        assert_eq!(refused, vector.code.as_deref(), "{}, {}", vector.alg, vector.why);
    }
}

#[test]
fn every_algorithm_has_vectors_of_both_kinds_and_every_reason_occurs() {
    let vectors = Vectors::read();
    for alg in Alg::ALL {
        assert!(vectors.good.iter().any(|vector| vector.alg == alg.name()));
        assert!(vectors.refused.iter().any(|vector| vector.alg == alg.name()));
    }
    let seen: BTreeSet<_> = vectors.refused.iter().filter_map(|v| v.code.as_deref()).collect();
    let all: BTreeSet<_> = Refused::ALL.into_iter().map(Refused::code).collect();
    assert_eq!(seen, all);
}

/// RFC 8037 publishes this key together with its thumbprint.
#[test]
fn the_name_of_a_key_is_its_thumbprint() {
    let seed = "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g";
    let file = format!("-----BEGIN PRIVATE KEY-----\n{seed}\n-----END PRIVATE KEY-----\n");
    let key = SigningKey::from_pem(&file).expect("the key of RFC 8037");
    assert_eq!(key.kid(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    let jwks = &Vectors::read().jwks;
    assert!(jwks["keys"].as_array().expect("a list").contains(key.jwk()));
}
