//! The visitor's body on its way to the origin, in the framing that its head announced.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body;
use hyper::body::Incoming;

use crate::forward;

/// What a request brings besides its head.
#[derive(Debug)]
pub enum Upload {
    Nothing,
    /// So many bytes.
    Sized(Incoming, u64),
    Chunked(Incoming),
}

/// The visitor's own body broke off, or is not what was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broke;

/// Larger pieces are written as they are, smaller ones are gathered: a copy of a few kilobytes is
/// cheaper than one more call.
const GATHERED_MAX: usize = 4 * 1024;

impl Upload {
    /// The visitor's body as it says that it is.
    pub fn of(body: Incoming) -> Upload {
        if body.is_end_stream() {
            return Upload::Nothing;
        }
        match body.size_hint().exact() {
            Some(bytes) => Upload::Sized(body, bytes),
            None => Upload::Chunked(body),
        }
    }

    pub fn is_nothing(&self) -> bool {
        matches!(self, Upload::Nothing)
    }

    /// The next piece, as it is to be written: into `out`, or to be written behind `out`.
    /// Becomes [`Upload::Nothing`] at the end. Says how many bytes the visitor sent.
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<(u64, Bytes), Broke>> {
        let (body, left) = match self {
            Upload::Nothing => return Poll::Ready(Ok((0, Bytes::new()))),
            Upload::Sized(body, left) => (body, Some(left)),
            Upload::Chunked(body) => (body, None),
        };
        let Some(frame) = ready!(Pin::new(&mut *body).poll_frame(context)) else {
            let whole = left.is_none_or(|left| *left == 0);
            if matches!(self, Upload::Chunked(_)) {
                out.extend_from_slice(b"0\r\n\r\n");
            }
            *self = Upload::Nothing;
            return Poll::Ready(if whole { Ok((0, Bytes::new())) } else { Err(Broke) });
        };
        let frame = frame.map_err(|_| Broke)?;
        let (data, trailers) = match frame.into_data() {
            Ok(data) => (data, None),
            Err(frame) => (Bytes::new(), frame.into_trailers().ok()),
        };
        let moved = data.len() as u64;
        let mut large = Bytes::new();
        match left {
            Some(left) => {
                *left = left.checked_sub(moved).ok_or(Broke)?;
                let over = *left == 0;
                put(data, out, &mut large);
                if over {
                    *self = Upload::Nothing;
                }
            }
            None => {
                // An empty chunk would be the end.
                if moved > 0 {
                    out.extend_from_slice(format!("{moved:x}\r\n").as_bytes());
                    put(data, out, &mut large);
                    if large.is_empty() {
                        out.extend_from_slice(b"\r\n");
                    }
                }
                if let Some(trailers) = trailers {
                    write_trailers(trailers, out);
                    *self = Upload::Nothing;
                }
            }
        }
        // Trailers count too: somebody sent something.
        Poll::Ready(Ok((moved.max(1), large)))
    }

    /// What stands behind a large piece that was written as it is.
    pub fn behind_large(chunked: bool) -> &'static [u8] {
        if chunked { b"\r\n" } else { b"" }
    }
}

fn put(data: Bytes, out: &mut Vec<u8>, large: &mut Bytes) {
    if data.len() > GATHERED_MAX {
        *large = data;
    } else {
        out.extend_from_slice(&data);
    }
}

fn write_trailers(mut trailers: HeaderMap, out: &mut Vec<u8>) {
    forward::trailers_to_origin(&mut trailers);
    out.extend_from_slice(b"0\r\n");
    for (name, value) in &trailers {
        forward::write_field(out, name.as_str(), value.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}
