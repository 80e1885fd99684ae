//! Join tokens, as a shop makes them with a JWT library of its own.

use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use waitroom_pass::{Alg, JoinKey, JoinLane, JoinRefused, JoinTokens, KeyError, SigningKey};

const NOW: u64 = 1_790_000_000;
const SECRET: &[u8] = b"a secret that the shop shares with us";

fn good() -> Value {
    json!({"sub": "user-7", "room": "sale", "exp": NOW + 60, "jti": "order-1"})
}

fn signed(claims: &Value) -> String {
    encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(SECRET))
        .expect("signed")
}

fn shop() -> JoinTokens {
    JoinTokens::new(vec![JoinKey::secret(SECRET).expect("long enough")])
}

fn refused(claims: &Value) -> Option<JoinRefused> {
    shop().read("sale", &signed(claims), NOW).err()
}

/// The public half as a PEM file, by way of its JWK.
fn public_pem(key: &SigningKey) -> String {
    use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
    let bytes = |name: &str| {
        let text = key.jwk()[name].as_str().expect("a string");
        waitroom_verifier::jws::decode(text).expect("base64url")
    };
    let der = match key.alg() {
        Alg::Es256 => {
            let point = [&[4][..], &bytes("x"), &bytes("y")].concat();
            spki(
                &[
                    0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
                    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07,
                ],
                &point,
            )
        }
        Alg::EdDsa => spki(&[0x06, 0x03, 0x2b, 0x65, 0x70], &bytes("x")),
        Alg::Rs256 => {
            let parts = RsaPublicKeyComponents { n: bytes("n"), e: bytes("e") };
            let key = parts.to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA256).expect("a key");
            key.as_ref().to_vec()
        }
    };
    let text = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, der);
    format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
}

/// SubjectPublicKeyInfo for short keys: every length fits one byte.
fn spki(algorithm: &[u8], key: &[u8]) -> Vec<u8> {
    let wrap = |tag: u8, content: &[u8]| {
        [&[tag, u8::try_from(content.len()).expect("short")][..], content].concat()
    };
    let bits = wrap(0x03, &[&[0][..], key].concat());
    wrap(0x30, &[wrap(0x30, algorithm), bits].concat())
}

#[test]
fn the_shop_says_who_comes() {
    let claims = shop().read("sale", &signed(&good()), NOW).expect("a good token");
    assert_eq!((claims.sub.as_str(), claims.jti.as_str()), ("user-7", "order-1"));
    assert_eq!((claims.lane, claims.metadata, claims.expires_s), (None, None, NOW + 60));
    let mut more = good();
    more["lane"] = json!("vip");
    more["metadata"] = json!({"tier": "gold", "n": 3});
    let claims = shop().read("sale", &signed(&more), NOW).expect("a good token");
    assert_eq!(claims.lane, Some(JoinLane::Name("vip".into())));
    assert_eq!(claims.metadata.expect("given")["tier"], "gold");
    more["lane"] = json!(2);
    let claims = shop().read("sale", &signed(&more), NOW).expect("a good token");
    assert_eq!(claims.lane, Some(JoinLane::Number(2)));
}

#[test]
fn a_token_counts_in_its_room_and_its_time() {
    let text = signed(&good());
    assert_eq!(shop().read("other", &text, NOW).err(), Some(JoinRefused::RoomOther));
    assert!(shop().read("sale", &text, NOW + 59).is_ok());
    assert_eq!(shop().read("sale", &text, NOW + 60).err(), Some(JoinRefused::Expired));
    let mut later = good();
    later["nbf"] = json!(NOW + 61);
    assert_eq!(refused(&later), Some(JoinRefused::NotYet));
    later["nbf"] = json!(NOW + 60);
    assert_eq!(refused(&later), None);
}

