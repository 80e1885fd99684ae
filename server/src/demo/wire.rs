//! A small browser: one request after the other, cookies kept, redirects followed by hand.
//!
//! It knows the shop only through the gate, as people do.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{ACCEPT, CONTENT_TYPE, COOKIE, HOST, LOCATION, SET_COOKIE};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;

/// Longer than a slow shop takes, shorter than a stuck one.
const WITHIN: Duration = Duration::from_secs(20);
/// A page of the hall has thirty kilobytes.
const BODY_MAX: usize = 1 << 20;

/// What came back.
#[derive(Clone, Debug)]
pub struct Got {
    pub status: u16,
    pub location: Option<String>,
    pub body: String,
}

#[derive(Clone, Debug)]
pub struct Browser {
    to: SocketAddr,
    cookies: BTreeMap<String, String>,
    /// Sent with every request.
    headers: Vec<(&'static str, String)>,
}

impl Browser {
    pub fn new(to: SocketAddr) -> Browser {
        Browser { to, cookies: BTreeMap::new(), headers: Vec::new() }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Browser {
        self.headers.push((name, value.into()));
        self
    }

    /// The address that it claims to come from, if any; the demo's server believes this machine.
    pub fn coming_from(self, address: Option<String>) -> Browser {
        match address {
            Some(address) => self.with("x-forwarded-for", address),
            None => self,
        }
    }

    pub async fn get(&mut self, path: &str) -> Result<Got, String> {
        self.ask(Method::GET, path, "").await
    }

    pub async fn post(&mut self, path: &str, form: &str) -> Result<Got, String> {
        self.ask(Method::POST, path, form).await
    }

    async fn ask(&mut self, method: Method, path: &str, form: &str) -> Result<Got, String> {
        let asked = tokio::time::timeout(WITHIN, self.send(method, path, form)).await;
        asked.map_err(|_| "no answer in time".to_owned())?.map_err(|error| error.to_string())
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        form: &str,
    ) -> Result<Got, Box<dyn std::error::Error + Send + Sync>> {
        let stream = tokio::net::TcpStream::connect(self.to).await?;
        let (mut send, driver) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let driver = tokio::spawn(driver);
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(HOST, self.to.to_string()).header(ACCEPT, "text/html");
        if !form.is_empty() {
            request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        if !self.cookies.is_empty() {
            let line: Vec<String> =
                self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
            request = request.header(COOKIE, line.join("; "));
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let answer =
            send.send_request(request.body(Full::new(Bytes::from(form.to_owned())))?).await?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, BODY_MAX).collect().await?.to_bytes();
        driver.abort();
        for line in head.headers.get_all(SET_COOKIE) {
            self.keep(line.to_str().unwrap_or(""));
        }
        let location = head.headers.get(LOCATION).and_then(|it| it.to_str().ok());
        Ok(Got {
            status: head.status.as_u16(),
            location: location.map(str::to_owned),
            body: String::from_utf8_lossy(&body).into_owned(),
        })
    }

    fn keep(&mut self, line: &str) {
        let mut parts = line.split(';');
        let Some((name, value)) = parts.next().and_then(|it| it.trim().split_once('=')) else {
            return;
        };
        let gone = parts.any(|it| it.trim().eq_ignore_ascii_case("max-age=0"));
        if gone {
            self.cookies.remove(name);
        } else {
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
    }
}

/// A question to our own admin API, as JSON.
pub async fn look_up(admin: SocketAddr, key: &str, path: &str) -> Option<serde_json::Value> {
    let mut browser = Browser::new(admin).with("x-api-key", key);
    let got = browser.get(path).await.ok().filter(|it| it.status == 200)?;
    serde_json::from_str(&got.body).ok()
}
