//! Headers on their way through: what belongs to one hop stays behind, what the gate knows is
//! added, and nothing that only the gate may say is taken from a visitor.

use std::io::Write;
use std::net::IpAddr;

use http::header::{self, HeaderName};
use http::{HeaderMap, Method};
use waitroom_core::id::TicketId;

use crate::cookies;

pub const TICKET: HeaderName = HeaderName::from_static("waitroom-ticket");
pub const ROOM: HeaderName = HeaderName::from_static("waitroom-room");
/// Enough for the head of nearly every request, so that it is written without growing.
const HEAD_BYTES: usize = 1_024;

/// Who asked, and how, as the origin is told.
#[derive(Clone, Copy, Debug)]
pub struct Hop<'a> {
    pub client: IpAddr,
    pub https: bool,
    /// The host that the visitor asked for.
    pub authority: &'a str,
}

/// A request as it goes to an origin.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    pub method: &'a Method,
    /// Path and query.
    pub path: &'a str,
    /// The visitor's.
    pub headers: &'a HeaderMap,
    pub hop: Hop<'a>,
    /// What the origin is to take for its own name.
    pub host: &'a [u8],
    /// Whether a WebSocket is wanted; any other upgrade is left out, and the request goes on
    /// without it.
    pub upgrade: bool,
    /// Ticket and room of somebody inside.
    pub inside: Option<(TicketId, &'a str)>,
    pub framing: Framing,
    /// Whether it goes to a waitroom, which gets its own cookies.
    pub ours: bool,
}

/// How the origin knows where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    NoBody,
    Length(u64),
    Chunked,
}

impl Outgoing<'_> {
    /// Writes the head, with one framing, from what was read and from what the gate knows.
    pub fn write(&self, out: &mut Vec<u8>) {
        let headers = self.headers;
        out.reserve(HEAD_BYTES);
        out.extend_from_slice(self.method.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.path.as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        write_field(out, "host", self.host);
        let named = named_by_connection(headers);
        for (name, value) in headers {
            let cookie = *name == header::COOKIE && !self.ours;
            if cookie || !goes_on(name) || named.contains(name) {
                continue;
            }
            write_field(out, name.as_str(), value.as_bytes());
        }
        if !self.ours {
            cookies::write_for_origin(headers, out);
        }
        match (self.upgrade, takes_trailers(headers)) {
            (true, _) => out.extend_from_slice(b"connection: upgrade\r\nupgrade: websocket\r\n"),
            (false, true) => out.extend_from_slice(b"connection: te\r\nte: trailers\r\n"),
            (false, false) => {}
        }
        self.write_hop(out);
        match self.framing {
            // A length of nothing is a length: some origins ask for one.
            Framing::NoBody
                if matches!(*self.method, Method::POST | Method::PUT | Method::PATCH) =>
            {
                out.extend_from_slice(b"content-length: 0\r\n");
            }
            Framing::NoBody => {}
            Framing::Length(bytes) => {
                let _ = write!(out, "content-length: {bytes}\r\n");
            }
            Framing::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        }
        out.extend_from_slice(b"\r\n");
    }

    /// What the gate knows: who asked, for what, and by which right.
    fn write_hop(&self, out: &mut Vec<u8>) {
        let Hop { client, https, authority } = self.hop;
        let proto = if https { "https" } else { "http" };
        // RFC 7239: an IPv6 address stands in brackets, and then in quotes.
        let _ = match client {
            IpAddr::V4(client) => {
                write!(out, "x-forwarded-for: {client}\r\nforwarded: for={client}")
            }
            IpAddr::V6(client) => {
                write!(out, "x-forwarded-for: {client}\r\nforwarded: for=\"[{client}]\"")
            }
        };
        for part in [";host=\"", authority, "\";proto=", proto, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        write_field(out, "x-forwarded-host", authority.as_bytes());
        write_field(out, "x-forwarded-proto", proto.as_bytes());
        if let Some((ticket, room)) = self.inside {
            let _ = write!(out, "{TICKET}: {ticket}\r\n");
            write_field(out, ROOM.as_str(), room.as_bytes());
        }
    }
}

pub fn write_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn takes_trailers(headers: &HeaderMap) -> bool {
    headers.get_all(header::TE).iter().any(|it| {
        it.to_str().is_ok_and(|it| tokens(it).any(|it| it.eq_ignore_ascii_case("trailers")))
    })
}

/// What `Connection` names belongs to one hop, but a visitor must not be able to take these from
/// a request by naming them.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let lines = headers.get_all(header::CONNECTION).iter().filter_map(|line| line.to_str().ok());
    lines
        .flat_map(tokens)
        // What nearly everybody says.
        .filter(|token| !token.eq_ignore_ascii_case("keep-alive"))
        .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
        .filter(|name| !matches!(*name, header::HOST | header::COOKIE | header::CONTENT_LENGTH))
        .collect()
}

/// Whether a visitor's header is for the origin to see.
fn goes_on(name: &HeaderName) -> bool {
    match *name {
        header::HOST | header::CONTENT_LENGTH | header::EXPECT | header::FORWARDED => false,
        header::ACCEPT
        | header::ACCEPT_ENCODING
        | header::ACCEPT_LANGUAGE
        | header::USER_AGENT
        | header::REFERER
        | header::CACHE_CONTROL => true,
        _ => !is_of_one_hop(name) && !is_ours(name),
    }
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

/// What an origin may say behind a body: nothing that frames a message or is for us alone.
pub fn trailers_to_visitor(trailers: &mut HeaderMap) {
    trailers_to_origin(trailers);
    remove(trailers, &header::SET_COOKIE);
}

/// What RFC 9110 (7.6.1) calls hop by hop.
pub fn is_of_one_hop(name: &HeaderName) -> bool {
    match *name {
        header::CONNECTION
        | header::PROXY_AUTHORIZATION
        | header::PROXY_AUTHENTICATE
        | header::TE
        | header::TRANSFER_ENCODING
        | header::UPGRADE => true,
        _ => matches!(name.as_str(), "keep-alive" | "proxy-connection"),
    }
}

fn strip_hop(headers: &mut HeaderMap) {
    let of_one_hop: Vec<HeaderName> =
        headers.keys().filter(|name| is_of_one_hop(name)).cloned().collect();
    for name in of_one_hop {
        remove(headers, &name);
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

pub fn tokens(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(str::trim_ascii).filter(|token| !token.is_empty())
}

pub fn remove(headers: &mut HeaderMap, name: &HeaderName) {
    while headers.remove(name).is_some() {}
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

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
        let request = Outgoing {
            method: &Method::GET,
            path: "/a?b",
            headers: &map,
            hop,
            host: b"shop.example",
            upgrade,
            inside: None,
            framing: Framing::NoBody,
            ours: false,
        };
        let mut out = Vec::new();
        request.write(&mut out);
        let text = String::from_utf8(out).expect("plain");
        let text = text.strip_prefix("GET /a?b HTTP/1.1\r\nhost: shop.example\r\n");
        let text = text.and_then(|text| text.strip_suffix("\r\n")).expect("one request");
        let fields = text.lines().map(|line| line.split_once(": ").expect("a field"));
        fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
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
