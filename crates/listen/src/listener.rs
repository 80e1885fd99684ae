//! The accept loop, and its end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::service::Service;
use hyper::{Request, Response};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use crate::arrive::{Arrival, Reception};
use crate::drain::{Drain, DrainCall};
use crate::error::Error;
use crate::full::FullHouse;
use crate::line::{Clock, Line, Order};
use crate::peer::Peer;
use crate::quick::Quick;
use crate::seat::Seats;
use crate::settings::{Limits, Settings};
use crate::stats::{Stats, one_more};
use crate::sweep::{Lines, Sweep};
use crate::talk::{BoxError, Cuttable, Manner};
use crate::tls::Tls;

/// Connections the system may hold for us while we are busy; it caps this by `somaxconn`.
const BACKLOG: u32 = 4096;

/// When the process has no file or memory left: long enough for one to come free, short enough
/// that nobody notices.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Cut connections only have to be polled once more; this is for a machine that is very busy.
const CUT_WITHIN: Duration = Duration::from_secs(5);

/// Bound and ready; connections wait in the system until [`Listener::serve`] runs.
#[derive(Debug)]
pub struct Listener {
    sockets: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    settings: Settings,
    limits: Limits,
    tls: Option<Arc<Tls>>,
    quick: Option<Arc<dyn Quick>>,
    stats: Arc<Stats>,
    call: DrainCall,
    drain: Drain,
}

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Connections that were given a seat, from the first to the last.
    pub connections_served: u64,
    /// Of those open at the call to stop: ended in time.
    pub drained: u64,
    /// Of those: cut at the deadline.
    pub cut_off: u64,
    /// Of those: upgraded, and still kept open by their owner.
    pub upgraded_left: u64,
}

impl Listener {
    /// Must be called within a tokio runtime.
    pub fn bind(settings: Settings) -> Result<Listener, Error> {
        settings.check()?;
        let tls = match &settings.tls {
            Some(files) => Some(Arc::new(Tls::load(files.clone(), settings.protocols)?)),
            None => None,
        };
        let limits = settings.limits(files_max());
        let mut sockets = Vec::new();
        let mut addresses = Vec::new();
        for &address in &settings.addresses {
            let open = |source| Error::Bind { address, source };
            let socket = listen_on(address).map_err(open)?;
            addresses.push(socket.local_addr().map_err(open)?);
            sockets.push(socket);
        }
        let (call, drain) = DrainCall::new();
        let stats = Arc::default();
        Ok(Listener { sockets, addresses, settings, limits, tls, quick: None, stats, call, drain })
    }

    /// Plain requests are shown to `quick` before hyper sees them.
    pub fn with_quick(mut self, quick: Arc<dyn Quick>) -> Listener {
        self.quick = Some(quick);
        self
    }

    /// Where it listens, with the ports that were chosen; in the order of the settings.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The first of them.
    pub fn local_addr(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// What it works with; `connections_wanted` is worth a line at start.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    pub fn stats(&self) -> Arc<Stats> {
        self.stats.clone()
    }

    /// The certificate, to be reloaded.
    pub fn tls(&self) -> Option<Arc<Tls>> {
        self.tls.clone()
    }

    /// Tells services when to finish: for sockets after an upgrade, long polls, streams.
    pub fn drain(&self) -> Drain {
        self.drain.clone()
    }

    /// Serves until `shutdown` comes back, then drains. `make` makes the service of one
    /// connection when that is ready to talk.
    ///
    /// Dropping this future cuts every connection.
    pub async fn serve<F, S, B>(self, make: F, shutdown: impl Future<Output = ()>) -> Outcome
    where
        F: Fn(&Peer) -> S + Send + Sync + 'static,
        S: Service<Request<Incoming>, Response = Response<B>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let Listener { sockets, addresses: _, settings, limits, tls, quick, stats, call, drain: _ } =
            self;
        let clock = Clock::new();
        let left = Arc::new(Notify::new());
        let lines = Lines::new(left.clone());
        let (seats_max, per_address_max) = (limits.connections_max, settings.per_address_max);
        let seats = Seats::new(seats_max, per_address_max, stats.clone(), left.clone());
        let sweep = Sweep::new(lines.clone(), clock.clone(), stats.clone(), &settings.timeouts);
        let _sweeping = EndWith(tokio::spawn(sweep.run()));
        let _cut = CutWith(lines.clone());
        let house = Arc::new(House {
            make,
            manner: Manner::new(&settings, quick, stats.clone()),
            reception: Reception {
                protocols: settings.protocols,
                proxy_protocol: settings.proxy_protocol.clone(),
                trusted_hops: settings.trusted_hops.clone(),
                tls,
                stats: stats.clone(),
            },
        });

