//! What ties a pass to the browser that it was given to, so that a copied pass is worth less.
//!
//! Lives here: the digests of a cookie nonce, a network and a user agent, made when a pass is
//! signed and made again when it is shown. Stays out: which of them a room uses.
//!
//! Each digest is SHA-256 over a label of its own, the ticket and the value, cut to 128 bits.
//! The label keeps a digest of one kind from serving as another; the ticket keeps the same
//! network from having the same digest in two passes. A network can be guessed from its digest
//! (there are few of them): it is a binding, not a hiding place. The nonce cannot.

use std::net::IpAddr;

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    digest::{Context, SHA256},
};
use serde::{Deserialize, Serialize};

use crate::{Refused, json, jws};

/// What a request shows of where it comes from. Leave out what the caller cannot know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Presented<'a> {
    /// The value of the room's binding cookie.
    pub nonce: Option<&'a str>,
    /// The client's address as the last trusted hop saw it.
    pub ip: Option<IpAddr>,
    pub user_agent: Option<&'a str>,
}

/// How much of an address counts: phones change their address within a network all day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPrefix {
    pub v4_bits: u8,
    pub v6_bits: u8,
}

impl Default for IpPrefix {
    /// The customary size of a provider's block, and of a household's with some neighbours.
    fn default() -> Self {
        IpPrefix { v4_bits: 24, v6_bits: 48 }
    }
}

/// The claim `bnd`: a digest for each thing that the pass is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub nonce: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub ip: Option<String>,
    /// How many bits of the address went into `ip`; of either family, whichever it was.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub ip_bits: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "json::present")]
    pub ua: Option<String>,
}

impl Binding {
    pub fn to_nonce(mut self, ticket: &str, nonce: &str) -> Self {
        self.nonce = Some(digest("nonce", ticket, nonce.as_bytes()));
        self
    }

    pub fn to_ip(mut self, ticket: &str, ip: IpAddr, prefix: IpPrefix) -> Self {
        let bits = match ip.to_canonical() {
            IpAddr::V4(_) => prefix.v4_bits.min(32),
            IpAddr::V6(_) => prefix.v6_bits.min(128),
        };
        self.ip_bits = Some(bits);
        self.ip = Some(network_digest(ticket, ip, bits));
        self
    }

    pub fn to_user_agent(mut self, ticket: &str, user_agent: &str) -> Self {
        self.ua = Some(digest("ua", ticket, user_agent.as_bytes()));
        self
    }

    pub fn is_empty(&self) -> bool {
        *self == Binding::default()
    }

    /// Whether the request comes from where the pass was given to. Every digest that the pass
    /// carries counts; a verifier that cannot see one of the values says so in its rules
    /// ([`crate::Rules::unseen`]), and never by leaving it out of `presented`.
    pub fn check(&self, ticket: &str, presented: &Presented<'_>) -> Result<(), Refused> {
        if let Some(bound) = &self.nonce {
            let shown = presented.nonce.ok_or(Refused::BindingMissing)?;
            same(bound, &digest("nonce", ticket, shown.as_bytes()))?;
        }
        if let Some(bound) = &self.ip {
            let shown = presented.ip.ok_or(Refused::BindingMissing)?;
            let bits = self.ip_bits.ok_or(Refused::ClaimsWrong)?;
            same(bound, &network_digest(ticket, shown, bits))?;
        }
        if let Some(bound) = &self.ua {
            let shown = presented.user_agent.ok_or(Refused::BindingMissing)?;
            same(bound, &digest("ua", ticket, shown.as_bytes()))?;
        }
        Ok(())
    }
}

fn same(bound: &str, shown: &str) -> Result<(), Refused> {
    verify_slices_are_equal(bound.as_bytes(), shown.as_bytes()).map_err(|_| Refused::BindingWrong)
}

