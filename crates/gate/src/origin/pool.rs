//! One origin: its address, the connections that wait for the next request, and how it is.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{HeaderValue, Uri};
use tokio::net::TcpStream;

use super::health::Health;
use super::link::{Failed, Link};
use super::stream::Stream;
use super::tls::Trust;

/// A connection that has waited this long is closed: most servers close theirs after 5 to 75 s,
/// and one that is about to be closed is worth nothing.
const IDLE_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Origin {
    host: String,
    port: u16,
    /// How it proves who it is; none where it is spoken to in the clear.
    trust: Option<Trust>,
    /// What the origin is called when it is not to see the visitor's host.
    pub host_header: HeaderValue,
    idle: Mutex<Vec<Idle>>,
    idle_max: usize,
    in_use: AtomicUsize,
    pub health: Health,
}

#[derive(Debug)]
struct Idle {
    link: Link,
    since: Instant,
}

/// A connection while a request has it. Dropped, it is closed.
#[derive(Debug)]
pub struct Taken {
    pub link: Link,
    in_use: InUse,
}

/// Counts one request at one origin until it is dropped.
#[derive(Debug)]
pub struct InUse(Arc<Origin>);

impl InUse {
    fn of(origin: &Arc<Origin>) -> InUse {
        origin.in_use.fetch_add(1, Relaxed);
        InUse(origin.clone())
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.in_use.fetch_sub(1, Relaxed);
    }
}

impl Taken {
    /// The request is over. A connection that can take another one is kept.
    pub fn give_back(self) {
        let Taken { link, in_use } = self;
        let origin = &in_use.0;
        if link.is_at_rest() {
            let mut idle = origin.lock();
            if idle.len() < origin.idle_max {
                idle.push(Idle { link, since: Instant::now() });
            }
        }
    }

    /// The connection itself, for an upgrade, and its place.
    pub fn into_parts(self) -> (Link, InUse) {
        (self.link, self.in_use)
    }
}

impl Origin {
    /// `None` for an address that is no HTTP one. `trust` is whom to believe over TLS.
    pub fn new(uri: &Uri, idle_max: usize, trust: Option<&Trust>) -> Option<Origin> {
        let authority = uri.authority()?;
        let (usual_port, trust) = match uri.scheme_str()? {
            "http" => (80, None),
            "https" => (443, Some(trust?.clone())),
            _ => return None,
        };
        Some(Origin {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(usual_port),
            trust,
            host_header: HeaderValue::from_str(authority.as_str()).ok()?,
            idle: Mutex::default(),
            idle_max,
            in_use: AtomicUsize::new(0),
            health: Health::default(),
        })
    }

    pub fn in_use(&self) -> usize {
        self.in_use.load(Relaxed)
    }

    /// A connection that waited for this, the newest first, so that the others can grow old.
    /// Those that the origin has closed meanwhile are found here and thrown away.
    pub fn waiting(self: &Arc<Origin>) -> Option<Taken> {
        loop {
            let Idle { mut link, since } = self.lock().pop()?;
            if since.elapsed() < IDLE_MAX && link.is_still_good() {
                return Some(Taken { link, in_use: InUse::of(self) });
            }
        }
    }

    pub async fn connected(self: &Arc<Origin>, within: Duration) -> Result<Taken, Failed> {
        let in_use = InUse::of(self);
        let connected = tokio::time::timeout(within, self.stream()).await;
        let stream = connected.ok().flatten().ok_or(Failed::Connect)?;
        Ok(Taken { link: Link::new(stream), in_use })
    }

    async fn stream(&self) -> Option<Stream> {
        let stream = TcpStream::connect((&*self.host, self.port)).await.ok()?;
        // A request is written whole; waiting for more of it helps nobody.
        let _ = stream.set_nodelay(true);
        match &self.trust {
            None => Some(Stream::Plain(stream)),
            Some(trust) => trust.connect(&self.host, stream).await,
        }
    }

    /// Closes what has waited for too long.
    pub fn tidy(&self) {
        let mut idle = self.lock();
        idle.retain(|idle| idle.since.elapsed() < IDLE_MAX);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
