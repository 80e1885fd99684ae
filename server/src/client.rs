//! A running server, as the operators' commands talk to it: one call, one answer.
//!
//! Lives here: which server and key, the call over HTTP/1.1, and what is told when it fails.
//! Addresses and keys are never printed: both may hold secrets, and errors end up in tickets.
//! Stays out: what the calls mean (one file per command), and TLS: the admin listener is for
//! this machine or a tunnel to it.

mod problem;

use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::failure::{Exit, Failure};

pub use problem::Problem;

const SERVER: &str = "WAITROOM_SERVER";
const KEY: &str = "WAITROOM_ADMIN_KEY";
/// Where `waitroom serve` has its admin listener unless told otherwise.
const USUAL: &str = "http://127.0.0.1:8081";
/// A server on this machine answers at once, one behind a tunnel soon.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// The longest call waits for a disk; beyond it something is stuck.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// A list of a thousand rooms is below a megabyte.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// `--server URL --key KEY`, or the environment.
#[derive(Args)]
pub struct To {
    /// The server's admin address [default: WAITROOM_SERVER, or http://127.0.0.1:8081]
    #[arg(long = "server", value_name = "URL")]
    server: Option<String>,
    /// An API key; better in WAITROOM_ADMIN_KEY, where other users of the machine cannot see it.
    #[arg(long = "key", value_name = "KEY")]
    key: Option<String>,
    /// Sends the key unencrypted to another machine. Only within a network that you trust.
    #[arg(long)]
    plain: bool,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

/// A server that can be called.
pub struct Client {
    /// Host and port, as in the `Host` header and as the resolver takes it.
    authority: String,
    key: HeaderValue,
}

/// A call that the server took.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub body: Value,
}

/// Why there is no answer to go on with.
#[derive(Debug)]
pub enum Refused {
    /// The server said no, and why.
    Problem(Problem),
    /// It could not be asked.
    Failure(Failure),
}

impl To {
    pub fn client(&self) -> Result<Client, Failure> {
        let variable = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let server = self.server.clone().or_else(|| variable(SERVER)).unwrap_or(USUAL.into());
        let authority = authority(&server)?;
        if !self.plain && !is_this_machine(&authority) {
            let said = "the key would travel unencrypted to another machine";
            return Err(Failure::new(Exit::Usage, said).means("nothing was sent").advise(
                "open a tunnel (ssh -L 8081:127.0.0.1:8081 HOST) and leave --server out,\n\
                 or give --plain if you trust every machine in between",
            ));
        }
        let key = self.key.clone().or_else(|| variable(KEY)).ok_or_else(|| {
            Failure::new(Exit::Usage, "no API key was given").means("nothing was sent").advise(
                format!("set {KEY} (or give --key); a development server prints one on start"),
            )
        })?;
        let mut key = HeaderValue::from_str(&format!("Bearer {}", key.trim())).map_err(|_| {
            let said = "the API key has letters that no key has";
            Failure::new(Exit::Usage, said).advise(format!("look at {KEY} or --key"))
        })?;
        key.set_sensitive(true);
        Ok(Client { authority, key })
    }
}

impl Client {
    pub fn get(&self, path: &str) -> Result<Answer, Refused> {
        self.call(Method::GET, path, None)
    }

    pub fn put(&self, path: &str, body: &Value) -> Result<Answer, Refused> {
        self.call(Method::PUT, path, Some(body))
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Answer, Refused> {
        self.call(Method::POST, path, Some(body))
    }

    /// What is no JSON: the page of figures.
    pub fn text(&self, path: &str) -> Result<String, Refused> {
        let (status, body) = self.ask(Method::GET, path, None)?;
        String::from_utf8(body.to_vec()).map_err(|_| not_ours(status))
    }

    fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, Refused> {
        let (status, body) = self.ask(method, path, body)?;
        let body = if body.is_empty() { Value::Null } else { parsed(&body)? };
        Ok(Answer { status, body })
    }

    /// One call; an answer that is none becomes what was refused.
    fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Bytes), Refused> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| {
            Refused::Failure(Failure::new(Exit::Io, format!("cannot start: {error}")))
        })?;
        let request = self.request(method, path, body);
        let (status, body) = runtime.block_on(async {
            let connected = timeout(CONNECT_WITHIN, TcpStream::connect(&self.authority)).await;
            let stream = match connected {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return Err(unreachable(&error.kind().to_string())),
                Err(_) => return Err(unreachable("it did not answer within 5 s")),
            };
            let answered = timeout(ANSWER_WITHIN, exchange(stream, request)).await;
            answered.unwrap_or_else(|_| Err(unanswered("it took longer than 30 s")))
        })?;
        if status.is_success() {
            return Ok((status, body));
        }
        match Problem::parse(status, &body) {
            Some(problem) => Err(Refused::Problem(problem)),
            None => Err(not_ours(status)),
        }
    }

    fn request(&self, method: Method, path: &str, body: Option<&Value>) -> Request<Full<Bytes>> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.authority)
            .header(AUTHORIZATION, &self.key)
            .header(ACCEPT, "application/json, application/problem+json")
            .header(USER_AGENT, concat!("waitroom/", env!("CARGO_PKG_VERSION")));
        let request = match body {
            Some(_) => request.header(CONTENT_TYPE, "application/json"),
            None => request,
        };
        let body = body.map_or(Bytes::new(), |body| body.to_string().into());
        request.body(Full::new(body)).expect("an authority and paths of ours are well formed")
    }
}

