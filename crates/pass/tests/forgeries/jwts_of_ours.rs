//! Forged adapter tokens and join tokens.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use waitroom_core::{Holder, id::TicketId};
use waitroom_pass::{
    AdapterKey, AdapterTokens, Alg, Form, JoinKey, JoinRefused, JoinTokens, SigningKey,
};
use waitroom_verifier::jws;

use crate::{
    HS256_EACH, NOW, ROOM, RS256_EACH,
    mutate::{Dice, altered},
};

const TICKET: TicketId = TicketId::from_bytes([1; 16]);
const SECRET: &[u8] = b"a secret that the shop shares with us";

#[test]
fn no_forged_adapter_token_is_read_by_hmac_or_rsa() {
    let rsa = AdapterKey::Rsa(SigningKey::generate(Alg::Rs256));
    let hmac = AdapterTokens::new(vec![AdapterKey::Secret(1, [1; 32])], 300).expect("a key");
    let both = AdapterTokens::new(vec![AdapterKey::Secret(1, [1; 32]), rsa], 300).expect("keys");
    for (tokens, count) in [(&hmac, HS256_EACH), (&both, RS256_EACH)] {
        let mut dice = Dice::new(count as u64);
        let write = |room, n| {
            tokens.write(Form::Queue, room, TicketId::from_bytes([n; 16]), Holder(0), NOW)
        };
        let (good, second, foreign) = (write(ROOM, 1), write(ROOM, 2), write("other", 1));
        assert!(tokens.read(Form::Queue, ROOM, &good, NOW).is_some());
        assert_eq!(tokens.read(Form::Queue, ROOM, &foreign, NOW), None);
        for _ in 0..count {
            let other = if dice.below(2) == 0 { &second } else { &foreign };
            let text = altered(&good, other, &mut dice);
            let read = tokens.read(Form::Queue, ROOM, &text, NOW);
            assert!(read.is_none() || text == second, "{text}");
        }
    }
}

#[test]
fn an_adapter_token_keeps_to_the_algorithm_of_its_key() {
    let rsa = SigningKey::generate(Alg::Rs256);
    let public = rsa.jwk().to_string();
    let kid = rsa.kid().to_owned();
    let keys = vec![AdapterKey::Secret(1, [1; 32]), AdapterKey::Rsa(rsa)];
    let tokens = AdapterTokens::new(keys, 300).expect("keys");
    let claims = json!({"position_id": TICKET, "queue_id": ROOM, "iat": NOW, "exp": NOW + 300,
        "hld": 0});
    let secrets = [public.as_bytes(), b"", &[1; 32], kid.as_bytes()];
    // Even with our own key under it, a header that lies about the algorithm is refused.
    let secret = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, &[1; 32]);
    let derived = aws_lc_rs::hmac::sign(&secret, b"waitroom/v1/adapter-token\0");
    for alg in ["HS256", "none", "RS256", "HS512", "hs256"] {
        let text =
            hs256(&json!({"alg": alg, "typ": "JWT", "kid": "h1"}), &claims, derived.as_ref());
        assert_eq!(tokens.read(Form::Queue, ROOM, &text, NOW).is_some(), alg == "HS256", "{alg}");
    }
    for kid in ["h1", "h2", "", &kid] {
        for alg in ["none", "HS256", "RS256", "ES256", "HS384"] {
            for secret in secrets {
                let header = json!({"alg": alg, "typ": "JWT", "kid": kid});
                let text = hs256(&header, &claims, secret);
                assert_eq!(tokens.read(Form::Queue, ROOM, &text, NOW), None, "{header}");
            }
        }
    }
}

#[test]
fn no_forged_join_token_is_read_by_hmac_or_rsa() {
    let rsa = SigningKey::generate(Alg::Rs256);
    let keys = || vec![JoinKey::secret(SECRET).expect("long enough")];
    let tokens = JoinTokens::new(keys());
    let claims = |n: u32, room: &str| json!({"sub": format!("user-{n}"), "room": room, "exp": NOW + 60, "jti": n.to_string()});
    let header = json!({"alg": "HS256", "typ": "JWT"});
    let good = hs256(&header, &claims(1, ROOM), SECRET);
    let second = hs256(&header, &claims(2, ROOM), SECRET);
    let foreign = hs256(&header, &claims(1, "other"), SECRET);
    assert!(tokens.read(ROOM, &good, NOW).is_ok());
    let mut reached = BTreeMap::<JoinRefused, usize>::new();
    let mut dice = Dice::new(9);
    for _ in 0..HS256_EACH {
        let other = if dice.below(2) == 0 { &second } else { &foreign };
        let text = altered(&good, other, &mut dice);
        match tokens.read(ROOM, &text, NOW) {
            Ok(_) => assert_eq!(text, second),
            Err(refused) => *reached.entry(refused).or_default() += 1,
        }
    }
    assert!(reached[&JoinRefused::SignatureWrong] > HS256_EACH / 4, "{reached:?}");
    // By RSA: the shop's own words, signed by somebody else, or with a signature from elsewhere.
    let public = public_pem(&rsa);
    let tokens = JoinTokens::new(vec![JoinKey::public_pem(&public).expect("a public key")]);
    let header = json!({"alg": "RS256", "typ": "JWT"});
    let mut text = unsigned(&header, &claims(1, ROOM));
    let signature = rsa.sign(text.as_bytes());
    assert!(tokens.read(ROOM, &format!("{text}.{}", jws::encode(&signature)), NOW).is_ok());
    for n in 0..RS256_EACH {
        text = unsigned(&header, &claims(n as u32 + 2, ROOM));
        let signature = match dice.below(3) {
            0 => signature.clone(),
            1 => dice.bytes(256),
            _ => {
                let len = dice.below(256);
                dice.bytes(len)
            }
        };
        let forged = format!("{text}.{}", jws::encode(&signature));
        assert_eq!(tokens.read(ROOM, &forged, NOW).err(), Some(JoinRefused::SignatureWrong));
    }
}

fn unsigned(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| jws::encode(value.to_string().as_bytes());
    format!("{}.{}", part(header), part(claims))
}

fn hs256(header: &Value, claims: &Value, secret: &[u8]) -> String {
    let signed = unsigned(header, claims);
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, secret);
    let tag = aws_lc_rs::hmac::sign(&key, signed.as_bytes());
    format!("{signed}.{}", jws::encode(tag.as_ref()))
}

fn public_pem(key: &SigningKey) -> String {
    use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
    let bytes = |name: &str| jws::decode(key.jwk()[name].as_str().expect("text")).expect("base64");
    let parts = RsaPublicKeyComponents { n: bytes("n"), e: bytes("e") };
    let parsed = parts.to_parsed_public_key(&RSA_PKCS1_2048_8192_SHA256).expect("a key");
    let engine = base64::engine::general_purpose::STANDARD;
    let text = base64::Engine::encode(&engine, parsed.as_ref());
    format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
}
