//! Who may do what: every operator route with every kind of key, from the route tables themselves.

use waitroom_api::adapters::OPERATOR_ROUTES;
use waitroom_api::admin::{LIVE_KEYS, ROUTES};
use waitroom_api::caller::Role;

use crate::server::{OWNER, Server};

/// What each route takes, written down a second time: a route that is missing here, or that asks
/// for another role than this, is a decision that somebody has to make.
const RULES: &[(&str, &str, &str)] = &[
    ("GET", "/admin/v1/me", "viewer"),
    ("GET", "/admin/v1/keys", "owner"),
    ("POST", "/admin/v1/keys", "owner"),
    ("POST", "/admin/v1/keys/{id}/rotate", "owner"),
    ("DELETE", "/admin/v1/keys/{id}", "owner"),
    ("GET", "/admin/v1/audit", "viewer"),
    ("GET", "/admin/v1/rooms", "viewer"),
    ("GET", "/admin/v1/rooms/{room}", "viewer"),
    ("PUT", "/admin/v1/rooms/{room}", "owner"),
    ("PATCH", "/admin/v1/rooms/{room}", "operator"),
    ("POST", "/admin/v1/rooms/{room}/drain", "operator"),
    ("GET", "/admin/v1/rooms/{room}/report", "viewer"),
    ("GET", "/admin/v1/rooms/{room}/log", "viewer"),
    ("GET", "/admin/v1/rooms/{room}/tickets", "viewer"),
    ("POST", "/admin/v1/rooms/{room}/pause", "operator"),
    ("POST", "/admin/v1/rooms/{room}/maintenance", "operator"),
    ("POST", "/admin/v1/rooms/{room}/resume", "operator"),
    ("POST", "/admin/v1/rooms/{room}/admit", "operator"),
    ("POST", "/admin/v1/rooms/{room}/finish", "operator"),
    ("POST", "/admin/v1/rooms/{room}/reopen", "operator"),
    ("GET", "/admin/v1/rooms/{room}/tickets/{id}", "viewer"),
    ("POST", "/admin/v1/rooms/{room}/tickets/{id}/revoke", "operator"),
    ("POST", "/admin/v1/rooms/{room}/tickets/{id}/move", "operator"),
    ("POST", "/admin/v1/rooms/{room}/staff-pass", "operator"),
    ("GET", "/admin/v1/events", "viewer"),
    ("POST", "/admin/v1/rooms/{room}/events/{id}/replay", "operator"),
    ("GET", "/admin/v1/cluster", "viewer"),
    ("GET", "/admin/v1/dead-letters", "viewer"),
    ("GET", "/admin/v1/rooms/{room}/dead-letters/{id}", "operator"),
    ("POST", "/admin/v1/rooms/{room}/dead-letters/{id}/replay", "operator"),
    ("DELETE", "/admin/v1/rooms/{room}/dead-letters/{id}", "operator"),
    ("GET", "/admin/v1/gate", "viewer"),
    ("GET", "/admin/v1/rooms/{room}/gates/{id}", "operator"),
];

const EARLIER_RULES: &[(&str, &str, &str)] = &[
    ("POST", "/admin/allow", "operator"),
    ("POST", "/api/v1/admin/queues", "owner"),
    ("PATCH", "/api/v1/admin/queues/{id}", "owner"),
    ("GET", "/api/v1/admin/queues/{id}/stats", "viewer"),
    ("DELETE", "/api/v1/admin/sessions/{id}", "operator"),
];

#[test]
fn every_route_has_a_rule_and_every_rule_a_route() {
    let routes: Vec<_> = ROUTES.iter().map(|it| (it.method, it.path, it.role.word())).collect();
    for route in &routes {
        assert!(RULES.contains(route), "{route:?} has no rule here");
    }
    assert_eq!(routes.len(), RULES.len(), "a rule without a route");
    let earlier: Vec<_> = OPERATOR_ROUTES.iter().map(|it| (it.0, it.1, it.2.word())).collect();
    assert_eq!(earlier, EARLIER_RULES);
}

/// A body that is no mistake, so that nothing but the role decides.
fn body(method: &str, path: &str) -> &'static str {
    match (method, path.rsplit('/').next().unwrap_or_default()) {
        ("POST", "keys") => r#"{"role":"viewer"}"#,
        ("PUT", _) => r#"{"rate":null}"#,
        ("PATCH", _) if path.starts_with("/api/v1") => r#"{"max_active_users":100}"#,
        ("PATCH", _) => r#"{"max_active":100}"#,
        ("POST", "pause" | "drain") => r#"{"reason":"a test"}"#,
        ("POST", "admit") => r#"{"count":1}"#,
        ("POST", "replay") => r#"{"from":1}"#,
        ("POST", "move") => r#"{"lane":"main"}"#,
        ("POST", "queues") => r#"{"id":"made-by-the-matrix"}"#,
        _ => "",
    }
}

