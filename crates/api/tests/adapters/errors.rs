//! What the queue API says when something cannot be done, and how often one may ask.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use waitroom_api::limits::{Limit, Limits};
use waitroom_core::{Command, FinishCause, Settings, Timestamp};

use crate::help::{OPERATOR, OWNER, Site, Wanted, actor, bearer, by_hand};

const ENQUEUE: &str = "/api/v1/queues/default/enqueue";
const STATUS: &str = "/api/v1/queues/default/status";
const HEARTBEAT: &str = "/api/v1/queues/default/heartbeat";

#[tokio::test]
async fn an_unknown_queue_or_route_is_404() {
    let site = Site::open().await;
    for (method, path) in [
        ("POST", "/api/v1/queues/nowhere/enqueue"),
        ("GET", "/api/v1/queues/nowhere/status"),
        ("POST", "/api/v1/queues/nowhere/heartbeat"),
        ("DELETE", "/api/v1/queues/nowhere/position"),
        ("GET", "/api/v1/admin/queues/nowhere/stats"),
        ("GET", "/ws/queues/nowhere"),
        ("GET", "/api/v1/"),
        ("GET", "/api/v1/queues"),
        ("GET", "/api/v1/queues/default"),
        ("GET", "/api/v1/queues/default/status/more"),
    ] {
        site.ask(method, path, &[OWNER], "").await.expect_error(404, "NOT_FOUND");
    }
}

#[tokio::test]
async fn a_wrong_method_is_405_and_hears_the_right_one() {
    let site = Site::open().await;
    for (method, path, right) in [
        ("GET", ENQUEUE, "POST"),
        ("POST", STATUS, "GET"),
        ("GET", "/api/v1/queues/default/position", "DELETE"),
        ("GET", "/api/v1/admin/queues", "POST"),
        ("DELETE", "/api/v1/admin/queues/default", "PATCH"),
    ] {
        let refused = site.ask(method, path, &[], "").await;
        refused.expect_error(405, "INVALID_REQUEST");
        assert_eq!(refused.header("allow"), Some(right), "{path}");
    }
}

#[tokio::test]
async fn a_bad_body_is_400() {
    let site = Site::open().await;
    for bad in [
        "{",
        "[1]",
        "\"text\"",
        "{\"priority\": 4}",
        "{\"priority\": -1}",
        "{\"priority\": \"high\"}",
        "{\"metadata\": 3}",
        "{\"user_id\": \"\"}",
        "\u{7f}\u{0}",
    ] {
        site.post(ENQUEUE, &[], bad).await.expect_error(400, "INVALID_REQUEST");
    }
    let long = json!({ "metadata": { "text": "x".repeat(2_000) } }).to_string();
    site.post(ENQUEUE, &[OPERATOR], &long).await.expect_error(400, "INVALID_REQUEST");
    site.post(ENQUEUE, &[], &long).await.expect(201);
    let huge = " ".repeat(20_000);
    site.post(ENQUEUE, &[], &huge).await.expect_error(413, "INVALID_REQUEST");
    let told = site.enqueue("default").await;
    let token = bearer(&told["token"]);
    let auth = [("Authorization", token.as_str())];
    site.post(HEARTBEAT, &auth, "{\"timestamp\"").await.expect_error(400, "INVALID_REQUEST");
    site.post(HEARTBEAT, &auth, "{\"client_id\": 7}").await.expect_error(400, "INVALID_REQUEST");
}

