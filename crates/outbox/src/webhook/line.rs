//! The line to one endpoint: finds its address, connects, asks, reads a short answer.
//!
//! Lives here: names, sockets, TLS, time-outs, connections that are used again. Stays out: what an
//! answer means.
//! Every step is bounded: time to connect and to answer, bytes of the answer. Redirects are an
//! answer like any other. A connection that is kept was made to an address that was looked at; it
//! is not kept for long, so that an endpoint that moves is followed.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use super::reach::Reach;
use super::{Answer, Post, Unheard};
use crate::names::Pending;

/// Only the status counts; a receiver that has more to say than this is cut off.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// For the head of an answer.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// Connections kept for the next message, and for how long after they were made.
const IDLE_MAX: usize = 8;
const IDLE_FOR: Duration = Duration::from_secs(30);

/// From a name to its addresses.
pub trait Resolve: Send + Sync + 'static {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Pending<'a, io::Result<Vec<SocketAddr>>>;
}

/// Asks the machine.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Pending<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// How an endpoint is reached.
#[derive(Clone, Debug)]
pub struct Manners {
    pub reach: Reach,
    /// For connecting, and again for the answer.
    pub within: Duration,
    /// Whose certificates it may show, besides those that the machine trusts.
    pub ca: Option<PathBuf>,
}

/// Why there can be no line to an address at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable(pub String);

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

pub struct Line {
    host: String,
    port: u16,
    /// As the request's first line has it.
    path: Uri,
    host_header: HeaderValue,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    manners: Manners,
    resolver: Arc<dyn Resolve>,
    idle: Mutex<Vec<Connection>>,
}

struct Connection {
    send: SendRequest<Full<Bytes>>,
    made: Instant,
    used: bool,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line to {}:{}", self.host, self.port)
    }
}

