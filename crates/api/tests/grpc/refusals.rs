//! What cannot be done, and how it is told.

use std::time::Duration;

use tonic::{Code, Status};
use waitroom_api::grpc::proto::{LeaveQueueRequest, LeaveQueueResponse};
use waitroom_core::{Actor, Command, EndHow, FinishCause, Hold, Settings, Timestamp};

use crate::house::{Client, House, by_hand};

/// A well-formed id that no room wrote.
const STRANGE: &str = "00000000-0000-4000-8000-000000000000";

#[track_caller]
fn is(status: Result<impl std::fmt::Debug, Status>, code: Code, begins: &str) {
    let status = status.expect_err("refused");
    assert_eq!(status.code(), code, "{status:?}");
    assert!(status.message().starts_with(begins), "{:?}", status.message());
    assert!(status.metadata().contains_key("waitroom-code"));
}

async fn with_sale(settings: Settings) -> (House, Client) {
    let house = House::open().await;
    house.room("sale", settings).await;
    let client = house.client().await;
    (house, client)
}

#[tokio::test]
async fn nobody_joins_without_a_name_or_a_room() {
    let (house, client) = with_sale(by_hand()).await;
    is(client.join("", "sale").await, Code::InvalidArgument, "bad_request - ");
    is(client.join(&"x".repeat(257), "sale").await, Code::InvalidArgument, "bad_request - ");
    is(client.join("ana", "").await, Code::InvalidArgument, "bad_request - ");
    let said = client.join("", "sale").await.expect_err("refused");
    assert!(said.message().contains("user_id"), "{said:?}");
    house.stop().await;
}

#[tokio::test]
async fn a_room_that_is_not_there_is_wtr006_and_one_without_settings_wtr008() {
    let (house, client) = with_sale(by_hand()).await;
    is(client.join("ana", "nowhere").await, Code::NotFound, "WTR006 - Event not found");
    house.bare_room("bare").await;
    let refused = client.join("ana", "bare").await;
    is(refused, Code::FailedPrecondition, "WTR008 - Config not found");
    house.stop().await;
}

#[tokio::test]
async fn a_session_that_never_was_is_wtr001_in_every_call() {
    let (house, client) = with_sale(by_hand()).await;
    for id in [STRANGE, "not an id", "f6c27f05"] {
        let wtr001 = "WTR001 - Session not found";
        is(client.status(id).await, Code::NotFound, wtr001);
        is(client.leave(id).await, Code::NotFound, wtr001);
        is(client.positions(id).await, Code::NotFound, wtr001);
    }
    is(client.status("").await, Code::InvalidArgument, "bad_request - ");
    is(client.leave("").await, Code::InvalidArgument, "bad_request - ");
    is(client.positions("").await, Code::InvalidArgument, "bad_request - ");
    house.stop().await;
}

#[tokio::test]
async fn a_session_that_is_forgotten_is_wtr002() {
    let (house, client) = with_sale(by_hand()).await;
    let ana = client.join("ana", "sale").await.expect("a place").session_id;
    client.leave(&ana).await.expect("gone");
    house.put_forward(Duration::from_secs(3_700));
    is(client.status(&ana).await, Code::NotFound, "WTR002 - Session expired");
    is(client.leave(&ana).await, Code::NotFound, "WTR002 - Session expired");
    let mut stream = client.positions(&ana).await.expect("opened");
    is(stream.message().await, Code::NotFound, "WTR002 - Session expired");
    house.stop().await;
}

#[tokio::test]
async fn leaving_what_has_ended_otherwise_is_refused() {
    let (house, client) = with_sale(by_hand()).await;
    let room = house.desk.room("sale").expect("there");
    let ana = client.join("ana", "sale").await.expect("a place").session_id;
    let bo = client.join("bo", "sale").await.expect("a place").session_id;
    house.admit(&room, 2).await;
    house.end(&ana, EndHow::CheckoutExpired).await;
    house.end(&bo, EndHow::Revoked).await;
    is(client.leave(&ana).await, Code::FailedPrecondition, "WTR002 - Session expired");
    is(client.leave(&bo).await, Code::FailedPrecondition, "WTR004 - Invalid session status");
    house.stop().await;
}

#[tokio::test]
async fn a_full_queue_is_wtr005_and_whoever_is_in_it_keeps_the_place() {
    let (house, client) = with_sale(Settings { max_waiting: 1, ..by_hand() }).await;
    let ana = client.join("ana", "sale").await.expect("a place");
    is(client.join("bo", "sale").await, Code::ResourceExhausted, "WTR005 - Queue is full");
    let again = client.join("ana", "sale").await.expect("the place that ana has");
    assert_eq!(again.session_id, ana.session_id);
    let said = client.join("bo", "sale").await.expect_err("refused");
    assert_eq!(said.metadata().get("waitroom-code").expect("there"), "queue_full");
    assert!(said.metadata().contains_key("grpc-retry-pushback-ms"), "{said:?}");
    house.stop().await;
}

#[tokio::test]
async fn a_room_that_takes_nobody_is_wtr009() {
    let by = || Actor::new("test");
    let wtr009 = "WTR009 - Wait room not allowed";
    let (house, client) = with_sale(by_hand()).await;
    let room = house.desk.room("sale").expect("there");
    let hold = Hold::Maintenance { reason: "new shelves".into() };
    house.send(&room, Command::Hold { hold, by: by() }).await;
    is(client.join("ana", "sale").await, Code::Unavailable, wtr009);
    house.send(&room, Command::Resume { by: by() }).await;
    let finish =
        Command::Finish { cause: FinishCause::SoldOut, reason: "sold out".into(), by: by() };
    house.send(&room, finish).await;
    is(client.join("ana", "sale").await, Code::FailedPrecondition, wtr009);
    let far = waitroom_store::Clock::wall_ms(&waitroom_store::MachineClock::new()) + 86_400_000;
    let later = Timestamp(far);
    let settings = Settings { opens_at: Some(later), starts_at: Some(later), ..by_hand() };
    house.room("later", settings).await;
    is(client.join("ana", "later").await, Code::FailedPrecondition, wtr009);
    house.stop().await;
}

#[tokio::test]
async fn a_method_that_is_not_there_is_unimplemented() {
    let (house, client) = with_sale(by_hand()).await;
    for path in ["Joke", "/waitroom.v2.WaitroomService/JoinQueue", "/nothing"] {
        let refused: Result<LeaveQueueResponse, Status> =
            client.call(path, LeaveQueueRequest::default()).await;
        assert_eq!(refused.expect_err("refused").code(), Code::Unimplemented, "{path}");
    }
    house.stop().await;
}

#[tokio::test]
async fn a_message_larger_than_any_of_ours_is_refused() {
    let (house, client) = with_sale(by_hand()).await;
    let refused = client.join("ana", &"x".repeat(20_000)).await.expect_err("refused");
    assert_eq!(refused.code(), Code::OutOfRange, "{refused:?}");
    house.stop().await;
}

#[tokio::test]
async fn a_server_that_goes_down_says_so() {
    let (house, client) = with_sale(by_hand()).await;
    let ana = client.join("ana", "sale").await.expect("a place").session_id;
    let mut stream = client.positions(&ana).await.expect("opened");
    crate::house::next(&mut stream).await;
    house.drain();
    is(crate::house::soon(stream.message()).await, Code::Unavailable, "stopping - ");
    let outcome = house.stop().await;
    assert_eq!(outcome.cut_off, 0, "nothing had to be cut: {outcome:?}");
}
