//! What `docs/failures.md` says, seen: a full disk and a read-only folder, under the real binary.
//!
//! The server gets a small file system of its own in a mount namespace (`unshare -rm`, which needs
//! no privileges where user namespaces are allowed, and none but root's elsewhere).

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use crate::server::{Server, fresh_folder, offline, soon};

/// The server's command line, run after `before` in a mount namespace of its own.
fn in_namespace(folder: &std::path::Path, before: &str) -> Command {
    let plain = Server::command(folder, &[]);
    let mut command = Command::new("unshare");
    command.args(["-rm", "bash", "-c", &format!("{before} && exec \"$@\""), "bash"]);
    command.arg(plain.get_program()).args(plain.get_args()).current_dir(folder);
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

/// Fills the file system that the server sees, to the last byte.
fn fill(ballast: &PathBuf) {
    let mut file = std::fs::File::create(ballast).expect("the namespace can be reached");
    for size in [1 << 20, 4096, 1] {
        let bytes = vec![b'x'; size];
        while file.write_all(&bytes).is_ok() {}
    }
}

#[test]
fn on_a_full_disk_nobody_new_is_taken_places_are_kept_and_space_is_all_it_takes() {
    let folder = fresh_folder();
    let mount = "mkdir -p data && mount -t tmpfs -o size=24m none data";
    let command = in_namespace(&folder, mount);
    let server = Server::spawn(folder, command).unwrap_or_else(|said| {
        panic!("unshare and mount are needed (apt-get install util-linux): {said}")
    });
    let inside = format!("/proc/{}/root{}", server.pid(), server.data().display());
    let ballast = PathBuf::from(inside).join("ballast");
    let first = server.join("default", 1).expect(201);
    let token = first["token"].as_str().expect("a token");
    fill(&ballast);
    // What is allocated already may still take a few, each from an address of their own.
    let mut who = 1;
    let refused = soon("a refusal", || {
        who += 1;
        let got = server.join("default", who);
        (got.status != 201 && got.status != 200).then_some(got)
    });
    assert_eq!(refused.status, 503, "{refused:?}");
    let code = refused.json()["code"].as_str().expect("a code").to_owned();
    assert!(["unavailable", "outcome_unknown", "overloaded"].contains(&code.as_str()), "{code}");
    // An operator's act is not half done either.
    let act = server.admin(
        crate::server::OWNER,
        "PATCH",
        "/admin/v1/rooms/default",
        r#"{"message":"full"}"#,
    );
    assert_eq!(act.status, 503, "{act:?}");
    // Those who are there see their place: boards are read from memory.
    let seen = server.status("default", token);
    assert_eq!((&seen["ticket"], &seen["status"]), (&first["ticket"], &"waiting".into()), "{seen}");
    assert_eq!(server.public("", "GET", "/health/live", "").status, 200);
    soon("words about it", || {
        server.said().contains("error[WR-2103] room \"default\"").then_some(())
    });
    let picture = server.own("GET", "/admin/v1/rooms/default", "");
    assert!(picture["store_trouble"].is_string(), "{picture}");
    std::fs::remove_file(&ballast).expect("it was there");
    let later = soon("joins again", || {
        who += 1;
        let got = server.join("default", who);
        (got.status == 201).then(|| got.json())
    });
    assert!(later["version"].as_u64() > first["version"].as_u64());
    soon("words about that", || server.said().contains("writes again").then_some(()));
    let seen = server.status("default", token);
    assert_eq!((&seen["ticket"], &seen["position"]), (&first["ticket"], &1.into()), "{seen}");
    server.own("PATCH", "/admin/v1/rooms/default", r#"{"message":"space again"}"#);
    let acts = server.own("GET", "/admin/v1/audit?room=default&limit=1000", "");
    let log = server.own("GET", "/admin/v1/rooms/default/log?limit=1000", "");
    let configured = log["events"].as_array().expect("events").iter();
    let configured = configured.filter(|it| it["event"] == "configured").count();
    assert_eq!(acts["entries"].as_array().map(Vec::len), Some(configured), "{acts}");
}

#[test]
fn a_read_only_folder_is_told_at_the_start_and_nothing_is_touched() {
    let server = Server::start();
    server.join("default", 1).expect(201);
    let folder = server.stop();
    let before = offline(&folder, &["log", "--data", "data", "--room", "default"]).exits(0).out;
    let mount = "mount --bind data data && mount -o remount,ro,bind data";
    let mut command = in_namespace(&folder, mount);
    let out = command.output().expect("unshare is there");
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(74), "{said}");
    assert!(said.contains("error") && said.to_lowercase().contains("read-only"), "{said}");
    assert!(said.contains("\n  means   ") && said.contains("\n  do      "), "{said}");
    let after = offline(&folder, &["log", "--data", "data", "--room", "default"]).exits(0).out;
    assert_eq!(before, after);
    let server = Server::in_folder(folder, &[]);
    server.join("default", 2).expect(201);
}
