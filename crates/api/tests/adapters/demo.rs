//! The single-room demo API.

use serde_json::{Value, json};
use waitroom_core::settings::{ClaimMode, DrawSettings};
use waitroom_core::{Command, Hold, Settings, Timestamp};

use crate::help::{OPERATOR, OWNER, Reply, Site, VIEWER, Wanted, actor, by_hand, claims};

async fn enqueue(site: &Site) -> (String, Value) {
    let reply = site.post("/enqueue", &[], "").await;
    let told = reply.expect(200);
    (reply.header("x-queue-token").expect("a token comes in the header").to_owned(), told)
}

async fn status(site: &Site, token: &str) -> Reply {
    site.post("/status", &[], &json!({ "token": token }).to_string()).await
}

#[tokio::test]
async fn an_enqueue_gives_a_place_and_a_token_in_the_header() {
    let site = Site::open().await;
    let (_, first) = enqueue(&site).await;
    let (token, second) = enqueue(&site).await;
    let expected = |place: u64| {
        json!({
            "in_queue": true, "position": place, "total_in_queue": place, "allowed": false,
            "wait_time_est_seconds": 0,
        })
    };
    assert_eq!((first, second), (expected(1), expected(2)), "exactly these fields");
    let claims = claims(&token);
    assert_eq!(claims["queue_id"], "default");
    let issued_s = claims["issued_at"].as_u64().expect("a number") / 1_000_000_000;
    assert!(issued_s.abs_diff(site.now_ms() / 1_000) < 60, "nanoseconds since 1970: {claims}");
    assert_eq!(claims["exp"].as_u64(), Some(issued_s + 300));
}

#[tokio::test]
async fn whoever_shows_a_token_has_a_place_already() {
    let site = Site::open().await;
    let (token, _) = enqueue(&site).await;
    let again = site.post("/enqueue", &[("X-Queue-Token", &token)], "").await.expect(200);
    assert_eq!((&again["position"], &again["total_in_queue"]), (&json!(1), &json!(1)));
    let other = site.post("/enqueue", &[("X-Queue-Token", "nonsense")], "").await.expect(200);
    assert_eq!(other["position"], 2);
}

#[tokio::test]
async fn a_position_falls_to_zero_and_then_there_is_a_target() {
    let site = Site::open().await;
    let (first, _) = enqueue(&site).await;
    let (second, _) = enqueue(&site).await;
    let reply = site.post("/admin/allow?n=1", &[OPERATOR], "").await;
    assert_eq!(reply.status, 200);
    let told = status(&site, &first).await.expect(200);
    assert_eq!((&told["allowed"], &told["position"]), (&json!(true), &json!(0)));
    assert_eq!((&told["in_queue"], &told["total_in_queue"]), (&json!(true), &json!(1)));
    let target = told["target_url"].as_str().expect("a target");
    assert!(target.starts_with("https://shop.example/sale?x=1&wr_pass=ey"), "{target}");
    let told = status(&site, &second).await.expect(200);
    assert_eq!((&told["allowed"], &told["position"]), (&json!(false), &json!(1)));
}

#[tokio::test]
async fn a_room_that_wants_a_claim_gets_one_before_the_target_is_told() {
    let settings = Settings { claim: ClaimMode::Explicit, ..by_hand() };
    let site = Site::with(Wanted::default(), settings).await;
    let (token, _) = enqueue(&site).await;
    let room = site.default_room();
    site.admit(&room, 1).await;
    assert_eq!(room.handle().board().state().counts().admitted, 1);
    let told = status(&site, &token).await.expect(200);
    assert!(told["target_url"].as_str().is_some_and(|it| it.contains("wr_pass=")), "{told}");
    let (board, _) = room.board_since(room.handle().committed()).await;
    assert_eq!((board.state().counts().admitted, board.state().counts().active), (0, 1));
}

#[tokio::test]
async fn an_empty_target_is_left_out() {
    let settings = Settings { target_url: String::new(), ..by_hand() };
    let site = Site::with(Wanted::default(), settings).await;
    let (token, _) = enqueue(&site).await;
    site.admit(&site.default_room(), 1).await;
    let told = status(&site, &token).await.expect(200);
    assert_eq!(told["allowed"], true);
    assert_eq!(told.get("target_url"), None);
}

#[tokio::test]
async fn before_a_draw_the_position_is_the_queue_s_length() {
    let site = Site::open().await;
    let starts_at = Some(Timestamp(site.now_ms() + 3_600_000));
    let draw = Some(DrawSettings { beacon: None });
    let settings = Settings { starts_at, draw, ..by_hand() };
    let site = Site::with(Wanted::default(), settings).await;
    let room = site.default_room();
    // Nobody can join before the draw is committed to, which is the room's first act.
    while room.handle().board().state().draw().commitment.is_none() {
        site.send(&room, Command::Release { tickets: Vec::new() }).await;
    }
    let (first, told) = enqueue(&site).await;
    assert_eq!((&told["position"], &told["total_in_queue"]), (&json!(1), &json!(1)));
    enqueue(&site).await;
    enqueue(&site).await;
    room.board_since(room.handle().committed()).await;
    let told = status(&site, &first).await.expect(200);
    assert_eq!((&told["position"], &told["total_in_queue"]), (&json!(3), &json!(3)));
}

#[tokio::test]
async fn who_is_not_in_the_queue_any_more_has_position_minus_one() {
    let site = Site::open().await;
    let (token, _) = enqueue(&site).await;
    site.pass_s(3_605).await;
    let told = status(&site, &token).await.expect(200);
    let gone = json!({
        "in_queue": false, "position": -1, "total_in_queue": 0, "allowed": false,
        "wait_time_est_seconds": 0,
    });
    assert_eq!(told, gone);
    // Long after that nothing else is known of it, and the answer is the same.
    site.pass_s(3_605).await;
    assert_eq!(status(&site, &token).await.expect(200), gone);
}

