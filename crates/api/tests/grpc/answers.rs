//! What each call answers.

use waitroom_api::grpc::proto::{HealthCheckRequest, HealthCheckResponse, SessionStatus};
use waitroom_core::settings::ClaimMode;
use waitroom_core::{Command, EndHow, Millis, Settings, when};

use crate::house::{Client, House, PUBLIC_URL, by_hand};

fn moment(text: &str) -> u64 {
    when::parse(text).unwrap_or_else(|why| panic!("{text:?} {why}"))
}

#[tokio::test]
async fn joining_gives_a_place_with_all_that_is_known_of_it() {
    let house = House::open().await;
    house.room("sale", by_hand()).await;
    let client = house.client().await;
    let first = client.join("ana", "sale").await.expect("a place");
    let second = client.join("bo", "sale").await.expect("a place");
    assert_eq!((first.position, second.position), (1, 2));
    assert_eq!(second.queue_length, 2);
    assert_ne!(first.session_id, second.session_id);
    assert_eq!(second.websocket_url, "wss://wait.example/v1/rooms/sale/live");
    assert!(PUBLIC_URL.starts_with("https"));
    let (queued, expires) = (moment(&second.queued_at), moment(&second.expires_at));
    assert!(expires > queued && expires <= queued + 121_000, "silence ends it: {second:?}");
    house.stop().await;
}

#[tokio::test]
async fn joining_again_returns_the_same_session_until_it_is_over() {
    let house = House::open().await;
    house.room("sale", by_hand()).await;
    house.room("other", by_hand()).await;
    let client = house.client().await;
    let first = client.join("ana", "sale").await.expect("a place");
    client.join("bo", "sale").await.expect("a place");
    let again = client.join("ana", "sale").await.expect("a place");
    assert_eq!(again.session_id, first.session_id);
    assert_eq!(again.position, 1);
    assert_eq!(again.queued_at, first.queued_at);
    let elsewhere = client.join("ana", "other").await.expect("a place");
    assert_ne!(elsewhere.session_id, first.session_id);
    client.leave(&first.session_id).await.expect("gone");
    let back = client.join("ana", "sale").await.expect("a place");
    assert_ne!(back.session_id, first.session_id);
    assert_eq!(back.position, 2, "at the end");
    house.stop().await;
}

#[tokio::test]
async fn a_waiting_session_is_queued_and_moves_up() {
    let house = House::open().await;
    let room = house.room("sale", by_hand()).await;
    let client = house.client().await;
    client.join("ana", "sale").await.expect("a place");
    let bo = client.join("bo", "sale").await.expect("a place");
    let told = client.status(&bo.session_id).await.expect("told");
    assert_eq!(told.session_id, bo.session_id);
    assert_eq!(told.status(), SessionStatus::Queued);
    assert_eq!((told.position, told.queue_length), (2, 2));
    assert_eq!(told.queued_at, bo.queued_at);
    assert_eq!((told.checkout_token.as_str(), told.checkout_url.as_str()), ("", ""));
    assert_eq!((told.checkout_expires_at.as_str(), told.admitted_at.as_str()), ("", ""));
    house.admit(&room, 1).await;
    let told = client.status(&bo.session_id).await.expect("told");
    assert_eq!((told.position, told.queue_length), (1, 1));
    house.stop().await;
}

#[tokio::test]
async fn a_waiting_session_expires_by_age_where_that_comes_first() {
    let house = House::open().await;
    let life = Millis::from_secs(3_600);
    house.room("old", Settings { ticket_life: life, ..by_hand() }).await;
    let silence = Millis::from_secs(7_200);
    let older = Settings { ticket_life: silence, heartbeat_timeout: silence, ..by_hand() };
    house.room("silent", older).await;
    let client = house.client().await;
    let silent = client.join("ana", "old").await.expect("a place");
    assert!(moment(&silent.expires_at) < moment(&silent.queued_at) + 130_000, "{silent:?}");
    let aged = client.join("ana", "silent").await.expect("a place");
    assert_eq!(moment(&aged.expires_at), moment(&aged.queued_at) + 7_200_000);
    house.stop().await;
}

#[tokio::test]
async fn an_admitted_session_is_ready_with_its_token() {
    let house = House::open().await;
    let room = house.room("sale", by_hand()).await;
    let client = house.client().await;
    let ana = client.join("ana", "sale").await.expect("a place");
    house.admit(&room, 1).await;
    let told = client.status(&ana.session_id).await.expect("told");
    assert_eq!(told.status(), SessionStatus::Ready);
    assert_eq!((told.position, told.queue_length), (0, 0));
    let url = format!("https://shop.example/checkout?wr_pass={}", told.checkout_token);
    assert_eq!(told.checkout_url, url);
    assert_eq!(moment(&told.expires_at), moment(&told.admitted_at) + 600_000);
    assert_eq!(told.checkout_expires_at, told.expires_at, "the pass lives as the session does");
    assert!(moment(&told.queued_at) <= moment(&told.admitted_at));
    house.stop().await;
}

