//! The queue API's WebSocket.

use serde_json::{Value, json};
use waitroom_core::settings::ClaimMode;
use waitroom_core::{Command, EndHow, Hold, Settings};

use crate::help::{Came, Site, Socket, Wanted, actor, bearer, by_hand, claims, text};

const WS: &str = "/ws/queues/default";

async fn open(site: &Site, told: &Value) -> Socket {
    let token = bearer(&told["token"]);
    Socket::open(site, WS, &[("Authorization", &token)]).await.expect("it opens")
}

/// Waits until a position update says this.
async fn until_position(socket: &mut Socket, position: u64) -> Value {
    loop {
        let data = socket.next_of("position_update").await;
        if data["position"] == position {
            return data;
        }
        assert!(data["position"].as_u64().expect("a number") > position, "{data} went past it");
    }
}

#[tokio::test]
async fn a_position_is_told_at_once_and_again_as_it_falls() {
    let site = Site::open().await;
    let mut ahead = Vec::new();
    for _ in 0..2 {
        ahead.push(site.enqueue("default").await);
    }
    let told = site.enqueue("default").await;
    let mut socket = open(&site, &told).await;
    let Came::Text(first) = socket.next().await else { panic!("it closed") };
    assert_eq!(first["type"], "position_update");
    let data = &first["data"];
    assert_eq!((&data["position"], &data["queue_length"]), (&json!(3), &json!(3)));
    assert_eq!(
        (&data["position_id"], &data["queue_id"]),
        (&told["position_id"], &json!("default"))
    );
    assert_eq!((&data["status"], &data["estimated_wait_seconds"]), (&json!("waiting"), &json!(0)));
    assert_eq!(claims(text(data, "token"))["position_id"], told["position_id"]);
    site.admit(&site.default_room(), 1).await;
    let data = until_position(&mut socket, 2).await;
    assert_eq!(data["queue_length"], 2);
    assert_eq!(data.get("token"), None, "once is enough");
    let leaver = bearer(&ahead[1]["token"]);
    let path = "/api/v1/queues/default/position";
    site.ask("DELETE", path, &[("Authorization", &leaver)], "").await.expect(200);
    until_position(&mut socket, 1).await;
}

#[tokio::test]
async fn an_admission_comes_with_pass_and_target_in_either_claim_mode() {
    for claim in [ClaimMode::OnAdmission, ClaimMode::Explicit] {
        let site = Site::with(Wanted::default(), Settings { claim, ..by_hand() }).await;
        let told = site.enqueue("default").await;
        let mut socket = open(&site, &told).await;
        socket.next_of("position_update").await;
        let room = site.default_room();
        site.admit(&room, 1).await;
        let data = socket.next_of("admitted").await;
        let pass = text(&data, "session_token");
        let unseen = waitroom_pass::Presented::default();
        let checked = room.verifier().verify(pass, site.now_ms() / 1_000, &unseen);
        assert_eq!(checked.expect("a good pass").ticket, text(&told, "position_id"));
        assert!(text(&data, "redirect_url").ends_with(&format!("wr_pass={pass}")));
        waitroom_core::when::parse(text(&data, "session_expires_at")).expect("a moment");
        assert_eq!(room.handle().board().state().counts().active, 1, "{claim:?}");
    }
}

#[tokio::test]
async fn who_opens_it_when_already_inside_hears_it_at_once() {
    let settings = Settings { claim: ClaimMode::Explicit, ..by_hand() };
    let site = Site::with(Wanted::default(), settings).await;
    let told = site.enqueue("default").await;
    site.admit(&site.default_room(), 1).await;
    let mut socket = open(&site, &told).await;
    let Came::Text(first) = socket.next().await else { panic!("it closed") };
    assert_eq!(first["type"], "admitted");
}

#[tokio::test]
async fn an_end_is_told_with_its_reason_and_then_the_channel_closes() {
    let site = Site::open().await;
    let room = site.default_room();
    let (left, revoked) = (site.enqueue("default").await, site.enqueue("default").await);
    for (told, reason) in [(left, "cancelled"), (revoked, "admin_revoked")] {
        let mut socket = open(&site, &told).await;
        socket.next_of("position_update").await;
        let id = waitroom_core::id::TicketId::parse(text(&told, "position_id")).expect("an id");
        let ticket = room.presented(id, None).expect("of this room");
        let command = match reason {
            "cancelled" => Command::Leave(ticket),
            _ => Command::End { ticket, how: EndHow::Revoked, by: actor() },
        };
        site.send(&room, command).await;
        assert_eq!(socket.next_of("expired").await, json!({ "reason": reason }));
        assert_eq!(socket.next().await, Came::Close(1001));
    }
}