#[tokio::test]
async fn a_status_is_a_heartbeat_also_when_the_token_has_run_out() {
    let site = Site::open().await;
    let (mut token, _) = enqueue(&site).await;
    for _ in 0..4 {
        site.pass_s(1_800).await;
        let reply = status(&site, &token).await;
        assert_eq!(reply.expect(200)["position"], 1, "an hour of silence would cost the place");
        let fresh = reply.header("x-queue-token").expect("a fresh token").to_owned();
        assert_ne!(fresh, token);
        token = fresh;
    }
}

#[tokio::test]
async fn a_bad_token_is_401_and_bad_json_400() {
    let site = Site::open().await;
    let (token, _) = enqueue(&site).await;
    for bad in ["", "nonsense", "a.b.c", &token[..token.len() - 2]] {
        let problem = status(&site, bad).await.expect(401);
        assert_eq!(problem["code"], "token_invalid", "{bad}");
    }
    for bad in ["", "{", "[]", "{\"token\": 7}", "{}"] {
        let problem = site.post("/status", &[], bad).await.expect(400);
        assert_eq!(problem["code"], "bad_json", "{bad}");
    }
    let queue = site.enqueue("default").await;
    assert_eq!(status(&site, queue["token"].as_str().expect("text")).await.status, 401);
    assert_eq!(site.get("/enqueue", &[]).await.status, 405);
    assert_eq!(site.get("/status", &[]).await.status, 405);
}

#[tokio::test]
async fn allow_lets_in_the_next_who_wait_each_time_it_is_called() {
    let site = Site::open().await;
    let room = site.default_room();
    for _ in 0..25 {
        enqueue(&site).await;
    }
    let before_ns = u128::from(site.now_ms()) * 1_000_000;
    // Missing, empty and 0 mean ten; people already inside are not counted again.
    for (query, waiting) in [("?n=3", 22), ("", 12), ("?n=0", 2), ("?n=", 0), ("?n=5", 0)] {
        let reply = site.post(&format!("/admin/allow{query}"), &[OWNER], "").await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert!(reply.header("content-type").is_some_and(|it| it.starts_with("text/plain")));
        let ns = reply.body.strip_prefix("Allowed up to timestamp ").expect("these words");
        assert!(ns.parse::<u128>().expect("nanoseconds") >= before_ns);
        assert_eq!(room.handle().board().state().waiting(), waiting, "after {query:?}");
    }
    let problem = site.post("/admin/allow?n=-1", &[OWNER], "").await.expect(400);
    assert_eq!(problem["code"], "bad_request");
}

#[tokio::test]
async fn allow_needs_a_key_in_any_of_three_headers() {
    let site = Site::open().await;
    assert_eq!(site.post("/admin/allow", &[], "").await.expect(401)["code"], "api_key_missing");
    let wrong = site.post("/admin/allow", &[("X-Admin-Key", "guess")], "").await;
    assert_eq!(wrong.expect(401)["code"], "api_key_invalid");
    assert_eq!(site.post("/admin/allow", &[VIEWER], "").await.expect(403)["code"], "forbidden");
    let bearer = ("Authorization", "Bearer operator-key");
    for key in [OWNER, OPERATOR, bearer] {
        assert_eq!(site.post("/admin/allow", &[key], "").await.status, 200, "{key:?}");
    }
}

#[tokio::test]
async fn demo_mode_needs_no_key_but_overlooks_no_wrong_one() {
    let site = Site::with(Wanted { dev: true, ..Wanted::default() }, by_hand()).await;
    enqueue(&site).await;
    assert_eq!(site.post("/admin/allow", &[], "").await.status, 200);
    assert_eq!(site.default_room().handle().board().state().waiting(), 0);
    assert_eq!(site.post("/admin/allow", &[("X-Api-Key", "guess")], "").await.status, 401);
    // A page of some other site must not let people in through a developer's browser.
    let foreign = [("Origin", "https://elsewhere.example")];
    assert_eq!(site.post("/admin/allow", &foreign, "").await.expect(403)["code"], "origin_refused");
}

#[tokio::test]
async fn what_the_room_refuses_is_told_with_our_codes() {
    let site = Site::with(Wanted::default(), Settings { max_waiting: 1, ..by_hand() }).await;
    enqueue(&site).await;
    let full = site.post("/enqueue", &[], "").await;
    assert_eq!(full.expect(503)["code"], "queue_full");
    assert!(full.header("retry-after").is_some());
    let hold = Hold::Paused { reason: "Back at noon.".into() };
    site.send(&site.default_room(), Command::Hold { hold, by: actor() }).await;
    let paused = site.post("/admin/allow", &[OWNER], "").await.expect(409);
    assert_eq!((&paused["code"], &paused["detail"]), (&json!("paused"), &json!("Back at noon.")));
}

#[tokio::test]
async fn pages_that_the_room_allows_may_read_the_token() {
    let origin = "https://shop.example";
    let settings = Settings { allowed_origins: vec![origin.into()], ..by_hand() };
    let site = Site::with(Wanted::default(), settings).await;
    let asks = [("Origin", origin), ("Access-Control-Request-Method", "POST")];
    assert_eq!(site.ask("OPTIONS", "/enqueue", &asks, "").await.status, 204);
    let reply = site.post("/enqueue", &[("Origin", origin)], "").await;
    assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
    let exposed = reply.header("access-control-expose-headers").expect("some are exposed");
    assert!(exposed.contains("x-queue-token"));
}
