//! The head of an origin's answer: what it says, and where its body ends (RFC 9112, section 6.3).
//!
//! Whatever could be read in two ways is no answer. What belongs to one hop is left out while the
//! head is read, so nothing has to be taken out again.

use std::mem::MaybeUninit;

use bytes::{Bytes, BytesMut};
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use httparse::{ParserConfig, Status};

use crate::forward;

/// More than this is not sent by anything that means well; nginx takes 8 KiB by default.
const BYTES_MAX: usize = 64 * 1024;
const HEADERS_MAX: usize = 128;

/// What came is no HTTP, or can be read in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonsense;

#[derive(Debug)]
pub struct Head {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub framing: Framing,
    /// Whether the connection can carry another request after the body.
    pub stays: bool,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length(u64),
    Chunked,
    /// When the connection does.
    UntilClose,
}

/// Where a name and a value stand in the bytes of a head.
#[derive(Clone, Copy, Default)]
struct Field {
    name: (u32, u32),
    value: (u32, u32),
}

/// Takes the head from the front of what was read; none while it has not come whole.
pub fn take(read: &mut BytesMut, asked: &Method) -> Result<Option<Head>, Nonsense> {
    let mut parsed = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut fields = [Field::default(); HEADERS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let done = ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        read,
        &mut parsed,
    );
    let bytes = match done {
        Ok(Status::Complete(bytes)) => bytes,
        Ok(Status::Partial) if read.len() < BYTES_MAX => return Ok(None),
        Ok(Status::Partial) | Err(_) => return Err(Nonsense),
    };
    let status = response.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(Nonsense)?;
    let modern = response.version == Some(1);
    let begin = read.as_ptr() as usize;
    let at = |part: &[u8]| {
        let from = part.as_ptr() as usize - begin;
        (from as u32, (from + part.len()) as u32)
    };
    let count = response.headers.len();
    for (field, header) in fields.iter_mut().zip(response.headers.iter()) {
        // An empty value need not lie in the bytes.
        let value = if header.value.is_empty() { (0, 0) } else { at(header.value) };
        *field = Field { name: at(header.name.as_bytes()), value };
    }
    let head = read.split_to(bytes).freeze();
    read_fields(&head, &fields[..count], status, modern, asked).map(Some)
}

