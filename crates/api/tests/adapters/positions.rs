//! The queue API's positions.

use serde_json::{Value, json};
use waitroom_core::settings::{ClaimMode, LaneSettings};
use waitroom_core::{LaneId, Millis, Settings};

use crate::help::{OPERATOR, Site, VIEWER, Wanted, bearer, by_hand, claims, text};

const ENQUEUE: &str = "/api/v1/queues/default/enqueue";
const STATUS: &str = "/api/v1/queues/default/status";
const HEARTBEAT: &str = "/api/v1/queues/default/heartbeat";
const POSITION: &str = "/api/v1/queues/default/position";

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> =
        value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn an_enqueue_without_a_body_gives_a_position() {
    let settings = Settings { heartbeat_interval: Millis::from_secs(30), ..by_hand() };
    let site = Site::with(Wanted::default(), settings).await;
    site.enqueue("default").await;
    let told = site.enqueue("default").await;
    assert_eq!((&told["position"], &told["queue_length"]), (&json!(2), &json!(2)));
    assert_eq!((&told["queue_id"], &told["status"]), (&json!("default"), &json!("waiting")));
    assert_eq!(told["heartbeat_interval_seconds"], 30);
    assert_eq!(told["heartbeat_timeout_seconds"], 3_600);
    assert_eq!(told["estimated_wait_seconds"], 0, "nobody knows when somebody will be let in");
    let expires = waitroom_core::when::parse(text(&told, "expires_at")).expect("a moment");
    assert!(expires.abs_diff(site.now_ms() + 3_600_000) < 60_000);
    let claims = claims(text(&told, "token"));
    assert_eq!(claims["position_id"], told["position_id"]);
    assert_eq!(claims["queue_id"], "default");
    let life = claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap();
    assert_eq!(life, 300);
}

#[tokio::test]
async fn whoever_brings_a_token_gets_the_same_position_with_200() {
    let site = Site::open().await;
    let first = site.enqueue("default").await;
    let token = bearer(&first["token"]);
    let again = site.post(ENQUEUE, &[("Authorization", &token)], "{}").await.expect(200);
    assert_eq!(again["position_id"], first["position_id"]);
    // Also when the token ran out in a pocket.
    site.pass_s(600).await;
    let again = site.post(ENQUEUE, &[("Authorization", &token)], "").await.expect(200);
    assert_eq!(again["position_id"], first["position_id"]);
    let stranger = [("Authorization", "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x")];
    site.post(ENQUEUE, &stranger, "").await.expect(201);
}

#[tokio::test]
async fn a_status_says_where_one_stands_and_then_how_to_enter() {
    let site = Site::open().await;
    let told = site.enqueue("default").await;
    let token = bearer(&told["token"]);
    let auth = [("Authorization", token.as_str())];
    let waiting = site.get(STATUS, &auth).await.expect(200);
    assert_eq!(
        keys(&waiting),
        [
            "admitted",
            "estimated_wait_seconds",
            "expires_at",
            "heartbeat_interval_seconds",
            "heartbeat_timeout_seconds",
            "position",
            "position_id",
            "queue_id",
            "queue_length",
            "status",
            "token",
        ]
    );
    assert_eq!((&waiting["admitted"], &waiting["position"]), (&json!(false), &json!(1)));
    assert_eq!(waiting["token"], told["token"], "only a heartbeat renews it");
    let room = site.default_room();
    site.admit(&room, 1).await;
    let inside = site.get(STATUS, &auth).await.expect(200);
    assert_eq!((&inside["status"], &inside["admitted"]), (&json!("admitted"), &json!(true)));
    assert_eq!(inside["position"], 0);
    let pass = text(&inside, "session_token");
    let expected = format!("https://shop.example/sale?x=1&wr_pass={pass}");
    assert_eq!(text(&inside, "redirect_url"), expected);
    let ends = waitroom_core::when::parse(text(&inside, "session_expires_at")).expect("a moment");
    assert!(ends.abs_diff(site.now_ms() + 600_000) < 60_000);
    let unseen = waitroom_pass::Presented::default();
    let checked = room.verifier().verify(pass, site.now_ms() / 1_000, &unseen);
    assert_eq!(checked.expect("a good pass").ticket, text(&told, "position_id"));
}

#[tokio::test]
async fn a_room_that_wants_a_claim_gets_one_before_the_pass_is_handed_out() {
    let settings = Settings { claim: ClaimMode::Explicit, ..by_hand() };
    let site = Site::with(Wanted::default(), settings).await;
    let room = site.default_room();
    for path in [STATUS, HEARTBEAT] {
        let told = site.enqueue("default").await;
        let token = bearer(&told["token"]);
        site.admit(&room, 1).await;
        let method = if path == STATUS { "GET" } else { "POST" };
        let inside = site.ask(method, path, &[("Authorization", &token)], "").await.expect(200);
        assert_eq!(inside["status"], "admitted");
        assert!(text(&inside, "session_token").starts_with("eyJ"));
    }
    let (board, _) = room.board_since(room.handle().committed()).await;
    assert_eq!((board.state().counts().admitted, board.state().counts().active), (0, 2));
}