        // Over TLS a plain answer would be a broken handshake.
        let plain = house.reception.tls.is_none();
        let mut full_house = FullHouse::new(settings.full_answer.filter(|_| plain));

        let mut shutdown = pin!(shutdown);
        let mut next = 0;
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                accepted = accept(&sockets, &mut next) => accepted,
            };
            let (tcp, from) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    one_more(&stats.accept_failed);
                    // A client that left before we came to it is its own affair.
                    if !is_of_one_client(&error) {
                        sleep(ACCEPT_PAUSE).await;
                    }
                    continue;
                }
            };
            if !house.reception.lets_in(from) {
                continue;
            }
            let Some(seat) = seats.take() else {
                full_house.refuse(tcp).await;
                continue;
            };
            let line = Line::new(clock.clone());
            let listed = lines.list(line.clone());
            let house = house.clone();
            let arrival = Arrival { tcp, from, seat, line: line.clone() };
            let served = async move {
                let _listed = listed;
                let line = arrival.line.clone();
                if let Some((io, peer)) = house.reception.receive(arrival).await {
                    let service = (house.make)(&peer);
                    house.manner.converse(io, &peer, line, service).await;
                }
            };
            tokio::spawn(Cuttable::new(line, served));
        }

        // Closing the sockets first: who comes now is refused by the system, and goes elsewhere.
        drop(sockets);
        let open = seats.open();
        let deadline = Instant::now() + settings.timeouts.drain;
        call.call();
        lines.order_all(Order::Finish);
        until(deadline, &left, || seats.open() == 0 && lines.is_empty()).await;
        let cut_off = lines.order_all(Order::Cut);
        until(Instant::now() + CUT_WITHIN, &left, || lines.is_empty()).await;
        let upgraded_left = seats.open();
        Outcome {
            connections_served: stats.now().accepted,
            drained: open.saturating_sub(cut_off + upgraded_left),
            cut_off,
            upgraded_left,
        }
    }
}

/// What every connection of a listener shares.
#[derive(Debug)]
struct House<F> {
    make: F,
    manner: Manner,
    reception: Reception,
}

impl Reception {
    /// On a PROXY listener only the listed proxies may speak at all.
    fn lets_in(&self, from: SocketAddr) -> bool {
        let known = self.proxy_protocol.as_ref().is_none_or(|nets| nets.contains(from.ip()));
        if !known {
            one_more(&self.stats.refused_proxy);
        }
        known
    }
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // So that a restart need not wait for connections of the last run to be forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The next connection of any socket, each in turn first, so that none starves another.
async fn accept(sockets: &[TcpListener], next: &mut usize) -> io::Result<(TcpStream, SocketAddr)> {
    std::future::poll_fn(|cx| {
        for step in 0..sockets.len() {
            let at = (*next + step) % sockets.len();
            let poll = sockets[at].poll_accept(cx);
            if poll.is_ready() {
                *next = at + 1;
                return poll;
            }
        }
        std::task::Poll::Pending
    })
    .await
}

fn is_of_one_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

/// Waits for `done`, looking again whenever a connection ends, until `deadline`.
async fn until(deadline: Instant, left: &Notify, done: impl Fn() -> bool) {
    let wait = async {
        loop {
            let one_left = left.notified();
            if done() {
                return;
            }
            one_left.await;
        }
    };
    let _late_is_told_by_the_counts = timeout_at(deadline, wait).await;
}

fn files_max() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

/// Ends a task with the scope it serves.
struct EndWith(tokio::task::JoinHandle<()>);

impl Drop for EndWith {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Leaves no connection behind that nobody sweeps.
struct CutWith(Arc<Lines>);

impl Drop for CutWith {
    fn drop(&mut self) {
        self.0.order_all(Order::Cut);
    }
}