fn read_fields(
    bytes: &Bytes,
    fields: &[Field],
    status: StatusCode,
    modern: bool,
    asked: &Method,
) -> Result<Head, Nonsense> {
    let switched = status == StatusCode::SWITCHING_PROTOCOLS;
    let mut headers = HeaderMap::with_capacity(fields.len());
    let (mut length, mut chunked, mut closes) = (None, false, !modern);
    let mut named: Vec<HeaderName> = Vec::new();
    for field in fields {
        let part = |(from, to): (u32, u32)| from as usize..to as usize;
        let name = HeaderName::from_bytes(&bytes[part(field.name)]).map_err(|_| Nonsense)?;
        let value = HeaderValue::from_maybe_shared(bytes.slice(part(field.value)));
        let value = value.map_err(|_| Nonsense)?;
        match name {
            header::CONTENT_LENGTH => {
                let said = digits(value.as_bytes()).ok_or(Nonsense)?;
                if length.is_some_and(|length| length != said) {
                    return Err(Nonsense);
                }
                length = Some(said);
            }
            header::TRANSFER_ENCODING => {
                // Any other encoding would have to be undone here, and nobody sends it.
                if chunked || !value.as_bytes().eq_ignore_ascii_case(b"chunked") {
                    return Err(Nonsense);
                }
                chunked = true;
            }
            header::CONNECTION => {
                for token in value.to_str().map(forward::tokens).into_iter().flatten() {
                    if token.eq_ignore_ascii_case("close") {
                        closes = true;
                    } else if let Ok(name) = HeaderName::from_bytes(token.as_bytes()) {
                        named.push(name);
                    }
                }
            }
            header::UPGRADE if switched => {
                headers.insert(header::UPGRADE, value);
            }
            _ if forward::is_of_one_hop(&name) => {}
            _ => {
                headers.append(name, value);
            }
        }
    }
    for name in named.iter().filter(|name| !switched || **name != header::UPGRADE) {
        forward::remove(&mut headers, name);
    }
    if switched {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
    let bodiless = *asked == Method::HEAD
        || status.is_informational()
        || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let framing = match (bodiless, chunked, length) {
        (true, _, _) => Framing::Length(0),
        (false, true, _) => Framing::Chunked,
        (false, false, Some(length)) => Framing::Length(length),
        (false, false, None) => Framing::UntilClose,
    };
    // The length of what a GET would have got is worth telling. Of two framings the length is the
    // one that counts for nothing, and whoever sends both is not to be trusted with more.
    let tells = !chunked && !matches!(status, StatusCode::NO_CONTENT) && !status.is_informational();
    if let Some(length) = length.filter(|_| tells) {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    let stays = !closes && framing != Framing::UntilClose && !(chunked && length.is_some());
    Ok(Head { status, headers, framing, stays })
}

/// A length is made of digits: no sign, no list, no blanks.
fn digits(text: &[u8]) -> Option<u64> {
    let fits = (1..=19).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    fits.then(|| std::str::from_utf8(text).ok()?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Result<Option<Head>, Nonsense> {
        take(&mut BytesMut::from(text), &Method::GET)
    }

    fn framing(more: &str) -> Result<(Framing, bool), Nonsense> {
        let head = of(&format!("HTTP/1.1 200 OK\r\n{more}\r\n"))?.expect("it is whole");
        Ok((head.framing, head.stays))
    }

    #[test]
    fn a_body_ends_where_the_head_says_and_nowhere_else() {
        assert_eq!(framing("Content-Length: 5\r\n"), Ok((Framing::Length(5), true)));
        assert_eq!(
            framing("Content-Length: 5\r\nContent-Length: 5\r\n").map(|it| it.0),
            Ok(Framing::Length(5))
        );
        assert_eq!(framing("Transfer-Encoding: Chunked\r\n"), Ok((Framing::Chunked, true)));
        assert_eq!(framing("X: y\r\n"), Ok((Framing::UntilClose, false)));
        assert_eq!(
            framing("Content-Length: 5\r\nConnection: x, Close\r\n"),
            Ok((Framing::Length(5), false))
        );
        let both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
        assert_eq!(framing(both), Ok((Framing::Chunked, false)), "and no other request follows");
        for doubtful in [
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: 5, 5\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: \r\n",
            "Content-Length: 0x5\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: identity\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "X : y\r\n",
            " folded: y\r\n",
            "X: y\r\n folded\r\n",
        ] {
            assert_eq!(framing(doubtful), Err(Nonsense), "{doubtful:?}");
        }
    }

    #[test]
    fn some_answers_have_no_body_whatever_they_say() {
        for (asked, status) in
            [(Method::HEAD, "200 OK"), (Method::GET, "204 No"), (Method::GET, "304 Not")]
        {
            let text = format!("HTTP/1.1 {status}\r\nContent-Length: 6\r\n\r\npoison");
            let mut read = BytesMut::from(&*text);
            let head = take(&mut read, &asked).expect("HTTP").expect("whole");
            assert_eq!((head.framing, &read[..]), (Framing::Length(0), &b"poison"[..]));
        }
    }

    #[test]
    fn what_belongs_to_one_hop_is_left_out() {
        let head = of("HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Mine\r\nKeep-Alive: 5\r\n\
             X-Mine: 1\r\nProxy-Connection: a\r\nX-Kept: 2\r\nContent-Length: 0\r\nUpgrade: h2c\r\n\r\n")
        .expect("HTTP")
        .expect("whole");
        let names: Vec<&str> = head.headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-kept", "content-length"]);
        let head = of("HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        let head = head.expect("HTTP").expect("whole");
        assert_eq!(head.headers[header::UPGRADE], "websocket");
        assert_eq!(head.headers[header::CONNECTION], "upgrade");
    }

    #[test]
    fn an_old_origin_gets_one_request_per_connection() {
        let head =
            of("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n").expect("HTTP").expect("whole");
        assert!(!head.stays);
    }

    #[test]
    fn a_head_without_an_end_is_not_read_for_ever() {
        let mut read = BytesMut::from("HTTP/1.1 200 OK\r\nX: ");
        read.resize(BYTES_MAX, b'x');
        assert_eq!(take(&mut read, &Method::GET).map(|_| ()), Err(Nonsense));
        let many = "X: y\r\n".repeat(HEADERS_MAX + 1);
        assert_eq!(of(&format!("HTTP/1.1 200 OK\r\n{many}\r\n")).map(|_| ()), Err(Nonsense));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..128)) {
            let _ = take(&mut BytesMut::from(&bytes[..]), &Method::GET);
            let after = [b"HTTP/1.1 200 OK\r\n", &bytes[..], b"\r\n\r\n"].concat();
            let _ = take(&mut BytesMut::from(&after[..]), &Method::GET);
        }
    }

    #[test]
    fn a_head_means_the_same_however_it_comes() {
        let whole = "HTTP/1.1 201 Created\r\nA: b\r\nEmpty:\r\nContent-Length: 3\r\n\r\nabc";
        for cut in 0..whole.len() - 3 {
            let mut read = BytesMut::from(&whole[..cut]);
            assert!(take(&mut read, &Method::GET).expect("HTTP so far").is_none(), "{cut}");
            read.extend_from_slice(&whole.as_bytes()[cut..]);
            let head = take(&mut read, &Method::GET).expect("HTTP").expect("whole");
            assert_eq!((head.headers.len(), &read[..]), (3, &b"abc"[..]));
            assert_eq!(head.headers["empty"], "");
        }
    }
}
