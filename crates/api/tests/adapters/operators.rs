//! The queue API's operator routes.

use serde_json::{Value, json};

use crate::help::{OPERATOR, OWNER, Site, VIEWER, bearer, text};

const QUEUES: &str = "/api/v1/admin/queues";

fn spring() -> Value {
    json!({
        "id": "spring", "name": "Spring sale", "target_url": "https://shop.example/",
        "max_active_users": 50, "max_queue_size": 2, "admission_rate": 0,
        "session_timeout_seconds": 900, "heartbeat_interval_seconds": 20,
        "heartbeat_timeout_seconds": 60,
    })
}

#[tokio::test]
async fn a_queue_is_made_once() {
    let site = Site::open().await;
    let made = site.post(QUEUES, &[OWNER], &spring().to_string()).await.expect(201);
    for (field, value) in spring().as_object().expect("an object") {
        if field == "admission_rate" {
            assert_eq!(made[field].as_f64(), value.as_f64());
        } else {
            assert_eq!(&made[field], value, "{field}");
        }
    }
    assert_eq!(made["status"], "active");
    for field in ["created_at", "updated_at"] {
        waitroom_core::when::parse(text(&made, field)).expect("a moment");
    }
    let exists = site.post(QUEUES, &[OWNER], &spring().to_string()).await;
    let exists = exists.expect_error(409, "INVALID_REQUEST");
    assert_eq!(exists["error"]["details"]["reason"], "room_exists");
    // It works as this interface expects: a place, its priorities, a pass without a claim.
    let enqueue = "/api/v1/queues/spring/enqueue";
    let told = site.post(enqueue, &[OPERATOR], "{\"priority\": 3}").await.expect(201);
    assert_eq!(told["position"], 1);
    assert_eq!(told["heartbeat_interval_seconds"], 20);
    site.enqueue("spring").await;
    site.post(enqueue, &[], "").await.expect_error(503, "QUEUE_FULL");
    let room = site.desk.room("spring").expect("it was made");
    site.admit(&room, 2).await;
    let token = bearer(&told["token"]);
    let status = site.get("/api/v1/queues/spring/status", &[("Authorization", &token)]).await;
    assert!(
        text(&status.expect(200), "redirect_url").starts_with("https://shop.example/?wr_pass=")
    );
}

#[tokio::test]
async fn of_two_who_make_the_same_queue_one_learns_that_it_exists() {
    let site = Site::open().await;
    let body = spring().to_string();
    let one = site.post(QUEUES, &[OWNER], &body);
    let two = site.post(QUEUES, &[OWNER], &body);
    let (one, two) = tokio::join!(one, two);
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409]);
}

#[tokio::test]
async fn a_mistake_makes_no_queue_and_is_told_by_its_field() {
    let site = Site::open().await;
    let cases = [
        (json!({ "name": "no id" }), "id"),
        (json!({ "id": "Not A Name" }), "id"),
        (json!({ "id": "spring", "max_active_users": 0 }), "max_active_users"),
        (json!({ "id": "spring", "admission_rate": -1 }), "admission_rate"),
        (json!({ "id": "spring", "heartbeat_timeout_seconds": 1 }), "heartbeat_timeout_seconds"),
        (json!({ "id": "spring", "session_timeout_seconds": 0 }), "session_timeout_seconds"),
    ];
    for (body, field) in cases {
        let refused = site.post(QUEUES, &[OWNER], &body.to_string()).await;
        let refused = refused.expect_error(400, "INVALID_REQUEST");
        assert_eq!(refused["error"]["details"]["errors"][0]["field"], field, "{refused}");
    }
    for bad in ["{", "[]", "{\"id\": 7}", "{\"id\": \"spring\", \"max_user\": 3}"] {
        site.post(QUEUES, &[OWNER], bad).await.expect_error(400, "INVALID_REQUEST");
    }
    assert!(site.desk.room("spring").is_err(), "nothing was left behind");
}

