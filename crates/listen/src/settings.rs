//! Every limit of the front door, with its default and its reason.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use crate::error::Error;
use crate::net::Nets;
use crate::tls::TlsFiles;

#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen. Port 0 picks a free one.
    pub addresses: Vec<SocketAddr>,
    pub protocols: Protocols,
    /// Connections open at once; one more hears `full_answer` and is closed. Brought down at start to what the
    /// process may open, less [`FILES_KEPT_BACK`]: a server without a file left can neither
    /// write its journal nor say what is wrong.
    pub connections_max: usize,
    /// What a client without a seat is told before it is closed: a whole answer of HTTP/1, with
    /// `connection: close`. Not over TLS.
    pub full_answer: Option<Bytes>,
    /// Connections of one IPv4 address or one IPv6 /64; 0 means no cap. A large office or a
    /// mobile network sits behind one address, so this is generous: it only stops one machine
    /// from taking the whole house. Peers in `trusted_hops` are not counted: they bring many.
    pub per_address_max: usize,
    pub timeouts: Timeouts,
    /// Request line and headers together. Browsers send 1 to 2 KB, cookies of a large shop
    /// 8 KB; common proxies stop at 8 to 32 KB.
    pub header_bytes_max: usize,
    /// hyper keeps 100 on the stack; another number costs it an allocation per request.
    pub headers_max: usize,
    pub http2: Http2,
    pub tls: Option<TlsFiles>,
    /// Set: every connection must begin with a PROXY header (v1 or v2) and come from one of
    /// these networks. Not set: such a header is a bad request like any other garbage.
    pub proxy_protocol: Option<Nets>,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_hops: Nets,
}

/// What a plain or TLS listener speaks. Over TLS, HTTP/2 is agreed by ALPN; in the clear it is
/// known by its first bytes ("prior knowledge"). Only `Both` in the clear has to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocols {
    Http1,
    Http2,
    Both,
}

#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For the PROXY header and the TLS handshake, from the accept on. Together, so that a
    /// client cannot spend each in turn.
    pub handshake: Duration,
    /// From the first byte of a request (on a new connection: from its start) to the end of its
    /// headers. A phone on a bad link needs a second or two; slow-header attacks need minutes.
    pub header: Duration,
    /// For a connection without a request in progress. Longer than the 60 s after which common
    /// balancers drop theirs, so that they close first and never send into a closing socket.
    pub idle: Duration,
    /// For a client that takes no bytes while we have some to give: it holds the answer's memory.
    pub write: Duration,
    /// A kept-alive HTTP/1 connection without a request for this long is taken apart to what a
    /// socket needs, and put together again on the next byte: hyper would keep its 8 KB buffer.
    pub park: Duration,
    /// From the call to stop until what is left is cut.
    pub drain: Duration,
}

#[derive(Clone, Copy, Debug)]
pub struct Http2 {
    /// Requests at once on one connection. A browser uses a dozen; a balancer should open more
    /// connections instead.
    pub concurrent_streams_max: u32,
    /// Streams that were opened and reset before we came to them (rapid reset, CVE-2023-44487);
    /// one more ends the connection.
    pub pending_reset_streams_max: usize,
    /// Streams that we reset because of the peer's mistakes; one more ends the connection.
    pub local_reset_streams_max: usize,
    /// Bytes that a client may send ahead on one stream; bodies here are small.
    pub stream_window_bytes: u32,
    /// And on the whole connection, which bounds what one client makes us hold.
    pub connection_window_bytes: u32,
    /// Bytes of an answer waiting for one stream's window.
    pub send_buffer_bytes: usize,
    /// A ping after this much quiet, and the wait for its answer: finds the phone that left.
    pub ping_every: Duration,
    pub ping_timeout: Duration,
}

/// Files the process keeps for itself: journals, snapshots, other listeners, upstreams, logs.
pub const FILES_KEPT_BACK: usize = 500;

/// hyper's smallest buffer; a smaller header limit still works, by count instead of by buffer.
const HYPER_BUFFER_MIN: usize = 8192;

/// What the listener works with, and whether that is less than was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connections_max: usize,
    /// The wish, when the process's file limit did not allow it. To be told to the operator.
    pub connections_wanted: Option<usize>,
}

