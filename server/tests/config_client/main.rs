//! The commands that talk to a server, against one that is made of a few lines: what they send,
//! what they say about every kind of answer, and what they never say.

mod server;
mod shell;

use serde_json::{Value, json};
use server::{Server, problem};
use shell::run;

#[test]
fn a_room_is_put_from_toml_under_the_name_of_its_file() {
    let server = Server::answering(201, json!({}));
    let said = run(&server, "room put {FILE}", "rate = \"10/s\"\ntitle = \"Spring\"\n");
    said.exits(0).says("room spring-sale: made");
    let seen = server.seen();
    assert_eq!(seen.line, "PUT /admin/v1/rooms/spring-sale");
    assert_eq!(seen.body, json!({ "rate": "10/s", "title": "Spring" }));
    assert_eq!(seen.authorization, "Bearer wrk_secret");
    assert_eq!(seen.content_type, "application/json");
}

#[test]
fn a_room_is_put_from_json_and_from_stdin() {
    let server = Server::answering(200, json!({}));
    let said = run(&server, "room put - --room other", "{\"max_active\": 5, \"name\": \"x\"}");
    said.exits(0).says("room other: set");
    assert_eq!(server.seen().line, "PUT /admin/v1/rooms/other");

    let server = Server::answering(200, json!({}));
    run(&server, "room put -", "name = \"from-stdin\"\nmax_active = 5").exits(0);
    assert_eq!(server.seen().line, "PUT /admin/v1/rooms/from-stdin");
}

#[test]
fn mistakes_in_a_document_are_told_with_their_lines_and_nothing_is_sent() {
    let server = Server::answering(200, json!({}));
    let said = run(&server, "room put {FILE}", "rate = 10\n\nmax_actve = 5\n");
    let said = said.exits(64);
    let told = "spring-sale.toml: 2 problems\n  \
        line 1  rate: 10 has no unit; write \"10/s\" or \"10/min\"\n  \
        line 3  max_actve: no such key; did you mean \"max_active\"?\n";
    assert!(said.err.ends_with(told), "{}", said.err);
    assert!(server.saw_nothing());
}

#[test]
fn mistakes_that_only_the_server_knows_are_told_with_their_lines_too() {
    let mut refusal = problem(422, "bad_request", "the settings do not fit");
    refusal["errors"] = json!([{ "field": "lanes", "problem": "lane \"b\" gave out places" }]);
    let server = Server::answering(422, refusal);
    let said = run(&server, "room put {FILE}", "rate = \"1/s\"\nlanes = [\"a\"]\n");
    said.exits(64).says("line 2  lanes: lane \"b\" gave out places");
}

#[test]
fn a_room_is_shown_as_a_file_that_put_takes() {
    let answer = json!({ "max_active": 7, "rate": null, "lanes": [{ "name": "m", "weight": 2 }] });
    let said = run(&Server::answering(200, answer.clone()), "room get a", "").exits(0);
    let shown =
        "name = \"a\"\nlanes = [{ name = \"m\", weight = 2 }]\nmax_active = 7\nrate = \"none\"\n";
    assert_eq!(said.out, shown);
    let server = Server::answering(200, json!({}));
    run(&server, "room put -", &said.out).exits(0);
    assert_eq!(server.seen().body["rate"], "none");

    let json = run(&Server::answering(200, answer.clone()), "room get a --json", "").exits(0);
    assert_eq!(json.json(), answer);
}

#[test]
fn settings_among_other_facts_are_found() {
    let answer = json!({ "room": "a", "version": 8, "settings": { "max_active": 7 } });
    let said = run(&Server::answering(200, answer), "room get a", "").exits(0);
    assert_eq!(said.out, "name = \"a\"\nmax_active = 7\n");
}

#[test]
fn rooms_are_listed() {
    let rooms = json!({ "rooms": [
        { "room": "default", "status": "running", "waiting": 1_234_567, "active": 12 },
        { "room": "a-longer-name", "status": "paused" },
    ]});
    let server = Server::answering(200, rooms.clone());
    let said = run(&server, "room list", "").exits(0);
    assert_eq!(server.seen().line, "GET /admin/v1/rooms");
    let expected = "\
room           status              waiting          inside
default        running           1,234,567              12
a-longer-name  paused                    -               -
rooms 2
";
    assert_eq!(said.out, expected);
    let json = run(&Server::answering(200, rooms.clone()), "room list --json", "");
    assert_eq!(json.exits(0).json(), rooms);
}

