//! The operators' commands against a real server, and the help of every command there is.

use std::process::Command;

use serde_json::json;

use crate::server::{OWNER, Server};

/// Every command, with the commands below it.
fn commands() -> Vec<Vec<String>> {
    fn below(line: &[String], all: &mut Vec<Vec<String>>) {
        let help = help(line);
        let Some((_, list)) = help.split_once("\nCommands:\n") else {
            all.push(line.to_vec());
            return;
        };
        if !line.is_empty() {
            all.push(line.to_vec());
        }
        let list = list.split("\n\n").next().unwrap_or_default();
        let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        for name in names.filter_map(|line| line.split_whitespace().next()) {
            if name != "help" {
                let mut line = line.to_vec();
                line.push(name.to_owned());
                below(&line, all);
            }
        }
    }
    let mut all = Vec::new();
    below(&[], &mut all);
    all
}

fn help(line: &[String]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_waitroom")).args(line).arg("--help").output();
    let out = out.expect("the binary was built with this test");
    assert_eq!(out.status.code(), Some(0), "{line:?} --help");
    String::from_utf8(out.stdout).expect("text")
}

#[test]
fn every_command_has_help_with_an_example_that_begins_as_it_does() {
    let all = commands();
    let line = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect::<Vec<String>>();
    for known in
        [&["room", "set"][..], &["ticket", "find"], &["key", "rotate"], &["audit", "verify"]]
    {
        assert!(all.contains(&line(known)), "{known:?} is not among {all:?}");
    }
    let mut wrong = Vec::new();
    for line in &all {
        let help = help(line);
        let begins = format!("waitroom {}", line.join(" "));
        let example = help.split_once("Example").map_or("", |(_, example)| example);
        if !example.contains(&begins) {
            wrong.push(begins);
        }
    }
    assert!(wrong.is_empty(), "no example in the help of: {wrong:#?}");
}

#[test]
fn every_command_is_completed_by_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let out =
            Command::new(env!("CARGO_BIN_EXE_waitroom")).args(["completions", shell]).output();
        let script = String::from_utf8(out.expect("it runs").stdout).expect("text");
        for line in commands() {
            let word = line.last().expect("a word");
            assert!(script.contains(word.as_str()), "{shell}: {line:?}");
        }
    }
}

