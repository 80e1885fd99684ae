//! A house with a door, and guests of every kind: real sockets on loopback.

pub mod frames;
pub mod papers;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use waitroom_listen::{
    Counts, Drain, Endless, Io, Limits, Listener, Outcome, Peer, Plain, Quick, Quickly, Settings,
    Stats, Taken, Tls, body,
};

/// No wait in a test lasts longer: what has not happened by then will not.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Short enough for a test, long enough that a busy machine does not trip over it.
pub const SHORT: Duration = Duration::from_millis(120);

pub const BODY_BYTES_MAX: usize = 1000;

/// What `/endless` says; it ends after all, or a test would not.
pub const ENDLESS: &str = "on and on";

pub struct House {
    pub address: SocketAddr,
    pub addresses: Vec<SocketAddr>,
    pub stats: Arc<Stats>,
    pub tls: Option<Arc<Tls>>,
    pub drain: Drain,
    pub limits: Limits,
    /// One message for each request to `/wait` that has come in.
    pub waiting: mpsc::UnboundedReceiver<()>,
    /// Lets every request to `/wait` go on.
    pub go_on: Arc<Notify>,
    /// Sockets after an upgrade.
    pub taken: mpsc::UnboundedReceiver<Taken>,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<Outcome>,
}

pub fn settings() -> Settings {
    Settings::new(vec!["127.0.0.1:0".parse().expect("an address")])
}

/// A house with the answers that the tests need, and these settings changed.
pub fn open(change: impl FnOnce(&mut Settings)) -> House {
    let mut settings = settings();
    change(&mut settings);
    let body_within = settings.timeouts.header;
    let listener = Listener::bind(settings).expect("a free port");
    let (stop, stopped) = oneshot::channel();
    let (waits, waiting) = mpsc::unbounded_channel();
    let (takes, taken) = mpsc::unbounded_channel();
    let go_on = Arc::new(Notify::new());
    let quick = Arc::new(Quickest { waits: waits.clone(), go_on: go_on.clone() });
    let listener = listener.with_quick(quick);
    let desk = Desk { waits, takes, go_on: go_on.clone(), body_within };
    House {
        address: listener.local_addr(),
        addresses: listener.local_addrs().to_vec(),
        stats: listener.stats(),
        tls: listener.tls(),
        drain: listener.drain(),
        limits: listener.limits(),
        waiting,
        go_on,
        taken,
        stop: Some(stop),
        serving: tokio::spawn(async move {
            let make = move |peer: &Peer| {
                let (desk, peer) = (desk.clone(), peer.clone());
                service_fn(move |request| answer(desk.clone(), peer.clone(), request))
            };
            listener.serve(make, async { drop(stopped.await) }).await
        }),
    }
}

#[derive(Clone)]
struct Desk {
    waits: mpsc::UnboundedSender<()>,
    takes: mpsc::UnboundedSender<Taken>,
    go_on: Arc<Notify>,
    body_within: Duration,
}

/// Answers `/quick…` without hyper, which would say hello to these.
#[derive(Debug)]
struct Quickest {
    waits: mpsc::UnboundedSender<()>,
    go_on: Arc<Notify>,
}

impl Quick for Quickest {
    fn answer(&self, _: &Peer, request: &Plain<'_>, out: &mut Vec<u8>) -> Quickly {
        let say = |body: &str| {
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
        };
        match request.target {
            "/quick" => out.extend(say("quick")),
            "/quick-large" => out.extend(say(&"x".repeat(64 << 20))),
            "/quick-wait" => {
                let (waits, go_on) = (self.waits.clone(), self.go_on.clone());
                return Quickly::Later(Box::pin(async move {
                    let go_on = go_on.notified();
                    let _test_may_be_over = waits.send(());
                    go_on.await;
                    say("quick after all")
                }));
            }
            _ => return Quickly::NotMine,
        }
        Quickly::Written
    }
}

type Answer = Response<Full<Bytes>>;

