//! Rooms as documents, and what visitors see of what operators do.

use serde_json::{Value, json};

use crate::server::{OWNER, Server};

const ROOM: &str = "/admin/v1/rooms/spring";

#[test]
fn the_same_document_twice_changes_nothing_the_second_time() {
    let server = Server::start();
    let document = json!({ "title": "Spring", "rate": "5/s", "lanes": ["main", "members"] });
    let first = server.admin(OWNER, "PUT", ROOM, &document.to_string()).expect(201);
    let second = server.admin(OWNER, "PUT", ROOM, &document.to_string()).expect(200);
    assert_eq!(first["version"], second["version"], "no event");
    assert_eq!(first["settings"], second["settings"]);
    let acts = server.own("GET", "/admin/v1/audit?room=spring", "");
    assert_eq!(acts["entries"].as_array().map(Vec::len), Some(1), "{acts}");
    // What GET shows is a document that PUT takes, and changes nothing either.
    let shown = first["settings"].to_string();
    let third = server.admin(OWNER, "PUT", ROOM, &shown).expect(200);
    assert_eq!(third["version"], second["version"]);
}

#[test]
fn a_cloudflare_document_and_ours_make_the_same_room() {
    let server = Server::start();
    let theirs = json!({
        "name": "spring", "description": "Spring sale", "host": "shop.example", "path": "/sale",
        "new_users_per_minute": 300, "total_active_users": 400, "session_duration": 7,
        "queueing_method": "fifo", "disable_session_renewal": true, "queue_all": false,
    });
    let ours = json!({
        "title": "Spring sale", "target_url": "https://shop.example/sale", "rate": "300/min",
        "max_active": 400, "session_timeout": "7m", "session_renewal": false,
    });
    let one = server.admin(OWNER, "PUT", ROOM, &theirs.to_string()).expect(201);
    let other = server.admin(OWNER, "PUT", ROOM, &ours.to_string()).expect(200);
    assert_eq!(one["settings"], other["settings"]);
    assert_eq!(one["version"], other["version"], "not even an event");
}

#[test]
fn what_cannot_be_is_refused_with_field_and_bound_and_nothing_is_half_applied() {
    let server = Server::start();
    let good = json!({ "rate": "5/s", "max_active": 7 });
    server.own("PUT", ROOM, &good.to_string());
    let before = server.own("GET", ROOM, "");
    let cases = [
        (json!({ "max_active": 9, "rate": 10 }), "rate", "10 has no unit"),
        (json!({ "max_active": 9, "raet": "1/s" }), "raet", "did you mean \"rate\"?"),
        (json!({ "rate": "9/s", "max_active": 0 }), "max_active", "allowed: 1 to 10000000"),
        (json!({ "max_active": 9, "draw": true }), "draw", "needs starts_at"),
        (json!({ "max_active": 9, "message": "x".repeat(501) }), "message", "at most 500"),
        (
            json!({ "max_active": 9, "total_active_users": 9 }),
            "max_active",
            "\"total_active_users\" is one of Cloudflare's",
        ),
        (json!({ "max_active": 9, "name": "autumn" }), "name", "(spring)"),
    ];
    for method in ["PUT", "PATCH"] {
        for (document, field, words) in &cases {
            let refused = server.admin(OWNER, method, ROOM, &document.to_string()).expect(422);
            let error = &refused["errors"][0];
            assert_eq!(error["field"], *field, "{refused}");
            let problem = error["problem"].as_str().expect("words");
            assert!(problem.contains(words), "{field}: {problem}");
        }
    }
    let after = server.own("GET", ROOM, "");
    assert_eq!((&after["settings"], &after["version"]), (&before["settings"], &before["version"]));
}

#[test]
fn two_who_change_a_setting_each_do_not_undo_each_other() {
    let server = Server::start();
    server.own("PUT", ROOM, r#"{"rate":"1/s","max_active":1}"#);
    std::thread::scope(|scope| {
        let change = |key: &'static str| {
            let server = &server;
            move || {
                for n in 2..=20 {
                    let value = if key == "rate" { json!(format!("{n}/s")) } else { json!(n) };
                    server.own("PATCH", ROOM, &json!({ key: value }).to_string());
                }
            }
        };
        scope.spawn(change("rate"));
        scope.spawn(change("max_active"));
        scope.spawn(change("max_waiting"));
    });
    let now = server.own("GET", ROOM, "")["settings"].clone();
    assert_eq!(
        (&now["rate"], &now["max_active"], &now["max_waiting"]),
        (&json!("20/s"), &json!(20), &json!(20))
    );
}

