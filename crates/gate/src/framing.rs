//! What a request must be like before anybody looks at its meaning.
//!
//! hyper has read the bytes: it refuses folded lines, lengths that differ or are no numbers, and
//! encodings that do not end in `chunked`; a request with both a length and `chunked` is read by
//! `chunked` and its connection is closed after the answer. What is sent on is written anew from
//! what was read, with one framing, so the origin cannot see other boundaries than we did.
//! Here is refused what hyper takes and origins disagree about.

use http::request::Parts;
use http::uri::Authority;
use http::{Method, header};

/// Whom the request is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addressed {
    /// As the visitor wrote it, with its port.
    pub authority: String,
    /// Lower case, without the port.
    pub host: String,
}

/// Checks the shape of a request; the error is for the client, in words.
pub fn check(head: &Parts) -> Result<Addressed, &'static str> {
    if head.method == Method::CONNECT {
        return Err("this is no forward proxy: CONNECT is refused");
    }
    if head.method == Method::TRACE {
        return Err("TRACE is refused: it would show what proxies add");
    }
    if head.uri.path() == "*" {
        return Err("ask for a path");
    }
    let mut encodings = head.headers.get_all(header::TRANSFER_ENCODING).iter();
    if let Some(encoding) = encodings.next()
        && (!encoding.as_bytes().eq_ignore_ascii_case(b"chunked") || encodings.next().is_some())
    {
        return Err("Transfer-Encoding may only be chunked, once");
    }
    if head.headers.get_all(header::CONTENT_LENGTH).iter().nth(1).is_some() {
        return Err("more than one Content-Length");
    }
    addressed(head)
}

fn addressed(head: &Parts) -> Result<Addressed, &'static str> {
    let mut hosts = head.headers.get_all(header::HOST).iter();
    let named = hosts.next();
    if hosts.next().is_some() {
        return Err("more than one Host");
    }
    let named = match named {
        Some(value) => Some(value.to_str().map_err(|_| "the Host cannot be read")?),
        None => None,
    };
    let asked = head.uri.authority().map(Authority::as_str);
    let text = match (asked, named) {
        (Some(asked), Some(named)) if !asked.eq_ignore_ascii_case(named) => {
            return Err("the address names another host than the Host header");
        }
        (Some(text), _) | (None, Some(text)) => text,
        (None, None) => return Err("the Host is missing"),
    };
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']')
    };
    if text.is_empty() || text.len() > 255 || !text.bytes().all(plain) {
        return Err("the Host is none");
    }
    let authority: Authority = text.parse().map_err(|_| "the Host is none")?;
    let host = authority.host().trim_end_matches('.').to_ascii_lowercase();
    if host.is_empty() || (text.contains(':') && !text.starts_with('[') && !port_fits(text)) {
        return Err("the Host is none");
    }
    Ok(Addressed { authority: text.to_owned(), host })
}

fn port_fits(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(_, port)| port.is_empty() || port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn checked(uri: &str, method: &str, headers: &[(&str, &str)]) -> Result<String, &'static str> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).expect("a request").into_parts();
        check(&head).map(|it| it.host)
    }

    #[test]
    fn a_request_says_once_whom_it_is_for() {
        assert_eq!(checked("/a", "GET", &[("host", "Shop.Example:80")]), Ok("shop.example".into()));
        assert_eq!(checked("/a", "GET", &[("host", "[::1]:80")]), Ok("[::1]".into()));
        assert_eq!(checked("/a", "GET", &[("host", "shop.example.")]), Ok("shop.example".into()));
        assert_eq!(checked("http://a.example/", "GET", &[]), Ok("a.example".into()));
        assert_eq!(
            checked("http://a.example/", "GET", &[("host", "a.example")]),
            Ok("a.example".into())
        );
        assert!(checked("http://a.example/", "GET", &[("host", "b.example")]).is_err());
        assert!(checked("/", "GET", &[]).is_err());
        assert!(checked("/", "GET", &[("host", "a"), ("host", "a")]).is_err());
        for host in ["", "a b", "a/b", "a@b", "a?b", "a:99999", "a:b", "a,b", "a\\b", ":80", "."] {
            assert!(checked("/", "GET", &[("host", host)]).is_err(), "{host:?}");
        }
    }

    #[test]
    fn what_origins_disagree_about_is_refused() {
        let host = ("host", "a");
        for (name, value) in [
            ("transfer-encoding", "gzip, chunked"),
            ("transfer-encoding", "chunked, chunked"),
            ("transfer-encoding", "xchunked"),
            ("transfer-encoding", "identity"),
        ] {
            assert!(checked("/", "POST", &[host, (name, value)]).is_err(), "{value}");
        }
        assert!(checked("/", "POST", &[host, ("transfer-encoding", "Chunked")]).is_ok());
        let twice = [host, ("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")];
        assert!(checked("/", "POST", &twice).is_err());
        assert!(checked("/", "TRACE", &[host]).is_err());
        assert!(checked("a:1", "CONNECT", &[host]).is_err());
        assert!(checked("*", "OPTIONS", &[host]).is_err());
    }
}
