//! What passes are tied to when they are given out (`[pass] binding`), so that a copied one is
//! worth less.
//!
//! Lives here: which ties this instance uses, the nonce's cookie, and reading them off a request.
//! Stays out: the digests and their check (`verifier`). A pass that goes to a service (by API key,
//! gRPC, an event) is tied to nothing: whoever gets it there is not the browser that shows it.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, header};
use waitroom_core::id::TicketId;
use waitroom_pass::{Binding, IpPrefix, Presented};
use waitroom_store::{Entropy, OsEntropy, RoomName};

/// Put into a request's extensions by a gate that answers on the host of the site it guards: a
/// cookie that is set in the answer is shown wherever the pass is.
#[derive(Clone, Copy, Debug)]
pub struct SameHost;

/// The ties that are in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bind {
    /// A cookie of chance, where page and gate share a host.
    pub nonce: bool,
    pub address: Option<IpPrefix>,
    pub agent: bool,
}

impl Bind {
    /// What a pass of this ticket is tied to, given out to whoever shows this.
    pub fn binding(&self, ticket: TicketId, shown: &Presented<'_>) -> Binding {
        let mut binding = Binding::default();
        let ticket = ticket.printed();
        let ticket = std::str::from_utf8(&ticket).expect("ids are printed in ASCII");
        if let Some(nonce) = shown.nonce.filter(|_| self.nonce) {
            binding = binding.to_nonce(ticket, nonce);
        }
        if let (Some(prefix), Some(ip)) = (self.address, shown.ip) {
            binding = binding.to_ip(ticket, ip, prefix);
        }
        if self.agent {
            // A browser that calls itself nothing is tied to that.
            binding = binding.to_user_agent(ticket, shown.user_agent.unwrap_or_default());
        }
        binding
    }
}

/// What a request shows of where it comes from.
pub fn shown<'a>(headers: &'a HeaderMap, client: IpAddr, nonce: Option<&'a str>) -> Presented<'a> {
    let user_agent = headers.get(header::USER_AGENT).and_then(|it| it.to_str().ok());
    Presented { nonce, ip: Some(client), user_agent: Some(user_agent.unwrap_or_default()) }
}

const COOKIE: &str = "wr-bind-";

/// The nonce that this browser has for the room; none for a text that we would not have given.
pub fn nonce<'a>(headers: &'a HeaderMap, room: &RoomName, dev: bool) -> Option<&'a str> {
    let host = if dev { "" } else { "__Host-" };
    let mut lines = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
    lines.find_map(|line| {
        line.split(';').find_map(|pair| {
            let rest = pair.trim_ascii().strip_prefix(host)?.strip_prefix(COOKIE)?;
            let value = rest.strip_prefix(room.as_str())?.strip_prefix('=')?;
            URL_SAFE_NO_PAD.decode(value).is_ok_and(|it| it.len() == 16).then_some(value)
        })
    })
}

/// A new nonce.
pub fn fresh_nonce() -> String {
    URL_SAFE_NO_PAD.encode(OsEntropy.next_u128().to_be_bytes())
}

/// The cookie that keeps it, for longer than any pass.
pub fn set_nonce(room: &RoomName, nonce: &str, dev: bool) -> HeaderValue {
    let (host, secure) = if dev { ("", "") } else { ("__Host-", "; Secure") };
    let text = format!(
        "{host}{COOKIE}{room}={nonce}; Path=/; Max-Age=2592000; HttpOnly; SameSite=Lax{secure}"
    );
    HeaderValue::try_from(text).expect("room names and base64 are plain ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_found_in_its_own_room_and_only_if_it_may_be_ours() {
        let room = RoomName::parse("spring").expect("a name");
        let mine = fresh_nonce();
        let jar = |text: &str| {
            HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_str(text).expect("plain"))])
        };
        let good = format!("a=b; __Host-wr-bind-spring={mine}; c=d");
        assert_eq!(nonce(&jar(&good), &room, false), Some(&*mine));
        assert_eq!(nonce(&jar(&good), &room, true), None, "a dev cookie has another name");
        for bad in ["wr-bind-spring=x", "__Host-wr-bind-spring=", "__Host-wr-bind-spring=AAAA"] {
            assert_eq!(nonce(&jar(bad), &room, false), None, "{bad}");
        }
        assert_eq!(nonce(&jar(&good.replace("spring", "sprin")), &room, false), None);
    }

    #[test]
    fn a_pass_is_tied_to_what_is_asked_for_and_to_nothing_else() {
        let ticket = TicketId::from_bytes([7; 16]);
        let ip = IpAddr::from([192, 0, 2, 7]);
        let shown = Presented { nonce: Some("n"), ip: Some(ip), user_agent: Some("ua") };
        assert!(Bind::default().binding(ticket, &shown).is_empty());
        let all = Bind { nonce: true, address: Some(IpPrefix::default()), agent: true };
        let tied = all.binding(ticket, &shown);
        let text = ticket.to_string();
        assert!(tied.check(&text, &shown).is_ok());
        let neighbour = Presented { ip: Some([192, 0, 2, 99].into()), ..shown };
        assert!(tied.check(&text, &neighbour).is_ok(), "the same network");
        for other in [
            Presented { nonce: Some("m"), ..shown },
            Presented { nonce: None, ..shown },
            Presented { ip: Some([192, 0, 3, 7].into()), ..shown },
            Presented { user_agent: Some("UA"), ..shown },
        ] {
            assert!(tied.check(&text, &other).is_err(), "{other:?}");
        }
    }
}