async fn answer(desk: Desk, peer: Peer, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let say = |text: String| Response::new(Full::new(Bytes::from(text)));
    Ok(match request.uri().path() {
        "/peer" => {
            let cert = peer.client_cert.map_or(0, |cert| cert.len());
            say(format!(
                "{} {:?} {:?} tls={} cert={cert}",
                peer.socket, peer.via, peer.protocol, peer.tls
            ))
        }
        "/wait" => {
            let go_on = desk.go_on.notified();
            let _test_may_be_over = desk.waits.send(());
            go_on.await;
            say("waited".to_owned())
        }
        "/body" => match body::collect(request.into_body(), BODY_BYTES_MAX, desk.body_within).await
        {
            Ok(bytes) => say(format!("{} bytes", bytes.len())),
            Err(error) => {
                let mut response = say(format!("{error:?}"));
                *response.status_mut() = StatusCode::BAD_REQUEST;
                response
            }
        },
        "/endless" => {
            let mut response = say(ENDLESS.to_owned());
            response.extensions_mut().insert(Endless);
            response
        }
        "/large" => Response::new(Full::new(Bytes::from(vec![b'x'; 64 << 20]))),
        "/upgrade" => {
            tokio::spawn(async move {
                let upgraded = hyper::upgrade::on(request).await.expect("an upgrade");
                let taken = Io::take(upgraded).expect("a socket of ours");
                let _test_may_be_over = desk.takes.send(taken);
            });
            let mut response = say(String::new());
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            response.headers_mut().insert("connection", "upgrade".parse().expect("a value"));
            response.headers_mut().insert("upgrade", "test".parse().expect("a value"));
            response
        }
        path => say(format!("hello {path}")),
    })
}

impl House {
    pub async fn connect(&self) -> TcpStream {
        in_time(TcpStream::connect(self.address)).await.expect("a connection")
    }

    /// From another address of this machine, such as 127.0.0.7.
    pub async fn connect_from(&self, ip: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::new(ip.parse().expect(ip), 0)).expect("an address of loopback");
        in_time(socket.connect(self.address)).await.expect("a connection")
    }

    pub fn counts(&self) -> Counts {
        self.stats.now()
    }

    /// Waits until the counters are as `wanted`.
    pub async fn counted(&self, wanted: impl Fn(&Counts) -> bool) -> Counts {
        let look = async {
            loop {
                let counts = self.counts();
                if wanted(&counts) {
                    return counts;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, look).await {
            Ok(counts) => counts,
            Err(_) => panic!("never counted: {:?}", self.counts()),
        }
    }

    /// Tells the house to close, without waiting for it.
    pub fn call_closed(&mut self) {
        let _it_may_be_over = self.stop.take().expect("is told once").send(());
    }

    pub async fn closed(self) -> Outcome {
        in_time(self.serving).await.expect("serving does not panic")
    }

    pub async fn close(mut self) -> Outcome {
        self.call_closed();
        self.closed().await
    }
}

pub async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

/// Lets the other tasks of this test's one thread come to their end, several times: what was
/// written before is then read, so that what is written next comes apart from it.
pub async fn let_the_house_read() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

/// Asks over HTTP/1 and reads one answer; the connection stays open.
pub async fn ask<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, request: &str) -> Heard {
    in_time(stream.write_all(request.as_bytes())).await.expect("can write");
    hear(stream).await
}

pub async fn get<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, path: &str) -> Heard {
    ask(stream, &format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n")).await
}

#[derive(Debug, PartialEq, Eq)]
pub struct Heard {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Reads one answer with a `content-length`.
pub async fn hear<S: AsyncRead + Unpin>(stream: &mut S) -> Heard {
    in_time(async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a whole head"));
        }
        let head = String::from_utf8(head).expect("text").to_ascii_lowercase();
        let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().expect("a length"));
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.expect("a whole body");
        Heard { status, head, body: String::from_utf8(body).expect("text") }
    })
    .await
}

/// Waits for the other side to close, whether politely or not; what came before that.
pub async fn closed<S: AsyncRead + Unpin>(stream: &mut S) -> Vec<u8> {
    let mut rest = Vec::new();
    let _closed_or_reset = in_time(stream.read_to_end(&mut rest)).await;
    rest
}