#[test]
fn visitors_read_the_message_and_why_the_room_drains() {
    let server = Server::start();
    let joined = server.join("default", 1).expect(201);
    let token = joined["token"].as_str().expect("a token");
    assert_eq!(joined["message"], Value::Null);
    server.own("PATCH", "/admin/v1/rooms/default", r#"{"message":"Size M is sold out"}"#);
    assert_eq!(server.status("default", token)["message"], "Size M is sold out");
    let board = server.public("", "GET", "/v1/rooms/default/board", "").expect(200);
    assert_eq!(
        (&board["message"], &board["phase"]),
        (&json!("Size M is sold out"), &json!("running"))
    );
    server.own("POST", "/admin/v1/rooms/default/drain", r#"{"reason":"We close at nine"}"#);
    let status = server.status("default", token);
    assert_eq!(
        (&status["room_status"], &status["reason"]),
        (&json!("draining"), &json!("We close at nine"))
    );
    assert_eq!(status["position"], 1, "the place is kept");
    let refused = server.join("default", 2).expect(503);
    assert_eq!(
        (&refused["code"], &refused["detail"]),
        (&json!("draining"), &json!("We close at nine"))
    );
    let admitted = server.own("POST", "/admin/v1/rooms/default/admit", r#"{"count":5}"#);
    assert_eq!(admitted["admitted"], 1, "those in line are let in");
    server.own("POST", "/admin/v1/rooms/default/resume", "");
    server.join("default", 2).expect(201);
}

#[test]
fn tickets_are_found_by_code_and_by_user() {
    let server = Server::start();
    let joined = server.join("default", 1).expect(201);
    let key = format!("X-Api-Key: {OWNER}\r\n");
    let path = "/v1/rooms/default/join";
    let known = server.public(&key, "POST", path, r#"{"user_id":"ana & co"}"#).expect(201);
    let find =
        |query: &str| server.own("GET", &format!("/admin/v1/rooms/default/tickets?{query}"), "");
    let code = joined["support_code"].as_str().expect("a code");
    let found = find(&format!("support_code={}", code.to_lowercase().replace('-', "%20")));
    assert_eq!(found["tickets"][0]["ticket"], joined["ticket"]);
    assert_eq!(found["tickets"].as_array().map(Vec::len), Some(1));
    assert_eq!(find("user_id=ana%20%26+co")["tickets"][0]["ticket"], known["ticket"]);
    assert_eq!(find("user_id=bo")["tickets"], json!([]));
    let wrong = server.admin(OWNER, "GET", "/admin/v1/rooms/default/tickets?support_code=zzz", "");
    assert_eq!(wrong.expect(400)["errors"][0]["field"], "support_code");
}

#[test]
fn the_report_counts_what_happened() {
    let server = Server::start();
    let tokens: Vec<String> = (0..4)
        .map(|who| {
            server.join("default", who).expect(201)["token"].as_str().expect("one").to_owned()
        })
        .collect();
    server.own("POST", "/admin/v1/rooms/default/admit", r#"{"count":2}"#);
    let leave = format!("Authorization: Bearer {}\r\n", tokens[3]);
    server.public(&leave, "POST", "/v1/rooms/default/leave", "").expect(200);
    let report = server.own("GET", "/admin/v1/rooms/default/report", "");
    let totals = &report["totals"];
    assert_eq!(
        [&totals["joined"], &totals["admissions"], &totals["left"], &totals["waiting"]],
        [4, 2, 1, 1]
    );
    assert_eq!(report["complete"], true);
    assert_eq!(report["wait_s"]["count"], 2);
    let sum = |key: &str| -> u64 {
        let rows = report["course"].as_array().expect("rows").iter();
        rows.filter_map(|row| row[key].as_u64()).sum()
    };
    assert_eq!((sum("joined"), sum("admitted"), sum("left")), (4, 2, 1));
    let csv = server.admin(OWNER, "GET", "/admin/v1/rooms/default/report?format=csv", "");
    assert!(csv.head.to_lowercase().contains("content-type: text/csv"), "{csv:?}");
    let mut lines = csv.body.lines();
    assert!(lines.next().expect("a head").starts_with("from,joined,admitted"), "{csv:?}");
    assert!(lines.next().expect("a row").contains("Z,4,2,"), "{csv:?}");
    let picture = server.own("GET", "/admin/v1/rooms/default", "");
    for field in ["slots_taken", "slots_free", "no_shows", "connected", "store_latency_ms"] {
        assert!(picture[field].is_number(), "{field}: {picture}");
    }
    let log = server.own("GET", "/admin/v1/rooms/default/log?limit=2", "");
    assert_eq!(log["events"].as_array().map(Vec::len), Some(2));
    let more = server.own("GET", &format!("/admin/v1/rooms/default/log?after={}", log["next"]), "");
    assert_eq!(more["events"][0]["index"], 3);
    assert_eq!(more["next"], more["head"]);
}
