//! HTTP/1.1 calls over a bounded pool of keep-alive connections.
//!
//! Polling visitors share the pool: ten thousand of them need a few dozen sockets. A call knows
//! when it was sent and when its answer was complete, and if none came, whether it can have
//! happened at all: that is the difference between a lost call and one that never was.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;

use super::target::Sources;
use crate::clock::Start;

/// No answer of ours is larger; a server gone mad must not fill the memory.
const BODY_MAX: usize = 1 << 20;

/// What to ask.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: Method,
    pub path: String,
    pub bearer: Option<String>,
    pub key: Option<String>,
    /// The address that the visitor claims to come from.
    pub forwarded_for: Option<String>,
    pub body: Option<Bytes>,
    /// What it is counted as, if not by its verb.
    pub counted_as: Option<&'static str>,
}

impl Ask {
    pub fn get(path: impl Into<String>) -> Ask {
        let (method, path) = (Method::GET, path.into());
        let (bearer, key, forwarded_for, body) = (None, None, None, None);
        Ask { method, path, bearer, key, forwarded_for, body, counted_as: None }
    }

    pub fn post(path: impl Into<String>) -> Ask {
        Ask { method: Method::POST, ..Ask::get(path) }
    }

    pub fn bearer(self, token: impl Into<String>) -> Ask {
        Ask { bearer: Some(token.into()), ..self }
    }

    pub fn body(self, body: impl Into<Bytes>) -> Ask {
        Ask { body: Some(body.into()), ..self }
    }

    fn request(&self, host: &HeaderValue) -> Result<Request<Full<Bytes>>, Unheard> {
        let mut request = Request::builder()
            .method(self.method.clone())
            .uri(&self.path)
            .header(HOST, host.clone());
        if let Some(token) = &self.bearer {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        if let Some(key) = &self.key {
            request = request.header("idempotency-key", key);
        }
        if let Some(address) = &self.forwarded_for {
            request = request.header("x-forwarded-for", address);
        }
        if self.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = Full::new(self.body.clone().unwrap_or_default());
        request.body(body).map_err(|error| Unheard::NotSent(error.to_string()))
    }
}

/// What came back, and when.
#[derive(Clone, Debug)]
pub struct Reply {
    pub t0: u64,
    pub t1: u64,
    pub http: u16,
    pub content_type: String,
    pub retry_after_ms: Option<u64>,
    pub body: Bytes,
}

/// No answer.
#[derive(Clone, Debug)]
pub enum Unheard {
    /// Nothing left this machine: it did not happen.
    NotSent(String),
    /// It was sent, and what became of it nobody knows.
    Lost { t0: u64, t1: u64, why: String },
}

#[derive(Clone, Debug)]
pub struct Pool {
    sources: Sources,
    host: HeaderValue,
    start: Start,
    timeout: Duration,
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<SendRequest<Full<Bytes>>>>>,
}

impl Pool {
    pub fn new(
        sources: Sources,
        host: &str,
        connections_max: usize,
        timeout: Duration,
        start: Start,
    ) -> Pool {
        let host = HeaderValue::from_str(host).unwrap_or(HeaderValue::from_static("localhost"));
        let permits = Arc::new(Semaphore::new(connections_max));
        Pool { sources, host, start, timeout, permits, idle: Arc::default() }
    }

    /// The same server with connections and patience of its own.
    pub fn beside(&self, connections_max: usize, timeout: Duration) -> Pool {
        let permits = Arc::new(Semaphore::new(connections_max));
        Pool { permits, timeout, idle: Arc::default(), ..self.clone() }
    }

    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    pub fn host(&self) -> &HeaderValue {
        &self.host
    }

    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Waits for a connection, asks, and reads the whole answer.
    pub async fn ask(&self, ask: &Ask) -> Result<Reply, Unheard> {
        let _permit = self.permits.acquire().await.expect("the pool is never closed");
        let mut request = ask.request(&self.host)?;
        loop {
            let (mut connection, fresh) = self.connection().await?;
            let t0 = self.start.ns();
            let lost = |why: String| Unheard::Lost { t0, t1: self.start.ns(), why };
            let asking = async {
                let response = match connection.try_send_request(request).await {
                    Ok(response) => response,
                    // The server had closed it before a byte went out: another one will do.
                    Err(mut unsent) => match unsent.take_message() {
                        Some(message) => return Ok(Err(message)),
                        None => return Err(lost(unsent.into_error().to_string())),
                    },
                };
                let (head, body) = response.into_parts();
                let body = Limited::new(body, BODY_MAX).collect().await;
                let body = body.map_err(|error| lost(error.to_string()))?.to_bytes();
                Ok(Ok((head, body)))
            };
            let asked = tokio::time::timeout(self.timeout, asking).await;
            let (head, body) =
                match asked.unwrap_or_else(|_| Err(lost("no answer in time".into())))? {
                    Ok(answer) => answer,
                    Err(message) if fresh => {
                        let _ = message;
                        return Err(Unheard::NotSent("the server closes at once".into()));
                    }
                    Err(message) => {
                        request = message;
                        continue;
                    }
                };
            let t1 = self.start.ns();
            if !connection.is_closed() {
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            }
            let text = |name: &str| head.headers.get(name).and_then(|it| it.to_str().ok());
            let seconds = text("retry-after").and_then(|text| text.parse::<u64>().ok());
            return Ok(Reply {
                t0,
                t1,
                http: head.status.as_u16(),
                content_type: text("content-type").unwrap_or_default().to_owned(),
                retry_after_ms: seconds.map(|seconds| seconds.saturating_mul(1_000)),
                body,
            });
        }
    }

    /// A connection that is ready, and whether it is new.
    async fn connection(&self) -> Result<(SendRequest<Full<Bytes>>, bool), Unheard> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match idle {
                Some(mut connection) => {
                    if connection.ready().await.is_ok() {
                        return Ok((connection, false));
                    }
                }
                None => {
                    let connecting = tokio::time::timeout(self.timeout, self.dial()).await;
                    let dialled = connecting.unwrap_or(Err("no connection in time".into()));
                    return dialled.map(|it| (it, true)).map_err(Unheard::NotSent);
                }
            }
        }
    }

    async fn dial(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        let stream = self.sources.connect().await.map_err(|error| error.to_string())?;
        let shaken = Builder::new().handshake(TokioIo::new(stream)).await;
        let (connection, driver) = shaken.map_err(|error| error.to_string())?;
        tokio::spawn(async move {
            // What goes wrong on the connection is told to whoever waits for an answer.
            let _ = driver.await;
        });
        Ok(connection)
    }
}