#[test]
fn every_route_takes_its_role_and_no_less() {
    let server = Server::start();
    let make = |role: &str| {
        let made = server.own("POST", "/admin/v1/keys", &format!(r#"{{"role":"{role}"}}"#));
        let text = |field: &str| made[field].as_str().expect("text").to_owned();
        (text("id"), text("key"))
    };
    let keys = [
        ("viewer", make("viewer").1),
        ("operator", make("operator").1),
        ("owner", make("owner").1),
    ];
    let (revoked, revoked_key) = make("owner");
    server.own("DELETE", &format!("/admin/v1/keys/{revoked}"), "");
    let (spare, _) = make("viewer");
    let joined = server.join("default", 1).expect(201);
    let (ticket, token) = (joined["ticket"].as_str(), joined["token"].as_str());
    let (ticket, token) = (ticket.expect("a ticket"), token.expect("a token"));
    let strangers = [
        ("no key", String::new()),
        ("a guess", "wrk_k00000000_00".to_owned()),
        ("a visitor's token", token.to_owned()),
        ("a revoked key", revoked_key),
    ];
    let rules = RULES.iter().map(|it| (&server.admin, it));
    let earlier = EARLIER_RULES.iter().map(|it| (&server.public, it));
    for (address, (method, path, takes)) in rules.chain(earlier) {
        let takes = Role::parse(takes).expect("a role");
        let id = match path {
            path if path.contains("/keys/") => spare.as_str(),
            path if path.contains("/queues/") => "default",
            _ => ticket,
        };
        let mut filled = path.replace("{room}", "default").replace("{id}", id);
        if filled.ends_with("/tickets") {
            filled += "?user_id=ana";
        }
        let body = body(method, path);
        let ask = |key: &str| match key {
            "" => server.raw(address, method, &filled, "", body),
            key => server.raw(address, method, &filled, &format!("X-Api-Key: {key}\r\n"), body),
        };
        for (who, key) in &strangers {
            // Development mode lets the oldest interface be tried out without any key.
            if *path == "/admin/allow" && key.is_empty() {
                continue;
            }
            assert_eq!(ask(key).status, 401, "{method} {path} with {who}");
        }
        for (role, key) in &keys {
            let got = ask(key);
            let enough = Role::parse(role).expect("a role") >= takes;
            assert_eq!(got.status != 403, enough, "{method} {path} as {role}: {got:?}");
            assert!(got.status != 401 && got.status < 500, "{method} {path} as {role}: {got:?}");
        }
    }
}

#[test]
fn an_operator_turns_what_a_sale_needs_and_nothing_else() {
    let server = Server::start();
    let made = server.own("POST", "/admin/v1/keys", r#"{"role":"operator"}"#);
    let operator = made["key"].as_str().expect("a key");
    let room = "/admin/v1/rooms/default";
    let values = [
        ("rate", r#""5/s""#),
        ("burst", "7"),
        ("max_active", "70"),
        ("max_waiting", "700"),
        ("message", r#""Card payment is slow""#),
    ];
    assert_eq!(values.map(|(key, _)| key), LIVE_KEYS);
    for (key, value) in values {
        let body = format!(r#"{{"{key}":{value}}}"#);
        let changed = server.admin(operator, "PATCH", room, &body).expect(200);
        assert_eq!(changed["settings"][key].to_string(), value);
    }
    let before = server.own("GET", room, "")["settings"].clone();
    let all = before.as_object().expect("settings");
    let mut tried = 0;
    for (key, value) in all.iter().filter(|(key, _)| !LIVE_KEYS.contains(&key.as_str())) {
        let body = format!(r#"{{"rate":"6/s","{key}":{value}}}"#);
        assert_eq!(server.admin(operator, "PATCH", room, &body).status, 403, "{key}");
        tried += 1;
    }
    assert!(tried > 20, "{tried} settings");
    assert_eq!(server.own("GET", room, "")["settings"], before, "nothing is half applied");
    let titled = server.own("PATCH", room, r#"{"title":"Spring"}"#);
    assert_eq!(
        (&titled["settings"]["title"], &titled["settings"]["burst"]),
        (&"Spring".into(), &7.into())
    );
    assert_eq!(server.admin(OWNER, "GET", "/admin/v1/me", "").expect(200)["role"], "owner");
}
