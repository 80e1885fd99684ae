//! Join, admission, checkout, next; and departures with their reasons.

use serde_json::{Value, json};

use crate::instance::{Instance, KEY, curl, soon};
use crate::parts::{Kafka, Nats};
use crate::shop::Shop;

/// One may be inside; who is done is out at once, because passes are short.
const SALE: &str = r#"{"queue_all":true,"rate":"10/s","max_active":1,"claim":"on_admission",
    "pass_life":"1s","pass_leeway":"0s","keep_user_id":true,"heartbeat_timeout":"60s"}"#;

pub fn join(server: &Instance, user: &str) -> String {
    joins(server, user)["ticket"].as_str().expect("an id").to_owned()
}

pub fn joins(server: &Instance, user: &str) -> Value {
    let url = format!("{}/v1/rooms/sale/join", server.public);
    let (key, body) = (format!("X-Api-Key: {KEY}"), json!({ "user_id": user }).to_string());
    let json = "Content-Type: application/json";
    let got = curl(&["-X", "POST", &url, "-H", &key, "-H", json, "-d", &body]);
    assert_eq!(got.status, 201, "{got:?}");
    got.json()
}

fn status(server: &Instance, ticket: &str) -> String {
    let got = server.operate("GET", &format!("/admin/v1/rooms/sale/tickets/{ticket}"), "");
    got.json()["status"].as_str().unwrap_or_else(|| panic!("{got:?}")).to_owned()
}

pub fn opens(server: &Instance) {
    let got = server.operate("PUT", "/admin/v1/rooms/sale", SALE);
    assert!(got.status < 300, "{got:?}");
}

/// A command of ours against the server.
pub fn waitroom(server: &Instance, words: &[&str]) -> String {
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(words)
        .env("WAITROOM_SERVER", &server.admin)
        .env("WAITROOM_ADMIN_KEY", KEY)
        .output()
        .expect("the binary was built with this test");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{words:?}: {said}");
    String::from_utf8(out.stdout).expect("text")
}

