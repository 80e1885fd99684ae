//! Headers on their way through: what belongs to one hop stays behind, what the gate knows is
//! added, and nothing that only the gate may say is taken from a visitor.

use std::fmt::Write;
use std::net::IpAddr;

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue};

use crate::cookies;

pub const TICKET: HeaderName = HeaderName::from_static("waitroom-ticket");
pub const ROOM: HeaderName = HeaderName::from_static("waitroom-room");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Who asked, and how, as the origin is told.
#[derive(Clone, Copy, Debug)]
pub struct Hop<'a> {
    pub client: IpAddr,
    pub https: bool,
    /// The host that the visitor asked for.
    pub authority: &'a str,
}

/// The visitor's headers become those of a request to the origin. `upgrade` keeps a WebSocket's
/// two headers; any other upgrade is left out, and the request goes on without it.
pub fn to_origin(headers: &mut HeaderMap, hop: &Hop<'_>, upgrade: bool) {
    let trailers = headers.get_all(header::TE).iter().any(|it| {
        it.to_str().is_ok_and(|it| tokens(it).any(|it| it.eq_ignore_ascii_case("trailers")))
    });
    strip_hop(headers);
    let ours: Vec<HeaderName> = headers.keys().filter(|name| is_ours(name)).cloned().collect();
    for name in ours {
        remove(headers, &name);
    }
    remove(headers, &header::CONTENT_LENGTH);
    remove(headers, &header::EXPECT);
    if trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
    if upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    match cookies::for_origin(headers) {
        Some(Some(kept)) => {
            headers.insert(header::COOKIE, kept);
        }
        Some(None) => remove(headers, &header::COOKIE),
        None => {}
    }
    let proto = if hop.https { "https" } else { "http" };
    let mut text = String::with_capacity(80);
    let _ = write!(text, "{}", hop.client);
    put(headers, X_FORWARDED_FOR, &text);
    text.clear();
    // RFC 7239: an IPv6 address stands in brackets, and then in quotes.
    let _ = match hop.client {
        IpAddr::V4(client) => write!(text, "for={client}"),
        IpAddr::V6(client) => write!(text, "for=\"[{client}]\""),
    };
    let _ = write!(text, ";host=\"{}\";proto={proto}", hop.authority);
    put(headers, header::FORWARDED, &text);
    put(headers, X_FORWARDED_HOST, hop.authority);
    headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(proto));
}

/// What a visitor may say behind a body: nothing that the gate says, that frames a message, or
/// that says who asks. An origin that lays trailers over the headers would believe it.
pub fn trailers_to_origin(trailers: &mut HeaderMap) {
    const NEVER: [HeaderName; 7] = [
        header::HOST,
        header::CONTENT_LENGTH,
        header::COOKIE,
        header::AUTHORIZATION,
        header::TRAILER,
        header::EXPECT,
        HeaderName::from_static("waitroom-pass"),
    ];
    strip_hop(trailers);
    let ours: Vec<HeaderName> =
        trailers.keys().filter(|name| is_ours(name) || NEVER.contains(name)).cloned().collect();
    for name in ours {
        remove(trailers, &name);
    }
}

