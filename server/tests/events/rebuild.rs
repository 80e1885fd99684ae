//! A server is lost with its disk, and its room comes back from a mirror: the same people in the
//! same places, and nobody let in before an operator says so.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::database::Postgres;
use crate::instance::{Instance, KEY, curl, soon};
use crate::parts::{Kafka, Nats, scratch};

const MASTER: (&str, &str) =
    ("WAITROOM_MASTER_KEY", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff");

const SALE: &str = r#"{"queue_all":true,"rate":"10/s","max_active":1,"claim":"on_admission",
    "heartbeat_timeout":"1h"}"#;

fn join(server: &Instance) -> Value {
    let url = format!("{}/v1/rooms/sale/join", server.public);
    let got = curl(&["-X", "POST", &url, "-H", &format!("X-Api-Key: {KEY}")]);
    assert_eq!(got.status, 201, "{got:?}");
    got.json()
}

fn status(server: &Instance, token: &Value) -> Value {
    let bearer = format!("Authorization: Bearer {}", token.as_str().expect("a token"));
    let got = server.get("/v1/rooms/sale/status", &["-H", &bearer]);
    assert_eq!(got.status, 200, "{got:?}");
    got.json()
}

fn rebuild(from: &str, data: &Path) -> Output {
    rebuild_room("sale", from, data)
}

fn rebuild_room(room: &str, from: &str, data: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(["rebuild", room, "--json", "--from", from, "--data"])
        .arg(data)
        .envs([MASTER])
        .output()
        .expect("the binary was built with this test")
}

/// Runs a sale that is mirrored to `to`; returns who was in it, and the head that the mirror holds.
fn a_sale_that_is_lost(to: &str) -> (Vec<Value>, u64) {
    let server = Instance::with(&[
        MASTER,
        ("WAITROOM_EVENTS_MIRROR_TO", to),
        ("WAITROOM_EVENTS_MIRROR_DIGEST_EVERY", "1s"),
    ]);
    let made = server.operate("PUT", "/admin/v1/rooms/sale", SALE);
    assert!(made.status < 300, "{made:?}");
    let people: Vec<Value> = (0..6).map(|_| join(&server)).collect();
    soon("the first is let in", || {
        (status(&server, &people[0]["token"])["status"] == "active").then_some(())
    });
    let head = soon("the mirror holds all of it", || {
        let events = server.operate("GET", "/admin/v1/events", "").json();
        let sinks = events["sinks"].as_array().cloned().unwrap_or_default();
        let mirror = sinks.into_iter().find(|it| it["sink"] == "mirror")?;
        let rooms = mirror["rooms"].as_array().cloned().unwrap_or_default();
        let stands = |name: &str| {
            let room = rooms.iter().find(|it| it["room"] == name)?;
            (room["lag_events"] == 0).then(|| room["at"].as_u64().unwrap_or(0))
        };
        let (at, system) = (stands("sale")?, stands("_system")?);
        let newest = server.operate("GET", "/admin/v1/rooms/sale/log?limit=1", "").json();
        (newest["head"] == at && system > 0).then_some(at)
    });
    // The folder goes with it.
    server.stop();
    (people, head)
}

fn comes_back(from: &str) {
    let (people, head) = a_sale_that_is_lost(from);
    let data = scratch("rebuilt").join("data");
    let out = rebuild(from, &data);
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{said} {}", String::from_utf8_lossy(&out.stderr));
    let told: Value = serde_json::from_str(&said).expect("JSON");
    assert!(told["head"].as_u64() >= Some(head), "{told}");
    assert!(told["proved_at"].as_u64() > Some(0), "the source told its digest: {told}");
    assert_eq!(told["keys"], true, "{told}");
    // Nothing is left beside it, and a second time there is a room already.
    let left: Vec<PathBuf> = std::fs::read_dir(data.parent().expect("a folder"))
        .expect("readable")
        .map(|it| it.expect("an entry").path())
        .collect();
    assert_eq!(left, std::slice::from_ref(&data));
    assert_eq!(rebuild(from, &data).status.code(), Some(73));

    let folder = data.to_str().expect("a plain path");
    let report = waitroom(&["report", "sale", "--json", "--data", folder]);
    assert_eq!((&report["joined"], &report["admitted"]), (&json!(6), &json!(1)), "{report}");

    let server = Instance::on(data, &[], &[MASTER]);
    let room = server.operate("GET", "/admin/v1/rooms/sale", "").json();
    assert_eq!(room["status"], "paused", "{room}");
    for (place, person) in people.iter().enumerate() {
        let now = status(&server, &person["token"]);
        assert_eq!(now["ticket"], person["ticket"]);
        assert_eq!(now["position"], place, "one is inside, the others wait as before: {now}");
    }
    // A second one could go in now, and does not before somebody says so.
    let two = SALE.replace("\"max_active\":1", "\"max_active\":2");
    let wider = server.operate("PUT", "/admin/v1/rooms/sale", &two);
    assert!(wider.status < 300, "{wider:?}");
    assert_eq!(status(&server, &people[1]["token"])["status"], "waiting");
    let resumed = server.operate("POST", "/admin/v1/rooms/sale/resume", "{}");
    assert!(resumed.status < 300, "{resumed:?}");
    soon("the next is let in", || {
        (status(&server, &people[1]["token"])["status"] == "active").then_some(())
    });
    assert_eq!(status(&server, &people[2]["token"])["status"], "waiting");
    server.stop();
}

