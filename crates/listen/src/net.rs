//! Networks: who is trusted, and what counts as one address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// One network, `10.0.0.0/8` or `2001:db8::/32`; a bare address is a network of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Net {
    address: IpAddr,
    prefix: u8,
}

/// A list of networks. Lists are short and read at most once a connection or request, so a scan
/// beats any cleverer shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nets(Vec<Net>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetError {
    written: String,
    problem: &'static str,
}

/// What the cap per address counts by: a whole IPv4 address, and the /64 of an IPv6 one, because
/// a single home is given 2^64 of those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Household {
    V4([u8; 4]),
    V6([u8; 8]),
}

impl Net {
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(net), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                net.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(net), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                net.to_bits() & mask == address.to_bits() & mask
            }
            _ => false,
        }
    }
}

impl FromStr for Net {
    type Err = NetError;

    fn from_str(written: &str) -> Result<Net, NetError> {
        let wrong = |problem| NetError { written: written.to_owned(), problem };
        let (address, prefix) = match written.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (written, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong("is not an address"))?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => bits,
            Some(digits) => digits
                .parse::<u8>()
                .ok()
                .filter(|prefix| *prefix <= bits && digits.bytes().all(|b| b.is_ascii_digit()))
                .ok_or_else(|| wrong("has no such prefix length"))?,
        };
        // A mapped network would never match: addresses are compared in their plain form.
        if address.to_canonical() != address {
            return Err(wrong("is an IPv4 network in IPv6 clothes; write it as IPv4"));
        }
        Ok(Net { address, prefix })
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl Nets {
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|net| net.contains(address))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// This machine itself, by either protocol: what development mode trusts.
    pub fn loopback() -> Nets {
        Nets(vec![
            Net { address: IpAddr::from([127, 0, 0, 0]), prefix: 8 },
            Net { address: IpAddr::V6(Ipv6Addr::LOCALHOST), prefix: 128 },
        ])
    }

    /// Every network of the list, or the first that cannot be read.
    pub fn parse<S: AsRef<str>>(list: &[S]) -> Result<Nets, NetError> {
        list.iter().map(|net| net.as_ref().parse()).collect()
    }
}

impl FromIterator<Net> for Nets {
    fn from_iter<I: IntoIterator<Item = Net>>(nets: I) -> Nets {
        Nets(nets.into_iter().collect())
    }
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} {}; write an address or a network such as 10.0.0.0/8",
            self.written, self.problem
        )
    }
}

impl std::error::Error for NetError {}

impl Household {
    pub(crate) fn of(address: IpAddr) -> Household {
        match address.to_canonical() {
            IpAddr::V4(address) => Household::V4(address.octets()),
            IpAddr::V6(address) => Household::V6(
                address.octets()[..8].try_into().expect("the first eight of sixteen bytes"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(net: &str, address: &str) -> bool {
        let net: Net = net.parse().expect(net);
        net.contains(address.parse().expect(address))
    }

    #[test]
    fn a_network_holds_its_addresses_and_no_neighbour() {
        assert!(holds("10.0.0.0/8", "10.255.0.1"));
        assert!(!holds("10.0.0.0/8", "11.0.0.0"));
        assert!(holds("192.168.1.7", "192.168.1.7"));
        assert!(!holds("192.168.1.7", "192.168.1.8"));
        assert!(holds("0.0.0.0/0", "8.8.8.8"));
        assert!(!holds("0.0.0.0/0", "2001:db8::1"));
        assert!(holds("2001:db8::/33", "2001:db8:7fff::1"));
        assert!(!holds("2001:db8::/33", "2001:db8:8000::1"));
        assert!(holds("::/0", "2001:db8::1"));
    }

    #[test]
    fn a_mapped_address_is_the_ipv4_address_it_stands_for() {
        assert!(holds("127.0.0.0/8", "::ffff:127.0.0.9"));
        assert_eq!(
            Household::of("::ffff:10.1.2.3".parse().unwrap()),
            Household::of("10.1.2.3".parse().unwrap())
        );
    }

    #[test]
    fn what_is_not_a_network_is_refused_with_its_text() {
        for bad in ["", "ten", "10.0.0.0/33", "::1/129", "10.0.0.0/", "10.0.0.0/+8", "1.2.3.4:80"] {
            let error = bad.parse::<Net>().expect_err(bad).to_string();
            assert!(error.contains(&format!("{bad:?}")), "{error}");
        }
        assert!("::ffff:10.0.0.0/104".parse::<Net>().is_err());
    }

    #[test]
    fn one_home_of_ipv6_is_one_household() {
        let of = |a: &str| Household::of(a.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
