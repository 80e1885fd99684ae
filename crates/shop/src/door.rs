//! The shop's own door: nobody comes in without a good pass, whichever way they came.
//!
//! The gate stands before the shop, and still the shop looks: somebody may have found its own
//! address. It does what `docs/passes.md` tells every origin to do: the pass from the header or
//! the cookie, the public keys fetched from the waiting room, fetched again (not too often) when
//! a pass names one that is not known.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::header::{COOKIE, HOST, HeaderMap, USER_AGENT};
use hyper_util::rt::TokioIo;
use tokio::sync::Mutex;
use waitroom_verifier::{KeySet, Keys, Pass, Presented, Refused, Rules, Unseen, Verifier};

/// Where the waiting room publishes its keys, seen from the host that it protects.
const KEYS_PATH: &str = "/.waitroom/.well-known/jwks.json";
const KEYS_BYTES_MAX: usize = 64 << 10;
/// Forged passes name keys that never were; they must not make us ask all the time.
const FETCH_EVERY: Duration = Duration::from_secs(2);
const FETCH_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Door {
    room: String,
    /// Known once the gate stands.
    gate: OnceLock<SocketAddr>,
    verifier: OnceLock<Verifier>,
    keys: OnceLock<Keys>,
    fetched: Mutex<Option<Instant>>,
}

/// Why somebody stays outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwelcome {
    NoPass,
    Refused(Refused),
    /// The keys could not be had; nobody can be checked.
    NoKeys,
}

impl Unwelcome {
    pub fn code(self) -> &'static str {
        match self {
            Unwelcome::NoPass => "no_pass",
            Unwelcome::Refused(refused) => refused.code(),
            Unwelcome::NoKeys => "no_keys",
        }
    }
}

impl Door {
    pub fn of_room(room: &str) -> Door {
        Door {
            room: room.to_owned(),
            gate: OnceLock::new(),
            verifier: OnceLock::new(),
            keys: OnceLock::new(),
            fetched: Mutex::new(None),
        }
    }

    pub fn room(&self) -> &str {
        &self.room
    }

    /// Says where the gate is. The first word counts.
    pub fn ask_at(&self, gate: SocketAddr) {
        let _ = self.gate.set(gate);
    }

    /// The keys that passes are checked with, once there are any.
    pub fn keys(&self) -> Option<&Keys> {
        self.keys.get()
    }

    /// The pass that this request shows, if it is good at `now_s`, with its text.
    pub async fn check<'a>(
        &self,
        headers: &'a HeaderMap,
        now_s: u64,
    ) -> Result<(Pass, &'a str), Unwelcome> {
        let shown = self.shown(headers).ok_or(Unwelcome::NoPass)?;
        let user_agent = headers.get(USER_AGENT).and_then(|it| it.to_str().ok());
        let presented = Presented { user_agent, ..Presented::default() };
        let look = || match self.verifier.get() {
            Some(verifier) => verifier.verify(shown, now_s, &presented),
            None => Err(Refused::KeyUnknown),
        };
        let looked = match look() {
            Err(Refused::KeyUnknown) => {
                self.fetch().await;
                look()
            }
            looked => looked,
        };
        match looked {
            Ok(pass) => Ok((pass, shown)),
            Err(_) if self.verifier.get().is_none() => Err(Unwelcome::NoKeys),
            Err(refused) => Err(Unwelcome::Refused(refused)),
        }
    }

    fn shown<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        if let Some(header) = headers.get("waitroom-pass") {
            return header.to_str().ok();
        }
        let cookies = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
        cookies.flat_map(|line| line.split(';')).find_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            let name = name.strip_prefix("__Host-").unwrap_or(name);
            (name.strip_prefix("wr-pass-")? == self.room).then_some(value)
        })
    }

    /// Fetches the keys, unless somebody just did. If it fails, the keys stay as they were.
    async fn fetch(&self) {
        let Some(gate) = self.gate.get() else { return };
        let mut fetched = self.fetched.lock().await;
        if fetched.is_some_and(|at| at.elapsed() < FETCH_EVERY) {
            return;
        }
        let asked = tokio::time::timeout(FETCH_WITHIN, ask(*gate)).await;
        let Ok(Ok(text)) = asked else { return };
        let Ok(set) = KeySet::parse(&text) else { return };
        *fetched = Some(Instant::now());
        match self.keys.get() {
            Some(keys) => keys.replace(set),
            None => {
                let keys = self.keys.get_or_init(|| Keys::new(set));
                // What only the gate can see is the gate's to check.
                let unseen = Unseen { nonce: true, ip: true, user_agent: false };
                let rules = Rules::of_room(&self.room).unseen(unseen);
                let _ = self.verifier.set(Verifier::with(keys.clone(), rules));
            }
        }
    }
}

async fn ask(gate: SocketAddr) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let stream = tokio::net::TcpStream::connect(gate).await?;
    let (mut send, driver) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        let _ = driver.await;
    });
    let request =
        hyper::Request::get(KEYS_PATH).header(HOST, gate.to_string()).body(Empty::<Bytes>::new())?;
    let answer = send.send_request(request).await?;
    let body = Limited::new(answer.into_body(), KEYS_BYTES_MAX).collect().await?.to_bytes();
    Ok(String::from_utf8(body.to_vec())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(headers: &[(&'static str, &str)]) -> Option<String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a header"));
        }
        Door::of_room("hall").shown(&map).map(str::to_owned)
    }

    #[test]
    fn a_pass_is_found_in_the_header_or_in_the_cookie_of_its_room() {
        assert_eq!(shown(&[("waitroom-pass", "a")]).as_deref(), Some("a"));
        assert_eq!(shown(&[("cookie", "x=1; wr-pass-hall=b")]).as_deref(), Some("b"));
        assert_eq!(
            shown(&[("cookie", "x=1"), ("cookie", "__Host-wr-pass-hall=c")]).as_deref(),
            Some("c")
        );
        assert_eq!(shown(&[("cookie", "wr-pass-hall-b=d; pass-hall=e; wr-pass=f")]), None);
        // What the gate says of the ticket is no proof: anybody who finds this address can say it.
        assert_eq!(shown(&[("waitroom-ticket", "t"), ("waitroom-room", "hall")]), None);
    }
}