/// The address with all but its first `bits` cleared, after its family and `bits` itself. An
/// IPv4 address in IPv6 clothes counts as what it is, since hops differ in how they write it.
fn network_digest(ticket: &str, ip: IpAddr, bits: u8) -> String {
    let mut network = [0; 18];
    match ip.to_canonical() {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            network[0] = 4;
            network[2..6].copy_from_slice(&(v4.to_bits() & mask).to_be_bytes());
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            network[0] = 6;
            network[2..].copy_from_slice(&(v6.to_bits() & mask).to_be_bytes());
        }
    }
    network[1] = bits;
    let len = if network[0] == 4 { 6 } else { 18 };
    digest("ip", ticket, &network[..len])
}

/// `waitroom/v1/bind/` kind, zero, ticket, zero, value. Neither a kind nor a ticket holds a
/// zero byte, so no two different inputs run together.
fn digest(kind: &str, ticket: &str, value: &[u8]) -> String {
    let mut hash = Context::new(&SHA256);
    hash.update(b"waitroom/v1/bind/");
    hash.update(kind.as_bytes());
    hash.update(&[0]);
    hash.update(ticket.as_bytes());
    hash.update(&[0]);
    hash.update(value);
    jws::encode(&hash.finish().as_ref()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKET: &str = "f6c27f05-d2af-f92a-5843-7f42f274da53";

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn from(text: &str) -> Presented<'static> {
        Presented { ip: Some(ip(text)), ..Presented::default() }
    }

    #[test]
    fn an_address_of_the_same_network_will_do_and_one_next_to_it_will_not() {
        let v4 = Binding::default().to_ip(TICKET, ip("192.0.2.7"), IpPrefix::default());
        assert_eq!(v4.check(TICKET, &from("192.0.2.255")), Ok(()));
        assert_eq!(v4.check(TICKET, &from("::ffff:192.0.2.1")), Ok(()));
        assert_eq!(v4.check(TICKET, &from("192.0.3.7")), Err(Refused::BindingWrong));
        assert_eq!(v4.check(TICKET, &from("2001:db8::1")), Err(Refused::BindingWrong));
        let v6 = Binding::default().to_ip(TICKET, ip("2001:db8:5:1::1"), IpPrefix::default());
        assert_eq!(v6.check(TICKET, &from("2001:db8:5:ffff::9")), Ok(()));
        assert_eq!(v6.check(TICKET, &from("2001:db8:6::1")), Err(Refused::BindingWrong));
    }

    #[test]
    fn every_prefix_length_covers_just_its_bits() {
        for bits in 0..=32u8 {
            let prefix = IpPrefix { v4_bits: bits, v6_bits: 0 };
            let bound = Binding::default().to_ip(TICKET, ip("0.0.0.0"), prefix);
            for flipped in 0..32u8 {
                let shown = std::net::Ipv4Addr::from_bits(1 << (31 - flipped));
                let presented = Presented { ip: Some(shown.into()), ..Presented::default() };
                assert_eq!(bound.check(TICKET, &presented).is_ok(), flipped >= bits);
            }
        }
    }

    #[test]
    fn what_is_bound_must_be_shown() {
        let nothing = Presented::default();
        let nonce = Binding::default().to_nonce(TICKET, "n");
        let ua = Binding::default().to_user_agent(TICKET, "n");
        assert_eq!(Binding::default().check(TICKET, &nothing), Ok(()));
        assert_eq!(nonce.check(TICKET, &nothing), Err(Refused::BindingMissing));
        assert_eq!(ua.check(TICKET, &nothing), Err(Refused::BindingMissing));
        let shown = Presented { nonce: Some("n"), user_agent: Some("m"), ..nothing };
        assert_eq!(nonce.check(TICKET, &shown), Ok(()));
        assert_eq!(ua.check(TICKET, &shown), Err(Refused::BindingWrong));
    }

    #[test]
    fn a_digest_is_of_one_kind_and_of_one_ticket() {
        let nonce = Binding::default().to_nonce(TICKET, "x").nonce;
        assert_ne!(nonce, Binding::default().to_user_agent(TICKET, "x").ua);
        assert_ne!(nonce, Binding::default().to_nonce("another", "x").nonce);
    }
}
