//! The room behind HTTP, on a port of its own, gone when dropped.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::room::{Answer, Lie, Room, problem};

pub struct Server {
    pub address: SocketAddr,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

pub async fn serve(lie: Lie) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound");
    let room = Arc::new(Mutex::new(Room::new(lie)));
    let ticking = room.clone();
    let ticks = tokio::spawn(async move {
        let mut every = tokio::time::interval(Duration::from_millis(5));
        loop {
            every.tick().await;
            ticking.lock().expect("nobody panics").tick();
        }
    });
    let accepts = tokio::spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else { return };
            let room = room.clone();
            let service = service_fn(move |request| handle(room.clone(), request));
            tokio::spawn(async move {
                let http = hyper::server::conn::http1::Builder::new();
                let _ = http.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    Server { address, tasks: vec![ticks, accepts] }
}

async fn handle(
    room: Arc<Mutex<Room>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let text = |name: &str| head.headers.get(name).and_then(|it| it.to_str().ok());
    let token = text("authorization").and_then(|it| it.strip_prefix("Bearer "));
    let key = text("idempotency-key").unwrap_or_default();
    let route: Vec<&str> = head.uri.path().split('/').skip(1).collect();
    let answer: Answer = {
        let mut room = room.lock().expect("nobody panics");
        match route.as_slice() {
            ["v1", "rooms", "r", "join"] if !body.is_empty() => problem(400, "bad_json"),
            ["v1", "rooms", "r", "join"] => room.join(key),
            ["v1", "rooms", "r", "status" | "heartbeat"] => room.status(token),
            ["v1", "rooms", "r", "claim"] => room.claim(token),
            ["v1", "rooms", "r", "leave"] => room.end(token, None),
            ["v1", "sessions", id, "complete"] => room.end(token, Some(id)),
            ["v1", "sessions", _, "activity"] => room.status(token),
            ["admin", "v1", "rooms", "r"] => (200, room.settings()),
            ["admin", "v1", "rooms", "r", "pause"] => room.pause(true),
            ["admin", "v1", "rooms", "r", "resume"] => room.pause(false),
            _ => problem(404, "not_found"),
        }
    };
    let mut response = Response::new(Full::new(answer.1.to_string().into()));
    *response.status_mut() = answer.0.try_into().expect("a status");
    let json = if answer.0 < 400 { "application/json" } else { "application/problem+json" };
    response.headers_mut().insert("content-type", json.parse().expect("a header value"));
    Ok(response)
}