#[tokio::test]
async fn activity_makes_a_ready_session_active() {
    let house = House::open().await;
    let room = house.room("sale", by_hand()).await;
    let client = house.client().await;
    let ana = client.join("ana", "sale").await.expect("a place");
    house.admit(&room, 1).await;
    let ready = client.status(&ana.session_id).await.expect("told");
    house.put_forward(std::time::Duration::from_secs(300));
    let id = waitroom_core::id::TicketId::parse(&ana.session_id).expect("an id");
    let (_, presented) = house.desk.find(id).expect("ours");
    house.send(&room, Command::Renew(presented)).await;
    let active = client.status(&ana.session_id).await.expect("told");
    assert_eq!(active.status(), SessionStatus::Active);
    assert!(moment(&active.checkout_expires_at) > moment(&ready.checkout_expires_at));
    assert_ne!(active.checkout_token, ready.checkout_token, "the new pass says so");
    house.stop().await;
}

#[tokio::test]
async fn where_claims_are_explicit_the_claim_is_made_for_the_client() {
    let house = House::open().await;
    let room = house.room("sale", Settings { claim: ClaimMode::Explicit, ..by_hand() }).await;
    let client = house.client().await;
    let ana = client.join("ana", "sale").await.expect("a place");
    house.admit(&room, 1).await;
    let told = client.status(&ana.session_id).await.expect("told");
    assert_eq!(told.status(), SessionStatus::Ready);
    assert!(!told.checkout_token.is_empty());
    let again = client.status(&ana.session_id).await.expect("told");
    assert_eq!(again.status(), SessionStatus::Ready, "until the end");
    assert_eq!(again.checkout_token, told.checkout_token);
    house.stop().await;
}

#[tokio::test]
async fn an_admitted_session_that_cannot_be_claimed_is_processing() {
    let house = House::open().await;
    let closed_inside = Settings { claim: ClaimMode::Explicit, keep_inside: false, ..by_hand() };
    let room = house.room("sale", closed_inside).await;
    let client = house.client().await;
    let ana = client.join("ana", "sale").await.expect("a place");
    house.admit(&room, 1).await;
    let hold = waitroom_core::Hold::Maintenance { reason: "new shelves".into() };
    let by = waitroom_core::Actor::new("test");
    house.send(&room, Command::Hold { hold, by: by.clone() }).await;
    let told = client.status(&ana.session_id).await.expect("told");
    assert_eq!(told.status(), SessionStatus::Processing);
    assert_eq!(told.checkout_token, "");
    assert_eq!(told.expires_at, "", "its time stands still, and nobody knows until when");
    assert!(moment(&told.admitted_at) > 0);
    house.send(&room, Command::Resume { by }).await;
    let told = client.status(&ana.session_id).await.expect("told");
    assert_eq!(told.status(), SessionStatus::Ready);
    house.stop().await;
}

async fn over(client: &Client, session_id: &str) -> SessionStatus {
    let told = client.status(session_id).await.expect("told");
    assert_eq!(told.checkout_token, "", "nobody enters with a session that is over");
    assert!(moment(&told.expires_at) > 0, "when it ended");
    told.status()
}

#[tokio::test]
async fn every_ending_has_its_status() {
    let house = House::open().await;
    let room = house.room("sale", by_hand()).await;
    let client = house.client().await;
    let mut sessions = Vec::new();
    for user in ["completes", "fails", "expires", "is revoked", "leaves inside"] {
        sessions.push(client.join(user, "sale").await.expect("a place").session_id);
    }
    house.admit(&room, 5).await;
    for (session, how, status) in [
        (0, EndHow::Completed, SessionStatus::Completed),
        (1, EndHow::CheckoutFailed, SessionStatus::Failed),
        (2, EndHow::CheckoutExpired, SessionStatus::Expired),
        (3, EndHow::Revoked, SessionStatus::Cancelled),
    ] {
        let session: &String = &sessions[session];
        house.end(session, how).await;
        assert_eq!(over(&client, session).await, status);
    }
    let left = client.leave(&sessions[4]).await.expect("gone");
    assert_eq!(left.message, "session completed");
    assert_eq!(over(&client, &sessions[4]).await, SessionStatus::Completed);
    let waits = client.join("leaves the line", "sale").await.expect("a place").session_id;
    let left = client.leave(&waits).await.expect("gone");
    assert_eq!((left.session_id, left.message), (waits.clone(), "left the queue".to_owned()));
    assert_eq!(over(&client, &waits).await, SessionStatus::Cancelled);
    client.leave(&waits).await.expect("leaving twice is leaving");
    let waits = client.join("is too late", "sale").await.expect("a place").session_id;
    let finish = Command::Finish {
        cause: waitroom_core::FinishCause::SoldOut,
        reason: "sold out".into(),
        by: waitroom_core::Actor::new("test"),
    };
    house.send(&room, finish).await;
    assert_eq!(over(&client, &waits).await, SessionStatus::Cancelled);
    house.stop().await;
}

