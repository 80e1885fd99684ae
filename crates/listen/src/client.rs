//! The client's address behind proxies that we trust.

use std::net::{IpAddr, SocketAddr};

use hyper::HeaderMap;
use hyper::header::HeaderName;

use crate::net::Nets;

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Who asks: the right-most hop of `X-Forwarded-For` that is not trusted, when `peer` is; else
/// `peer`.
///
/// Each trusted proxy appends whom it heard from, so reading from the right, everything up to
/// the first stranger was written by somebody trusted. What stands left of that the stranger may
/// have made up. Garbage ends the walk at the last address that was well told; it never fails a
/// request.
pub fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &Nets) -> IpAddr {
    if !headers.contains_key(&X_FORWARDED_FOR) {
        return peer.to_canonical();
    }
    let values = headers.get_all(&X_FORWARDED_FOR).iter();
    client_behind(peer, values.map(|value| value.as_bytes()), trusted)
}

/// The same from the values of that header, in their order: several are one list, and the last is
/// the right-most.
pub fn client_behind<'a>(
    peer: IpAddr,
    mut forwarded_for: impl DoubleEndedIterator<Item = &'a [u8]>,
    trusted: &Nets,
) -> IpAddr {
    let mut known = peer.to_canonical();
    if !trusted.contains(known) {
        return known;
    }
    while let Some(value) = forwarded_for.next_back() {
        let Ok(list) = std::str::from_utf8(value) else {
            return known;
        };
        for hop in list.rsplit(',') {
            match address(hop.trim_matches([' ', '\t'])) {
                Some(address) => known = address,
                None => return known,
            }
            if !trusted.contains(known) {
                return known;
            }
        }
    }
    known
}

/// An address as proxies write it: bare, with a port, in brackets.
fn address(hop: &str) -> Option<IpAddr> {
    let address = hop
        .parse::<IpAddr>()
        .ok()
        .or_else(|| hop.parse::<SocketAddr>().ok().map(|socket| socket.ip()))
        .or_else(|| hop.strip_prefix('[')?.strip_suffix(']')?.parse::<IpAddr>().ok())?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn asked_by(peer: &str, forwarded: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(&X_FORWARDED_FOR, value.parse().expect("a header value"));
        }
        let trusted = Nets::parse(&["10.0.0.0/8", "fd00::/8"]).expect("networks");
        client_address(peer.parse().expect(peer), &headers, &trusted).to_string()
    }

    #[test]
    fn a_stranger_is_who_he_is_whatever_he_writes() {
        assert_eq!(asked_by("203.0.113.9", &["1.2.3.4"]), "203.0.113.9");
        assert_eq!(asked_by("::ffff:203.0.113.9", &[]), "203.0.113.9");
    }

    #[test]
    fn the_right_most_stranger_counts_and_what_he_made_up_does_not() {
        assert_eq!(asked_by("10.0.0.1", &["6.6.6.6, 203.0.113.9, 10.0.0.2"]), "203.0.113.9");
        assert_eq!(asked_by("10.0.0.1", &["6.6.6.6", "203.0.113.9", "10.0.0.2"]), "203.0.113.9");
        assert_eq!(asked_by("10.0.0.1", &["203.0.113.9:4711"]), "203.0.113.9");
        assert_eq!(asked_by("fd00::1", &["[2001:db8::7]:443"]), "2001:db8::7");
        assert_eq!(asked_by("fd00::1", &["[2001:db8::7]"]), "2001:db8::7");
        assert_eq!(asked_by("10.0.0.1", &["::ffff:203.0.113.9"]), "203.0.113.9");
    }

    #[test]
    fn when_all_hops_are_trusted_the_first_of_them_asks() {
        assert_eq!(asked_by("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(asked_by("10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
    }

    #[test]
    fn garbage_ends_the_walk_at_the_last_good_hop() {
        for garbage in ["", "unknown", "1.2.3", "1.2.3.4, ,", "_hidden", "203.0.113.9 10.0.0.2"] {
            assert_eq!(asked_by("10.0.0.1", &[garbage]), "10.0.0.1", "{garbage:?}");
        }
        assert_eq!(asked_by("10.0.0.1", &["203.0.113.9, nonsense, 10.0.0.2"]), "10.0.0.2");
    }

    proptest! {
        #[test]
        fn no_header_makes_a_stranger_somebody_else(value in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut headers = HeaderMap::new();
            if let Ok(value) = hyper::header::HeaderValue::from_bytes(&value) {
                headers.append(&X_FORWARDED_FOR, value);
            }
            let peer: IpAddr = [203, 0, 113, 9].into();
            prop_assert_eq!(client_address(peer, &headers, &Nets::loopback()), peer);
            // And a trusted peer never makes it panic.
            client_address([127, 0, 0, 1].into(), &headers, &Nets::loopback());
        }
    }
}