impl Settings {
    pub fn new(addresses: Vec<SocketAddr>) -> Settings {
        Settings {
            addresses,
            protocols: Protocols::Both,
            connections_max: 20_000 - FILES_KEPT_BACK,
            full_answer: None,
            per_address_max: 1_000,
            timeouts: Timeouts::default(),
            header_bytes_max: 16 * 1024,
            headers_max: 100,
            http2: Http2::default(),
            tls: None,
            proxy_protocol: None,
            trusted_hops: Nets::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |name, problem: &str| Err(Error::Setting { name, problem: problem.to_owned() });
        if self.addresses.is_empty() {
            return Err(Error::NoAddress);
        }
        if self.connections_max == 0 {
            return wrong("connections_max", "0 would refuse everybody");
        }
        if self.header_bytes_max < 256 {
            return wrong("header_bytes_max", "below 256 bytes no browser gets in");
        }
        if self.headers_max == 0 {
            return wrong("headers_max", "0 would refuse every request");
        }
        let Timeouts { handshake, header, idle, write, park: _, drain: _ } = self.timeouts;
        for (name, time) in [
            ("handshake_timeout", handshake),
            ("header_timeout", header),
            ("idle_timeout", idle),
            ("write_timeout", write),
        ] {
            if time.is_zero() {
                return wrong(name, "0 would cut every connection");
            }
        }
        if self.http2.concurrent_streams_max == 0 {
            return wrong("http2.concurrent_streams_max", "0 would refuse every request");
        }
        if self.proxy_protocol.as_ref().is_some_and(Nets::is_empty) {
            return wrong("proxy_protocol", "no network is listed, so nobody could connect");
        }
        Ok(())
    }

    pub(crate) fn limits(&self, files_max: Option<u64>) -> Limits {
        let wanted = self.connections_max;
        let possible = match files_max {
            None => wanted,
            // A limit this small is a test or an accident; half of it is better than none.
            Some(files) => {
                let files = usize::try_from(files).unwrap_or(usize::MAX);
                files.saturating_sub(FILES_KEPT_BACK).max(files / 2).max(1)
            }
        };
        Limits {
            connections_max: wanted.min(possible),
            connections_wanted: (wanted > possible).then_some(wanted),
        }
    }

    pub(crate) fn buffer_bytes(&self) -> usize {
        self.header_bytes_max.max(HYPER_BUFFER_MIN)
    }
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            handshake: Duration::from_secs(10),
            header: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
            park: Duration::from_secs(1),
            drain: Duration::from_secs(30),
        }
    }
}

impl Default for Http2 {
    fn default() -> Http2 {
        Http2 {
            concurrent_streams_max: 100,
            pending_reset_streams_max: 20,
            local_reset_streams_max: 100,
            stream_window_bytes: 64 * 1024,
            connection_window_bytes: 256 * 1024,
            send_buffer_bytes: 64 * 1024,
            ping_every: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(15),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_bends_to_the_files_a_process_may_open_and_says_so() {
        let mut settings = Settings::new(vec!["127.0.0.1:0".parse().unwrap()]);
        let all = Limits { connections_max: 19_500, connections_wanted: None };
        assert_eq!(settings.limits(None), all);
        assert_eq!(settings.limits(Some(20_000)), all);
        assert_eq!(
            settings.limits(Some(1_024)),
            Limits { connections_max: 524, connections_wanted: Some(19_500) }
        );
        assert_eq!(settings.limits(Some(600)).connections_max, 300);
        settings.connections_max = 10;
        assert_eq!(
            settings.limits(Some(1_024)),
            Limits { connections_max: 10, connections_wanted: None }
        );
    }

    #[test]
    fn limits_that_would_refuse_everybody_are_refused() {
        let good = Settings::new(vec!["127.0.0.1:0".parse().unwrap()]);
        assert!(good.check().is_ok());
        type Spoil = fn(&mut Settings);
        let cases: [(&str, Spoil); 6] = [
            ("no address", |s| s.addresses.clear()),
            ("connections_max", |s| s.connections_max = 0),
            ("header_bytes_max", |s| s.header_bytes_max = 10),
            ("idle_timeout", |s| s.timeouts.idle = Duration::ZERO),
            ("concurrent_streams_max", |s| s.http2.concurrent_streams_max = 0),
            ("proxy_protocol", |s| s.proxy_protocol = Some(Nets::default())),
        ];
        for (name, spoil) in cases {
            let mut settings = good.clone();
            spoil(&mut settings);
            let error = settings.check().expect_err(name).to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
