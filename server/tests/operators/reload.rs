//! SIGHUP: rooms of the file are read again, and a broken file changes nothing.

use serde_json::json;

use crate::server::{Server, soon};

const GOOD: &str = "[rooms.spring]\nrate = \"5/s\"\n\n[rooms.autumn]\nmax_active = 7\n";

fn rewrite(server: &Server, text: &str) {
    std::fs::write(server.folder.join("server.toml"), text).expect("it can be written");
}

/// Asks it to read again, and waits until it says these words once more than before.
fn reload(server: &Server, words: &str) {
    let before = server.said().matches(words).count();
    server.signal("-HUP");
    soon(words, || (server.said().matches(words).count() > before).then_some(()));
}

fn room(server: &Server, name: &str) -> serde_json::Value {
    server.own("GET", &format!("/admin/v1/rooms/{name}"), "")["settings"].clone()
}

#[test]
fn a_reload_changes_the_rooms_that_the_file_changed_and_no_others() {
    let server = Server::configured(GOOD);
    server.own("PATCH", "/admin/v1/rooms/autumn", r#"{"max_active":99}"#);
    rewrite(&server, &GOOD.replace("5/s", "9/s"));
    reload(&server, "new settings for spring\n");
    assert_eq!(room(&server, "spring")["rate"], "9/s");
    assert_eq!(room(&server, "autumn")["max_active"], 99, "what was turned by hand stays");
    let acts = server.own("GET", "/admin/v1/audit?room=spring", "");
    let last = acts["entries"].as_array().and_then(|all| all.last()).expect("an entry").clone();
    assert_eq!((&last["who"], &last["after"]), (&json!("file"), &json!({ "rate": "9/s" })));
    reload(&server, "no room is set otherwise\n");
    assert_eq!(room(&server, "autumn")["max_active"], 99);
    rewrite(&server, &format!("{GOOD}\n[rooms.winter]\ntitle = \"New\"\n"));
    reload(&server, "new settings for spring, winter\n");
    assert_eq!(room(&server, "winter")["title"], "New");
}

#[test]
fn a_broken_file_leaves_everything_as_it_is_and_every_mistake_is_told() {
    let server = Server::configured(GOOD);
    let before = server.own("GET", "/admin/v1/rooms/spring", "");
    rewrite(
        &server,
        "[rooms.spring]\nrate = 9\n\n[rooms.autumn]\nmax_actve = 8\n[limits]\nstatus = \"x\"\n",
    );
    reload(&server, "the old settings and certificates stay: ");
    soon("the last mistake", || server.said().contains("limits.status").then_some(()));
    let said = server.said();
    assert!(said.contains("server.toml: 3 problems"), "{said}");
    assert!(said.contains("line 2  rooms.spring.rate: 9 has no unit"), "{said}");
    assert!(said.contains("line 5  rooms.autumn.max_actve: no such key"), "{said}");
    assert!(said.contains("line 7  limits.status"), "{said}");
    let after = server.own("GET", "/admin/v1/rooms/spring", "");
    assert_eq!((&before["version"], &before["settings"]), (&after["version"], &after["settings"]));
    server.join("spring", 1).expect(201);
    std::fs::remove_file(server.folder.join("server.toml")).expect("it was there");
    reload(&server, "the old settings and certificates stay: ");
    // And once it is mended it counts.
    rewrite(&server, &GOOD.replace("5/s", "6/s"));
    reload(&server, "new settings for spring\n");
    assert_eq!(room(&server, "spring")["rate"], "6/s");
}

#[test]
fn a_room_that_cannot_take_its_new_settings_keeps_the_old_and_the_others_get_theirs() {
    let lanes = "[rooms.spring]\nrate = \"none\"\nqueue_all = true\nlanes = [\"a\", \"b\"]\n\n[rooms.autumn]\nmax_active = 7\n";
    let server = Server::configured(lanes);
    let key = format!("X-Api-Key: {}\r\n", crate::server::OWNER);
    server.public(&key, "POST", "/v1/rooms/spring/join", r#"{"lane":"b"}"#).expect(201);
    rewrite(&server, &lanes.replace(", \"b\"", "").replace("= 7", "= 8"));
    reload(&server, "new settings for autumn\n");
    let said = server.said();
    assert!(said.contains("room spring: the old settings stay"), "{said}");
    assert!(said.contains("lanes: "), "{said}");
    assert_eq!(room(&server, "spring")["lanes"].as_array().map(Vec::len), Some(2));
    assert_eq!(room(&server, "autumn")["max_active"], 8);
}

#[test]
fn a_restart_finds_rooms_places_keys_and_acts_as_they_were() {
    let server = Server::configured(GOOD);
    let joined = server.join("autumn", 1).expect(201);
    server.own("POST", "/admin/v1/rooms/autumn/pause", r#"{"reason":"night"}"#);
    let key = server.own("POST", "/admin/v1/keys", r#"{"role":"viewer"}"#);
    let before = server.own("GET", "/admin/v1/audit", "");
    let server = Server::in_folder(server.stop(), &["--config", "server.toml"]);
    let token = joined["token"].as_str().expect("a token");
    let found = server.status("autumn", token);
    assert_eq!((&found["ticket"], &found["room_status"]), (&joined["ticket"], &json!("paused")));
    let me = server.admin(key["key"].as_str().expect("a key"), "GET", "/admin/v1/me", "");
    assert_eq!(me.expect(200)["id"], key["id"]);
    let after = server.own("GET", "/admin/v1/audit", "");
    assert_eq!(before["entries"], after["entries"], "a start is nobody's act");
}
