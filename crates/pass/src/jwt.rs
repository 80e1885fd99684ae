//! Writing a signed token in the compact form. Reading one is `waitroom_verifier::jws`.

use serde::Serialize;
use waitroom_verifier::{TYP, jws};

/// The first part of a token: the same text for all tokens of a key, so it is made once.
pub(crate) fn header(alg: &str, kid: &str) -> String {
    #[derive(Serialize)]
    struct Header<'a> {
        alg: &'a str,
        typ: &'a str,
        kid: &'a str,
    }
    let header = Header { alg, typ: TYP, kid };
    jws::encode(&serde_json::to_vec(&header).expect("three strings are JSON"))
}

/// `header`, the claims, and `sign`'s signature over both.
pub(crate) fn compact(
    header: &str,
    claims: &impl Serialize,
    sign: impl FnOnce(&[u8]) -> Vec<u8>,
) -> String {
    let claims = serde_json::to_vec(claims).expect("claims are strings and integers");
    let mut text = format!("{header}.{}", jws::encode(&claims));
    let signature = sign(text.as_bytes());
    text.push('.');
    text.push_str(&jws::encode(&signature));
    text
}
