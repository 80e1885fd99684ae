//! tonic alone: reads the request, answers with its session and otherwise always the same.

use std::convert::Infallible;
use std::task::{Context, Poll};

use prost::Message;
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{BoxFuture, Service};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_prost::ProstCodec;

use super::say;
use crate::failure::{OrFail, Outcome};

pub async fn serve(sample: Vec<u8>) -> Outcome {
    let answer = Status::decode(&sample[..]).or_fail(|| "read the sample answer")?;
    let listener = TcpListener::bind("127.0.0.1:0").await.or_fail(|| "listen on loopback")?;
    say(listener.local_addr().or_fail(|| "ask where we listen")?);
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let server = Server::builder().add_service(Echo { answer }).serve_with_incoming(incoming);
    server.await.or_fail(|| "serve")
}

/// The messages of `waitroom.v1.WaitroomService/GetQueueStatus`.
#[derive(Clone, PartialEq, Message)]
struct Ask {
    #[prost(string, tag = "1")]
    session_id: String,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "1")]
    session_id: String,
    #[prost(int32, tag = "2")]
    status: i32,
    #[prost(int64, tag = "3")]
    position: i64,
    #[prost(int64, tag = "4")]
    queue_length: i64,
    #[prost(string, tag = "5")]
    queued_at: String,
    #[prost(string, tag = "6")]
    expires_at: String,
}

#[derive(Debug, Clone)]
struct Echo {
    answer: Status,
}

impl NamedService for Echo {
    const NAME: &'static str = "waitroom.v1.WaitroomService";
}

impl Service<Request<Body>> for Echo {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let echo = self.clone();
        Box::pin(async move {
            Ok(Grpc::new(ProstCodec::<Status, Ask>::default()).unary(echo, request).await)
        })
    }
}

impl UnaryService<Ask> for Echo {
    type Response = Status;
    type Future = std::future::Ready<Result<tonic::Response<Status>, tonic::Status>>;

    fn call(&mut self, request: tonic::Request<Ask>) -> Self::Future {
        let session_id = request.into_inner().session_id;
        std::future::ready(Ok(tonic::Response::new(Status { session_id, ..self.answer.clone() })))
    }
}
