//! Webhooks of the real binary, received by a Python program that checks every signature with the
//! reference library.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use serde_json::Value;

use crate::instance::{Instance, KEY, curl, soon};
use crate::parts::scratch;
use crate::round_trip::{join, opens, waitroom};
use crate::shop::Program;

/// The receiver's own, and the one that will follow it.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEXT: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

struct Receiver {
    program: Program,
    folder: PathBuf,
    plain: u64,
    secure: u64,
}

impl Receiver {
    fn start() -> Receiver {
        let folder = scratch("hook");
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a pair");
        let [cert, key] = ["cert.pem", "key.pem"].map(|it| folder.join(it));
        fs::write(&cert, made.cert.pem()).expect("a file");
        fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
        // The secret is being changed: the receiver still has the old one.
        fs::write(folder.join("secret"), format!("{NEXT}\n{SECRET}\n")).expect("a file");
        let [cert, key] = [cert, key].map(|it| it.display().to_string());
        let program = Program::start("hook.py", &[SECRET, &cert, &key]);
        let ports = program.reads("its ports", |it| it["plain"].is_u64());
        let port = |name: &str| ports[name].as_u64().expect("a port");
        Receiver { program, folder, plain: port("plain"), secure: port("secure") }
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// A message about a user at this path.
    fn reads(&self, path: &'static str, kind: &'static str, user: &str) -> Value {
        let fits = |it: &Value| {
            let body = &it["body"];
            it["path"] == path && body["type"] == kind && body["data"]["user_id"] == user
        };
        self.program.reads(&format!("{kind} of {user} at {path}"), fits)
    }
}

#[test]
fn a_webhook_is_signed_and_what_it_refuses_can_be_looked_at_and_sent_again() {
    let mut receiver = Receiver::start();
    let server = Instance::with(&[
        ("WAITROOM_EVENTS_WEBHOOK_URL", &format!("http://127.0.0.1:{}/picky", receiver.plain)),
        ("WAITROOM_EVENTS_WEBHOOK_SECRET_FILE", &receiver.file("secret")),
        ("WAITROOM_EVENTS_WEBHOOK_ALLOW_PRIVATE", "true"),
        ("WAITROOM_EVENTS_WEBHOOK_EVENTS", "position.enqueued,session.*"),
    ]);
    opens(&server);
    let ana = join(&server, "ana");
    join(&server, "bo");
    join(&server, "cy");
    let enqueued = receiver.reads("/picky", "position.enqueued", "ana");
    assert_eq!(enqueued["verified"], true, "the reference library takes the signature");
    assert_eq!(enqueued["headers"]["webhook-id"], enqueued["body"]["id"]);
    assert_eq!(enqueued["headers"]["ce-type"], "waitingroom.position.enqueued.v1");
    assert_eq!(enqueued["body"]["data"]["position_id"], *ana);
    // The one that was refused holds nobody up.
    receiver.reads("/picky", "position.enqueued", "cy");
    let dead = soon("a dead letter", || {
        let listed = waitroom(&server, &["events", "dead", "list"]);
        listed.contains("422").then_some(listed)
    });
    let letter = dead.split_whitespace().nth(1).expect("its name").to_owned();
    assert!(dead.starts_with("sale webhook.") && !dead.contains("\"bo\""), "{dead}");
    let shown = waitroom(&server, &["events", "dead", "show", "sale", &letter]);
    assert!(shown.contains(r#""user_id": "bo""#), "{shown}");
    let page = curl(&[&format!("{}/metrics", server.admin), "-H", &format!("X-Api-Key: {KEY}")]);
    assert!(page.body.contains(r#"waitroom_events_dead_letters{sink="webhook"} 1"#), "{page:?}");
    // It relents, and the letter goes.
    receiver.program.says("relent");
    let again = soon("the letter is taken", || {
        let path = format!("/admin/v1/rooms/sale/dead-letters/{letter}/replay");
        let got = server.operate("POST", &path, "{}");
        (got.status == 200).then_some(got)
    });
    assert_eq!(again.json()["taken"], true);
    assert!(waitroom(&server, &["events", "dead", "list"]).contains("no dead letters"));
    let audit = server.operate("GET", "/admin/v1/audit?room=sale", "").body;
    assert_eq!(audit.matches(r#""action":"replay_dead_letter""#).count(), 1, "{audit}");
    // Nothing came that was not asked for, and nothing that did not verify.
    let all = receiver.program.read();
    let wanted = |it: &Value| {
        let kind = it["body"]["type"].as_str().unwrap_or_default();
        kind == "position.enqueued" || kind.starts_with("session.")
    };
    assert!(all.iter().skip(1).all(|it| wanted(it) && it["verified"] == true), "{all:?}");
    server.stop();
}

#[test]
fn a_private_a_redirecting_and_a_slow_endpoint_are_handled_as_written_and_hold_nobody_up() {
    let receiver = Receiver::start();
    let (plain, secure) = (receiver.plain, receiver.secure);
    let (secret, ca) = (receiver.file("secret"), receiver.file("cert.pem"));
    let config = receiver.folder.join("waitroom.toml");
    let mut file = fs::File::create(&config).expect("a file");
    for (name, url, more) in [
        ("private", format!("https://localhost:{secure}/private"), format!("ca = {ca:?}")),
        (
            "redirecting",
            format!("http://127.0.0.1:{plain}/redirect"),
            "allow_private = true".into(),
        ),
        (
            "slow",
            format!("http://127.0.0.1:{plain}/slow"),
            "allow_private = true\ntimeout = \"300ms\"".into(),
        ),
        (
            "good",
            format!("https://localhost:{secure}/ok"),
            format!("allow_private = true\nca = {ca:?}"),
        ),
        // Nobody vouches for its certificate.
        ("unknown", format!("https://localhost:{secure}/unknown"), "allow_private = true".into()),
    ] {
        let table = format!("[webhooks.{name}]\nurl = {url:?}\nsecret_file = {secret:?}\n{more}\n");
        file.write_all(table.as_bytes()).expect("written");
    }
    let server = Instance::asked(&["--config", config.to_str().expect("a plain path")], &[]);
    opens(&server);
    join(&server, "ana");
    // Over TLS, with a certificate that the operator's file vouches for.
    let good = receiver.reads("/ok", "position.enqueued", "ana");
    assert_eq!(good["verified"], true);
    for (name, trouble) in [
        ("webhook-private", "which is not public"),
        ("webhook-redirecting", "302; redirects are not followed"),
        ("webhook-slow", "does not answer in time"),
        ("webhook-unknown", "no TLS with localhost"),
    ] {
        soon(name, || {
            let sinks = server.operate("GET", "/admin/v1/events", "").json();
            let sinks = sinks["sinks"].as_array().cloned().unwrap_or_default();
            let sink = sinks.into_iter().find(|it| it["sink"] == name)?;
            sink["trouble"].as_str()?.contains(trouble).then_some(())
        });
    }
    let status = waitroom(&server, &["events", "status"]);
    assert!(status.contains("webhook-slow: 0 sent"), "{status}");
    // It came back to the redirecting one, and never went where that pointed.
    let all = receiver.program.read();
    let at = |path: &str| all.iter().filter(|it| it["path"] == path).count();
    assert!(at("/redirect") > 0);
    assert_eq!([at("/trap"), at("/private"), at("/unknown")], [0; 3]);
    server.stop();
}
