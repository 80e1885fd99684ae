//! Which addresses a webhook may reach.
//!
//! Whoever may name an endpoint must not be able to make this server speak to what only it can see:
//! the machine itself, its network, the metadata service of a cloud. So every address that a name
//! stands for is looked at, and only then is one of them connected to: the very address, not the
//! name again, which might stand for something else a moment later.
//! Written as what is public, so that what nobody thought of is not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Only addresses of the public internet.
    Public,
    /// Also this machine and its network: the operator said so.
    Anywhere,
}

impl Reach {
    /// One address that may not be reached is enough: a name that stands for both is a trap.
    pub fn check(self, host: &str, found: &[SocketAddr]) -> Result<(), String> {
        if found.is_empty() {
            return Err(format!("{host} has no address"));
        }
        let private = found.iter().find(|it| !is_public(it.ip()));
        match private.filter(|_| self == Reach::Public) {
            Some(private) => {
                let ip = private.ip();
                Err(format!("{host} is {ip}, which is not public; allow_private allows it"))
            }
            None => Ok(()),
        }
    }
}

pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

/// The special-purpose blocks of IANA's registry, and one more.
const NOT_PUBLIC_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Metadata services of most clouds are here.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    // In no registry: the wire server of one cloud, which every machine there can ask.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
];

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let within = |(block, bits): &(Ipv4Addr, u32)| {
        let shift = 32 - bits;
        ip.to_bits() >> shift == block.to_bits() >> shift
    };
    !NOT_PUBLIC_V4.iter().any(within)
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    if let Some(v4) = ip.to_ipv4_mapped() {
        return is_public_v4(v4);
    }
    let parts = ip.segments();
    // NAT64: behind it is the IPv4 address at its end.
    if parts[..6] == [0x64, 0xff9b, 0, 0, 0, 0] {
        let [.., a, b] = parts;
        return is_public_v4(Ipv4Addr::from_bits(u32::from(a) << 16 | u32::from(b)));
    }
    match parts {
        // Protocol assignments (Teredo among them), documentation, 6to4.
        [0x2001, second, ..] if second < 0x0200 || second == 0x0db8 => false,
        [0x2002, ..] => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        // Global unicast; everything else is local, multicast, reserved or a disguise.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_public_is_known_in_every_disguise() {
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::808:808",
            "100::1",
            "2001::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(private.parse().expect(private)), "{private}");
        }
        for public in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "172.32.0.1",
            "192.0.1.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2001:200::1",
            "2606:4700::1111",
            "2a00:1450::1",
        ] {
            assert!(is_public(public.parse().expect(public)), "{public}");
        }
    }

    #[test]
    fn one_private_address_among_public_ones_is_enough() {
        let at = |ip: &str| SocketAddr::new(ip.parse().expect(ip), 443);
        let mixed = [at("8.8.8.8"), at("10.0.0.7")];
        assert!(
            Reach::Public.check("hook.example", &mixed).expect_err("a trap").contains("10.0.0.7")
        );
        assert_eq!(Reach::Anywhere.check("hook.example", &mixed), Ok(()));
        assert_eq!(Reach::Public.check("hook.example", &[at("8.8.8.8")]), Ok(()));
        assert!(Reach::Anywhere.check("hook.example", &[]).is_err());
    }
}