#[test]
fn a_night_at_the_command_line() {
    let server = Server::start();
    std::fs::write(
        server.folder.join("spring.toml"),
        "title = \"Spring\"\nrate = \"none\"\nqueue_all = true\nlanes = [\"main\", \"members\"]\n",
    )
    .expect("a file");
    let said = server.run(&["room", "put", "spring.toml"]).exits(0);
    assert_eq!(said.out, "room spring: made\n");
    let said = server.run(&["room", "set", "spring", "max_active=50", "message=Be patient"]);
    assert_eq!(said.exits(0).out, "room spring: max_active = 50, message = \"Be patient\"\n");
    let said = server.run(&["room", "set", "spring", "max_active=0"]).exits(64);
    assert!(said.err.contains("max_active: 0 does not fit; allowed: 1 to 10000000"), "{said:?}");

    let ana = server.join("spring", 1).expect(201);
    let bo = server.join("spring", 2).expect(201);
    let (ticket, code) =
        (ana["ticket"].as_str().expect("one"), ana["support_code"].as_str().expect("one"));
    let said = server.run(&["ticket", "find", "spring", "--code", code]).exits(0);
    assert!(
        said.out.starts_with(&format!("ticket {ticket}: waiting, position 1, code {code}")),
        "{said:?}"
    );
    server.run(&["ticket", "find", "spring", "--user", "nobody"]).exits(66);
    let said = server.run(&["ticket", "move", "spring", ticket, "--lane", "members", "--json"]);
    assert_eq!(said.exits(0).json()["place"]["lane"], 1);
    let said = server.run(&["ticket", "show", "spring", ticket]).exits(0);
    assert!(said.out.contains(": waiting, position 1"), "{said:?}");
    let other = bo["ticket"].as_str().expect("one");
    server.run(&["ticket", "revoke", "spring", other]).exits(0);
    assert_eq!(server.status("spring", bo["token"].as_str().expect("one"))["status"], "revoked");
    let unknown = "7b0c3f0e-1c5f-4c41-9b57-3f0a2f7f4b11";
    let said = server.run(&["ticket", "show", "spring", unknown]).exits(66);
    assert!(said.err.contains("ticket_unknown"), "{said:?}");

    server.run(&["room", "drain", "spring", "--reason", "Late"]).exits(0);
    assert_eq!(server.join("spring", 3).expect(503)["code"], "draining");
    server.run(&["resume", "spring"]).exits(0);
    server.run(&["room", "maintenance", "spring", "--reason", "Works"]).exits(0);
    server.run(&["resume", "spring"]).exits(0);
    assert_eq!(server.run(&["admit", "spring", "1"]).exits(0).out, "room spring: 1 let in\n");
    server.run(&["room", "finish", "spring", "--reason", "Gone"]).exits(0);
    server.run(&["room", "reopen", "spring"]).exits(0);
    let said = server.run(&["room", "report", "spring"]).exits(0);
    assert!(said.out.contains("joined") && said.out.contains("let in"), "{said:?}");
    let csv = server.run(&["room", "report", "spring", "--csv"]).exits(0);
    assert!(csv.out.starts_with("from,joined,"), "{csv:?}");
    let log = server.run(&["room", "log", "spring", "--limit", "3"]).exits(0);
    assert_eq!(log.out.lines().count(), 3);
    assert!(log.out.contains("configured") && log.err.contains("more: --after 3"), "{log:?}");

    let made = server.run(&["key", "create", "--role", "operator", "--note", "night"]).exits(0);
    let key = made.out.trim();
    assert!(key.starts_with("wrk_k") && !made.err.contains(key), "{made:?}");
    server.run_with(key, &["pause", "spring", "--reason", "Tea"]).exits(0);
    server.run_with(key, &["key", "list"]).exits(77);
    server.run_with(key, &["room", "set", "spring", "title=Mine"]).exits(77);
    let id = key.split('_').nth(1).expect("an id");
    let said = server.run(&["key", "list"]).exits(0);
    assert!(said.out.contains(id) && said.out.contains("night"), "{said:?}");
    let next = server.run(&["key", "rotate", id, "--overlap", "1h", "--json"]).exits(0).json();
    assert_eq!(next["role"], "operator");
    server.run(&["key", "revoke", id]).exits(0);
    server.run_with(key, &["resume", "spring"]).exits(77);
    server.run(&["key", "revoke", "k0"]).exits(66);

    let said = server.run(&["audit", "list", "--room", "spring"]).exits(0);
    for word in ["configure", "move", "revoke", "drain", "finish", "reopen", "admit", "pause"] {
        assert!(said.out.contains(word), "{word}: {said:?}");
    }
    assert!(said.out.contains(&format!("{id:<12}  pause")), "who paused: {said:?}");
    let lines = server.run(&["audit", "list", "--json", "--limit", "2"]).exits(0);
    assert_eq!(lines.out.lines().count(), 2);
    assert!(!said.out.contains(OWNER));
}

#[test]
fn a_cloudflare_document_in_a_file_is_put_and_its_mistakes_have_lines() {
    let server = Server::start();
    let file = server.folder.join("checkout.json");
    let document =
        json!({ "name": "checkout", "new_users_per_minute": 300, "total_active_users": 9 });
    std::fs::write(&file, document.to_string()).expect("a file");
    server.run(&["room", "put", "checkout.json"]).exits(0);
    let got = server.run(&["room", "get", "checkout"]).exits(0);
    assert!(
        got.out.contains("rate = \"300/min\"\n") && got.out.contains("max_active = 9\n"),
        "{got:?}"
    );
    let file = server.folder.join("checkout.toml");
    std::fs::write(
        &file,
        "new_users_per_minute = 300\nsession_duration = \"5m\"\nrate = \"1/s\"\n",
    )
    .expect("a file");
    let said = server.run(&["room", "put", "checkout.toml"]).exits(64);
    assert!(said.err.contains("line 2  session_duration: \"5m\" is not a number"), "{said:?}");
    assert!(said.err.contains("line 3  rate: a name of ours"), "{said:?}");
    let after = server.run(&["room", "get", "checkout"]).exits(0);
    assert_eq!(after.out, got.out, "nothing was changed");
}
