//! One connection's service: which call goes where, and how long each may take.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::Service;
use tonic::codegen::Service as _;
use tonic::server::NamedService;
use tonic::service::Routes;

use super::arriving::Arriving;
use super::calls::Calls;
use super::deadline::{Answering, Deadline, UntilThen};
use super::proto::waitroom_service_server::WaitroomServiceServer;
use crate::desk::Desk;
use crate::metrics::{Door, Watched};

type Server = WaitroomServiceServer<Calls>;

/// Answers the calls of one connection. Made by [`super::Grpc::connection`].
#[derive(Clone, Debug)]
pub struct Connection {
    calls: Server,
    standard: Routes,
    body_within: Duration,
    desk: Arc<Desk>,
}

impl Connection {
    pub(super) fn new(calls: Calls, standard: Routes, desk: &Arc<Desk>) -> Connection {
        let manners = &desk.manners;
        let calls = Server::new(calls).max_decoding_message_size(manners.body_bytes_max);
        Connection { calls, standard, body_within: manners.body_timeout, desk: desk.clone() }
    }
}

impl Service<Request<Incoming>> for Connection {
    type Response = Response<UntilThen>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Answering {
        let path = request.uri().path();
        let watched = Watched::begin(Door::Grpc, "POST", path, None, request.headers());
        self.answer(request).watched(watched, self.desk.clone())
    }
}

impl Connection {
    fn answer(&self, request: Request<Incoming>) -> Answering {
        let deadline = match Deadline::of(request.headers()) {
            Ok(deadline) => deadline,
            Err(status) => return Answering::refused(status),
        };
        let request = request.map(|body| Arriving::new(body, self.body_within));
        let answer = if is_ours(request.uri().path()) {
            self.calls.clone().call(request)
        } else {
            Box::pin(self.standard.clone().call(request))
        };
        Answering::new(answer, deadline)
    }
}

fn is_ours(path: &str) -> bool {
    let service = path.strip_prefix('/').and_then(|path| path.strip_prefix(Server::NAME));
    service.is_some_and(|method| method.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::is_ours;

    #[test]
    fn only_calls_of_our_service_are_taken_for_ours() {
        assert!(is_ours("/waitroom.v1.WaitroomService/JoinQueue"));
        assert!(is_ours("/waitroom.v1.WaitroomService/"));
        for other in
            ["", "/", "/waitroom.v1.WaitroomServiceX/JoinQueue", "/grpc.health.v1.Health/Check"]
        {
            assert!(!is_ours(other), "{other}");
        }
    }
}
