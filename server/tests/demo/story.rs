//! The story is told to its end, on both databases, and cut short in order.

use crate::play::{Ended, Play};
use crate::postgres;

/// What must be true of every demo, however it ended.
pub fn everything_held(ended: &Ended) {
    let report = &ended.report;
    assert_eq!(ended.exit, Some(0), "{ended:?}");
    assert_eq!(report["kept"], true, "{ended:?}");
    assert_eq!(report["oversold"], 0, "{report}");
    assert_eq!(report["orders_without_a_pass"], 0, "{report}");
    let checks = report["checks"].as_array().expect("checks");
    for name in ["no_seat_sold_twice", "every_buyer_held_a_pass", "no_bot_got_in", "promises_kept"]
    {
        let check = checks.iter().find(|it| it["name"] == name);
        assert!(check.is_some_and(|it| it["held"] == true), "{name}: {report}");
    }
}

#[test]
fn a_small_sale_is_told_to_its_end_and_everything_held() {
    let ended = Play::start(&["--fast", "--visitors", "150", "--seats", "60"]).end();
    everything_held(&ended);
    let report = &ended.report;
    let number = |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{name}: {report}"));
    // A basket that nobody paid for may come back when the last buyer has gone home.
    assert!(number("sold") >= 45, "with so many people nearly every seat goes: {report}");
    assert!(number("bought") >= 12, "at most four each: {report}");
    assert!(number("admitted") >= number("bought"), "{report}");
    assert!(report["waits"]["p95_ms"].as_u64() >= report["waits"]["p50_ms"].as_u64(), "{report}");
    for bot in ["gatecrasher", "line_jumper", "forger"] {
        let tries = &report["bots"][bot];
        assert!(tries["tried"].as_u64() > Some(3), "{bot}: {report}");
        assert_eq!(tries["tried"], tries["refused"], "{bot}: {report}");
    }
    let told = ended.err.contains("sold out");
    // The view looks once a second, and may miss a last seat that goes with the last buyer.
    assert!(!told || number("sold") == 60, "the live view tells the truth: {}", ended.err);
}

#[test]
fn the_stock_can_be_in_postgresql_and_nothing_is_left_behind() {
    let server = postgres::Server::start();
    let ended =
        Play::start(&["--fast", "--visitors", "80", "--seats", "30", "--stock", &server.url]).end();
    everything_held(&ended);
    assert!(ended.report["sold"].as_u64() >= Some(20), "{ended:?}");
    let left = crate::wait_for(async {
        let connected = tokio_postgres::connect(&server.url, tokio_postgres::NoTls).await;
        let (client, driver) = connected.expect("it answers");
        tokio::spawn(driver);
        let query = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'waitroom_demo%'";
        client.query_one(query, &[]).await.expect("it answers").get::<_, i64>(0)
    });
    assert_eq!(left, 0, "the schema is gone");
}

#[test]
fn ctrl_c_ends_it_in_order_and_shows_the_report() {
    let play = Play::start(&["--visitors", "200", "--seats", "100", "--quiet"]);
    // Somebody looks at the page first: it is up, and everybody waits for a turn.
    let page = std::process::Command::new("curl")
        .args(["-s", "-o", "/dev/null", "-w", "%{http_code}", &format!("http://{}/", play.public)])
        .output()
        .expect("curl runs");
    assert_eq!(String::from_utf8_lossy(&page.stdout), "503", "the waiting page");
    play.interrupt();
    let ended = play.end();
    everything_held(&ended);
    assert_eq!(ended.report["cut_short"], true);
}

#[test]
fn a_database_that_is_not_there_is_told_before_anything_starts() {
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_waitroom"))
        .args(["demo", "--fast", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .args(["--stock", "host=/nonexistent user=nobody"])
        .output()
        .expect("the binary starts");
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(69), "{said}");
    assert!(said.contains("nothing was started"), "{said}");
}
