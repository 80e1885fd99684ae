//! The cookies of a gate: the pass, its checked form, and how a browser's cookies go on to the
//! origin without what is ours.
//!
//! | cookie | what it is | who reads it |
//! |---|---|---|
//! | `__Host-wr-pass-ROOM` | the pass | the gate when the other one is too old; the origin, if it likes |
//! | `__Host-wr-gate-ROOM` | the pass was checked | the gate |
//! | `__Host-wr-staff-ROOM` | a staff pass | the gate |
//! | `__Host-wr-bind-ROOM` | a nonce that passes are tied to | the gate; the origin, if it likes |
//! | `__Host-wr-ticket-ROOM` | the ticket's token | our own addresses |
//!
//! In development, over plain HTTP, they are called the same without `__Host-`.

use http::{HeaderMap, HeaderValue, header};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Pass,
    Checked,
    Staff,
}

const HOST: &str = "__Host-";

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Pass => "wr-pass-",
            Kind::Checked => "wr-gate-",
            Kind::Staff => "wr-staff-",
        }
    }
}

/// What a request's cookies say about a room.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown<'a> {
    pub pass: Option<&'a str>,
    pub checked: Option<&'a str>,
    pub staff: Option<&'a str>,
    pub ticket: Option<&'a str>,
    pub nonce: Option<&'a str>,
}

/// Looks through the cookies once. Of two with one name the first counts, as browsers send the
/// more specific one first.
pub fn shown<'a>(headers: &'a HeaderMap, room: &str, dev: bool) -> Shown<'a> {
    let mut shown = Shown::default();
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
    for pair in lines.flat_map(|line| line.split(';')) {
        let pair = pair.trim_ascii();
        let Some(rest) = (if dev { Some(pair) } else { pair.strip_prefix(HOST) }) else { continue };
        let Some(rest) = rest.strip_prefix("wr-") else { continue };
        let Some((kind, rest)) = rest.split_once('-') else { continue };
        let Some(value) = rest.strip_prefix(room).and_then(|rest| rest.strip_prefix('=')) else {
            continue;
        };
        let slot = match kind {
            "pass" => &mut shown.pass,
            "gate" => &mut shown.checked,
            "staff" => &mut shown.staff,
            "ticket" => &mut shown.ticket,
            "bind" => &mut shown.nonce,
            _ => continue,
        };
        slot.get_or_insert(value);
    }
    shown
}

/// `None` when the value cannot stand in a cookie; ours always can.
pub fn set(kind: Kind, room: &str, value: &str, life_s: u64, dev: bool) -> Option<HeaderValue> {
    let (host, secure) = if dev { ("", "") } else { (HOST, "; Secure") };
    let word = kind.word();
    let text = format!(
        "{host}{word}{room}={value}; Path=/; Max-Age={life_s}; HttpOnly; SameSite=Lax{secure}"
    );
    HeaderValue::try_from(text).ok()
}

pub fn clear(kind: Kind, room: &str, dev: bool) -> HeaderValue {
    set(kind, room, "", 0, dev).expect("room names are plain ASCII")
}

/// Writes the visitor's cookies without those that are nobody's business but ours, as one line:
/// HTTP/2 may send a line for each, and origins of HTTP/1.1 expect one (RFC 9113, 8.2.3). The
/// pass stays: an origin may check it once more.
pub fn write_for_origin(headers: &HeaderMap, out: &mut Vec<u8>) {
    const BEGIN: &[u8] = b"cookie: ";
    let before = out.len();
    for line in headers.get_all(header::COOKIE) {
        for pair in line.as_bytes().split(|byte| *byte == b';') {
            let pair = pair.trim_ascii();
            if pair.is_empty() || is_secret(pair) {
                continue;
            }
            out.extend_from_slice(if out.len() == before { BEGIN } else { b"; " });
            out.extend_from_slice(pair);
        }
    }
    if out.len() > before {
        out.extend_from_slice(b"\r\n");
    }
}

fn is_secret(pair: &[u8]) -> bool {
    let name = pair.strip_prefix(HOST.as_bytes()).unwrap_or(pair);
    let Some(rest) = name.strip_prefix(b"wr-") else { return false };
    [&b"gate-"[..], b"staff-", b"ticket-"].iter().any(|begin| rest.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jar(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::COOKIE, HeaderValue::from_str(line).expect("plain"));
        }
        headers
    }

    #[test]
    fn the_cookies_of_one_room_are_not_another_s() {
        let jar = jar(&[
            "a=b; __Host-wr-pass-spring=one; __Host-wr-pass-spring-vip=two;wr-gate-spring=no",
        ]);
        assert_eq!(shown(&jar, "spring", false).pass, Some("one"));
        assert_eq!(shown(&jar, "spring-vip", false).pass, Some("two"));
        assert_eq!(shown(&jar, "sprin", false).pass, None);
        assert_eq!(shown(&jar, "spring", false).checked, None, "a cookie of development");
        assert_eq!(shown(&jar, "spring", true).checked, Some("no"));
    }

    #[test]
    fn the_origin_gets_the_shop_s_cookies_and_the_pass_but_no_secret_of_ours() {
        let went = |lines: &[&str]| {
            let mut out = Vec::new();
            write_for_origin(&jar(lines), &mut out);
            String::from_utf8(out).expect("plain")
        };
        assert_eq!(went(&["a=b; c=d"]), "cookie: a=b; c=d\r\n");
        assert_eq!(went(&["__Host-wr-ticket-x=t"]), "");
        assert_eq!(
            went(&["a=b; __Host-wr-gate-x=g; __Host-wr-pass-x=p; wr-staff-x=s"]),
            "cookie: a=b; __Host-wr-pass-x=p\r\n"
        );
        assert_eq!(went(&["a=b", "c=d"]), "cookie: a=b; c=d\r\n");
    }
}