async fn exchange(
    stream: TcpStream,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Bytes), Refused> {
    let broken = |error: hyper::Error| unanswered(&error.to_string());
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // It ends with the runtime, after the one answer.
    tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(broken)?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| unanswered(&error.to_string()))?;
    Ok((status, body.to_bytes()))
}

/// Host and port of `http://HOST[:PORT]`.
fn authority(server: &str) -> Result<String, Failure> {
    let wrong = |advice: &str| {
        let said = format!("the server's address (--server or {SERVER}) cannot be used");
        Failure::new(Exit::Usage, said).means("nothing was sent").advise(advice)
    };
    let shape = "write it as http://HOST:PORT, without a path";
    if server.starts_with("https://") {
        return Err(wrong(
            "this command speaks plain HTTP only: run it on the server's machine,\n\
             or open a tunnel (ssh -L 8081:127.0.0.1:8081 HOST) and leave --server out",
        ));
    }
    let rest = server.strip_prefix("http://").ok_or_else(|| wrong(shape))?;
    let authority: hyper::http::uri::Authority =
        rest.trim_end_matches('/').parse().map_err(|_| wrong(shape))?;
    if authority.as_str().contains('@') || authority.host().is_empty() {
        return Err(wrong(shape));
    }
    // A port that is none is not told apart from none at all there.
    let port = match &authority.as_str()[authority.host().len()..] {
        "" => 80,
        _ => authority.port_u16().ok_or_else(|| wrong(shape))?,
    };
    Ok(format!("{}:{port}", authority.host()))
}

fn is_this_machine(authority: &str) -> bool {
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback())
}

fn unreachable(why: &str) -> Refused {
    let failure = Failure::new(Exit::Unavailable, format!("cannot reach the server: {why}"));
    Refused::Failure(failure.means("nothing was changed").advise(format!(
        "look whether it is running, and whether --server or {SERVER} is its admin address\n\
         (usually {USUAL})"
    )))
}

fn unanswered(why: &str) -> Refused {
    let failure = Failure::new(Exit::Unavailable, format!("the server did not answer: {why}"));
    let means = "it is not known whether it was done";
    Refused::Failure(failure.means(means).advise("look at the room, then try again"))
}

fn not_ours(status: StatusCode) -> Refused {
    let said = format!("something else than waitroom's admin listener answered (HTTP {status})");
    Refused::Failure(Failure::new(Exit::Unavailable, said).advise(format!(
        "look whether --server or {SERVER} is the admin address; the public one is another"
    )))
}

fn parsed(body: &[u8]) -> Result<Value, Refused> {
    serde_json::from_slice(body).map_err(|_| not_ours(StatusCode::OK))
}

/// Says nothing of the address and the key.
impl std::fmt::Debug for To {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("To").field("json", &self.json).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for (given, expected) in [
            ("http://127.0.0.1:8081", "127.0.0.1:8081"),
            ("http://localhost:1/", "localhost:1"),
            ("http://[::1]:8081", "[::1]:8081"),
            ("http://queue", "queue:80"),
        ] {
            assert_eq!(authority(given).expect(given), expected);
        }
        let secret = "user:hunter2@host";
        for wrong in [
            "",
            "127.0.0.1:8081",
            "http://",
            "http://host:99999",
            "http://host:",
            "http://host/path",
            "https://host",
            &format!("http://{secret}"),
            &format!("https://{secret}"),
        ] {
            let failure = authority(wrong).expect_err(wrong).to_string();
            assert!(!failure.contains("hunter2"), "{failure}");
        }
    }

    #[test]
    fn only_loopback_is_this_machine() {
        for here in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:80", "localhost:8081"] {
            assert!(is_this_machine(here), "{here}");
        }
        for there in ["10.0.0.1:1", "localhost.example:1", "[::2]:80", "127.0.0.1.example:1"] {
            assert!(!is_this_machine(there), "{there}");
        }
    }
}