fn waitroom(words: &[&str]) -> Value {
    let out = Command::new(env!("CARGO_BIN_EXE_waitroom")).args(words).output();
    let out = out.expect("the binary was built with this test");
    assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_comes_from_the_tables_and_they_can_be_made_anew() {
    let postgres = Postgres::start().await;
    let address = postgres.address();
    let server = Instance::with(&[("WAITROOM_EVENTS_POSTGRES_URL", &address)]);
    let made = server.operate("PUT", "/admin/v1/rooms/sale", SALE);
    assert!(made.status < 300, "{made:?}");
    let people: Vec<Value> = (0..5).map(|_| join(&server)).collect();
    soon("the first is let in", || {
        (status(&server, &people[0]["token"])["status"] == "active").then_some(())
    });
    let client = postgres.client().await;
    let told = async |what: &str| {
        let until = std::time::Instant::now() + crate::instance::SOON;
        loop {
            let head = server.operate("GET", "/admin/v1/rooms/sale/log?limit=1", "").json();
            let look = "SELECT head FROM waitroom.rooms WHERE room = 'sale'";
            let row = client.query_opt(look, &[]).await.ok().flatten();
            let at = row.map(|row| row.get::<_, i64>(0)).filter(|at| head["head"] == *at);
            if let Some(at) = at {
                return at;
            }
            assert!(std::time::Instant::now() < until, "{what}: the tables stay behind");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    told("at first").await;
    let page = scratch("report").join("sale.html");
    let report = waitroom(&[
        "report",
        "sale",
        "--json",
        "--from",
        &address,
        "--html",
        page.to_str().expect("a plain path"),
    ]);
    assert_eq!((&report["joined"], &report["admitted"]), (&json!(5), &json!(1)), "{report}");
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.contains("5 people came") && !html.contains("<script"), "{html}");
    assert!(!html.contains("http://") && !html.contains("https://"), "it needs nothing else");
    // An id in the tables is the one that the visitor and the shop know.
    let known = "SELECT count(*) FROM waitroom.tickets WHERE id::text = $1";
    let id = people[3]["ticket"].as_str().expect("an id");
    assert_eq!(client.query_one(known, &[&id]).await.expect("a count").get::<_, i64>(0), 1);

    client.batch_execute("UPDATE waitroom.tickets SET status = 'lost'").await.expect("spoilt");
    let to = ["--server", &server.admin, "--key", KEY];
    let words = [&["events", "project", "sale", "--rebuild", "--json"][..], &to].concat();
    waitroom(&words);
    told("made anew").await;
    let lost = "SELECT count(*) FROM waitroom.tickets WHERE status = 'lost'";
    assert_eq!(client.query_one(lost, &[]).await.expect("a count").get::<_, i64>(0), 0);
    let again = waitroom(&["report", "sale", "--json", "--from", &address]);
    assert_eq!(again["joined"], report["joined"]);
    server.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_comes_back_from_postgres_and_not_from_a_mirror_that_was_meddled_with() {
    let postgres = Postgres::start().await;
    let address = postgres.address();
    comes_back(&address);

    let client = postgres.client().await;
    let heads = "SELECT head FROM waitroom.mirror WHERE room = 'sale' AND get_byte(piece, 1) = 66
                 ORDER BY number";
    let heads: Vec<i64> =
        client.query(heads, &[]).await.expect("rows").iter().map(|it| it.get(0)).collect();
    let gone = "DELETE FROM waitroom.mirror WHERE room = 'sale' AND head = $1";
    client.execute(gone, &[&heads[2]]).await.expect("deleted");
    let data = scratch("rebuilt").join("data");
    let out = rebuild(&address, &data);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    let told: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let said = told["error"]["said"].as_str().expect("words");
    assert!(said.contains(&format!("breaks after event {}", heads[1])), "{said}");
    assert!(!data.exists(), "no trace of it");

    // The installation's own log is under the same seal: a mirror of another one is no source.
    let other = "ff".repeat(32);
    let out = Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(["rebuild", "sale", "--json", "--from", &address, "--data"])
        .arg(&data)
        .env(MASTER.0, other)
        .output()
        .expect("the binary was built with this test");
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    let told: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let said = told["error"]["said"].as_str().expect("words");
    assert!(said.contains("breaks after event 0") && said.contains("master key"), "{said}");
    // Without any key nothing is believed, and none is made.
    let out = Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(["rebuild", "sale", "--json", "--from", &address, "--data"])
        .arg(&data)
        .env_remove(MASTER.0)
        .output()
        .expect("the binary was built with this test");
    let told: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(told["error"]["code"], "WR-2102", "{told}");
    assert!(!data.exists(), "no trace of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_without_its_keys_comes_back_only_where_that_is_wanted() {
    let postgres = Postgres::start().await;
    let address = postgres.address();
    let (people, _) = a_sale_that_is_lost(&address);
    let client = postgres.client().await;
    let gone = "DELETE FROM waitroom.mirror WHERE room = '_system'";
    assert!(client.execute(gone, &[]).await.expect("deleted") > 0);
    let data = scratch("rebuilt").join("data");
    let out = rebuild(&address, &data);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    let told: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(told["error"]["code"], "WR-2021", "{told}");
    assert!(!data.exists(), "no trace of it");

    let out = Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(["rebuild", "sale", "--without-system", "--json", "--from", &address, "--data"])
        .arg(&data)
        .envs([MASTER])
        .output()
        .expect("the binary was built with this test");
    let told: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!((&told["keys"], &told["keys_missing"]), (&json!(false), &json!(true)), "{told}");
    let folder = data.to_str().expect("a plain path");
    let report = waitroom(&["report", "sale", "--json", "--data", folder]);
    assert_eq!(report["joined"], json!(people.len()), "its history is there: {report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_comes_back_to_an_installation_only_where_that_has_its_keys() {
    let postgres = Postgres::start().await;
    let address = postgres.address();
    let (people, _) = a_sale_that_is_lost(&address);
    // Another installation, which never had the room: a copy of a folder that is in use.
    let theirs = scratch("theirs");
    let other = Instance::on(theirs.join("data"), &[], &[MASTER]);
    let folders = ["data", "copy"].map(|name| theirs.join(name));
    let copied = Command::new("cp").arg("-r").args(&folders).status();
    assert!(copied.expect("cp is there").success());
    other.stop();
    let out = rebuild(&address, &theirs.join("copy"));
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    let told: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(told["error"]["code"], "WR-2021", "{told}");
    let said = told["error"]["said"].as_str().expect("words");
    assert!(said.contains("does not know the room"), "{said}");
    let advice = told["error"]["do"].as_str().expect("words");
    assert!(advice.contains("--without-system"), "{advice}");
    let out = Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(["rebuild", "sale", "--without-system", "--json", "--from", &address, "--data"])
        .arg(theirs.join("copy"))
        .envs([MASTER])
        .output()
        .expect("the binary was built with this test");
    let told: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!((&told["keys"], &told["keys_missing"]), (&json!(false), &json!(true)), "{told}");

    // Its own one, which came back with another of its rooms, has them, whatever the mirror lost.
    let ours = scratch("rebuilt").join("data");
    let out = rebuild_room("default", &address, &ours);
    assert!(out.status.success(), "{out:?}");
    let client = postgres.client().await;
    let gone = "DELETE FROM waitroom.mirror WHERE room = '_system'";
    assert!(client.execute(gone, &[]).await.expect("deleted") > 0);
    let out = rebuild(&address, &ours);
    assert!(out.status.success(), "{out:?}");
    let told: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!((&told["keys"], &told["keys_missing"]), (&json!(false), &json!(false)), "{told}");
    let server = Instance::on(ours, &[], &[MASTER]);
    for (place, person) in people.iter().enumerate() {
        let now = status(&server, &person["token"]);
        assert_eq!((&now["ticket"], &now["position"]), (&person["ticket"], &json!(place)), "{now}");
    }
    server.stop();
}

#[test]
fn a_room_comes_back_from_nats() {
    let nats = Nats::start();
    comes_back(&nats.url());
}

#[test]
fn a_room_comes_back_from_kafka() {
    let kafka = Kafka::start();
    comes_back(&format!("kafka://{}", kafka.brokers()));
}