/// The origin's headers become those of an answer to the visitor.
pub fn to_visitor(headers: &mut HeaderMap, upgrade: bool) {
    let protocol = if upgrade { headers.get(header::UPGRADE).cloned() } else { None };
    strip_hop(headers);
    if let Some(protocol) = protocol {
        headers.insert(header::UPGRADE, protocol);
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

/// What RFC 9110 (7.6.1) calls hop by hop, and what `Connection` names besides.
fn strip_hop(headers: &mut HeaderMap) {
    if headers.contains_key(header::CONNECTION) {
        let named: Vec<HeaderName> = headers
            .get_all(header::CONNECTION)
            .iter()
            .filter_map(|line| line.to_str().ok())
            .flat_map(tokens)
            .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
            // A visitor must not be able to take these from a request by naming them.
            .filter(|name| !matches!(*name, header::HOST | header::COOKIE | header::CONTENT_LENGTH))
            .collect();
        for name in named {
            remove(headers, &name);
        }
    }
    const HOP: [HeaderName; 8] = [
        header::CONNECTION,
        HeaderName::from_static("keep-alive"),
        HeaderName::from_static("proxy-connection"),
        header::PROXY_AUTHORIZATION,
        header::PROXY_AUTHENTICATE,
        header::TE,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ];
    for name in &HOP {
        remove(headers, name);
    }
}

/// Headers that the gate writes, or that frame a message, however they are spelled: origins that
/// turn headers into variables read `X_Forwarded_For` as `X-Forwarded-For`.
fn is_ours(name: &HeaderName) -> bool {
    let name = name.as_str();
    if name == "waitroom-pass" {
        return false;
    }
    if name.contains('_') {
        let dashed = name.replace('_', "-");
        let framing = ["host", "content-length", "transfer-encoding", "connection", "upgrade"];
        return framing.contains(&&*dashed) || dashed == "waitroom-pass" || is_told(&dashed);
    }
    is_told(name)
}

fn is_told(name: &str) -> bool {
    name == "forwarded"
        || name == "x-real-ip"
        || name == "http2-settings"
        || name.starts_with("x-forwarded-")
        || name.starts_with("waitroom-")
}

fn tokens(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(str::trim_ascii).filter(|token| !token.is_empty())
}

fn put(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

fn remove(headers: &mut HeaderMap, name: &HeaderName) {
    while headers.remove(name).is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(headers: &[(&str, &str)], upgrade: bool) -> Vec<(String, String)> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::from_bytes(name.as_bytes()).expect(name),
                HeaderValue::from_str(value).expect(value),
            );
        }
        let hop = Hop { client: [203, 0, 113, 9].into(), https: true, authority: "shop.example" };
        to_origin(&mut map, &hop, upgrade);
        map.iter()
            .map(|(name, value)| (name.to_string(), value.to_str().expect("plain").to_owned()))
            .collect()
    }

    fn names(sent: &[(String, String)]) -> Vec<&str> {
        sent.iter().map(|(name, _)| &**name).collect()
    }

    #[test]
    fn what_belongs_to_one_hop_stays_behind() {
        let sent = sent(
            &[
                ("connection", "close, X-Mine"),
                ("x-mine", "1"),
                ("keep-alive", "5"),
                ("upgrade", "h2c"),
                ("http2-settings", "AA"),
                ("te", "trailers, gzip"),
                ("transfer-encoding", "chunked"),
                ("content-length", "3"),
                ("expect", "100-continue"),
                ("proxy-authorization", "x"),
                ("accept", "*/*"),
            ],
            false,
        );
        for gone in ["x-mine", "keep-alive", "upgrade", "http2-settings", "transfer-encoding"] {
            assert!(!names(&sent).contains(&gone), "{gone}");
        }
        assert!(sent.contains(&("te".into(), "trailers".into())));
        assert!(sent.contains(&("accept".into(), "*/*".into())));
    }

    #[test]
    fn a_visitor_cannot_say_what_only_the_gate_may_say() {
        let sent = sent(
            &[
                ("x-forwarded-for", "6.6.6.6"),
                ("x_forwarded_for", "6.6.6.6"),
                ("x-forwarded-proto", "http"),
                ("x-forwarded-user", "root"),
                ("forwarded", "for=6.6.6.6"),
                ("x-real-ip", "6.6.6.6"),
                ("waitroom-ticket", "mine"),
                ("waitroom_ticket", "mine"),
                ("waitroom-session", "complete"),
                ("waitroom-pass", "eyJ"),
                ("content_length", "7"),
                ("my_own", "kept"),
            ],
            false,
        );
        let said = |name: &str| {
            let found = sent.iter().filter(|(it, _)| it == name).map(|(_, value)| &**value);
            found.collect::<Vec<_>>()
        };
        assert_eq!(said("x-forwarded-for"), ["203.0.113.9"]);
        assert_eq!(said("x-forwarded-proto"), ["https"]);
        assert_eq!(said("forwarded"), ["for=203.0.113.9;host=\"shop.example\";proto=https"]);
        assert_eq!(said("waitroom-pass"), ["eyJ"]);
        assert_eq!(said("my_own"), ["kept"]);
        for gone in ["x_forwarded_for", "x-forwarded-user", "waitroom-ticket", "waitroom_ticket"] {
            assert!(said(gone).is_empty(), "{gone}");
        }
        assert!(said("content_length").is_empty() && said("waitroom-session").is_empty());
    }

    #[test]
    fn nothing_that_matters_comes_behind_a_body() {
        let mut trailers = HeaderMap::new();
        for name in ["x-sum", "waitroom-ticket", "x_forwarded_for", "host", "content-length"] {
            trailers.insert(HeaderName::from_static(name), HeaderValue::from_static("1"));
        }
        trailers_to_origin(&mut trailers);
        assert_eq!(trailers.keys().collect::<Vec<_>>(), ["x-sum"]);
    }

    #[test]
    fn a_websocket_keeps_its_upgrade_and_nothing_else_does() {
        let both = [("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")];
        assert!(sent(&both, true).contains(&("upgrade".into(), "websocket".into())));
        assert!(!names(&sent(&both, false)).contains(&"upgrade"));
    }
}