#[tokio::test]
async fn an_idle_room_that_lets_people_through_says_so_at_once() {
    let rate = Settings::default().rate;
    let site =
        Site::with(Wanted::default(), Settings { queue_all: false, rate, ..by_hand() }).await;
    // A bucket that was just made is empty, so that a restart is no burst.
    site.pass_s(5).await;
    let told = site.enqueue("default").await;
    assert_eq!((&told["status"], &told["position"]), (&json!("admitted"), &json!(0)));
    assert!(text(&told, "redirect_url").contains("wr_pass="));
}

#[tokio::test]
async fn a_heartbeat_renews_the_token() {
    let site = Site::open().await;
    let told = site.enqueue("default").await;
    site.pass_s(100).await;
    let body = json!({ "timestamp": 1_757_000_000_000u64, "client_id": "tab-1" }).to_string();
    let token = bearer(&told["token"]);
    let beat = site.post(HEARTBEAT, &[("Authorization", &token)], &body).await.expect(200);
    assert_eq!((&beat["position"], &beat["status"]), (&json!(1), &json!("waiting")));
    assert!(beat["next_heartbeat_seconds"].as_u64().is_some_and(|it| (2..=1_200).contains(&it)));
    assert_ne!(beat["token"], told["token"]);
    let exp = |token: &Value| claims(token.as_str().unwrap())["exp"].as_u64().unwrap();
    assert!(exp(&beat["token"]) >= exp(&told["token"]) + 100);
    site.admit(&site.default_room(), 1).await;
    let inside = site.post(HEARTBEAT, &[("Authorization", &token)], "").await.expect(200);
    assert_eq!(inside["status"], "admitted");
    assert!(text(&inside, "redirect_url").contains(text(&inside, "session_token")));
}

