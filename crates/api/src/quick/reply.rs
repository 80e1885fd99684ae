//! An answer as the bytes of HTTP/1.1: what hyper would write, for the few shapes that go out here.

use http::Response;
use waitroom_listen::http_date;

use crate::body::Body;

/// The status line of an answer that is well, and the front of its headers, left open at the end.
pub(super) fn begin(out: &mut Vec<u8>, headers: &str) {
    out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    out.extend_from_slice(headers.as_bytes());
}

/// What every answer with a body ends with.
pub(super) fn end(out: &mut Vec<u8>, body: &[u8], now_s: u64) {
    out.extend_from_slice(b"\r\ncontent-length: ");
    out.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
    over(out, now_s);
    out.extend_from_slice(body);
}

pub(super) fn not_modified(out: &mut Vec<u8>, tag: &[u8], now_s: u64) {
    out.extend_from_slice(b"HTTP/1.1 304 Not Modified\r\netag: ");
    out.extend_from_slice(tag);
    over(out, now_s);
}

fn over(out: &mut Vec<u8>, now_s: u64) {
    out.extend_from_slice(b"\r\ndate: ");
    out.extend_from_slice(&http_date(now_s));
    out.extend_from_slice(b"\r\n\r\n");
}

/// Any answer whose body is there.
pub(super) fn whole(out: &mut Vec<u8>, response: Response<Body>, now_s: u64) {
    let (head, body) = response.into_parts();
    let body = match body {
        Body::Whole(bytes) => bytes.unwrap_or_default(),
        Body::Stream(_) => unreachable!("nothing on the short way answers with a stream"),
    };
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(head.status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(head.status.canonical_reason().unwrap_or_default().as_bytes());
    for (name, value) in &head.headers {
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
    }
    end(out, &body, now_s);
}
