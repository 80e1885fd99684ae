//! A sale is steered while a crowd is in it: pace up and down, capacity below those inside, pause,
//! resume, drain, a move, a revocation. The crowd's history and the server's log are then judged
//! by the promises, and a visitor of ours tells what one reads meanwhile.
//!
//! The history's header holds the limits at the start, so the sale starts at the highest it ever
//! has: clients judge by those, the log by what held at each moment.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::server::{OWNER, Server, offline, soon};

const ROOM: &str = "/admin/v1/rooms/sale";
const SALE: &str = r#"{"rate":"60/s","max_active":60,"queue_all":true,"lanes":["main","members"],
    "claim_within":"10s","session_timeout":"10s","pass_life":"2s","pass_leeway":"0s",
    "heartbeat_timeout":"30s"}"#;

fn picture(server: &Server) -> Value {
    server.own("GET", ROOM, "")
}

fn number(picture: &Value, key: &str) -> u64 {
    picture[key].as_u64().unwrap_or_else(|| panic!("{key} in {picture}"))
}

#[test]
fn a_sale_is_steered_under_a_crowd_and_the_promises_hold() {
    let server = Server::start();
    server.own("PUT", ROOM, SALE);
    server.own("PUT", "/admin/v1/rooms/another-room", "{}");
    let url = |address: &str| format!("http://{address}");
    let crowd = Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(["crowd", &url(&server.public), "--room", "sale", "--admin", &url(&server.admin)])
        .args(["--visitors", "900", "--over", "14s", "--shape", "steady", "--duration", "20s"])
        .args(["--stay", "3s", "--speed", "3", "--rate-limit-exempt", "--quiet"])
        .args(["--history", "crowd.jsonl"])
        .current_dir(&server.folder)
        .env("WAITROOM_ADMIN_KEY", OWNER)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built with this test");
    soon("a line", || (number(&picture(&server), "waiting") > 20).then_some(()));
    let ours = server.join("sale", 9_001).expect(201);
    let token = ours["token"].as_str().expect("a token").to_owned();
    let ticket = ours["ticket"].as_str().expect("a ticket").to_owned();

    // Pace down: within a while hardly anybody enters.
    server.own("PATCH", ROOM, r#"{"rate":"2/s","message":"We let in fewer for a moment"}"#);
    assert_eq!(server.status("sale", &token)["message"], "We let in fewer for a moment");
    // Capacity below those inside: nobody is thrown out, nobody enters.
    soon("people inside", || (number(&picture(&server), "slots_taken") > 10).then_some(()));
    let before = server.own("PATCH", ROOM, r#"{"max_active":5}"#);
    assert!(number(&before, "slots_taken") > 5 && number(&before, "slots_free") == 0, "{before}");
    // Although the pace would let many in, until enough have gone.
    server.own("PATCH", ROOM, r#"{"rate":"60/s"}"#);
    let let_in = number(&before, "admissions");
    soon("as many inside as may be", || {
        let now = picture(&server);
        let (taken, admissions) = (number(&now, "slots_taken"), number(&now, "admissions"));
        assert!(taken <= 5 || admissions == let_in, "{now}");
        (taken <= 5).then_some(())
    });
    server.own("PATCH", ROOM, r#"{"max_active":60,"message":""}"#);

    // A pause: nobody enters, and everybody reads why.
    let paused = server.own("POST", &format!("{ROOM}/pause"), r#"{"reason":"Payment is down"}"#);
    let seen = server.status("sale", &token);
    assert_eq!(
        (&seen["room_status"], &seen["reason"]),
        (&json!("paused"), &json!("Payment is down"))
    );
    // Longer than ticks and boards take; that nobody entered is then told by numbers.
    let version = number(&paused, "version");
    soon("more joins", || (number(&picture(&server), "version") > version + 20).then_some(()));
    assert_eq!(picture(&server)["admissions"], paused["admissions"]);

    // A move keeps the visitor's token good; a revocation ends it, and says so.
    let to = server.own("POST", &format!("{ROOM}/tickets/{ticket}/move"), r#"{"lane":"members"}"#);
    assert_eq!((&to["status"], &to["place"]["lane"]), (&json!("waiting"), &json!(1)));
    let moved = server.status("sale", &token);
    assert_eq!((&moved["status"], &moved["ticket"]), (&json!("waiting"), &to["ticket"]));
    let moved = to["ticket"].as_str().expect("a ticket");
    server.own("POST", &format!("{ROOM}/tickets/{moved}/revoke"), "");
    let seen = server.status("sale", &token);
    assert_eq!((&seen["status"], &seen["ended_because"]), (&json!("revoked"), &json!("revoked")));
    server.own("POST", &format!("{ROOM}/resume"), "");
    soon("admissions again", || {
        (picture(&server)["admissions"] != paused["admissions"]).then_some(())
    });

    // A drain: nobody new, and the line gets shorter.
    server.own("POST", &format!("{ROOM}/drain"), r#"{"reason":"Closing soon"}"#);
    let refused = server.join("sale", 9_002).expect(503);
    assert_eq!(
        (&refused["code"], &refused["detail"]),
        (&json!("draining"), &json!("Closing soon"))
    );
    let (joined, let_in) = {
        let now = picture(&server);
        (number(&now, "joined"), number(&now, "admissions"))
    };
    soon("the line to be let in", || {
        (number(&picture(&server), "admissions") > let_in + 5).then_some(())
    });
    assert_eq!(number(&picture(&server), "joined"), joined);
    server.own("POST", &format!("{ROOM}/resume"), "");
    server.own("POST", &format!("{ROOM}/admit"), r#"{"count":3}"#);

    let said = ended(crowd);
    let words = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success(), "{words}");
    let acts = server.own("GET", "/admin/v1/audit?room=sale&limit=1000", "");
    let acts: Vec<String> = acts["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|it| it["action"].as_str().expect("a word").to_owned())
        .collect();
    let expected = [
        "configure",
        "configure",
        "configure",
        "configure",
        "configure",
        "pause",
        "move",
        "revoke",
        "resume",
        "drain",
        "resume",
        "admit",
    ];
    assert_eq!(acts, expected);
    let folder = server.stop();
    let verdict = offline(&folder, &["check-history", "crowd.jsonl", "--log", "data", "--json"]);
    let verdict = verdict.exits(0).json();
    assert_eq!(verdict["kept"], true, "{verdict}");
    let _ = std::fs::remove_dir_all(folder);
}

/// The crowd ends by itself; one that does not is ended here. It says little, so its pipes hold it.
fn ended(mut crowd: Child) -> Output {
    let until = Instant::now() + Duration::from_secs(60);
    while crowd.try_wait().expect("it can be waited for").is_none() {
        if Instant::now() > until {
            let _ = crowd.kill();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    crowd.wait_with_output().expect("it has ended")
}