#[test]
fn the_way_round_on_nats() {
    let nats = Nats::start();
    let server = Instance::with(&[("WAITROOM_EVENTS_NATS_SERVERS", &nats.url())]);
    opens(&server);
    let mut shop = Shop::open("nats", &nats.url(), &server);
    let (ana, bo) = (join(&server, "ana"), join(&server, "bo"));
    let about = |kind: &'static str, ticket: &str| {
        let ticket = ticket.to_owned();
        move |it: &Value| it["body"]["type"] == kind && it["body"]["data"]["position_id"] == *ticket
    };
    let enqueued = shop.reads("bo is in line", about("position.enqueued", &bo));
    assert_eq!(enqueued["topic"], "waitingroom.position.enqueued.v1");
    assert_eq!(enqueued["body"]["data"]["user_id"], "bo");
    assert_eq!(enqueued["headers"]["Nats-Msg-Id"], enqueued["body"]["id"]);
    let admitted = shop.reads("ana is let in", about("position.admitted", &ana));
    assert_eq!(admitted["claims"]["session_id"], *ana, "the pass verifies against the JWKS");
    assert_eq!(admitted["claims"]["event_id"], "sale");
    shop.reads("her session", about("session.started", &ana));
    assert_eq!(status(&server, &bo), "waiting");
    shop.says("CHECKOUT_COMPLETED", &json!({ "session_id": ana, "event_id": "sale" }));
    soon("ana is done", || (status(&server, &ana) == "completed").then_some(()));
    let over = shop.reads("the end of it", about("session.terminated", &ana));
    assert_eq!(over["body"]["data"]["ending"], "completed");
    shop.reads("bo is next", about("position.admitted", &bo));
    // The figures know of it.
    let key = format!("X-Api-Key: {KEY}");
    let page = curl(&[&format!("{}/metrics", server.admin), "-H", &key]).body;
    assert!(
        page.contains(r#"waitroom_checkouts_total{source="nats",outcome="ended"} 1"#),
        "{page}"
    );
    assert!(page.contains(r#"waitroom_events_failures_total{sink="nats"} 0"#), "{page}");
    // And so do the operators' commands.
    let status = waitroom(&server, &["events", "status"]);
    assert!(status.starts_with("nats: ") && status.contains("sale: at event "), "{status}");
    let told = waitroom(&server, &["events", "replay", "sale", "nats", "--from", "1"]);
    assert!(told.contains("from event 1 again"), "{told}");
    let audit = server.operate("GET", "/admin/v1/audit?room=sale", "").body;
    assert_eq!(audit.matches(r#""action":"replay""#).count(), 1, "{audit}");
    server.stop();
}

#[test]
fn an_instance_says_on_nats_how_it_is_what_is_wrong_and_what_it_counts() {
    let nats = Nats::start();
    // A database that nobody runs is what is wrong.
    let server = Instance::with(&[
        ("WAITROOM_EVENTS_NATS_SERVERS", &nats.url()),
        ("WAITROOM_EVENTS_NATS_SYSTEM_EVERY", "1s"),
        ("WAITROOM_EVENTS_POSTGRES_URL", "postgres://waitroom@127.0.0.1:1/waitroom"),
    ]);
    opens(&server);
    let shop = Shop::open("nats", &nats.url(), &server);
    join(&server, "ana");
    join(&server, "bo");
    let of = |kind: &'static str| move |it: &Value| it["body"]["type"] == kind;
    let health = shop.reads("that it is well", of("system.health"));
    assert_eq!(health["topic"], "waitingroom.system.health.v1");
    assert_eq!(health["body"]["data"]["status"], "ready");
    assert_eq!(health["body"]["queue_id"], Value::Null);
    assert_eq!(health["headers"]["Nats-Msg-Id"], health["body"]["id"]);
    assert_eq!(health["headers"]["ce-type"], "waitingroom.system.health.v1");
    let error = shop.reads("what is wrong", of("system.error"));
    let data = &error["body"]["data"];
    assert_eq!(data["sink"], "postgres");
    assert_eq!(data["state"], "raised");
    assert_eq!(data["instance"], health["body"]["data"]["instance"]);
    let sale_has_two = |room: &Value| room["room"] == "sale" && room["joined_total"] == 2;
    let counted = shop.reads("two who joined", |it| {
        let rooms = it["body"]["data"]["rooms"].as_array();
        it["body"]["type"] == "system.metrics"
            && rooms.is_some_and(|it| it.iter().any(sale_has_two))
    });
    let sinks = counted["body"]["data"]["sinks"].as_array().expect("a list");
    let postgres = sinks.iter().find(|it| it["sink"] == "postgres").expect("it is told of");
    assert!(postgres["failures_total"].as_u64() > Some(0), "{postgres}");
    server.stop();
}

#[test]
fn the_way_round_on_kafka() {
    let kafka = Kafka::start();
    let server = Instance::with(&[("WAITROOM_EVENTS_KAFKA_BROKERS", &kafka.brokers())]);
    opens(&server);
    let mut shop = Shop::open("kafka", &kafka.brokers(), &server);
    let (ana, bo) = (join(&server, "ana"), join(&server, "bo"));
    let about = |topic: &'static str, ticket: &str| {
        let ticket = ticket.to_owned();
        move |it: &Value| it["topic"] == topic && it["body"]["session_id"] == *ticket
    };
    let joined = shop.reads("bo is in line", about("QUEUE_JOINED", &bo));
    assert_eq!(joined["headers"]["key"], "sale");
    assert_eq!(joined["body"]["user_id"], "bo");
    assert_eq!(joined["headers"]["timestamp"], joined["body"]["timestamp"]);
    let ready = shop.reads("ana is let in", about("QUEUE_READY", &ana));
    assert_eq!(ready["claims"]["session_id"], *ana, "the pass verifies against the JWKS");
    assert_eq!(ready["claims"]["user_id"], "ana");
    assert_eq!(status(&server, &bo), "waiting");
    shop.says("CHECKOUT_FAILED", &json!({ "session_id": ana, "event_id": "sale" }));
    soon("ana is out", || (status(&server, &ana) == "expired").then_some(()));
    shop.reads("bo is next", about("QUEUE_READY", &bo));
    // One who goes, one whom the operator sends away, and one who falls silent.
    let (cy, di) = (joins(&server, "cy"), join(&server, "di"));
    let token = format!("Authorization: Bearer {}", cy["token"].as_str().expect("a token"));
    let gone = server.post("/v1/rooms/sale/leave", &["-H", &token]);
    assert_eq!(gone.status, 200, "{gone:?}");
    let revoke = format!("/admin/v1/rooms/sale/tickets/{di}/revoke");
    let revoked = server.operate("POST", &revoke, "{}");
    assert!(revoked.status < 300, "{revoked:?}");
    let eve = join(&server, "eve");
    let hurry = r#"{"heartbeat_timeout":"3s"}"#;
    let hurried = server.operate("PATCH", "/admin/v1/rooms/sale", hurry);
    assert!(hurried.status < 300, "{hurried:?}");
    let cy = cy["ticket"].as_str().expect("an id").to_owned();
    for (who, reason) in [(&cy, "user_left"), (&di, "expired"), (&eve, "timeout")] {
        let left = shop.reads(reason, about("QUEUE_LEFT", who));
        assert_eq!(left["body"]["reason"], reason);
    }
    server.stop();
}
