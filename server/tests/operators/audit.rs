//! The audit: one entry for each act, whoever acted and however, and a chain that shows when
//! somebody meddled.

use serde_json::{Value, json};

use crate::server::{OWNER, Server, soon, try_ask};

fn entries(server: &Server, query: &str) -> Vec<Value> {
    let page = server.own("GET", &format!("/admin/v1/audit?{query}"), "");
    page["entries"].as_array().expect("entries").clone()
}

fn actions(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|it| it["action"].as_str().expect("a word")).collect()
}

#[test]
fn every_act_has_exactly_one_entry_with_who_before_and_after() {
    let server = Server::start();
    let made = server.own("POST", "/admin/v1/keys", r#"{"role":"operator","note":"night"}"#);
    let (id, key) = (made["id"].as_str().expect("an id"), made["key"].as_str().expect("a key"));
    let start = server.own("GET", "/admin/v1/audit?limit=1000", "")["head"].as_u64();
    let start = start.expect("a head");
    let joined = server.join("default", 1).expect(201);
    let ticket = joined["ticket"].as_str().expect("a ticket");
    let act = |verb: &str, body: &str| {
        let path = format!("/admin/v1/rooms/default/{verb}");
        server.admin(key, "POST", &path, body).expect(200)
    };
    server.admin(key, "PATCH", "/admin/v1/rooms/default", r#"{"rate":"5/h"}"#).expect(200);
    server.admin(key, "PATCH", "/admin/v1/rooms/default", r#"{"rate":"5/h"}"#).expect(200);
    for _ in 0..2 {
        act("pause", r#"{"reason":"lunch"}"#);
    }
    act("resume", "");
    act("resume", "");
    act("drain", r#"{"reason":"late"}"#);
    act("resume", "");
    act("maintenance", r#"{"reason":"works"}"#);
    act("resume", "");
    act("admit", r#"{"count":3}"#);
    act(&format!("tickets/{ticket}/revoke"), "");
    act(&format!("tickets/{ticket}/revoke"), "");
    act("finish", r#"{"reason":"gone"}"#);
    act("reopen", "");
    let acts = entries(&server, &format!("after={start}&limit=1000"));
    assert_eq!(
        actions(&acts),
        [
            "configure",
            "pause",
            "resume",
            "drain",
            "resume",
            "maintenance",
            "resume",
            "admit",
            "revoke",
            "finish",
            "reopen",
        ]
    );
    for entry in &acts {
        assert_eq!((&entry["who"], &entry["room"]), (&json!(id), &json!("default")), "{entry}");
        assert!(!entry["before"].is_null() && !entry["after"].is_null(), "{entry}");
        assert_ne!(entry["before"], entry["after"], "{entry}");
    }
    assert_eq!(
        (&acts[0]["before"], &acts[0]["after"]),
        (&json!({"rate": null}), &json!({"rate": "5/h"}))
    );
    assert_eq!(acts[1]["before"], json!({ "status": "running", "reason": null }));
    assert_eq!(acts[1]["after"], json!({ "status": "paused", "reason": "lunch" }));
    assert_eq!(acts[7]["after"]["admitted"], 1);
    assert_eq!(
        (&acts[8]["before"]["status"], &acts[8]["after"]["status"]),
        (&json!("active"), &json!("revoked"))
    );
    // In pages, the same.
    let mut paged = Vec::new();
    let mut after = start;
    while after < server.own("GET", "/admin/v1/audit", "")["head"].as_u64().expect("a head") {
        let page =
            server.own("GET", &format!("/admin/v1/audit?after={after}&limit=3&room=default"), "");
        paged.extend(page["entries"].as_array().expect("entries").clone());
        after = page["next"].as_u64().expect("where to go on");
    }
    assert_eq!(paged, acts);
}

#[test]
fn acts_over_the_earlier_interfaces_and_of_the_file_are_in_the_audit_too() {
    let server = Server::configured("[rooms.default]\nrate = \"none\"\nqueue_all = true\n");
    let made = entries(&server, "room=default");
    assert_eq!(
        (made.len(), &made[0]["who"], &made[0]["action"]),
        (1, &json!("file"), &json!("configure"))
    );
    let key = format!("X-Admin-Key: {OWNER}\r\n");
    let queues = "/api/v1/admin/queues";
    server.public(&key, "POST", queues, r#"{"id":"spring","status":"paused"}"#).expect(201);
    server
        .public(&key, "PATCH", &format!("{queues}/spring"), r#"{"admission_rate":3}"#)
        .expect(200);
    server
        .public(&key, "PATCH", &format!("{queues}/spring"), r#"{"admission_rate":3}"#)
        .expect(200);
    let acts = entries(&server, "room=spring");
    assert_eq!(actions(&acts), ["configure", "pause", "configure"]);
    server.join("default", 1).expect(201);
    let allowed = server.public(&key, "POST", "/admin/allow?n=1", "");
    assert_eq!(allowed.status, 200);
    let acts = entries(&server, "room=default");
    assert_eq!(actions(&acts), ["configure", "admit"]);
    assert_eq!(acts[1]["who"], "owner");
}

/// Acts go on while the server is killed; afterwards the audit and the rooms' logs tell the same.
#[test]
fn a_crash_between_an_act_and_its_entry_leaves_no_gap() {
    let mut server = Server::start();
    for round in 0..3 {
        let admin = server.admin.clone();
        let acting = std::thread::spawn(move || {
            let mut acknowledged = 0;
            for n in 0.. {
                let body = format!(r#"{{"message":"round {round}, {n}"}}"#);
                let key = format!("X-Api-Key: {OWNER}\r\n");
                match try_ask(&admin, "PATCH", "/admin/v1/rooms/default", &key, &body) {
                    Some(got) if got.status == 200 => acknowledged += 1,
                    _ => return acknowledged,
                }
            }
            acknowledged
        });
        let version = |server: &Server| {
            server.own("GET", "/admin/v1/rooms/default", "")["version"].as_u64().expect("one")
        };
        let first = version(&server);
        soon("some acts", || (version(&server) > first + 20).then_some(()));
        let folder = server.kill();
        let acknowledged: u64 = acting.join().expect("it counts");
        assert!(acknowledged > 0);
        server = Server::in_folder(folder, &[]);
    }
    let log = server.own("GET", "/admin/v1/rooms/default/log?limit=1000", "");
    let events = log["events"].as_array().expect("events");
    let done = events.iter().filter(|it| it["event"] == "configured").count();
    let noted = entries(&server, "room=default&limit=1000").len();
    assert!(done > 30, "{done}");
    assert_eq!(noted, done, "one entry for each act in the log");
}
