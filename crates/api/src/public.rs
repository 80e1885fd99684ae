//! The public listener: where visitors and their pages ask.
//!
//! Lives here: which address belongs to which interface. To add an interface: an arm in `route`.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use hyper::body::Incoming;
use hyper::service::Service;
use waitroom_listen::{Nets, Peer, client_address};

use crate::adapters;
use crate::body::Body;
use crate::desk::{Desk, Pending};
use crate::health;
use crate::metrics::{Door, Timed, Watched};
use crate::visitor::{self, Answering, Ask, wrong_method};

/// Answers the requests of one connection.
#[derive(Clone, Debug)]
pub struct Public {
    desk: Arc<Desk>,
    peer: IpAddr,
    trusted: Arc<Nets>,
}

impl Public {
    pub fn new(desk: Arc<Desk>, peer: &Peer, trusted: Arc<Nets>) -> Public {
        Public { desk, peer: peer.socket.ip(), trusted }
    }
}

/// Ready at once, or boxed; hyper polls either.
pub enum Answer {
    Now(Ready<Result<Response<Body>, Infallible>>),
    Later(Pending<'static, Response<Body>>),
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Answer::Now(_)) { "Now" } else { "Later" })
    }
}

impl Future for Answer {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Answer::Now(answer) => Pin::new(answer).poll(context),
            Answer::Later(answer) => answer.as_mut().poll(context).map(Ok),
        }
    }
}

impl From<Answering> for Answer {
    fn from(answering: Answering) -> Answer {
        match answering {
            Answering::Now(response) => Answer::Now(ready(Ok(response))),
            Answering::Later(answer) => Answer::Later(answer),
        }
    }
}

impl Service<Request<Incoming>> for Public {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Timed;

    fn call(&self, request: Request<Incoming>) -> Timed {
        let (head, body) = request.into_parts();
        let client = client_address(self.peer, &head.headers, &self.trusted);
        let (method, uri) = (head.method.as_str(), &head.uri);
        let watched = Watched::begin(Door::Public, method, uri.path(), uri.query(), &head.headers);
        let ask = Box::new(Ask { desk: self.desk.clone(), client, head, body: Some(body) });
        let answering = watched.during(|| route(ask));
        Timed::of(watched, &self.desk, answering)
    }
}

fn route(ask: Box<Ask>) -> Answering {
    const ROOMS: &str = "/v1/rooms/";
    const SESSIONS: &str = "/v1/sessions/";
    let path = ask.head.uri.path();
    if path.starts_with(ROOMS) {
        return visitor::room_route(ask, ROOMS.len());
    }
    if path.starts_with(SESSIONS) {
        return visitor::session_route(ask, SESSIONS.len());
    }
    let get = ask.head.method == Method::GET || ask.head.method == Method::HEAD;
    match path {
        "/.well-known/jwks.json" | "/openapi.json" | "/health/live" | "/health/ready" if !get => {
            wrong_method("GET")
        }
        "/openapi.json" => openapi(),
        "/.well-known/jwks.json" => jwks(&ask.desk),
        "/health/live" => health::live(),
        "/health/ready" => health::ready(&ask.desk, health::Reader::Anybody),
        _ => adapters::route(ask),
    }
}

fn jwks(desk: &Desk) -> Answering {
    let mut response =
        Response::new(Body::full(Bytes::from(desk.signatures.passes.jwks().to_string())));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jwk-set+json"));
    // Rotation publishes a key for longer than this before it signs, so no cache lacks it.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    Answering::Now(response)
}

/// What there is to ask, for people's tools.
fn openapi() -> Answering {
    static DOCUMENT: std::sync::OnceLock<Bytes> = std::sync::OnceLock::new();
    let document = DOCUMENT.get_or_init(|| crate::openapi::document().to_string().into());
    let mut response = Response::new(Body::full(document.clone()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    Answering::Now(response)
}