#[tokio::test]
async fn a_change_touches_only_what_it_names() {
    let site = Site::open().await;
    let before = site.post(QUEUES, &[OWNER], &spring().to_string()).await.expect(201);
    let path = format!("{QUEUES}/spring");
    let change = json!({ "max_queue_size": 9, "admission_rate": 2.5 }).to_string();
    let after = site.ask("PATCH", &path, &[OWNER], &change).await.expect(200);
    assert_eq!((&after["max_queue_size"], &after["admission_rate"]), (&json!(9), &json!(2.5)));
    for same in ["name", "target_url", "max_active_users", "heartbeat_timeout_seconds", "status"] {
        assert_eq!(after[same], before[same], "{same}");
    }
    let other = json!({ "id": "summer" }).to_string();
    site.ask("PATCH", &path, &[OWNER], &other).await.expect_error(400, "INVALID_REQUEST");
    let unknown = site.ask("PATCH", &format!("{QUEUES}/nowhere"), &[OWNER], "{}").await;
    unknown.expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_queue_can_be_paused_closed_for_maintenance_and_opened_again() {
    let site = Site::open().await;
    let path = format!("{QUEUES}/default");
    let set = async |status: &str| {
        let body = json!({ "status": status, "reason": "New tyres." }).to_string();
        site.ask("PATCH", &path, &[OWNER], &body).await.expect(200)["status"].clone()
    };
    let enqueue = "/api/v1/queues/default/enqueue";
    assert_eq!(set("paused").await, "paused");
    site.post(enqueue, &[], "").await.expect(201);
    assert_eq!(set("maintenance").await, "maintenance");
    let closed = site.post(enqueue, &[], "").await;
    let told = closed.expect_error(503, "MAINTENANCE_MODE");
    assert_eq!(told["error"]["message"], "New tyres.");
    assert!(closed.header("retry-after").is_some());
    assert_eq!(set("active").await, "active");
    site.post(enqueue, &[], "").await.expect(201);
    let wrong = site.ask("PATCH", &path, &[OWNER], "{\"status\": \"asleep\"}").await;
    wrong.expect_error(400, "INVALID_REQUEST");
}

#[tokio::test]
async fn the_figures_of_the_day_are_those_of_the_room() {
    let site = Site::open().await;
    let stats = async || {
        let reply = site.get(&format!("{QUEUES}/default/stats"), &[VIEWER]).await;
        reply.expect(200)
    };
    let empty = stats().await;
    assert_eq!(empty["counted_since"].as_str().map(str::len), Some(24));
    for _ in 0..6 {
        site.enqueue("default").await;
    }
    assert_eq!(stats().await["current_waiting"], 6);
    let room = site.default_room();
    site.admit(&room, 2).await;
    site.pass_s(3_605).await;
    // Four were silent for an hour; a new day may have begun meanwhile, and then they are its.
    let told = stats().await;
    assert_eq!((&told["current_waiting"], &told["current_active"]), (&json!(0), &json!(0)));
    let since = waitroom_core::when::parse(text(&told, "counted_since")).expect("a moment");
    if since == waitroom_core::when::parse(text(&empty, "counted_since")).expect("a moment") {
        assert_eq!(told["total_enqueued_today"], 6);
        assert_eq!(told["total_admitted_today"], 2);
        assert_eq!(told["total_expired_today"], 6, "four in line, two inside");
        assert_eq!(told["peak_queue_size"], 6);
        let mean = told["avg_wait_time_seconds"].as_f64().expect("a number");
        assert!((2_400.0..2_500.0).contains(&mean), "4 of 6 waited 3605 s, 2 no time: {mean}");
    }
    assert!(told["admission_rate_actual"].as_f64().is_some());
}

#[tokio::test]
async fn the_figures_of_now_count_everyone_inside() {
    let site = Site::open().await;
    for _ in 0..3 {
        site.enqueue("default").await;
    }
    site.admit(&site.default_room(), 1).await;
    let told = site.get(&format!("{QUEUES}/default/stats"), &[VIEWER]).await.expect(200);
    assert_eq!((&told["current_waiting"], &told["current_active"]), (&json!(2), &json!(1)));
}

#[tokio::test]
async fn an_ended_session_is_over_for_good_and_the_reason_is_kept() {
    let site = Site::open().await;
    let told = site.enqueue("default").await;
    let path = format!("/api/v1/admin/sessions/{}", text(&told, "position_id"));
    let reason = "{\"reason\": \"a robot\"}";
    let waits = site.ask("DELETE", &path, &[OPERATOR], reason).await;
    waits.expect_error(404, "NOT_FOUND");
    site.admit(&site.default_room(), 1).await;
    let ended = site.ask("DELETE", &path, &[OPERATOR], reason).await.expect(200);
    assert_eq!(
        (&ended["session_id"], &ended["status"]),
        (&told["position_id"], &json!("terminated"))
    );
    assert_eq!(ended["reason"], "a robot");
    let again = site.ask("DELETE", &path, &[OPERATOR], "").await.expect(200);
    assert_eq!(again["terminated_at"], ended["terminated_at"], "a repeat says the same");
    let token = bearer(&told["token"]);
    let status = "/api/v1/queues/default/status";
    let gone = site.get(status, &[("Authorization", &token)]).await;
    let gone = gone.expect_error(410, "SESSION_EXPIRED");
    assert_eq!(gone["error"]["details"]["reason"], "admin_revoked");
    let audited = site.audited();
    assert_eq!(audited.len(), 1);
    assert_eq!(audited[0].0, "operator revoke");
    assert_eq!(audited[0].1["after"]["reason"], "a robot");
}

#[tokio::test]
async fn every_operator_route_asks_for_a_key_of_its_role() {
    let site = Site::open().await;
    let told = site.enqueue("default").await;
    let session = format!("/api/v1/admin/sessions/{}", text(&told, "position_id"));
    let token = bearer(&told["token"]);
    let routes = [
        ("POST", QUEUES.to_owned(), Some(OPERATOR)),
        ("PATCH", format!("{QUEUES}/default"), Some(OPERATOR)),
        ("GET", format!("{QUEUES}/default/stats"), None),
        ("DELETE", session, Some(VIEWER)),
    ];
    for (method, path, too_low) in routes {
        site.ask(method, &path, &[], "").await.expect_error(401, "UNAUTHORIZED");
        let wrong = [("X-Admin-Key", "guess")];
        site.ask(method, &path, &wrong, "").await.expect_error(401, "UNAUTHORIZED");
        let visitor = [("Authorization", token.as_str())];
        site.ask(method, &path, &visitor, "").await.expect_error(401, "UNAUTHORIZED");
        if let Some(key) = too_low {
            site.ask(method, &path, &[key], "").await.expect_error(403, "FORBIDDEN");
        }
    }
}
