//! The queue API's sessions.

use serde_json::{Value, json};
use waitroom_core::Settings;

use crate::help::{OPERATOR, OWNER, Site, VIEWER, Wanted, bearer, by_hand, text};

/// Somebody inside: the position, and the session that came of it.
async fn admitted(site: &Site, body: &str) -> (Value, Value) {
    let path = "/api/v1/queues/default/enqueue";
    let told = site.post(path, &[OPERATOR], body).await.expect(201);
    site.admit(&site.default_room(), 1).await;
    let auth = bearer(&told["token"]);
    let agent = ("User-Agent", "Mozilla/5.0 (somebody's phone)");
    let from = ("X-Forwarded-For", "203.0.113.77");
    let headers = [("Authorization", auth.as_str()), agent, from];
    let inside = site.get("/api/v1/queues/default/status", &headers).await.expect(200);
    (told, inside)
}

fn path(told: &Value) -> String {
    format!("/api/v1/sessions/{}", text(told, "position_id"))
}

#[tokio::test]
async fn a_session_is_shown_to_its_visitor_and_to_the_shop() {
    let site = Site::with(Wanted::default(), Settings { keep_user_id: true, ..by_hand() }).await;
    let (told, inside) = admitted(&site, "{\"user_id\": \"ana\"}").await;
    let (pass, token) = (bearer(&inside["session_token"]), bearer(&told["token"]));
    for auth in [("Authorization", pass.as_str()), ("Authorization", &token), VIEWER, OWNER] {
        let shown = site.get(&path(&told), &[auth]).await.expect(200);
        assert_eq!(shown["session_id"], told["position_id"]);
        assert_eq!((&shown["queue_id"], &shown["status"]), (&json!("default"), &json!("active")));
        assert_eq!(shown["page_views"], 0);
        assert_eq!(shown["expires_at"], inside["session_expires_at"]);
        assert_eq!(shown["client_address"], "203.0.113.0/24", "not the whole address");
        let agent = text(&shown, "user_agent");
        assert!(agent.len() == 16 && agent.bytes().all(|it| it.is_ascii_hexdigit()), "{agent}");
        for field in ["started_at", "last_seen"] {
            waitroom_core::when::parse(text(&shown, field)).expect("a moment");
        }
        let user = if auth.0 == "Authorization" { Value::Null } else { json!("ana") };
        assert_eq!(shown["user_id"], user, "a person's name is the shop's");
    }
}

#[tokio::test]
async fn activity_counts_pages_and_prolongs_the_session() {
    let site = Site::open().await;
    let (told, inside) = admitted(&site, "").await;
    let pass = bearer(&inside["session_token"]);
    let activity = format!("{}/activity", path(&told));
    let body = json!({ "action": "page_view", "page": "/cart", "timestamp": 1 }).to_string();
    let first = site.post(&activity, &[("Authorization", &pass)], &body).await.expect(200);
    assert_eq!(first["page_views"], 1);
    assert_eq!(first["expires_at"], inside["session_expires_at"], "no time has passed");
    site.pass_s(300).await;
    let second = site.post(&activity, &[("Authorization", &pass)], &body).await.expect(200);
    assert_eq!(second["page_views"], 2);
    let moment = |it: &Value| waitroom_core::when::parse(it.as_str().unwrap()).unwrap();
    assert!(moment(&second["expires_at"]) >= moment(&first["expires_at"]) + 300_000);
    assert!(text(&second, "session_token").starts_with("eyJ"));
    let shown = site.get(&path(&told), &[OWNER]).await.expect(200);
    assert_eq!((&shown["page_views"], &shown["expires_at"]), (&json!(2), &second["expires_at"]));
}

#[tokio::test]
async fn a_session_is_nobody_else_s() {
    let site = Site::open().await;
    let (told, inside) = admitted(&site, "").await;
    let (other, other_inside) = admitted(&site, "").await;
    let mine = path(&told);
    site.get(&mine, &[]).await.expect_error(401, "UNAUTHORIZED");
    for token in [&other["token"], &other_inside["session_token"], &json!("nonsense")] {
        let token = bearer(token);
        let reply = site.get(&mine, &[("Authorization", &token)]).await;
        reply.expect_error(401, "UNAUTHORIZED");
    }
    let guess = [("X-Admin-Key", "guess")];
    site.get(&mine, &guess).await.expect_error(401, "UNAUTHORIZED");
    let activity = format!("{mine}/activity");
    site.post(&activity, &[VIEWER], "").await.expect_error(403, "FORBIDDEN");
    let pass = bearer(&inside["session_token"]);
    site.post(&activity, &[("Authorization", &pass)], "{")
        .await
        .expect_error(400, "INVALID_REQUEST");
}

#[tokio::test]
async fn there_is_no_session_before_the_admission_and_none_after_its_end() {
    let site = Site::open().await;
    let waiting = site.enqueue("default").await;
    site.get(&path(&waiting), &[OWNER]).await.expect_error(404, "NOT_FOUND");
    for unknown in ["nonsense", "00000000-0000-0000-0000-000000000000"] {
        let path = format!("/api/v1/sessions/{unknown}");
        site.get(&path, &[OWNER]).await.expect_error(404, "NOT_FOUND");
    }
    site.admit(&site.default_room(), 1).await;
    let token = bearer(&waiting["token"]);
    let status = "/api/v1/queues/default/status";
    let inside = site.get(status, &[("Authorization", &token)]).await.expect(200);
    site.pass_s(700).await;
    let pass = bearer(&inside["session_token"]);
    for auth in [("Authorization", pass.as_str()), OWNER] {
        site.get(&path(&waiting), &[auth]).await.expect_error(410, "SESSION_EXPIRED");
        let activity = format!("{}/activity", path(&waiting));
        site.post(&activity, &[auth], "").await.expect_error(410, "SESSION_EXPIRED");
    }
}
