//! From an accepted socket to a conversation: PROXY header, cap per address, TLS, protocol.
//!
//! Runs in the connection's own task, so that nobody's slowness holds up the door. Nothing here
//! keeps time: the line is in [`Stage::Handshake`] until the conversation begins, and the sweep
//! cuts who takes too long.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::io::{Io, Socket};
use crate::line::{Line, Stage};
use crate::net::Nets;
use crate::peer::{Peer, Protocol};
use crate::proxy::{self, Parsed};
use crate::seat::Seat;
use crate::settings::Protocols;
use crate::stats::{Stats, one_more};
use crate::tls::Tls;

/// What HTTP/2 in the clear begins with.
const GREETING: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How a listener receives; the same for all its connections.
#[derive(Debug)]
pub(crate) struct Reception {
    pub(crate) protocols: Protocols,
    pub(crate) proxy_protocol: Option<Nets>,
    pub(crate) trusted_hops: Nets,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) stats: Arc<Stats>,
}

/// A socket that was accepted and has a seat.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) tcp: TcpStream,
    pub(crate) from: SocketAddr,
    pub(crate) seat: Seat,
    pub(crate) line: Arc<Line>,
}

impl Reception {
    /// The conversation that can begin, or none: then the connection is over, and counted.
    pub(crate) async fn receive(&self, arrival: Arrival) -> Option<(Io, Peer)> {
        let Arrival { mut tcp, from, mut seat, line } = arrival;
        let mut local = tcp.local_addr().ok()?;
        // Small answers must not wait for the client's delayed acknowledgement. Should the
        // system refuse, they wait; that is no reason to turn a visitor away.
        let _best_effort = tcp.set_nodelay(true);
        let (mut socket, mut via) = (from, None);
        if self.proxy_protocol.is_some() {
            let told = read_proxy_header(&mut tcp).await;
            let Ok(told) = told else {
                one_more(&self.stats.failed_proxy);
                return None;
            };
            if let Some(addresses) = told {
                (socket, via, local) = (addresses.source, Some(from), addresses.destination);
            }
        }
        // Our own proxies bring everybody: a cap on their address would be one on the house.
        if !self.trusted_hops.contains(socket.ip()) && !seat.of_address(socket.ip()) {
            return None;
        }
        let (mut wire, protocol, client_cert) = match &self.tls {
            None => (Socket::Plain(tcp), None, None),
            Some(tls) => {
                // Boxed: a handshake's state is large, and short-lived.
                let accept = Box::pin(TlsAcceptor::from(tls.config()).accept(tcp));
                let Ok(stream) = accept.await else {
                    one_more(&self.stats.failed_tls);
                    return None;
                };
                let session = stream.get_ref().1;
                let protocol = match session.alpn_protocol() {
                    Some(b"h2") => Protocol::Http2,
                    _ => Protocol::Http1,
                };
                let cert = session.peer_certificates().and_then(|chain| chain.first());
                let cert = cert.map(|cert| Arc::new(cert.clone().into_owned()));
                (Socket::Tls(Box::new(stream)), Some(protocol), cert)
            }
        };
        line.enter(Stage::Greeting);
        let (protocol, ahead) = match (self.protocols, protocol) {
            (Protocols::Http1, _) => (Protocol::Http1, Bytes::new()),
            (Protocols::Http2, _) => (Protocol::Http2, Bytes::new()),
            (Protocols::Both, Some(agreed)) => (agreed, Bytes::new()),
            (Protocols::Both, None) => tell(&mut wire).await.ok()?,
        };
        line.move_on_to(Stage::First);
        let tls = matches!(wire, Socket::Tls(_));
        let peer = Peer { socket, via, local, tls, protocol, client_cert };
        Some((Io::new(wire, ahead, line, seat), peer))
    }
}

/// Tells HTTP/2 from HTTP/1 by the first bytes, which are to be read again. No method of HTTP/1
/// begins like the greeting for more than two letters, so one short read decides.
async fn tell(socket: &mut Socket) -> io::Result<(Protocol, Bytes)> {
    let mut bytes = [0; GREETING.len()];
    let mut have = 0;
    let protocol = loop {
        let count = socket.read(&mut bytes[have..]).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        have += count;
        if !GREETING.starts_with(&bytes[..have]) {
            break Protocol::Http1;
        }
        if have == GREETING.len() {
            break Protocol::Http2;
        }
    };
    Ok((protocol, Bytes::copy_from_slice(&bytes[..have])))
}

/// Reads exactly the PROXY header, not a byte more: TLS may begin right behind it. Looks first
/// and takes only what belongs to the header, so nothing has to be put back.
async fn read_proxy_header(tcp: &mut TcpStream) -> io::Result<Option<proxy::Addresses>> {
    let bad = || io::Error::from(io::ErrorKind::InvalidData);
    let mut bytes = vec![0; 256];
    let mut have = 0;
    loop {
        if have == bytes.len() {
            // `parse` never asks for more than its limit, so this ends.
            bytes.resize((2 * have).min(proxy::BYTES_MAX), 0);
        }
        let seen = tcp.peek(&mut bytes[have..]).await?;
        if seen == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (take, told) = match proxy::parse(&bytes[..have + seen]) {
            Parsed::Bad => return Err(bad()),
            Parsed::Incomplete => (seen, None),
            Parsed::Header(len, addresses) => (len - have, Some(addresses)),
        };
        tcp.read_exact(&mut bytes[have..have + take]).await?;
        have += take;
        if let Some(addresses) = told {
            return Ok(addresses);
        }
    }
}