#[tokio::test]
async fn a_missing_foreign_or_altered_token_is_401() {
    let site = Site::open().await;
    site.room("other", by_hand()).await;
    let mine = site.enqueue("default").await;
    let theirs = site.enqueue("other").await;
    let mut bad = vec!["Bearer x".to_owned(), "Basic abc".to_owned(), bearer(&theirs["token"])];
    let good = bearer(&mine["token"]);
    // A changed letter in each part of it. The last letter carries unused bits, so not that one.
    for at in [8, good.len() / 2, good.len() - 3] {
        let mut text = good.clone().into_bytes();
        text[at] = if text[at] == b'A' { b'B' } else { b'A' };
        bad.push(String::from_utf8(text).expect("ASCII"));
    }
    for (method, path) in
        [("GET", STATUS), ("POST", HEARTBEAT), ("DELETE", "/api/v1/queues/default/position")]
    {
        site.ask(method, path, &[], "").await.expect_error(401, "UNAUTHORIZED");
        for token in &bad {
            let reply = site.ask(method, path, &[("Authorization", token)], "").await;
            reply.expect_error(401, "UNAUTHORIZED");
        }
    }
    site.get(STATUS, &[("Authorization", &good)]).await.expect(200);
    site.post(ENQUEUE, &[("X-Api-Key", "guess")], "").await.expect_error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn a_sale_that_has_not_begun_or_is_over_takes_nobody() {
    let site = Site::open().await;
    let opens_at = Some(Timestamp(site.now_ms() + 3_600_000));
    site.room("early", Settings { opens_at, ..by_hand() }).await;
    let early = site.post("/api/v1/queues/early/enqueue", &[], "").await;
    let early = early.expect_error(503, "MAINTENANCE_MODE");
    assert_eq!(early["error"]["details"]["reason"], "not_open_yet");
    let told = site.enqueue("default").await;
    let finish =
        Command::Finish { cause: FinishCause::SoldOut, reason: "All gone.".into(), by: actor() };
    site.send(&site.default_room(), finish).await;
    let late = site.post(ENQUEUE, &[], "").await.expect_error(503, "MAINTENANCE_MODE");
    assert_eq!(late["error"]["message"], "All gone.");
    let token = bearer(&told["token"]);
    let closed = site.get(STATUS, &[("Authorization", &token)]).await;
    let closed = closed.expect_error(410, "POSITION_EXPIRED");
    assert_eq!(closed["error"]["details"]["reason"], "closed");
}

#[tokio::test]
async fn every_limit_is_told_before_and_when_it_is_reached() {
    let limit = |count| Some(Limit::a_minute(count));
    let limits = Limits {
        join: limit(3),
        status: limit(2),
        heartbeat: limit(1),
        session: limit(2),
        ..Limits::default()
    };
    let site = Site::with(Wanted { limits, ..Wanted::default() }, by_hand()).await;
    let mut told = json!(null);
    for left in ["2", "1", "0"] {
        let reply = site.post(ENQUEUE, &[], "").await;
        told = reply.expect(201);
        assert_eq!(reply.header("x-ratelimit-limit"), Some("3"));
        assert_eq!(reply.header("x-ratelimit-remaining"), Some(left));
        let reset: u64 = reply.header("x-ratelimit-reset").expect("it is told").parse().unwrap();
        assert!((0..=61).contains(&(reset - site.now_ms() / 1_000)));
    }
    let refused = site.post(ENQUEUE, &[], "").await;
    refused.expect_error(429, "RATE_LIMITED");
    assert_eq!(refused.header("x-ratelimit-remaining"), Some("0"));
    let wait: u64 = refused.header("retry-after").expect("when to come back").parse().unwrap();
    assert!((1..=20).contains(&wait));
    let room = site.default_room();
    let (board, _) = room.board_since(room.handle().committed()).await;
    assert_eq!(board.state().counts().joined, 3, "a refused one never came to the writer");
    // Another address has its own count, and a service has none.
    site.post(ENQUEUE, &[("X-Forwarded-For", "198.51.100.9")], "").await.expect(201);
    let service = site.post(ENQUEUE, &[OPERATOR], "").await;
    service.expect(201);
    assert_eq!(service.header("x-ratelimit-limit"), None);
    site.post("/enqueue", &[], "").await.expect(429);

    let token = bearer(&told["token"]);
    let auth = [("Authorization", token.as_str())];
    for (method, path, times) in [("GET", STATUS, 2), ("POST", HEARTBEAT, 1)] {
        for _ in 0..times {
            site.ask(method, path, &auth, "").await.expect(200);
        }
        let refused = site.ask(method, path, &auth, "").await;
        refused.expect_error(429, "RATE_LIMITED");
    }
    // A minute later all is forgiven.
    site.pass_s(61).await;
    site.get(STATUS, &auth).await.expect(200);
    site.post(ENQUEUE, &[], "").await.expect(201);
}

#[tokio::test]
async fn pages_of_other_sites_are_refused_unless_the_room_knows_them() {
    let origin = "https://shop.example";
    let settings = Settings { allowed_origins: vec![origin.into()], ..by_hand() };
    let site = Site::with(Wanted::default(), settings).await;
    let foreign = [("Origin", "https://elsewhere.example")];
    site.post(ENQUEUE, &foreign, "").await.expect_error(403, "FORBIDDEN");
    let reply = site.post(ENQUEUE, &[("Origin", origin)], "").await;
    let told = reply.expect(201);
    assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
    for (path, method) in [(STATUS, "GET"), ("/api/v1/queues/default/position", "DELETE")] {
        let asks = [("Origin", origin), ("Access-Control-Request-Method", method)];
        let preflight = site.ask("OPTIONS", path, &asks, "").await;
        assert_eq!(preflight.status, 204);
        assert!(
            preflight.header("access-control-allow-methods").is_some_and(|it| it.contains(method))
        );
    }
    site.admit(&site.default_room(), 1).await;
    let session = format!("/api/v1/sessions/{}", told["position_id"].as_str().expect("text"));
    let token = bearer(&told["token"]);
    let headers = [("Origin", origin), ("Authorization", token.as_str())];
    let reply = site.get(&session, &headers).await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, Some(origin)));
}

/// Texts as a hostile client would send them: nonsense, and things that look right.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,60}",
        "eyJ[A-Za-z0-9_-]{0,40}\\.[A-Za-z0-9_-]{0,40}\\.[A-Za-z0-9_-]{0,40}",
        "\\{\"(priority|user_id|metadata|timestamp|client_id|token|id|status)\": ?[ -~]{0,20}\\}",
        Just("{\"metadata\":".repeat(300)),
        Just("[".repeat(5_000)),
    ]
}

#[test]
fn whatever_is_sent_the_answer_is_one_of_the_contract() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let site = runtime.block_on(Site::open());
    let told = runtime.block_on(site.enqueue("default"));
    let good = bearer(&told["token"]);
    let session = format!("/api/v1/sessions/{}/activity", told["position_id"].as_str().unwrap());
    let mut runner = TestRunner::new(Config::with_cases(48));
    let given = (hostile(), hostile(), any::<bool>());
    let ran = runner.run(&given, |(token, body, holds)| {
        let token = if holds { good.clone() } else { format!("Bearer {token}") };
        let headers = [("Authorization", token.trim())];
        for (method, path) in [
            ("POST", ENQUEUE),
            ("GET", STATUS),
            ("POST", HEARTBEAT),
            ("POST", session.as_str()),
            ("POST", "/api/v1/admin/queues"),
            ("PATCH", "/api/v1/admin/queues/default"),
            ("POST", "/status"),
        ] {
            let reply = runtime.block_on(site.ask(method, path, &headers, &body));
            prop_assert!(reply.status < 500, "{method} {path}: {reply:?}");
            if reply.status >= 400 && path.starts_with("/api") {
                prop_assert!(reply.json()["error"]["code"].is_string(), "{reply:?}");
            }
        }
        Ok(())
    });
    ran.expect("every answer is well-formed");
}
