//! API keys: made, shown once, useless in the store, ended, followed, and known to have been used.

use std::path::Path;

use serde_json::{Value, json};

use crate::server::{OWNER, Server, soon};

fn make(server: &Server, body: Value) -> (String, String) {
    let made = server.admin(OWNER, "POST", "/admin/v1/keys", &body.to_string()).expect(201);
    let text = |field: &str| made[field].as_str().expect("text").to_owned();
    (text("id"), text("key"))
}

fn listed(server: &Server, id: &str) -> Value {
    let keys = server.own("GET", "/admin/v1/keys", "");
    let keys = keys["keys"].as_array().expect("keys");
    keys.iter().find(|key| key["id"] == id).expect("it is listed").clone()
}

fn me(server: &Server, key: &str) -> u16 {
    server.admin(key, "GET", "/admin/v1/me", "").status
}

/// Every file below, as bytes.
fn each_file(folder: &Path, each: &mut dyn FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            each_file(&path, each);
        } else {
            each(&path, &std::fs::read(&path).expect("readable"));
        }
    }
}

#[test]
fn a_key_is_shown_once_and_is_nowhere_in_the_data_folder() {
    let server = Server::start();
    let (id, key) = make(&server, json!({ "role": "operator", "note": "for the shop" }));
    assert!(key.starts_with(&format!("wrk_{id}_")), "{key}");
    let secret = key.rsplit('_').next().expect("a secret").to_owned();
    assert_eq!(secret.len(), 64, "256 bits in hex");
    let me = server.admin(&key, "GET", "/admin/v1/me", "").expect(200);
    assert_eq!(
        me,
        json!({ "id": id, "role": "operator", "note": "for the shop", "expires_at": null })
    );
    let list = server.own("GET", "/admin/v1/keys", "").to_string();
    assert!(list.contains(&id) && !list.contains(&secret), "{list}");
    let folder = server.stop();
    let bytes: Vec<u8> = secret
        .as_bytes()
        .chunks(2)
        .map(|two| u8::from_str_radix(std::str::from_utf8(two).expect("hex"), 16).expect("hex"))
        .collect();
    let mut files = 0;
    let mut ids = 0;
    each_file(&folder, &mut |path, all| {
        files += 1;
        let has = |what: &[u8]| all.windows(what.len()).any(|it| it == what);
        for hidden in [secret.as_bytes(), &bytes, OWNER.as_bytes()] {
            assert!(!has(hidden), "a key stands in {}", path.display());
        }
        ids += usize::from(has(id.as_bytes()));
    });
    assert!(files > 1 && ids > 0, "the folder that was searched is the one that was written");
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn a_key_ends_when_its_time_is_over() {
    let server = Server::start();
    let (id, key) = make(&server, json!({ "role": "viewer", "expires_in": "1500ms" }));
    assert_eq!(me(&server, &key), 200);
    assert!(listed(&server, &id)["expires_at"].is_string());
    soon("its end", || (me(&server, &key) == 401).then_some(()));
    let bad = server.admin(OWNER, "POST", "/admin/v1/keys", r#"{"role":"viewer","expires_in":30}"#);
    let bad = bad.expect(400);
    assert_eq!(bad["errors"][0]["field"], "expires_in");
    let bad = server.admin(OWNER, "POST", "/admin/v1/keys", r#"{"role":"admin"}"#).expect(400);
    assert_eq!(bad["errors"][0]["field"], "role");
}

#[test]
fn a_key_and_its_follower_work_side_by_side_until_the_overlap_ends() {
    let server = Server::start();
    let (id, old) = make(&server, json!({ "role": "operator", "note": "till 3" }));
    let path = format!("/admin/v1/keys/{id}/rotate");
    let made = server.admin(OWNER, "POST", &path, r#"{"overlap":"1500ms"}"#).expect(201);
    let new = made["key"].as_str().expect("a key");
    assert_eq!((&made["role"], &made["note"]), (&json!("operator"), &json!("till 3")));
    assert_eq!((me(&server, &old), me(&server, new)), (200, 200));
    assert_eq!(listed(&server, &id)["replaced_by"], made["id"]);
    let again = server.admin(OWNER, "POST", &path, "").expect(409);
    assert_eq!(again["code"], "api_key_ended");
    soon("the end of the overlap", || (me(&server, &old) == 401).then_some(()));
    assert_eq!(me(&server, new), 200);
    // Pairs outlive the server.
    let server = Server::in_folder(server.stop(), &[]);
    assert_eq!((me(&server, &old), me(&server, new)), (401, 200));
}

#[test]
fn a_revoked_key_is_refused_at_once_and_the_last_owner_stays() {
    let server = Server::start();
    let (id, key) = make(&server, json!({ "role": "viewer" }));
    let revoked = server.own("DELETE", &format!("/admin/v1/keys/{id}"), "");
    assert!(revoked["revoked_at"].is_string(), "{revoked}");
    assert_eq!(me(&server, &key), 401);
    let again = server.admin(OWNER, "DELETE", &format!("/admin/v1/keys/{id}"), "").expect(409);
    assert_eq!(again["code"], "api_key_ended");
    let unknown = server.admin(OWNER, "DELETE", "/admin/v1/keys/k0", "").expect(404);
    assert_eq!(unknown["code"], "api_key_unknown");
    let last = server.admin(OWNER, "DELETE", "/admin/v1/keys/owner", "").expect(409);
    assert_eq!(last["code"], "last_owner");
    let (_, other) = make(&server, json!({ "role": "owner" }));
    server.own("DELETE", "/admin/v1/keys/owner", "");
    assert_eq!((me(&server, OWNER), me(&server, &other)), (401, 200));
}

#[test]
fn when_a_key_was_last_used_is_known_after_a_restart_too() {
    let server = Server::start();
    let (id, key) = make(&server, json!({ "role": "viewer" }));
    assert_eq!(listed(&server, &id)["last_used_at"], Value::Null);
    assert_eq!(me(&server, &key), 200);
    let used = listed(&server, &id)["last_used_at"].clone();
    assert!(used.is_string());
    let server = Server::in_folder(server.stop(), &[]);
    assert_eq!(listed(&server, &id)["last_used_at"], used);
}
