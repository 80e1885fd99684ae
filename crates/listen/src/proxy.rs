//! The PROXY header, v1 (text) and v2 (binary): how a balancer in front tells us for whom it
//! speaks. Only on listeners marked for it and only from listed peers; this file only reads.
//!
//! Written from HAProxy's proxy-protocol.txt (2.5 of 2020). The input is hostile until parsed:
//! [`parse`] takes any bytes, never panics, and never asks for more than [`BYTES_MAX`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest header we read. v1 ends within 107 bytes; v2 may carry 64 KB of extras, of which
/// the known kinds (TLS names, cloud endpoint ids) need some hundreds.
pub const BYTES_MAX: usize = 2048;

const V1_BYTES_MAX: usize = 107;
const V1_START: &[u8] = b"PROXY ";
const V2_START: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const V2_FIXED: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A good beginning; more bytes decide. All of these belong to the header.
    Incomplete,
    /// Not a PROXY header, whatever follows.
    Bad,
    /// A whole header of this many bytes. `None`: the proxy speaks for itself (health checks),
    /// or of a family that is not TCP over IP; the socket's own addresses count.
    Header(usize, Option<Addresses>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The client.
    pub source: SocketAddr,
    /// What the client connected to.
    pub destination: SocketAddr,
}

/// Reads a PROXY header at the beginning of `bytes`; what stands behind it is not looked at.
pub fn parse(bytes: &[u8]) -> Parsed {
    if begins_alike(bytes, V2_START) {
        if bytes.len() < V2_FIXED { v2_beginning(bytes) } else { v2(bytes) }
    } else if begins_alike(bytes, V1_START) {
        v1(bytes)
    } else {
        Parsed::Bad
    }
}

/// One is the beginning of the other.
fn begins_alike(bytes: &[u8], start: &[u8]) -> bool {
    bytes.iter().zip(start).all(|(a, b)| a == b)
}

fn v1(bytes: &[u8]) -> Parsed {
    let head = &bytes[..bytes.len().min(V1_BYTES_MAX)];
    let Some(end) = head.windows(2).position(|pair| pair == b"\r\n") else {
        return if head.len() == V1_BYTES_MAX { Parsed::Bad } else { Parsed::Incomplete };
    };
    let Ok(line) = std::str::from_utf8(&head[..end]) else {
        return Parsed::Bad;
    };
    let len = end + 2;
    let mut words = line.split(' ').skip(1);
    let family = words.next();
    if family == Some("UNKNOWN") {
        // The rest of the line is to be ignored.
        return Parsed::Header(len, None);
    }
    let addresses = match (family, words.next(), words.next()) {
        (Some("TCP4"), Some(from), Some(to)) => ips::<Ipv4Addr>(from, to),
        (Some("TCP6"), Some(from), Some(to)) => ips::<Ipv6Addr>(from, to),
        _ => None,
    };
    let ports = (words.next().and_then(port), words.next().and_then(port), words.next());
    match (addresses, ports) {
        (Some((from, to)), (Some(from_port), Some(to_port), None)) => {
            let source = SocketAddr::new(from, from_port);
            let destination = SocketAddr::new(to, to_port);
            Parsed::Header(len, Some(Addresses { source, destination }))
        }
        _ => Parsed::Bad,
    }
}

fn ips<A: std::str::FromStr + Into<IpAddr>>(from: &str, to: &str) -> Option<(IpAddr, IpAddr)> {
    Some((from.parse::<A>().ok()?.into(), to.parse::<A>().ok()?.into()))
}

/// Digits only, no sign, no leading zero: one port has one spelling.
fn port(word: &str) -> Option<u16> {
    let plain = word == "0" || !word.starts_with('0');
    (plain && word.bytes().all(|b| b.is_ascii_digit())).then(|| word.parse().ok())?
}

/// Fewer than 16 bytes: what is there must be able to become a header.
fn v2_beginning(bytes: &[u8]) -> Parsed {
    match bytes.get(12) {
        Some(version) if !matches!(version, 0x20 | 0x21) => Parsed::Bad,
        _ => Parsed::Incomplete,
    }
}

fn v2(bytes: &[u8]) -> Parsed {
    let (command, family) = (bytes[12], bytes[13]);
    if !matches!(command, 0x20 | 0x21) || family >> 4 > 3 || family & 0x0f > 2 {
        return Parsed::Bad;
    }
    let rest = usize::from(u16::from_be_bytes([bytes[14], bytes[15]]));
    let len = V2_FIXED + rest;
    if len > BYTES_MAX {
        return Parsed::Bad;
    }
    // Too short for its addresses is wrong already; no need to wait for the rest.
    let local = command == 0x20;
    let needed = match family {
        0x11 if !local => 12,
        0x21 if !local => 36,
        _ => 0,
    };
    if rest < needed {
        return Parsed::Bad;
    }
    if bytes.len() < len {
        return Parsed::Incomplete;
    }
    let told = &bytes[V2_FIXED..len];
    let port = |at: usize| u16::from_be_bytes([told[at], told[at + 1]]);
    let addresses = match needed {
        12 => {
            let ip = |at: usize| {
                let octets: [u8; 4] = told[at..at + 4].try_into().expect("four bytes of twelve");
                IpAddr::from(octets)
            };
            Some((SocketAddr::new(ip(0), port(8)), SocketAddr::new(ip(4), port(10))))
        }
        36 => {
            let ip = |at: usize| {
                let octets: [u8; 16] = told[at..at + 16].try_into().expect("sixteen of 36 bytes");
                IpAddr::from(octets)
            };
            Some((SocketAddr::new(ip(0), port(32)), SocketAddr::new(ip(16), port(34))))
        }
        _ => None,
    };
    Parsed::Header(len, addresses.map(|(source, destination)| Addresses { source, destination }))
}

#[cfg(test)]
mod tests;
