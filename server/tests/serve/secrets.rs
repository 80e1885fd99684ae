//! Secrets that pass through the server are planted and searched for in what it says.

use crate::instance::{Instance, KEY};

#[test]
fn no_secret_is_ever_said() {
    // Whatever can be said is said.
    let server = Instance::with(&[
        ("WAITROOM_MASTER_KEY", "5eC2e75eC2e75eC2e75eC2e75eC2e75eC2e75eC2e75eC2e75eC2e75eC2e75eC2"),
        ("WAITROOM_LOG_LEVEL", "trace"),
    ]);
    let mut planted = vec![KEY.to_owned(), "5eC2e75eC2e75eC2e7".to_owned()];
    let joined = server.join(1);
    let token = joined["token"].as_str().expect("a token");
    let auth = format!("Authorization: Bearer {token}");
    planted.push(token["wt1_".len()..].to_owned());
    let live = server.post("/v1/rooms/default/live-ticket", &["-H", &auth]).json();
    planted.push(live["live_ticket"].as_str().expect("a live ticket").to_owned());
    server.operate("POST", "/admin/v1/rooms/default/admit", r#"{"count":1}"#);
    let claimed = server.post("/v1/rooms/default/claim", &["-H", &auth]).json();
    planted.push(claimed["pass"].as_str().expect("a pass").to_owned());
    for (name, value) in [
        ("Authorization", "Bearer planted-bearer-1"),
        ("X-Api-Key", "planted-api-key-2"),
        ("Cookie", "wr-ticket-default=planted-cookie-3"),
        ("Waitroom-Pass", "planted-pass-4"),
        ("Idempotency-Key", "planted-idempotency-key-55555"),
    ] {
        let header = format!("{name}: {value}");
        server.get("/v1/rooms/default/status?live_ticket=planted-query-6", &["-H", &header]);
        server.post(
            "/v1/rooms/default/join",
            &["-H", &header, "-d", "{\"join_token\":\"planted-jwt-7\"}"],
        );
    }
    let said = server.stop();
    planted.push("planted-".to_owned());
    for secret in planted {
        assert!(!said.contains(&secret), "{secret:?} was said:\n{said}");
    }
}
