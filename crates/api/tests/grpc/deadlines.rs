//! A call ends when its caller stops listening, and a message that does not come is not waited for.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tonic::codegen::tokio_stream::pending;
use tonic::{Code, Status};
use waitroom_api::grpc::proto::{StreamQueuePositionRequest, StreamQueuePositionResponse};

use crate::house::{House, OPERATOR, Wishes, by_hand, next, soon};

/// Sends the headers of a call and never its message; says how that ended. By hand, because
/// tonic's client keeps deadlines by itself.
async fn silent_call(house: &House, timeout: Option<&str>) -> (Code, Duration) {
    let tcp = TcpStream::connect(house.address).await.expect("connected");
    let hands = hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tcp));
    let (mut sender, connection) = hands.await.expect("a connection");
    let talking = tokio::spawn(connection);
    let path = format!("http://{}/waitroom.v1.WaitroomService/GetQueueStatus", house.address);
    let mut request = http::Request::post(path)
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    if let Some(timeout) = timeout {
        request = request.header("grpc-timeout", timeout);
    }
    let body = StreamBody::new(pending::<Result<http_body::Frame<Bytes>, Status>>());
    let request = request.body(body).expect("a request");
    let began = Instant::now();
    let response = soon(sender.send_request(request)).await.expect("an answer");
    let took = began.elapsed();
    let status = match Status::from_header_map(response.headers()) {
        Some(status) => status,
        None => {
            let body = soon(response.into_body().collect()).await.expect("a whole answer");
            Status::from_header_map(body.trailers().expect("trailers")).expect("a status")
        }
    };
    talking.abort();
    (status.code(), took)
}

#[tokio::test]
async fn a_call_that_takes_longer_than_its_deadline_is_told_so() {
    let house = House::open().await;
    let (code, took) = silent_call(&house, Some("200m")).await;
    assert_eq!(code, Code::DeadlineExceeded);
    assert!(took >= Duration::from_millis(200), "{took:?}");
    assert!(took < Duration::from_secs(8), "long before the message is given up: {took:?}");
    house.stop().await;
}

#[tokio::test]
async fn a_message_that_does_not_come_is_given_up() {
    let body_timeout = Some(Duration::from_millis(150));
    let house = House::with(Wishes { body_timeout, ..Wishes::default() }).await;
    let (code, took) = silent_call(&house, None).await;
    assert_eq!(code, Code::DeadlineExceeded);
    assert!(took >= Duration::from_millis(150), "{took:?}");
    house.stop().await;
}

#[tokio::test]
async fn a_deadline_that_cannot_be_read_is_refused() {
    let house = House::open().await;
    for wrong in ["soon", "5", "123456789S"] {
        assert_eq!(silent_call(&house, Some(wrong)).await.0, Code::InvalidArgument, "{wrong}");
    }
    house.stop().await;
}

#[tokio::test]
async fn an_open_stream_ends_at_its_deadline() {
    let house = House::open().await;
    house.room("sale", by_hand()).await;
    let client = house.client().await;
    let ana = client.join("ana", "sale").await.expect("a place");
    // tonic's client keeps a deadline until the answer begins; the rest is the server's.
    let timed = client.with(&[("x-api-key", OPERATOR), ("grpc-timeout", "400m")]);
    let request = timed.request(StreamQueuePositionRequest { session_id: ana.session_id });
    let opened = timed.open("StreamQueuePosition", request).await;
    let mut stream: tonic::Streaming<StreamQueuePositionResponse> = opened.expect("opened");
    next(&mut stream).await;
    let end = soon(stream.message()).await.expect_err("not a quiet end");
    assert_eq!(end.code(), Code::DeadlineExceeded, "{end:?}");
    assert!(end.message().starts_with("deadline - "), "{end:?}");
    house.stop().await;
}
