//! hyper alone: parses the request, answers everything with the same bytes.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::say;
use crate::failure::{OrFail, Outcome};

pub async fn serve(body: Vec<u8>) -> Outcome {
    let body = Bytes::from(body);
    let listener = TcpListener::bind("127.0.0.1:0").await.or_fail(|| "listen on loopback")?;
    say(listener.local_addr().or_fail(|| "ask where we listen")?);
    loop {
        let (stream, _) = listener.accept().await.or_fail(|| "accept a connection")?;
        stream.set_nodelay(true).or_fail(|| "switch Nagle's algorithm off")?;
        let body = body.clone();
        tokio::spawn(async move {
            let answer = service_fn(|_: Request<Incoming>| {
                let response = response(body.clone());
                async { Ok::<_, Infallible>(response) }
            });
            let builder = hyper::server::conn::http1::Builder::new();
            // A client that goes away in the middle is no news here.
            let _ = builder.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

pub fn response(body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
