//! A server of one answer: it notes the last call and says always the same.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

pub struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Option<Seen>>>,
    /// Ends every task when it goes.
    runtime: Mutex<Option<Runtime>>,
}

/// A call as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub line: String,
    pub authorization: String,
    pub content_type: String,
    pub body: Value,
}

pub fn problem(status: u16, code: &str, detail: &str) -> Value {
    json!({
        "type": format!("https://waitroom.dev/problems/{code}"),
        "title": "A title",
        "status": status,
        "code": code,
        "detail": detail,
    })
}

impl Server {
    pub fn answering(status: u16, body: Value) -> Server {
        Server::answering_text(
            status,
            &if body.is_null() { String::new() } else { body.to_string() },
        )
    }

    pub fn answering_text(status: u16, body: &str) -> Server {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(None));
        runtime.spawn(serve(listener, status, Bytes::from(body.to_owned()), seen.clone()));
        Server { address, seen, runtime: Mutex::new(Some(runtime)) }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    #[track_caller]
    pub fn seen(&self) -> Seen {
        self.seen.lock().expect("no panic").clone().expect("a call came")
    }

    pub fn saw_nothing(&self) -> bool {
        self.seen.lock().expect("no panic").is_none()
    }

    /// From now on nobody listens there.
    pub fn stop(&self) {
        drop(self.runtime.lock().expect("no panic").take());
    }
}

async fn serve(listener: TcpListener, status: u16, body: Bytes, seen: Arc<Mutex<Option<Seen>>>) {
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let (body, seen) = (body.clone(), seen.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let (body, seen) = (body.clone(), seen.clone());
            async move {
                let call = note(request).await;
                *seen.lock().expect("no panic") = Some(call);
                let response = Response::builder().status(status).body(Full::new(body));
                Ok::<_, Infallible>(response.expect("a response"))
            }
        });
        let connection = hyper::server::conn::http1::Builder::new();
        tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
    }
}

async fn note(request: Request<Incoming>) -> Seen {
    let header = |name| {
        let value = request.headers().get(name).map(|value| value.to_str().expect("text"));
        value.unwrap_or("").to_owned()
    };
    let line = format!("{} {}", request.method(), request.uri());
    let (authorization, content_type) = (header("authorization"), header("content-type"));
    let body = request.into_body().collect().await.expect("a body").to_bytes();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Seen { line, authorization, content_type, body }
}
