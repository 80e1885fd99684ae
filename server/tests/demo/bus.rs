//! The checkout loop over a real bus: the shop says on it how checkouts ended, and rooms hear it.

use crate::parts::{Kafka, Nats};
use crate::play::{Ended, Play};
use crate::story::everything_held;

fn came_round(ended: &Ended, name: &str) {
    everything_held(ended);
    let report = &ended.report;
    let number = |of: &str| report["bus"][of].as_u64().unwrap_or_else(|| panic!("{of}: {report}"));
    assert_eq!(report["bus"]["name"], name, "{report}");
    assert_eq!(number("published"), number("checkouts"), "{report}");
    // Every order ended its session by the bus and by nothing else: the shop sends no header.
    assert!(number("checkouts") >= report["bought"].as_u64().expect("a number"), "{report}");
    assert!(number("ended_sessions") >= 10 && number("strange") == 0, "{report}");
    assert!(number("events") > number("checkouts"), "the room told the bus more: {report}");
    let checks = report["checks"].as_array().expect("checks");
    let check = checks.iter().find(|it| it["name"] == "every_checkout_came_round");
    assert!(check.is_some_and(|it| it["held"] == true), "{report}");
}

const SALE: [&str; 5] = ["--fast", "--visitors", "100", "--seats", "40"];

#[test]
fn the_checkout_loop_is_closed_by_a_nats_server_of_the_demos_own() {
    let ended = Play::start(&[&SALE[..], &["--bus", "nats"]].concat()).end();
    came_round(&ended, "NATS");
}

#[test]
fn the_checkout_loop_is_closed_by_a_kafka_broker_that_runs_already() {
    let kafka = Kafka::start();
    let bus = format!("kafka={}", kafka.brokers());
    let ended = Play::start(&[&SALE[..], &["--bus", &bus]].concat()).end();
    came_round(&ended, "Kafka");
}

#[test]
fn a_bus_that_is_not_there_is_said_before_anything_starts() {
    // A server that was there a moment ago: its port is nobody's.
    let mut nats = Nats::start();
    nats.kill();
    let nobody = nats.url();
    let nobody = nobody.strip_prefix("nats://").expect("an address of NATS");
    for bus in [format!("nats=nats://{nobody}"), format!("kafka={nobody}")] {
        let (_, address) = bus.split_once('=').expect("a kind and an address");
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_waitroom"))
            .args(["demo", "--fast", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(["--bus", &bus])
            .output()
            .expect("the binary runs");
        let said = String::from_utf8_lossy(&out.stderr);
        let named = said.contains(&format!("the bus at {address}"));
        assert!(!out.status.success() && named, "{bus}: {said}");
    }
}
