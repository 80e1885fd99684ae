//! Server-sent events and long polls, with curl.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::instance::{Instance, SOON};

#[test]
fn curl_hears_of_its_admission_by_server_sent_events() {
    let server = Instance::start();
    let joined = server.join(1);
    let auth = format!("Authorization: Bearer {}", joined["token"].as_str().expect("a token"));
    let mut curl = Command::new("curl")
        .args(["-sSN", "--max-time", "60", "-H", &auth])
        .arg(format!("{}/v1/rooms/default/stream", server.public))
        .stdout(Stdio::piped())
        .spawn()
        .expect("curl is needed for this test");
    let mut lines = BufReader::new(curl.stdout.take().expect("piped")).lines();
    let mut next = |wanted: &str| -> Value {
        let until = Instant::now() + SOON;
        let mut kind = String::new();
        while Instant::now() < until {
            let line = lines.next().expect("the stream goes on").expect("text");
            if let Some(event) = line.strip_prefix("event: ") {
                event.clone_into(&mut kind);
            } else if let Some(data) = line.strip_prefix("data: ")
                && kind == wanted
            {
                return serde_json::from_str(data).expect("JSON");
            }
        }
        panic!("no {wanted} came");
    };
    assert_eq!(next("ticket")["status"], "waiting");
    assert_eq!(next("board")["board"]["lanes"][0]["waiting"], 1);
    server.operate("POST", "/admin/v1/rooms/default/admit", r#"{"count":1}"#);
    assert_eq!(next("ticket")["status"], "active");
    let _ = curl.kill();
    let _ = curl.wait();
}

#[test]
fn a_long_poll_answers_when_something_changes_and_not_before() {
    let server = Instance::start();
    let joined = server.join(1);
    let auth = format!("Authorization: Bearer {}", joined["token"].as_str().expect("a token"));
    let asked = Instant::now();
    let quiet = server.get("/v1/rooms/default/status?wait=1", &["-H", &auth]);
    assert!(asked.elapsed() >= Duration::from_secs(1), "nothing had changed");
    assert_eq!(quiet.json()["status"], "waiting");
    let tag = format!("If-None-Match: {}", quiet.header("etag").expect("a tag"));
    let same = server.get("/v1/rooms/default/status", &["-H", &auth, "-H", &tag]);
    assert_eq!(same.status, 304);
    let told = std::thread::scope(|scope| {
        let waiting = scope
            .spawn(|| server.get("/v1/rooms/default/status?wait=30", &["-H", &auth, "-H", &tag]));
        server.operate("POST", "/admin/v1/rooms/default/admit", r#"{"count":1}"#);
        waiting.join().expect("it answers")
    });
    assert_eq!(told.json()["status"], "active");
    assert!(asked.elapsed() < Duration::from_secs(25), "it did not wait for the end");
}

#[test]
fn positions_never_rise_between_join_status_and_heartbeat() {
    let server = Instance::start();
    let tokens: Vec<String> = (0..40)
        .map(|who| server.join(who)["token"].as_str().expect("a token").to_owned())
        .collect();
    let last = tokens.last().expect("forty people");
    let auth = format!("Authorization: Bearer {last}");
    let mut shown = (0, u64::MAX);
    for token in tokens.iter().take(10) {
        let leaves = format!("Authorization: Bearer {token}");
        server.post("/v1/rooms/default/leave", &["-H", &leaves]);
        for answer in
            [server.status(last), server.post("/v1/rooms/default/heartbeat", &["-H", &auth]).json()]
        {
            let seen = (
                answer["version"].as_u64().expect("a version"),
                answer["position"].as_u64().expect("a position"),
            );
            assert!(seen.0 >= shown.0, "versions never fall here");
            assert!(seen.1 <= shown.1, "position {} after {}", seen.1, shown.1);
            shown = seen;
        }
    }
    let version = shown.0;
    let path = format!("/v1/rooms/default/status?version={version}");
    assert!(server.get(&path, &["-H", &auth]).json()["version"].as_u64() >= Some(version));
    let future = format!("/v1/rooms/default/status?version={}", version + 1_000);
    assert_eq!(server.get(&future, &["-H", &auth]).json()["stale"], true);
}
