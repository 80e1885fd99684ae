//! Bad input on every route gets a problem document with a stable code.

use crate::instance::{Got, Instance};

fn is_problem(got: &Got, status: u16, code: &str) {
    assert_eq!(got.status, status, "{got:?}");
    assert_eq!(got.header("content-type").as_deref(), Some("application/problem+json"), "{got:?}");
    let document = got.json();
    assert_eq!(document["code"], code, "{got:?}");
    assert_eq!(document["status"], status);
    assert!(document["title"].as_str().is_some_and(|title| !title.is_empty()));
    assert!(document["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
}

#[test]
fn every_visitor_route_says_what_is_wrong() {
    let server = Instance::start();
    let json = "Content-Type: application/json";
    let routes = ["status", "heartbeat", "claim", "leave", "hand-over", "live-ticket", "stream"];
    for route in routes {
        let path = format!("/v1/rooms/default/{route}");
        let get = matches!(route, "status" | "stream");
        let ask =
            |more: &[&str]| if get { server.get(&path, more) } else { server.post(&path, more) };
        is_problem(&ask(&[]), 401, "token_missing");
        is_problem(&ask(&["-H", "Authorization: Bearer wt1_AAAA"]), 401, "token_invalid");
        let other = if get { server.post(&path, &[]) } else { server.get(&path, &[]) };
        is_problem(&other, 405, "method_not_allowed");
        assert_eq!(other.header("allow").as_deref(), Some(if get { "GET" } else { "POST" }));
        let nowhere = format!("/v1/rooms/nowhere/{route}");
        let nowhere = if get { server.get(&nowhere, &[]) } else { server.post(&nowhere, &[]) };
        is_problem(&nowhere, 404, "room_unknown");
    }
    let join = |more: &[&str]| server.post("/v1/rooms/default/join", more);
    is_problem(&join(&["-H", json, "-d", "{"]), 400, "bad_json");
    is_problem(&join(&["-H", json, "-d", r#"{"lane":7}"#]), 400, "bad_json");
    is_problem(&join(&["-H", json, "-d", r#"{"surprise":1}"#]), 400, "bad_json");
    is_problem(
        &join(&["-H", "Content-Type: text/plain", "-d", "hi"]),
        415,
        "unsupported_media_type",
    );
    let large = "x".repeat(17 * 1024);
    is_problem(&join(&["-H", json, "-d", &large]), 413, "body_too_large");
    is_problem(&join(&["-H", "X-Api-Key: wrong"]), 401, "api_key_invalid");
    is_problem(&join(&["-H", json, "-d", r#"{"join_token":"x.y.z"}"#]), 401, "join_token_invalid");
    is_problem(&join(&["-H", "Origin: https://evil.example"]), 403, "origin_refused");
    is_problem(&server.get("/v1/rooms/default/live", &[]), 426, "upgrade_required");
    is_problem(&server.get("/v1/rooms/default", &[]), 404, "not_found");
    is_problem(&server.get("/v1/rooms/default/unheard-of", &[]), 404, "not_found");
    is_problem(&server.get("/somewhere", &[]), 404, "not_found");
    is_problem(&server.get("/v1/rooms/%2e%2e/status", &[]), 404, "room_unknown");
    let complete = |id: &str| server.post(&format!("/v1/sessions/{id}/complete"), &[]);
    is_problem(&complete("nonsense"), 404, "ticket_unknown");
    is_problem(&complete("00000000-0000-0000-0000-000000000000"), 404, "ticket_unknown");
    let joined = server.join(1);
    is_problem(&complete(joined["ticket"].as_str().expect("an id")), 401, "token_missing");
    let auth = format!("Authorization: Bearer {}", joined["token"].as_str().expect("a token"));
    let wait = server.get("/v1/rooms/default/status?wait=soon", &["-H", &auth]);
    is_problem(&wait, 400, "bad_request");
    let version = server.get("/v1/rooms/default/status?version=-1", &["-H", &auth]);
    is_problem(&version, 400, "bad_request");
    let early = server.post("/v1/rooms/default/claim", &["-H", &auth]);
    is_problem(&early, 409, "wrong_status");
}

#[test]
fn every_operator_s_route_says_what_is_wrong() {
    let server = Instance::start();
    let bare = crate::instance::curl(&[&format!("{}/admin/v1/rooms", server.admin)]);
    is_problem(&bare, 401, "api_key_missing");
    is_problem(&server.operate("GET", "/admin/v1/rooms/nowhere", ""), 404, "room_unknown");
    is_problem(&server.operate("PUT", "/admin/v1/rooms/Bad%20Name", "{}"), 400, "bad_request");
    is_problem(&server.operate("PUT", "/admin/v1/rooms/a", "["), 400, "bad_json");
    let wrong = r#"{"max_active":0,"rate":"fast","heartbeat_timeout":"0s","surprise":true}"#;
    let invalid = server.operate("PUT", "/admin/v1/rooms/a", wrong);
    is_problem(&invalid, 422, "settings_invalid");
    let errors = invalid.json()["errors"].as_array().expect("a list").len();
    assert!(errors >= 3, "all mistakes at once: {invalid:?}");
    is_problem(&server.operate("GET", "/admin/v1/rooms/a", ""), 404, "room_unknown");
    let admit = |body: &str| server.operate("POST", "/admin/v1/rooms/default/admit", body);
    is_problem(&admit("{}"), 400, "bad_request");
    is_problem(&admit(r#"{"count":0}"#), 400, "bad_request");
    is_problem(&admit(r#"{"count":"many"}"#), 400, "bad_json");
    let pause = server.operate("POST", "/admin/v1/rooms/default/pause", "{}");
    is_problem(&pause, 400, "bad_request");
    is_problem(&server.operate("DELETE", "/admin/v1/rooms", ""), 405, "method_not_allowed");
    is_problem(&server.operate("GET", "/admin/v1/nothing", ""), 404, "not_found");
    let ticket = "/admin/v1/rooms/default/tickets/00000000-0000-0000-0000-000000000000";
    is_problem(&server.operate("GET", ticket, ""), 404, "ticket_unknown");
}
