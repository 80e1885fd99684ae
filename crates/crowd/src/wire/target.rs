//! Where the server is, and from which addresses to come.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::net::{TcpSocket, TcpStream};

/// Scheme, host and port of a plain HTTP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub host: String,
    pub port: u16,
}

impl Target {
    /// `http://HOST[:PORT]`, with nothing behind it.
    pub fn parse(url: &str) -> Result<Target, String> {
        let wrong = |why: &str| format!("\"{url}\": {why}; write http://HOST:PORT");
        let rest = match url.split_once("://") {
            Some(("http" | "ws" | "grpc", rest)) => rest,
            Some(("https" | "wss", _)) => return Err(wrong("a crowd speaks plain HTTP")),
            Some(_) => return Err(wrong("no scheme that is known")),
            None => url,
        };
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.is_empty() || authority.contains(['/', '@', '?', '#', ' ']) {
            return Err(wrong("something is too much or too little"));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host, port.parse().map_err(|_| wrong("the port is no number"))?)
            }
            _ => (authority, 80),
        };
        if host.is_empty() {
            return Err(wrong("there is no host"));
        }
        Ok(Target { host: host.to_owned(), port })
    }

    /// Whether it is surely this machine.
    pub fn is_loopback(&self) -> bool {
        match self.ip() {
            Some(ip) => ip.is_loopback(),
            None => self.host == "localhost",
        }
    }

    fn ip(&self) -> Option<IpAddr> {
        self.host.trim_start_matches('[').trim_end_matches(']').parse().ok()
    }

    /// Looks the host up, once: ten thousand connects must not ask a name server each.
    pub async fn resolve(&self) -> io::Result<SocketAddr> {
        if let Some(ip) = self.ip() {
            return Ok(SocketAddr::new(ip, self.port));
        }
        let mut found: Vec<SocketAddr> =
            tokio::net::lookup_host((self.host.as_str(), self.port)).await?.collect();
        found.sort_by_key(|address| address.is_ipv6());
        found.first().copied().ok_or_else(|| io::Error::other("the host has no address"))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}", self.host, self.port)
    }
}

/// Addresses to connect from. One address has 28,000 ports; several have enough for any crowd.
#[derive(Clone, Debug)]
pub struct Sources {
    to: SocketAddr,
    count: u32,
    next: Arc<AtomicU32>,
}

impl Sources {
    /// Only 127.0.0.0/8 has addresses to spare; elsewhere the system chooses.
    pub fn new(to: SocketAddr, count: u8) -> Sources {
        let spare = matches!(to.ip(), IpAddr::V4(ip) if ip.is_loopback());
        let count = if spare { u32::from(count) } else { 0 };
        Sources { to, count, next: Arc::default() }
    }

    pub async fn connect(&self) -> io::Result<TcpStream> {
        let socket = match self.to {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        if self.count > 1 {
            let n = self.next.fetch_add(1, Ordering::Relaxed) % self.count;
            let from = Ipv4Addr::new(127, 0, 0, (n + 1) as u8);
            socket.bind(SocketAddr::from((from, 0)))?;
        }
        let stream = socket.connect(self.to).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_scheme_a_host_and_a_port() {
        let parsed = |url: &str| Target::parse(url).map(|it| (it.host, it.port));
        assert_eq!(parsed("http://127.0.0.1:8080"), Ok(("127.0.0.1".into(), 8080)));
        assert_eq!(parsed("http://localhost/"), Ok(("localhost".into(), 80)));
        assert_eq!(parsed("127.0.0.1:9"), Ok(("127.0.0.1".into(), 9)));
        assert_eq!(parsed("http://[::1]:9"), Ok(("[::1]".into(), 9)));
        assert_eq!(parsed("http://[::1]"), Ok(("[::1]".into(), 80)));
        for wrong in [
            "",
            "http://",
            "https://x",
            "ftp://x",
            "http://x/path",
            "http://u@x",
            "http://x:y",
            "http://:8",
        ] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