#[tokio::test]
async fn a_moved_session_goes_on_under_the_old_id_and_stays_alive() {
    let house = House::open().await;
    let mut settings = by_hand();
    let lane = |name: &str| waitroom_core::settings::LaneSettings { name: name.into(), weight: 1 };
    settings.lanes = vec![lane("main"), lane("vip")];
    let room = house.room("sale", settings).await;
    let client = house.client().await;
    let ana = client.join("ana", "sale").await.expect("a place");
    let id = waitroom_core::id::TicketId::parse(&ana.session_id).expect("an id");
    let (_, ticket) = house.desk.find(id).expect("ours");
    let by = waitroom_core::Actor::new("test");
    house.send(&room, Command::Move { ticket, to: waitroom_core::LaneId(1), by }).await;
    house.put_forward(std::time::Duration::from_secs(100));
    let told = client.status(&ana.session_id).await.expect("told");
    assert_eq!((told.status(), told.position), (SessionStatus::Queued, 1));
    let id = waitroom_core::id::TicketId::parse(&told.session_id).expect("an id");
    let (_, now) = house.desk.find(id).expect("ours");
    assert_eq!(now.ticket.lane, waitroom_core::LaneId(1));
    let silence = room.handle().liveness().silence(now.ticket, room.now());
    assert!(
        silence < Millis(5_000),
        "the call was a beat for the ticket as it is now: {silence:?}"
    );
    house.stop().await;
}

#[tokio::test]
async fn a_look_is_a_heartbeat() {
    let house = House::open().await;
    let room = house.room("sale", by_hand()).await;
    let client = house.client().await;
    let ana = client.join("ana", "sale").await.expect("a place");
    let id = waitroom_core::id::TicketId::parse(&ana.session_id).expect("an id");
    let (_, ticket) = house.desk.find(id).expect("ours");
    // A board that knows the ticket: both ways to an answer are to beat.
    client.status(&ana.session_id).await.expect("told");
    house.put_forward(std::time::Duration::from_secs(60));
    let silence = || room.handle().liveness().silence(ticket.ticket, room.now());
    assert!(silence() >= Millis(55_000));
    client.status(&ana.session_id).await.expect("told");
    assert!(silence() < Millis(5_000));
    house.stop().await;
}

#[tokio::test]
async fn before_a_draw_the_position_is_the_length_of_the_queue() {
    let house = House::open().await;
    let mut settings = by_hand();
    let soon = waitroom_store::Clock::wall_ms(&waitroom_store::MachineClock::new()) + 3_600_000;
    settings.starts_at = Some(waitroom_core::Timestamp(soon));
    settings.draw = Some(waitroom_core::settings::DrawSettings { beacon: None });
    house.room("sale", settings).await;
    let client = house.client().await;
    let ana = client.join("ana", "sale").await.expect("a place");
    client.join("bo", "sale").await.expect("a place");
    let told = client.status(&ana.session_id).await.expect("told");
    assert_eq!(told.status(), SessionStatus::Queued);
    assert!(told.queue_length >= 1);
    assert_eq!(told.position, told.queue_length);
    house.stop().await;
}

#[tokio::test]
async fn health_tells_of_store_and_rooms() {
    let house = House::open().await;
    house.room("sale", by_hand()).await;
    house.bare_room("empty").await;
    let nobody = house.nobody().await;
    let told: HealthCheckResponse =
        nobody.call("HealthCheck", HealthCheckRequest {}).await.expect("it needs no key");
    assert_eq!((told.status.as_str(), told.service.as_str()), ("healthy", "waitroom"));
    assert_eq!(told.version, env!("CARGO_PKG_VERSION"));
    assert!(!told.kafka_enabled);
    assert_eq!(told.components["store"], "healthy");
    assert_eq!(told.components["rooms"], "2 open");
    house.drain();
    let told: HealthCheckResponse =
        nobody.call("HealthCheck", HealthCheckRequest {}).await.expect("told");
    assert_eq!(told.status, "draining");
    house.stop().await;
}

#[tokio::test]
async fn rooms_that_cannot_write_are_no_health() {
    let house = House::open().await;
    house.room("sale", by_hand()).await;
    assert_eq!(waitroom_api::health::obstacles(&house.desk), []);
    house.lose_rooms().await;
    let found = waitroom_api::health::obstacles(&house.desk);
    let lost = |it: &waitroom_api::health::Obstacle| matches!(it, waitroom_api::health::Obstacle::RoomLost { room, .. } if room == "sale");
    assert!(found.iter().any(lost), "{found:?}");
    let told: HealthCheckResponse =
        house.nobody().await.call("HealthCheck", HealthCheckRequest {}).await.expect("told");
    assert_eq!(told.status, "unhealthy");
    assert_eq!(told.components["store"], "unhealthy");
    house.stop().await;
}
