//! Going down in order.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::instance::{Instance, soon};

#[test]
fn live_channels_hear_goodbye_and_the_server_says_how_it_went() {
    let server = Instance::start();
    let joined = server.join(1);
    let auth = format!("Authorization: Bearer {}", joined["token"].as_str().expect("a token"));
    let mut curl = Command::new("curl")
        .args(["-sSN", "--max-time", "60", "-H", &auth])
        .arg(format!("{}/v1/rooms/default/stream", server.public))
        .stdout(Stdio::piped())
        .spawn()
        .expect("curl is needed for this test");
    soon("the connection", || {
        let rooms = server.operate("GET", "/admin/v1/rooms/default", "").json();
        (rooms["connected"] == 1).then_some(())
    });
    let said = server.stop();
    let mut heard = String::new();
    curl.stdout.take().expect("piped").read_to_string(&mut heard).expect("text");
    let _ = curl.wait();
    assert!(heard.contains(r#"{"type":"bye","reason":"drain"}"#), "{heard}");
    assert!(said.contains("connections served"), "{said}");
    assert!(said.contains("on disk"), "{said}");
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let mut server = Instance::start();
    let joined = server.join(7);
    let token = joined["token"].as_str().expect("a token").to_owned();
    server.kill_and_start_again();
    let found = server.status(&token);
    assert_eq!((&found["ticket"], &found["position"]), (&joined["ticket"], &1.into()));
    assert!(found["version"].as_u64() >= joined["version"].as_u64());
}
