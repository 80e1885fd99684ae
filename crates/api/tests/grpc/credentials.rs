//! Who may call what.

use tonic::Code;
use waitroom_api::grpc::proto::{HealthCheckRequest, HealthCheckResponse};

use crate::house::{Client, House, OPERATOR, VIEWER, Wishes, by_hand};
use crate::papers::{Known, Papers};

/// What each of the four calls that need a right says.
async fn codes(client: &Client, session: &str) -> [Code; 4] {
    let code = |refused: Option<tonic::Status>| refused.map_or(Code::Ok, |status| status.code());
    [
        code(client.join("ana", "sale").await.err()),
        code(client.status(session).await.err()),
        code(client.positions(session).await.err()),
        // Last, and of another: it ends the session.
        code(match client.join("leaver", "sale").await {
            Ok(leaver) => client.leave(&leaver.session_id).await.err(),
            Err(_) => client.leave(session).await.err(),
        }),
    ]
}

async fn house(wishes: Wishes) -> (House, String) {
    let house = House::with(wishes).await;
    let room = house.room("sale", by_hand()).await;
    let joiner =
        waitroom_api::visitor::join::Joiner { user: Some("somebody".into()), ..Default::default() };
    let settings = room.settings();
    let (sight, _) = waitroom_api::visitor::join::place(&room, settings.as_deref(), joiner)
        .await
        .expect("a place");
    (house, sight.id.to_string())
}

#[tokio::test]
async fn a_key_of_the_right_role_opens_every_call_and_nothing_else_does() {
    let (house, session) = house(Wishes::default()).await;
    let nobody = house.nobody().await;
    type Metadata = [(&'static str, &'static str)];
    let rows: &[(&str, &Metadata, Code)] = &[
        ("bearer", &[("authorization", "Bearer wrk_operator")], Code::Ok),
        ("bearer in small letters", &[("authorization", "bearer wrk_operator")], Code::Ok),
        ("x-api-key", &[("x-api-key", OPERATOR)], Code::Ok),
        ("nothing", &[], Code::Unauthenticated),
        ("wrong key", &[("x-api-key", "wrk_wrong")], Code::Unauthenticated),
        ("empty key", &[("x-api-key", "")], Code::Unauthenticated),
        ("wrong bearer", &[("authorization", "Bearer wrk_wrong")], Code::Unauthenticated),
        ("another scheme", &[("authorization", "Basic d3JrX29wZXJhdG9y")], Code::Unauthenticated),
        ("a pass", &[("authorization", "Bearer eyJhbGciOiJub25lIn0.e30.")], Code::Unauthenticated),
        ("a ticket token", &[("authorization", "Bearer wt1_abc")], Code::Unauthenticated),
        (
            "a good bearer beside a wrong key",
            &[("authorization", "Bearer wrk_operator"), ("x-api-key", "wrk_wrong")],
            Code::Unauthenticated,
        ),
        ("a viewer", &[("x-api-key", VIEWER)], Code::PermissionDenied),
    ];
    for (who, metadata, code) in rows {
        assert_eq!(codes(&nobody.with(metadata), &session).await, [*code; 4], "{who}");
    }
    let told = nobody.status(&session).await.expect_err("refused");
    assert!(told.message().starts_with("api_key_missing - "), "{told:?}");
    house.stop().await;
}

#[tokio::test]
async fn in_development_a_caller_without_any_credential_is_the_operator_and_a_wrong_one_is_not() {
    let (house, session) = house(Wishes { dev: true, ..Wishes::default() }).await;
    let nobody = house.nobody().await;
    assert_eq!(codes(&nobody, &session).await, [Code::Ok; 4]);
    for wrong in [
        ("x-api-key", "wrk_wrong"),
        ("authorization", "Bearer wrk_wrong"),
        ("authorization", "Bearer eyJ"),
        ("authorization", "nonsense"),
        ("x-admin-key", "wrk_wrong"),
    ] {
        let said = codes(&nobody.with(&[wrong]), &session).await;
        assert_eq!(said, [Code::Unauthenticated; 4], "{wrong:?}");
    }
    let viewer = nobody.with(&[("x-api-key", VIEWER)]);
    assert_eq!(codes(&viewer, &session).await, [Code::PermissionDenied; 4]);
    house.stop().await;
}

#[tokio::test]
async fn a_client_certificate_is_as_good_as_an_operator_s_key() {
    let papers = Papers::new();
    let (house, session) = house(Wishes { tls: Some(papers.files()), ..Wishes::default() }).await;
    let certified = papers.client(&house, Known::Yes).await;
    assert_eq!(codes(&certified, &session).await, [Code::Ok; 4]);
    let wrong = certified.with(&[("x-api-key", "wrk_wrong")]);
    assert_eq!(codes(&wrong, &session).await, [Code::Unauthenticated; 4]);
    let viewer = certified.with(&[("x-api-key", VIEWER)]);
    assert_eq!(codes(&viewer, &session).await, [Code::PermissionDenied; 4]);
    let stranger = papers.client(&house, Known::No).await;
    assert_eq!(codes(&stranger, &session).await, [Code::Unauthenticated; 4]);
    let keyed = stranger.with(&[("x-api-key", OPERATOR)]);
    assert_eq!(codes(&keyed, &session).await, [Code::Ok; 4]);
    house.stop().await;
}

#[tokio::test]
async fn health_and_reflection_need_nothing_not_even_a_good_key() {
    let (house, _) = house(Wishes::default()).await;
    let wrong = house.nobody().await.with(&[("x-api-key", "wrk_wrong")]);
    let told: HealthCheckResponse =
        wrong.call("HealthCheck", HealthCheckRequest {}).await.expect("told");
    assert_eq!(told.status, "healthy");
    assert_eq!(crate::standard::serving(&wrong, "").await.expect("told"), 1);
    let services = crate::standard::services(&wrong, "v1").await;
    assert!(services.contains(&"waitroom.v1.WaitroomService".to_owned()), "{services:?}");
    house.stop().await;
}
