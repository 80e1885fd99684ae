//! Requests as bytes, made before the clock starts.

use std::ops::Range;

use super::super::classic::scatter;
use crate::failure::{Failure, Outcome};

/// What a crowd says and how it takes the answers.
pub trait Asker: Send {
    /// The next request, or none when all is said.
    fn next(&mut self) -> Option<&[u8]>;

    /// An answer. Anything but a success ends the benchmark: figures of refusals mean nothing.
    fn heard(&mut self, status: u16, body: &[u8]) -> Outcome {
        match status {
            200..=299 => Ok(()),
            _ => Err(Failure::new(format!(
                "a request was answered {status}: {}",
                String::from_utf8_lossy(body)
            ))),
        }
    }
}

/// Many requests that differ, asked again and again in an order without pattern, so that no
/// cache of the server knows the next.
#[derive(Debug, Clone)]
pub struct Requests {
    bytes: Vec<u8>,
    each: Vec<Range<usize>>,
    asked: u64,
}

impl Requests {
    pub fn new(requests: impl IntoIterator<Item = String>) -> Self {
        let (mut bytes, mut each) = (vec![], vec![]);
        for request in requests {
            let from = bytes.len();
            bytes.extend_from_slice(request.as_bytes());
            each.push(from..bytes.len());
        }
        assert!(!each.is_empty(), "a crowd without a request says nothing");
        Self { bytes, each, asked: 0 }
    }
}

impl Asker for Requests {
    fn next(&mut self) -> Option<&[u8]> {
        let which = scatter(self.asked) % self.each.len() as u64;
        self.asked += 1;
        Some(&self.bytes[self.each[which as usize].clone()])
    }
}

/// Joins: one request in which the parts that differ are written over. Everybody comes through
/// a proxy, from an address of their own.
#[derive(Debug, Clone)]
pub struct Joins {
    request: Vec<u8>,
    address_at: usize,
    key_at: Option<usize>,
    joined: u64,
    left: u64,
}

/// Whether joins carry an `Idempotency-Key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    None,
    Each,
}

const ADDRESS: &str = "100.100.100.100";
const KEY: &str = "00000000000000000000000000000000";

impl Joins {
    pub fn new(path: &str, keys: Keys) -> Self {
        let key = match keys {
            Keys::None => String::new(),
            Keys::Each => format!("Idempotency-Key: {KEY}\r\n"),
        };
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {ADDRESS}\r\n{key}\
             Content-Length: 0\r\n\r\n"
        );
        Self {
            address_at: request.find(ADDRESS).expect("it was just written"),
            key_at: request.find(KEY),
            request: request.into_bytes(),
            joined: 0,
            left: u64::MAX,
        }
    }

    /// Only so many of them.
    pub fn count(mut self, count: u64) -> Self {
        self.left = count;
        self
    }
}

impl Asker for Joins {
    fn next(&mut self) -> Option<&[u8]> {
        self.left = self.left.checked_sub(1)?;
        let mut digits = self.joined;
        // 100.100.100.100 to 199.199.199.199: a hundred million addresses of the same width.
        for octet in 0..4 {
            let at = self.address_at + 4 * octet + 1;
            self.request[at] = b'0' + (digits % 10) as u8;
            self.request[at + 1] = b'0' + (digits / 10 % 10) as u8;
            digits /= 100;
        }
        if let Some(at) = self.key_at {
            let random = [scatter(2 * self.joined), scatter(2 * self.joined + 1)];
            let nibbles = random.iter().flat_map(|half| (0..16).map(move |n| half >> (4 * n) & 15));
            for (byte, nibble) in self.request[at..].iter_mut().zip(nibbles) {
                *byte = b"0123456789abcdef"[nibble as usize];
            }
        }
        self.joined += 1;
        Some(&self.request)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_join_comes_from_an_address_and_with_a_key_of_its_own() {
        let mut joins = Joins::new("/join", Keys::Each).count(20_000);
        let (mut addresses, mut keys) = (BTreeSet::new(), BTreeSet::new());
        while let Some(request) = joins.next() {
            let text = String::from_utf8(request.to_vec()).expect("it is text");
            let value = |name: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(name));
                line.expect("the header is there").to_owned()
            };
            let address: std::net::Ipv4Addr =
                value("X-Forwarded-For: ").parse().expect("it is an address");
            addresses.insert(address);
            keys.insert(value("Idempotency-Key: "));
        }
        assert_eq!((addresses.len(), keys.len()), (20_000, 20_000));
    }

    #[test]
    fn requests_are_asked_in_no_order_but_all_of_them() {
        let mut requests = Requests::new((0..100).map(|n| format!("{n}")));
        let asked: Vec<Vec<u8>> =
            (0..2_000).map(|_| requests.next().expect("they never end").to_vec()).collect();
        assert_eq!(asked.iter().collect::<BTreeSet<_>>().len(), 100);
        assert_ne!(asked[..3], [b"0".to_vec(), b"1".to_vec(), b"2".to_vec()]);
    }
}