#[tokio::test]
async fn a_phone_that_slept_for_an_hour_keeps_its_place_by_a_heartbeat() {
    let site = Site::with(
        Wanted::default(),
        Settings { heartbeat_timeout: Millis::from_secs(7_200), ..by_hand() },
    )
    .await;
    let told = site.enqueue("default").await;
    let token = bearer(&told["token"]);
    let auth = [("Authorization", token.as_str())];
    site.pass_s(301).await;
    // Looking and leaving take a token that is good; a sign of life takes one that was.
    site.get(STATUS, &auth).await.expect_error(401, "UNAUTHORIZED");
    site.ask("DELETE", POSITION, &auth, "").await.expect_error(401, "UNAUTHORIZED");
    site.pass_s(3_600).await;
    let beat = site.post(HEARTBEAT, &auth, "").await.expect(200);
    assert_eq!((&beat["position_id"], &beat["position"]), (&told["position_id"], &json!(1)));
    let fresh = bearer(&beat["token"]);
    let seen = site.get(STATUS, &[("Authorization", &fresh)]).await.expect(200);
    assert_eq!(seen["position"], 1);
    // A token that was never ours does not become good by being old.
    // The first letter of the signature, not the last: one in sixteen signatures ends in this one.
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let other = if signature.starts_with('A') { 'B' } else { 'A' };
    let forged = format!("{signed}.{other}{}", &signature[1..]);
    site.post(HEARTBEAT, &[("Authorization", &forged)], "").await.expect_error(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn silence_costs_the_place_and_every_call_says_410() {
    let site = Site::open().await;
    let told = site.enqueue("default").await;
    site.pass_s(3_605).await;
    let token = bearer(&told["token"]);
    let auth = [("Authorization", token.as_str())];
    let gone = site.post(HEARTBEAT, &auth, "").await.expect_error(410, "POSITION_EXPIRED");
    assert_eq!(gone["error"]["details"]["reason"], "heartbeat_timeout");
    // Whoever comes back is at the end, with a new position.
    let again = site.post(ENQUEUE, &auth, "").await.expect(201);
    assert_ne!(again["position_id"], told["position_id"]);
    // An hour later the room has forgotten even that.
    site.pass_s(3_605).await;
    let gone = site.post(HEARTBEAT, &auth, "").await.expect_error(410, "POSITION_EXPIRED");
    assert_eq!(gone["error"]["details"]["reason"], "ticket_forgotten");
}

#[tokio::test]
async fn a_session_that_ran_out_is_told_from_a_lost_place() {
    let site = Site::open().await;
    let told = site.enqueue("default").await;
    site.admit(&site.default_room(), 1).await;
    site.pass_s(601).await;
    let token = bearer(&told["token"]);
    let gone = site.post(HEARTBEAT, &[("Authorization", &token)], "").await;
    let gone = gone.expect_error(410, "SESSION_EXPIRED");
    assert_eq!(gone["error"]["details"]["reason"], "session_over");
}

#[tokio::test]
async fn a_position_that_is_given_up_is_cancelled_and_gone() {
    let site = Site::open().await;
    let told = site.enqueue("default").await;
    let behind = site.enqueue("default").await;
    let token = bearer(&told["token"]);
    let auth = [("Authorization", token.as_str())];
    let left = site.ask("DELETE", POSITION, &auth, "").await.expect(200);
    assert_eq!(
        (&left["position_id"], &left["status"]),
        (&told["position_id"], &json!("cancelled"))
    );
    let at = waitroom_core::when::parse(text(&left, "cancelled_at")).expect("a moment");
    assert!(at.abs_diff(site.now_ms()) < 60_000);
    let again = site.ask("DELETE", POSITION, &auth, "").await.expect(200);
    assert_eq!(again["cancelled_at"], left["cancelled_at"], "a repeat says the same");
    let gone = site.get(STATUS, &auth).await.expect_error(410, "POSITION_EXPIRED");
    assert_eq!(gone["error"]["details"]["reason"], "cancelled");
    let next = bearer(&behind["token"]);
    assert_eq!(site.get(STATUS, &[("Authorization", &next)]).await.expect(200)["position"], 1);
}

/// A room with a lane for each priority.
fn with_lanes() -> Settings {
    let lane = |name: &str| LaneSettings { name: name.into(), weight: 1 };
    Settings {
        lanes: ["everyone", "friends", "press", "crew"].map(lane).to_vec(),
        keep_user_id: true,
        ..by_hand()
    }
}

#[tokio::test]
async fn what_an_untrusted_caller_says_of_itself_is_ignored() {
    let site = Site::with(Wanted::default(), with_lanes()).await;
    let room = site.default_room();
    let body = json!({ "priority": 3, "user_id": "ana", "metadata": { "vip": true } }).to_string();
    let one = site.post(ENQUEUE, &[], &body).await.expect(201);
    // A viewer looks; it does not speak for people.
    let two = site.post(ENQUEUE, &[VIEWER], &body).await.expect(201);
    assert_ne!(one["position_id"], two["position_id"], "nobody is ana");
    let (board, _) = room.board_since(room.handle().committed()).await;
    assert_eq!(board.state().lane_counts(LaneId(0)).waiting, 2);
    assert_eq!(board.state().lane_counts(LaneId(3)).waiting, 0);
    let noted = board.state().note(waitroom_core::Ticket::new(0, 0));
    assert_eq!(noted, None, "nothing was kept of what it said");
}

#[tokio::test]
async fn what_a_caller_with_a_key_says_counts() {
    let site = Site::with(Wanted::default(), with_lanes()).await;
    let room = site.default_room();
    let body =
        json!({ "priority": 2, "user_id": "ana", "metadata": { "seat": "14C" } }).to_string();
    let one = site.post(ENQUEUE, &[OPERATOR], &body).await.expect(201);
    let again = site.post(ENQUEUE, &[OPERATOR], &body).await.expect(200);
    assert_eq!(one["position_id"], again["position_id"], "one place each");
    let (board, _) = room.board_since(room.handle().committed()).await;
    assert_eq!(board.state().lane_counts(LaneId(2)).waiting, 1);
    let note = board.state().note(waitroom_core::Ticket::new(2, 0)).expect("it was kept");
    assert_eq!(note.metadata.as_deref(), Some(&br#"{"seat":"14C"}"#[..]));
    let sealed = note.sealed_user.as_deref().expect("it was kept");
    assert_eq!(room.open_user(sealed).as_deref(), Some("ana"));
}

#[tokio::test]
async fn a_room_with_fewer_lanes_takes_every_priority() {
    let site = Site::open().await;
    let told = site.post(ENQUEUE, &[OPERATOR], "{\"priority\": 3}").await.expect(201);
    assert_eq!(told["position"], 1);
}

#[tokio::test]
async fn positions_of_many_are_dense_and_fall_as_people_enter() {
    let site = Site::open().await;
    let mut tokens = Vec::new();
    for place in 1..=30 {
        let told = site.enqueue("default").await;
        assert_eq!(told["position"], place);
        tokens.push(bearer(&told["token"]));
    }
    site.admit(&site.default_room(), 10).await;
    for (index, token) in tokens.iter().enumerate() {
        let told = site.get(STATUS, &[("Authorization", token)]).await.expect(200);
        assert_eq!(told["position"], index.saturating_sub(9), "{told}");
        assert_eq!(told["queue_length"], 20);
    }
}