impl Line {
    pub fn to(url: &Uri, manners: Manners, resolver: Arc<dyn Resolve>) -> Result<Line, Unusable> {
        let unusable = |why: &str| Unusable(format!("{url}: {why}"));
        let authority = url.authority().ok_or_else(|| unusable("no host"))?;
        if authority.as_str().contains('@') {
            return Err(unusable("a password in an address is read by everybody who reads it"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let (secure, usual) = match url.scheme_str() {
            Some("https") => (true, 443),
            // A pass in plain text over the internet would be anybody's.
            Some("http") if manners.reach == Reach::Anywhere => (false, 80),
            _ => return Err(unusable("write https://; http:// needs allow_private")),
        };
        let tls = if secure {
            let name = ServerName::try_from(host.clone());
            let name = name.map_err(|_| unusable("no name that a certificate could have"))?;
            Some((trust(manners.ca.as_deref()).map_err(Unusable)?, name))
        } else {
            None
        };
        let path = url.path_and_query().map_or("/", |it| it.as_str());
        Ok(Line {
            port: authority.port_u16().unwrap_or(usual),
            path: path.parse().map_err(|_| unusable("no path"))?,
            host_header: HeaderValue::from_str(authority.as_str())
                .map_err(|_| unusable("no host"))?,
            host,
            tls,
            manners,
            resolver,
            idle: Mutex::default(),
        })
    }

    async fn connect(&self) -> Result<Connection, String> {
        let Line { host, port, .. } = self;
        let found = self.resolver.resolve(host, *port).await;
        let found = found.map_err(|error| format!("{host} cannot be found: {error}"))?;
        self.manners.reach.check(host, &found)?;
        let mut last = String::new();
        for address in found {
            // The address that was looked at, not the name again.
            match TcpStream::connect(address).await {
                Ok(stream) => return self.greet(stream).await,
                Err(error) => last = format!("{address}: {error}"),
            }
        }
        Err(last)
    }

    async fn greet(&self, stream: TcpStream) -> Result<Connection, String> {
        let _ = stream.set_nodelay(true);
        let wire: Box<dyn Wire> = match &self.tls {
            Some((connector, name)) => {
                let secured = connector.connect(name.clone(), stream).await;
                Box::new(secured.map_err(|error| format!("no TLS with {}: {error}", self.host))?)
            }
            None => Box::new(stream),
        };
        let shaken =
            Builder::new().max_buf_size(HEAD_BYTES_MAX).handshake(TokioIo::new(wire)).await;
        let (send, driver) = shaken.map_err(|error| error.to_string())?;
        // Ends when the connection is let go of.
        tokio::spawn(async move {
            let _ = driver.await;
        });
        Ok(Connection { send, made: Instant::now(), used: false })
    }

    async fn connection(&self) -> Result<Connection, String> {
        let kept = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.retain(|it| it.made.elapsed() < IDLE_FOR && !it.send.is_closed());
            idle.pop()
        };
        match kept {
            Some(kept) => Ok(kept),
            None => match timeout(self.manners.within, self.connect()).await {
                Ok(connected) => connected,
                Err(_) => Err(format!("{} cannot be reached in time", self.host)),
            },
        }
    }

    async fn exchange(
        &self,
        mut connection: Connection,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Answer, String> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = headers;
        request.headers_mut().insert(header::HOST, self.host_header.clone());
        let answer = connection.send.send_request(request).await.map_err(|it| it.to_string())?;
        let told = Answer {
            status: answer.status().as_u16(),
            retry_after: retry_after(answer.headers(), SystemTime::now()),
        };
        // A connection is good for another message once this one's answer was read to its end.
        let rest = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect();
        if timeout(self.manners.within, rest).await.is_ok_and(|it| it.is_ok()) {
            connection.used = true;
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < IDLE_MAX {
                idle.push(connection);
            }
        }
        Ok(told)
    }
}

impl Post for Line {
    async fn post(&self, headers: HeaderMap, body: Bytes) -> Result<Answer, Unheard> {
        loop {
            let connection = self.connection().await.map_err(Unheard::Away)?;
            let used = connection.used;
            let exchange = self.exchange(connection, headers.clone(), body.clone());
            match timeout(self.manners.within, exchange).await {
                Ok(Ok(answer)) => return Ok(answer),
                // The other side may have been about to close it: once more on a fresh one.
                Ok(Err(_)) if used => {}
                Ok(Err(why)) => {
                    return Err(Unheard::Silent(format!("no answer of {}: {why}", self.host)));
                }
                Err(_) => {
                    let why = format!("{} does not answer in time", self.host);
                    return Err(Unheard::Silent(why));
                }
            }
        }
    }
}

/// Seconds, or a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let said = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = said.parse() {
        return Some(Duration::from_secs(seconds));
    }
    httpdate::parse_http_date(said).ok()?.duration_since(now).ok()
}

fn trust(ca: Option<&Path>) -> Result<TlsConnector, String> {
    let mut config = crate::trust::client(crate::trust::Signers::Machine(ca), None)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(url: &str, reach: Reach) -> Result<Line, Unusable> {
        let manners = Manners { reach, within: Duration::from_secs(1), ca: None };
        Line::to(&url.parse().expect(url), manners, Arc::new(SystemResolver))
    }

    #[test]
    fn an_address_is_https_unless_the_operator_allows_more() {
        assert!(to("http://hook.example/x", Reach::Public).is_err());
        assert!(to("ftp://hook.example/x", Reach::Anywhere).is_err());
        assert!(to("http://ana:secret@hook.example/", Reach::Anywhere).is_err());
        let line = to("http://[::1]:8080/in?room=a", Reach::Anywhere).expect("allowed");
        assert_eq!(
            (&*line.host, line.port, line.path.to_string()),
            ("::1", 8_080, "/in?room=a".into())
        );
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_and_anything_else_is_nothing() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let read = |said: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, said.parse().expect("a header"));
            retry_after(&headers, now)
        };
        assert_eq!(read("120"), Some(Duration::from_secs(120)));
        let date = httpdate::fmt_http_date(now + Duration::from_secs(90));
        assert_eq!(read(&date), Some(Duration::from_secs(90)));
        let past = httpdate::fmt_http_date(now - Duration::from_secs(90));
        for nothing in [&*past, "-1", "soon", "", "1.5", "99999999999999999999999"] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }
}
