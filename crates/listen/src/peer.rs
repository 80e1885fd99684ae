//! Who is at the other end of a connection, as far as the transport knows.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls_pki_types::CertificateDer;

/// What a service is told when it is made for a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The other end: of the socket, or of the connection that a trusted PROXY header tells of.
    /// `X-Forwarded-For` is looked at per request: [`crate::client_address`].
    pub socket: SocketAddr,
    /// The proxy that said so, when `socket` comes from a PROXY header.
    pub via: Option<SocketAddr>,
    /// Our own end.
    pub local: SocketAddr,
    pub tls: bool,
    pub protocol: Protocol,
    /// The client's own certificate, checked against `client_ca`; none when it showed none.
    pub client_cert: Option<Arc<CertificateDer<'static>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
}