#[tokio::test]
async fn a_session_that_runs_out_is_told() {
    let site = Site::open().await;
    let told = site.enqueue("default").await;
    let mut socket = open(&site, &told).await;
    site.admit(&site.default_room(), 1).await;
    socket.next_of("admitted").await;
    site.pass_s(601).await;
    assert_eq!(socket.next_of("expired").await, json!({ "reason": "session_over" }));
}

#[tokio::test]
async fn a_heartbeat_of_the_client_keeps_the_place() {
    let site = Site::open().await;
    let told = site.enqueue("default").await;
    let mut socket = open(&site, &told).await;
    socket.next_of("position_update").await;
    let room = site.default_room();
    let id = waitroom_core::id::TicketId::parse(text(&told, "position_id")).expect("an id");
    let ticket = room.presented(id, None).expect("of this room").ticket;
    let silence = || room.handle().liveness().silence(ticket, room.now()).0;
    site.pass_s(3_000).await;
    socket.say("{\"type\":\"heartbeat\",\"data\":{}}").await;
    crate::help::within(async {
        // The hub looks through its connections with every board; this makes one.
        while silence() > 60_000 {
            let hold = Hold::Paused { reason: "A moment.".into() };
            site.send(&room, Command::Hold { hold, by: actor() }).await;
            site.send(&room, Command::Resume { by: actor() }).await;
            tokio::task::yield_now().await;
        }
    })
    .await;
    site.pass_s(3_000).await;
    assert_eq!(room.handle().board().state().waiting(), 1, "an hour and a half is no silence");
}

#[tokio::test]
async fn a_browser_brings_the_token_in_the_address_also_one_that_has_run_out() {
    let site = Site::open().await;
    let told = site.enqueue("default").await;
    let path = format!("{WS}?token={}", text(&told, "token"));
    let mut socket = Socket::open(&site, &path, &[]).await.expect("it opens");
    socket.next_of("position_update").await;
    site.pass_s(600).await;
    let mut socket = Socket::open(&site, &path, &[]).await.expect("the channel is a heartbeat");
    let fresh = socket.next_of("position_update").await;
    let status = "/api/v1/queues/default/status";
    let token = bearer(&fresh["token"]);
    site.get(status, &[("Authorization", &token)]).await.expect(200);
}

#[tokio::test]
async fn who_may_not_open_it_is_told_in_this_interface_s_errors() {
    let site = Site::open().await;
    let refused = async |path: &str, headers: &[(&str, &str)]| {
        Socket::open(&site, path, headers).await.err().expect("it is refused")
    };
    refused(WS, &[]).await.expect_error(401, "UNAUTHORIZED");
    refused(&format!("{WS}?token=x"), &[]).await.expect_error(401, "UNAUTHORIZED");
    refused("/ws/queues/nowhere", &[]).await.expect_error(404, "NOT_FOUND");
    let told = site.enqueue("default").await;
    let token = bearer(&told["token"]);
    let page = ("Origin", "https://elsewhere.example");
    refused(WS, &[("Authorization", &token), page]).await.expect_error(403, "FORBIDDEN");
    let plain = site.get(WS, &[("Authorization", &token)]).await;
    plain.expect_error(426, "INVALID_REQUEST");
    let path = "/api/v1/queues/default/position";
    site.ask("DELETE", path, &[("Authorization", &token)], "").await.expect(200);
    let gone = refused(WS, &[("Authorization", &token)]).await;
    gone.expect_error(410, "POSITION_EXPIRED");
}

#[tokio::test]
async fn a_channel_of_this_interface_never_carries_a_board() {
    let site = Site::open().await;
    let told = site.enqueue("default").await;
    let mut socket = open(&site, &told).await;
    for _ in 0..5 {
        site.enqueue("default").await;
        let Came::Text(frame) = socket.next().await else { panic!("it closed") };
        assert_eq!(frame["type"], "position_update");
    }
    let _ = site.desk.draining.send(true);
    loop {
        match socket.next().await {
            Came::Text(frame) => assert_eq!(frame["type"], "position_update"),
            Came::Close(code) => break assert_eq!(code, 1001, "this interface knows no goodbye"),
        }
    }
}
