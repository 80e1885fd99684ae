//! Health and reflection, as the gRPC project defines them.

use tonic::{Code, Status, Streaming};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::{v1, v1alpha};

use crate::house::{Client, House, by_hand, next, soon};

pub async fn serving(client: &Client, service: &str) -> Result<i32, Status> {
    let request = HealthCheckRequest { service: service.into() };
    let told: Result<HealthCheckResponse, Status> =
        client.call("/grpc.health.v1.Health/Check", request).await;
    told.map(|told| told.status)
}

#[tokio::test]
async fn a_balancer_hears_that_it_serves_until_it_drains() {
    let house = House::open().await;
    house.room("sale", by_hand()).await;
    let client = house.nobody().await;
    for service in ["", "waitroom.v1.WaitroomService"] {
        assert_eq!(serving(&client, service).await.expect("told"), 1, "{service}");
    }
    let unknown = serving(&client, "nonsense").await.expect_err("refused");
    assert_eq!(unknown.code(), Code::NotFound);
    let request = client.request(HealthCheckRequest::default());
    let watch = client.open("/grpc.health.v1.Health/Watch", request).await;
    let mut watch: Streaming<HealthCheckResponse> = watch.expect("opened");
    assert_eq!(next(&mut watch).await.status, 1);
    house.drain();
    assert_eq!(next(&mut watch).await.status, 2);
    assert!(soon(watch.message()).await.expect("a good end").is_none(), "nothing holds up a drain");
    assert_eq!(serving(&client, "").await.expect("told"), 2);
    let outcome = house.stop().await;
    assert_eq!(outcome.cut_off, 0, "{outcome:?}");
}

/// The services that reflection lists.
pub async fn services(client: &Client, version: &str) -> Vec<String> {
    let mut grpc = tonic::client::Grpc::new(client.channel.clone());
    grpc.ready().await.expect("connected");
    macro_rules! listed {
        ($module:ident, $path:literal) => {{
            use $module::server_reflection_request::MessageRequest;
            use $module::server_reflection_response::MessageResponse;
            let ask = $module::ServerReflectionRequest {
                host: String::new(),
                message_request: Some(MessageRequest::ListServices(String::new())),
            };
            let asked = tonic::codegen::tokio_stream::once(ask);
            let codec = tonic_prost::ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static($path);
            let answers = grpc.streaming(client.request(asked), path, codec).await;
            let mut answers: Streaming<$module::ServerReflectionResponse> =
                answers.expect("opened").into_inner();
            match next(&mut answers).await.message_response {
                Some(MessageResponse::ListServicesResponse(list)) => {
                    list.service.into_iter().map(|service| service.name).collect()
                }
                other => panic!("{other:?}"),
            }
        }};
    }
    match version {
        "v1" => listed!(v1, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"),
        _ => listed!(v1alpha, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"),
    }
}

#[tokio::test]
async fn tools_old_and_new_can_list_what_is_served() {
    let house = House::open().await;
    let client = house.nobody().await;
    for version in ["v1", "v1alpha"] {
        let services = services(&client, version).await;
        for service in ["waitroom.v1.WaitroomService", "grpc.health.v1.Health"] {
            assert!(services.contains(&service.to_owned()), "{version}: {services:?}");
        }
    }
    house.stop().await;
}
