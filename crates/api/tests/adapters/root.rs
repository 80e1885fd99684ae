//! `/health` and `/metrics`.

use serde_json::json;
use waitroom_core::Settings;
use waitroom_core::settings::PublicBoardMode;

use crate::help::{Site, VIEWER, Wanted, by_hand};

#[tokio::test]
async fn health_is_well_until_the_instance_drains() {
    let site = Site::open().await;
    let well = site.get("/health", &[]).await.expect(200);
    assert_eq!((&well["status"], &well["queues"]), (&json!("ok"), &json!(1)));
    let _ = site.desk.draining.send(true);
    assert_eq!(site.get("/health", &[]).await.expect(503)["status"], "draining");
    assert_eq!(site.post("/health", &[], "").await.status, 405);
}

#[tokio::test]
async fn ready_says_why_it_is_not() {
    let site = Site::open().await;
    assert_eq!(site.get("/health/live", &[]).await.expect(200)["status"], "live");
    assert_eq!(site.get("/health/ready", &[]).await.expect(200)["status"], "ready");
    let _ = site.desk.draining.send(true);
    let told = site.get("/health/ready", &[]).await.expect(503);
    let because = json!(["this instance drains; send visitors elsewhere"]);
    assert_eq!((&told["status"], &told["because"]), (&json!("not_ready"), &because));
    let live = site.get("/health/live", &[]).await.expect(200);
    assert_eq!(live["status"], "live", "it drains, and lives");
}

#[tokio::test]
async fn metrics_have_a_line_of_each_kind_for_every_room() {
    let site = Site::open().await;
    for _ in 0..3 {
        site.enqueue("default").await;
    }
    site.admit(&site.default_room(), 1).await;
    let reply = site.get("/metrics", &[]).await;
    assert_eq!(reply.status, 200);
    assert!(reply.header("content-type").is_some_and(|it| it.starts_with("text/plain; version=0")));
    for line in [
        "# TYPE waitroom_waiting gauge",
        "waitroom_waiting{room=\"default\"} 2",
        "waitroom_admitted{room=\"default\"} 0",
        "waitroom_active{room=\"default\"} 1",
        "waitroom_connections{room=\"default\"} 0",
        "waitroom_joined_total{room=\"default\"} 3",
        "waitroom_admissions_total{room=\"default\"} 1",
    ] {
        assert!(reply.body.lines().any(|it| it == line), "{line} is not in {}", reply.body);
    }
}

#[tokio::test]
async fn a_room_that_keeps_its_length_to_itself_is_in_nobody_else_s_metrics() {
    let secret = Settings { public_board: PublicBoardMode::Off, ..by_hand() };
    let site = Site::with(Wanted::default(), secret.clone()).await;
    assert!(!site.get("/metrics", &[]).await.body.contains("default"));
    assert!(site.get("/metrics", &[VIEWER]).await.body.contains("{room=\"default\"}"));
    let dev = Site::with(Wanted { dev: true, ..Wanted::default() }, secret).await;
    assert!(dev.get("/metrics", &[]).await.body.contains("{room=\"default\"}"));
}
