//! Tokens of the earlier interfaces, signed by the operator's own RSA key.

use std::path::PathBuf;

use base64::Engine as _;
use waitroom_pass::{Alg, SigningKey};

use crate::instance::Instance;

const QUEUE: &str = "/api/v1/queues/default";

#[test]
fn clients_that_insist_on_rs256_get_it_and_are_known_by_it() {
    let key = SigningKey::generate(Alg::Rs256);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let file = file.join(format!("adapter-{}.pem", std::process::id()));
    std::fs::write(&file, key.to_pem()).expect("a file");
    let path = file.to_str().expect("a plain path");
    let server = Instance::with(&[("WAITROOM_PASS_ADAPTER_KEY_FILE", path)]);
    let joined = server.post(&format!("{QUEUE}/enqueue"), &[]).json();
    let token = joined["token"].as_str().expect("a token");
    let header = token.split('.').next().expect("a header");
    let header = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(header).expect("base64");
    let header: serde_json::Value = serde_json::from_slice(&header).expect("JSON");
    assert_eq!((&header["alg"], &header["kid"]), (&"RS256".into(), &key.kid().into()));
    let bearer = format!("Authorization: Bearer {token}");
    let status = server.get(&format!("{QUEUE}/status"), &["-H", &bearer]);
    assert_eq!(status.json()["position_id"], joined["position_id"], "{status:?}");
    let forged = format!("{bearer}x");
    assert_eq!(server.get(&format!("{QUEUE}/status"), &["-H", &forged]).status, 401);
    assert!(
        !server.get("/.well-known/jwks.json", &[]).body.contains(key.kid()),
        "whoever checks passes must not take these for one"
    );
    let _ = std::fs::remove_file(file);
}
