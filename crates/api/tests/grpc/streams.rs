//! Positions as they change.

use std::time::{Duration, Instant};

use waitroom_api::grpc::proto::SessionStatus;
use waitroom_core::settings::ClaimMode;
use waitroom_core::{Millis, Settings, when};

use crate::house::{House, by_hand, next, soon};

#[tokio::test]
async fn the_first_message_comes_at_once_then_each_change_then_the_token_then_the_end() {
    let house = House::open().await;
    let room = house.room("sale", by_hand()).await;
    let client = house.client().await;
    client.join("ana", "sale").await.expect("a place");
    let bo = client.join("bo", "sale").await.expect("a place");
    let mut stream = client.positions(&bo.session_id).await.expect("opened");
    let first = next(&mut stream).await;
    assert_eq!(first.session_id, bo.session_id);
    assert_eq!((first.position, first.queue_length), (2, 2));
    assert_eq!(first.status(), SessionStatus::Queued);
    assert!(when::parse(&first.updated_at).is_ok(), "{first:?}");
    assert_eq!((first.checkout_token.as_str(), first.checkout_url.as_str()), ("", ""));
    house.admit(&room, 1).await;
    let second = next(&mut stream).await;
    assert_eq!((second.position, second.status()), (1, SessionStatus::Queued));
    house.admit(&room, 1).await;
    let third = next(&mut stream).await;
    assert_eq!((third.position, third.status()), (0, SessionStatus::Ready));
    let told = client.status(&bo.session_id).await.expect("told");
    assert_eq!(third.checkout_token, told.checkout_token);
    assert_eq!(third.checkout_url, told.checkout_url);
    assert!(soon(stream.message()).await.expect("a good end").is_none());
    house.stop().await;
}

#[tokio::test]
async fn where_claims_are_explicit_the_stream_claims() {
    let house = House::open().await;
    let room = house.room("sale", Settings { claim: ClaimMode::Explicit, ..by_hand() }).await;
    let client = house.client().await;
    let ana = client.join("ana", "sale").await.expect("a place");
    let mut stream = client.positions(&ana.session_id).await.expect("opened");
    next(&mut stream).await;
    house.admit(&room, 1).await;
    let ready = next(&mut stream).await;
    assert_eq!(ready.status(), SessionStatus::Ready);
    assert!(!ready.checkout_token.is_empty());
    assert!(soon(stream.message()).await.expect("a good end").is_none());
    house.stop().await;
}

#[tokio::test]
async fn a_session_that_is_over_is_told_once() {
    let house = House::open().await;
    house.room("sale", by_hand()).await;
    let client = house.client().await;
    let ana = client.join("ana", "sale").await.expect("a place");
    let mut stream = client.positions(&ana.session_id).await.expect("opened");
    next(&mut stream).await;
    client.leave(&ana.session_id).await.expect("gone");
    assert_eq!(next(&mut stream).await.status(), SessionStatus::Cancelled);
    assert!(soon(stream.message()).await.expect("a good end").is_none());
    house.stop().await;
}

#[tokio::test]
async fn changes_are_told_about_once_a_second_and_quiet_every_five() {
    let house = House::open().await;
    let room = house.room("sale", by_hand()).await;
    let client = house.client().await;
    for user in 0..20 {
        client.join(&format!("user {user}"), "sale").await.expect("a place");
    }
    let last = client.join("last", "sale").await.expect("a place");
    let mut stream = client.positions(&last.session_id).await.expect("opened");
    let began = Instant::now();
    assert_eq!(next(&mut stream).await.position, 21);
    for _ in 0..10 {
        house.admit(&room, 1).await;
    }
    // Ten changes at once are one message, not before its time.
    let told = next(&mut stream).await;
    assert_eq!(told.position, 11);
    let told_at = began.elapsed();
    assert!(told_at >= Duration::from_millis(850), "{told_at:?}");
    let told = next(&mut stream).await;
    assert_eq!(told.position, 11, "nothing changed, and it is told all the same");
    let quiet = began.elapsed() - told_at;
    assert!(quiet >= Duration::from_millis(4_800), "{quiet:?}");
    house.stop().await;
}

#[tokio::test]
async fn an_open_stream_keeps_a_place_in_a_room_that_is_quick_to_lapse() {
    let house = House::open().await;
    let timeout = Millis::from_secs(3);
    let room = house.room("sale", Settings { heartbeat_timeout: timeout, ..by_hand() }).await;
    let client = house.client().await;
    let ana = client.join("ana", "sale").await.expect("a place");
    client.join("bo", "sale").await.expect("a place");
    let mut stream = client.positions(&ana.session_id).await.expect("opened");
    // The stream says something only every five seconds; a beat must come more often. Bo, of whom
    // nothing is heard, shows that the sweeper is at work.
    let mut board = room.handle().board();
    while board.state().waiting() != 1 {
        board = soon(room.handle().next_board(board.version())).await;
    }
    for _ in 0..2 {
        let told = next(&mut stream).await;
        assert_eq!((told.position, told.status()), (1, SessionStatus::Queued));
    }
    house.stop().await;
}

#[tokio::test]
async fn many_streams_of_a_connection_all_hear_of_an_admission_within_a_second_or_so() {
    let house = House::open().await;
    let room = house.room("sale", by_hand()).await;
    let client = house.client().await;
    let mut streams = Vec::new();
    for user in 0..50 {
        let joined = client.join(&format!("user {user}"), "sale").await.expect("a place");
        streams.push(client.positions(&joined.session_id).await.expect("opened"));
    }
    for stream in &mut streams {
        next(stream).await;
    }
    house.admit(&room, 50).await;
    for stream in &mut streams {
        // Those who came in between may first hear of a smaller queue; the token comes last.
        while next(stream).await.status() != SessionStatus::Ready {}
        assert!(soon(stream.message()).await.expect("a good end").is_none());
    }
    house.stop().await;
}