#[test]
fn a_claim_missing_or_of_the_wrong_type_is_refused() {
    for name in ["sub", "room", "exp", "jti"] {
        let mut claims = good();
        claims.as_object_mut().expect("an object").remove(name);
        assert_eq!(refused(&claims), Some(JoinRefused::ClaimsWrong), "without {name}");
    }
    for (name, value) in [
        ("sub", json!("")),
        ("sub", json!("x".repeat(257))),
        ("sub", json!(7)),
        ("jti", json!("")),
        ("jti", json!(null)),
        ("exp", json!((NOW + 60).to_string())),
        ("exp", json!(1.5e10)),
        ("exp", json!(-1)),
        ("lane", json!(256)),
        ("lane", json!(null)),
        ("lane", json!(["vip"])),
        ("nbf", json!("now")),
        ("metadata", json!([1])),
        ("metadata", json!("x")),
    ] {
        let mut claims = good();
        claims[name] = value.clone();
        assert_eq!(refused(&claims), Some(JoinRefused::ClaimsWrong), "{name} = {value}");
    }
}

#[test]
fn the_shops_key_decides_which_algorithm_counts() {
    for alg in Alg::ALL {
        let key = SigningKey::generate(alg);
        let public = public_pem(&key);
        let tokens = JoinTokens::new(vec![JoinKey::public_pem(&public).expect("a public key")]);
        let theirs = match alg {
            Alg::Es256 => (Algorithm::ES256, EncodingKey::from_ec_pem(key.to_pem().as_bytes())),
            Alg::Rs256 => (Algorithm::RS256, EncodingKey::from_rsa_pem(key.to_pem().as_bytes())),
            Alg::EdDsa => (Algorithm::EdDSA, EncodingKey::from_ed_pem(key.to_pem().as_bytes())),
        };
        let private = theirs.1.expect("a private key");
        // Libraries differ in which of the two spellings of an ECDSA signature they write.
        for _ in 0..8 {
            let text = encode(&Header::new(theirs.0), &good(), &private).expect("signed");
            assert!(tokens.read("sale", &text, NOW).is_ok(), "{alg:?}");
        }
        // The public key as an HMAC secret: the oldest trick there is.
        let forged = EncodingKey::from_secret(public.as_bytes());
        let text = encode(&Header::new(Algorithm::HS256), &good(), &forged).expect("signed");
        assert_eq!(tokens.read("sale", &text, NOW).err(), Some(JoinRefused::AlgWrong));
        // And the same with an HMAC key beside it: then it is checked with that one.
        let both = JoinTokens::new(vec![
            JoinKey::public_pem(&public).expect("a public key"),
            JoinKey::secret(SECRET).expect("long enough"),
        ]);
        assert_eq!(both.read("sale", &text, NOW).err(), Some(JoinRefused::SignatureWrong));
        assert!(both.read("sale", &signed(&good()), NOW).is_ok());
    }
}

#[test]
fn none_is_no_algorithm_and_no_key_means_no_token() {
    let text = signed(&good());
    let payload = text.split('.').nth(1).expect("three parts");
    for alg in ["none", "None", "NONE", "", "hs256", "HS384"] {
        let header = waitroom_verifier::jws::encode(json!({ "alg": alg }).to_string().as_bytes());
        for signature in ["", "AAAA"] {
            let forged = format!("{header}.{payload}.{signature}");
            assert_eq!(shop().read("sale", &forged, NOW).err(), Some(JoinRefused::AlgWrong));
        }
    }
    let nobody = JoinTokens::default().read("sale", &text, NOW);
    assert_eq!(nobody.err(), Some(JoinRefused::NoKeys));
}

#[test]
fn keys_that_are_no_keys_are_refused_when_configured() {
    let short = JoinKey::secret(&[7; 31]).err();
    assert_eq!(short, Some(KeyError::SecretShort { found: 31 }));
    let private = SigningKey::generate(Alg::EdDsa).to_pem();
    let label = "PRIVATE KEY".to_owned();
    assert_eq!(JoinKey::public_pem(&private).err(), Some(KeyError::Label { found: label }));
    let broken = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n";
    assert_eq!(JoinKey::public_pem(broken).err(), Some(KeyError::Unusable));
}