#[test]
fn people_are_let_in() {
    let server = Server::answering(200, json!({ "admitted": 5 }));
    run(&server, "admit default 5", "").exits(0).says("room default: 5 let in\n");
    let seen = server.seen();
    assert_eq!(
        (&*seen.line, &seen.body),
        ("POST /admin/v1/rooms/default/admit", &json!({ "count": 5 }))
    );
    let fewer = Server::answering(200, json!({ "admitted": 3 }));
    run(&fewer, "admit default 5", "").exits(0).says("3 let in of 5");
    let server = Server::answering(200, json!({ "admitted": 5 }));
    let said = run(&server, "admit default 5 --json", "").exits(0);
    assert_eq!(said.json(), json!({ "admitted": 5 }));
    run(&server, "admit default 0", "").exits(64);
    run(&server, "admit Default 1", "").exits(64).says("is not a name");
}

#[test]
fn a_room_is_paused_with_a_reason_and_resumed() {
    let server = Server::answering(200, json!({}));
    run(&server, "pause default --reason Soon!", "").exits(0).says("visitors read: Soon!");
    let seen = server.seen();
    assert_eq!(seen.line, "POST /admin/v1/rooms/default/pause");
    assert_eq!(seen.body, json!({ "reason": "Soon!" }));
    run(&server, "pause default", "").exits(64).says("--reason");

    let server = Server::answering(204, Value::Null);
    run(&server, "resume default", "").exits(0).says("room default: resumed");
    assert_eq!(server.seen().line, "POST /admin/v1/rooms/default/resume");
}

#[test]
fn every_refusal_says_what_to_do_next() {
    for (status, code, exit, words) in [
        (401, "api_key_invalid", 77, "WAITROOM_ADMIN_KEY"),
        (403, "forbidden", 77, "role operator or owner"),
        (404, "room_unknown", 66, "waitroom room list"),
        (404, "not_found", 66, "the admin address"),
        (400, "bad_request", 64, "what the server said"),
        (409, "paused", 1, "what the server said"),
        (410, "room_ended", 1, "what the server said"),
        (429, "rate_limited", 75, "try again in 2 s"),
        (503, "overloaded", 75, "try again in 2 s"),
        (503, "outcome_unknown", 75, "not known whether it was done"),
        (500, "internal", 69, "the server's log"),
    ] {
        let mut refusal = problem(status, code, "what the server said");
        refusal["retry_after_ms"] = json!(1_200);
        let server = Server::answering(status, refusal.clone());
        let said = run(&server, "admit default 1", "").exits(exit);
        assert!(said.err.starts_with("error: room default: "), "{}", said.err);
        assert!(said.err.contains(&format!("({code})")), "{}", said.err);
        assert!(said.err.contains("\n  do      "), "{}", said.err);
        said.says(words);
        let said = run(&Server::answering(status, refusal), "admit default 1 --json", "");
        assert_eq!(said.exits(exit).json()["error"]["exit"], exit);
    }
}

#[test]
fn a_server_that_is_not_there_or_not_ours_is_told_apart() {
    let gone = Server::answering(200, json!({}));
    gone.stop();
    run(&gone, "room list", "").exits(69).says("cannot reach the server: connection refused");
    let html = Server::answering_text(404, "<html>nginx</html>");
    run(&html, "room list", "").exits(69).says("something else than waitroom");
    let html = Server::answering_text(200, "<html>hello</html>");
    run(&html, "room list", "").exits(69).says("something else than waitroom");
}

#[test]
fn neither_address_nor_key_is_ever_printed() {
    let server = Server::answering(401, problem(401, "api_key_invalid", "no"));
    let port = server.port().to_string();
    for line in ["room list", "room get a", "admit a 1", "resume a", "room list --json"] {
        let said = run(&server, line, "").exits(77);
        assert!(!said.both().contains("wrk_secret") && !said.both().contains(&port), "{said:?}");
    }
    server.stop();
    let said = run(&server, "room list", "").exits(69);
    assert!(!said.both().contains(&port), "{said:?}");
    for (flags, exit) in [
        ("--server https://user:hunter2@host:1", 64),
        ("--server http://user:hunter2@host:1", 64),
        ("--server hunter2", 64),
        ("--server http://hunter2.example:1", 64),
        ("--key hunter2\u{7f}", 64),
    ] {
        let said = run(&server, &format!("room list {flags}"), "").exits(exit);
        assert!(!said.both().contains("hunter2"), "{said:?}");
    }
}

#[test]
fn a_key_does_not_travel_to_another_machine_unless_told_so() {
    let server = Server::answering(200, json!({}));
    let said = run(&server, "room list --server http://192.0.2.1:8081", "");
    said.exits(64).says("ssh -L").says("nothing was sent");
}

#[test]
fn a_strange_servers_words_cannot_steer_the_terminal() {
    let server = Server::answering(409, problem(409, "paused", "\u{1b}[2Jgone"));
    let said = run(&server, "admit default 1", "").exits(1);
    assert!(!said.both().contains('\u{1b}'), "{said:?}");
}
