//! hyper with the classic join behind it: each request runs the join script on Redis, over one
//! connection that all requests share.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::hyper::response;
use super::multiplexed::Multiplexed;
use super::say;
use crate::bench::classic::JoinScript;
use crate::bench::redis::resp::{Connection, Pipeline};
use crate::failure::{OrFail, Outcome};

pub async fn serve(redis: SocketAddr, body: Vec<u8>) -> Outcome {
    let script = {
        let mut connection = Connection::open(redis).or_fail(|| "connect to redis")?;
        JoinScript::load(&mut connection)?
    };
    let shared = Arc::new(Shared {
        redis: Multiplexed::open(redis).await.or_fail(|| "connect to redis")?,
        script,
        visitors: AtomicU64::new(0),
        body: Bytes::from(body),
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.or_fail(|| "listen on loopback")?;
    say(listener.local_addr().or_fail(|| "ask where we listen")?);
    loop {
        let (stream, _) = listener.accept().await.or_fail(|| "accept a connection")?;
        stream.set_nodelay(true).or_fail(|| "switch Nagle's algorithm off")?;
        let shared = shared.clone();
        tokio::spawn(async move {
            let answer = service_fn(|_: Request<Incoming>| {
                let shared = shared.clone();
                async move {
                    let mut answer = response(shared.body.clone());
                    if shared.join().await.is_err() {
                        *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                    }
                    Ok::<_, Infallible>(answer)
                }
            });
            let builder = hyper::server::conn::http1::Builder::new();
            let _ = builder.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

struct Shared {
    redis: Multiplexed,
    script: JoinScript,
    visitors: AtomicU64,
    body: Bytes,
}

impl Shared {
    /// The number that Redis gave.
    async fn join(&self) -> Result<i64, String> {
        let visitor = self.visitors.fetch_add(1, Ordering::Relaxed);
        let mut command = Pipeline::default();
        self.script.push(visitor, &mut command);
        self.redis.ask(command.into_bytes()).await
    }
}
