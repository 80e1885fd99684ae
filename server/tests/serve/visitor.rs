//! The life of a visitor over HTTP.

use crate::instance::Instance;

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

#[test]
fn a_visitor_joins_waits_is_let_in_claims_and_completes() {
    let server = Instance::start();
    let (first, second) = (server.join(1), server.join(2));
    assert_eq!((&first["position"], &second["position"]), (&1.into(), &2.into()));
    assert_eq!(second["ahead"], 1);
    let token = second["token"].as_str().expect("a token");
    assert_eq!(server.status(token)["position"], 2);
    let admitted = server.operate("POST", "/admin/v1/rooms/default/admit", r#"{"count":2}"#);
    assert_eq!(admitted.json()["admitted"], 2, "{admitted:?}");
    let status = server.status(token);
    assert_eq!((&status["status"], &status["position"]), (&"active".into(), &0.into()));
    let claim = || server.post("/v1/rooms/default/claim", &["-H", &bearer(token)]).json();
    let (once, again) = (claim(), claim());
    let claims = |pass: &serde_json::Value| {
        pass["pass"].as_str().expect("a pass").split('.').nth(1).expect("claims").to_owned()
    };
    assert_eq!(claims(&once), claims(&again), "a repeat signs the same claims");
    let enter = once["enter_url"].as_str().expect("an address");
    assert!(enter.contains("wr_pass="), "{enter}");
    let id = second["ticket"].as_str().expect("an id");
    let pass = format!("Waitroom-Pass: {}", once["pass"].as_str().expect("a pass"));
    let done = server.post(&format!("/v1/sessions/{id}/complete"), &["-H", &pass]);
    assert_eq!((done.status, done.json()["status"].clone()), (200, "completed".into()));
    let other = first["ticket"].as_str().expect("an id");
    let foreign = server.post(&format!("/v1/sessions/{other}/complete"), &["-H", &pass]);
    assert_eq!(foreign.status, 401, "a pass speaks for its own session only");
}

#[test]
fn the_same_key_finds_the_same_place_and_another_body_is_refused() {
    let server = Instance::start();
    let key = "Idempotency-Key: 0123456789abcdef0123456789abcdef";
    let join =
        |more: &[&str]| server.post("/v1/rooms/default/join", &[&["-H", key], more].concat());
    let (once, again) = (join(&[]), join(&[]));
    assert_eq!((once.status, again.status), (201, 200));
    assert_eq!(once.json()["ticket"], again.json()["ticket"]);
    let other = join(&["-H", "Content-Type: application/json", "-d", r#"{"lane":"main"}"#]);
    assert_eq!((other.status, other.json()["code"].clone()), (409, "key_reused".into()));
    let weak = server.post("/v1/rooms/default/join", &["-H", "Idempotency-Key: short"]);
    assert_eq!(weak.json()["code"], "idempotency_key_weak");
}

#[test]
fn a_browser_keeps_its_place_by_cookie_and_needs_the_header_to_change_it() {
    let server = Instance::start();
    let joined = server.post("/v1/rooms/default/join", &[]);
    let cookie = joined.header("set-cookie").expect("a cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    let pair = format!("Cookie: {}", cookie.split(';').next().expect("a pair"));
    let looked = server.get("/v1/rooms/default/status", &["-H", &pair]);
    assert_eq!(looked.json()["ticket"], joined.json()["ticket"]);
    let bare = server.post("/v1/rooms/default/leave", &["-H", &pair]);
    assert_eq!((bare.status, bare.json()["code"].clone()), (403, "header_required".into()));
    let again = server.post("/v1/rooms/default/join", &["-H", &pair, "-H", "Waitroom-Request: 1"]);
    assert_eq!(
        (again.status, again.json()["ticket"].clone()),
        (200, joined.json()["ticket"].clone())
    );
    let left = server.post("/v1/rooms/default/leave", &["-H", &pair, "-H", "Waitroom-Request: 1"]);
    assert_eq!(left.json()["status"], "left");
}

#[test]
fn what_a_stranger_says_of_lane_and_name_does_not_count() {
    let server = Instance::start();
    let room = r#"{"lanes":[{"name":"main","weight":1},{"name":"vip","weight":3}],"queue_all":true,"rate":null}"#;
    let put = server.operate("PUT", "/admin/v1/rooms/gala", room);
    assert_eq!(put.status, 201, "{put:?}");
    let body = r#"{"lane":"vip","user_id":"ana"}"#;
    let json = "Content-Type: application/json";
    let stranger = server.post("/v1/rooms/gala/join", &["-H", json, "-d", body]).json();
    assert_eq!(stranger["place"]["lane"], 0);
    let key = format!("X-Api-Key: {}", crate::instance::KEY);
    let shop = || server.post("/v1/rooms/gala/join", &["-H", json, "-H", &key, "-d", body]);
    let (once, again) = (shop(), shop());
    assert_eq!((once.json()["place"]["lane"].clone(), again.status), (1.into(), 200));
    assert_eq!(once.json()["ticket"], again.json()["ticket"], "one place for each known person");
}

#[test]
fn a_place_moves_to_another_device_and_the_old_token_dies() {
    let server = Instance::start();
    let joined = server.join(1);
    let old = joined["token"].as_str().expect("a token");
    let moved = server.post("/v1/rooms/default/hand-over", &["-H", &bearer(old)]).json();
    let new = moved["token"].as_str().expect("a new token");
    let refused = server.get("/v1/rooms/default/status", &["-H", &bearer(old)]);
    assert_eq!((refused.status, refused.json()["code"].clone()), (409, "moved_elsewhere".into()));
    assert_eq!(server.status(new)["ticket"], joined["ticket"]);
}

#[test]
fn too_many_requests_are_told_when_to_come_back() {
    let server = Instance::start();
    let joined = server.join(1);
    let auth = bearer(joined["token"].as_str().expect("a token"));
    let url = format!("{}/v1/rooms/default/heartbeat", server.public);
    // One curl for all of them, so that they come within a moment of each other.
    let mut requests = Vec::new();
    for _ in 0..31 {
        requests.extend(["-o", "/dev/null", &url]);
    }
    let out = std::process::Command::new("curl")
        .args(["-sS", "-w", "%{http_code}\n", "-X", "POST", "-H", &auth])
        .args(&requests)
        .output()
        .expect("curl is needed for this test");
    let codes = String::from_utf8_lossy(&out.stdout).into_owned();
    let good = codes.lines().filter(|code| *code == "200").count();
    // A slow machine may have let two seconds pass, which is worth one more.
    assert!((30..=31).contains(&good), "{good} of 31 were answered");
    let refused = server.post("/v1/rooms/default/heartbeat", &["-H", &auth]);
    assert!(refused.status == 200 || refused.header("retry-after").is_some(), "{refused:?}");
}
