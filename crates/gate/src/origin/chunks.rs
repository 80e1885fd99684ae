//! A body in chunks (RFC 9112, section 7.1), taken apart as it comes.
//!
//! Strict where readers differ: a size is hexadecimal digits and nothing before them, a line ends
//! with CR and LF, a chunk is followed by both.

use bytes::{Buf, Bytes, BytesMut};
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use httparse::Status;

use super::head::Nonsense;

/// Of a line with a size and its extensions, which nobody needs.
const LINE_BYTES_MAX: usize = 4 * 1024;
const TRAILER_BYTES_MAX: usize = 16 * 1024;
const TRAILERS_MAX: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chunks {
    /// A line with a size is next.
    #[default]
    Size,
    /// So many bytes are left of this chunk.
    Data(u64),
    /// The end of the line behind a chunk.
    Behind,
    Trailers,
    Over,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    Data(Bytes),
    Trailers(HeaderMap),
    /// More must come first.
    Nothing,
    End,
}

impl Chunks {
    pub fn next(&mut self, read: &mut BytesMut) -> Result<Found, Nonsense> {
        loop {
            match *self {
                Chunks::Size => {
                    let Some(line) = line(read)? else { return Ok(Found::Nothing) };
                    *self = match size(&line)? {
                        0 => Chunks::Trailers,
                        size => Chunks::Data(size),
                    };
                }
                Chunks::Data(_) if read.is_empty() => return Ok(Found::Nothing),
                Chunks::Data(left) => {
                    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(read.len());
                    let left = left - taken as u64;
                    *self = if left == 0 { Chunks::Behind } else { Chunks::Data(left) };
                    return Ok(Found::Data(read.split_to(taken).freeze()));
                }
                Chunks::Behind => {
                    if !b"\r\n".starts_with(&read[..read.len().min(2)]) {
                        return Err(Nonsense);
                    }
                    if read.len() < 2 {
                        return Ok(Found::Nothing);
                    }
                    read.advance(2);
                    *self = Chunks::Size;
                }
                Chunks::Trailers => {
                    let Some(trailers) = trailers(read)? else { return Ok(Found::Nothing) };
                    *self = Chunks::Over;
                    if !trailers.is_empty() {
                        return Ok(Found::Trailers(trailers));
                    }
                }
                Chunks::Over => return Ok(Found::End),
            }
        }
    }
}

/// A line without its end, once it is whole.
fn line(read: &mut BytesMut) -> Result<Option<BytesMut>, Nonsense> {
    let Some(end) = read.iter().take(LINE_BYTES_MAX).position(|&byte| byte == b'\n') else {
        return if read.len() < LINE_BYTES_MAX { Ok(None) } else { Err(Nonsense) };
    };
    let mut line = read.split_to(end + 1);
    if !line.ends_with(b"\r\n") {
        return Err(Nonsense);
    }
    line.truncate(end - 1);
    Ok(Some(line))
}

fn size(line: &[u8]) -> Result<u64, Nonsense> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let behind = line[digits..].trim_ascii_start();
    if !(1..=15).contains(&digits) || !(behind.is_empty() || behind.starts_with(b";")) {
        return Err(Nonsense);
    }
    if behind.contains(&b'\r') {
        return Err(Nonsense);
    }
    let text = std::str::from_utf8(&line[..digits]).map_err(|_| Nonsense)?;
    u64::from_str_radix(text, 16).map_err(|_| Nonsense)
}

fn trailers(read: &mut BytesMut) -> Result<Option<HeaderMap>, Nonsense> {
    let mut parsed = [httparse::EMPTY_HEADER; TRAILERS_MAX];
    let (bytes, fields) = match httparse::parse_headers(read, &mut parsed) {
        Ok(Status::Complete(whole)) => whole,
        Ok(Status::Partial) if read.len() < TRAILER_BYTES_MAX => return Ok(None),
        Ok(Status::Partial) | Err(_) => return Err(Nonsense),
    };
    let mut trailers = HeaderMap::new();
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| Nonsense)?;
        trailers.append(name, HeaderValue::from_bytes(field.value).map_err(|_| Nonsense)?);
    }
    read.advance(bytes);
    Ok(Some(trailers))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Everything that comes of these bytes, in pieces of this size.
    fn all(bytes: &[u8], pieces: usize) -> Result<(Vec<u8>, HeaderMap, bool, BytesMut), Nonsense> {
        let (mut chunks, mut read) = (Chunks::default(), BytesMut::new());
        let (mut body, mut told) = (Vec::new(), HeaderMap::new());
        for piece in bytes.chunks(pieces) {
            read.extend_from_slice(piece);
            loop {
                match chunks.next(&mut read)? {
                    Found::Data(data) => body.extend_from_slice(&data),
                    Found::Trailers(trailers) => told = trailers,
                    Found::Nothing | Found::End => break,
                }
            }
        }
        Ok((body, told, chunks == Chunks::Over, read))
    }

    #[test]
    fn chunks_are_put_together_and_trailers_told() {
        let text = b"2;a=\"b\"\r\nok\r\n00A \r\n0123456789\r\n0\r\nX-Sum: 7\r\n\r\nHTTP/1.1";
        for pieces in 1..text.len() {
            let (body, told, over, rest) = all(text, pieces).expect("good chunks");
            assert_eq!(
                (&body[..], over, &rest[..]),
                (&b"ok0123456789"[..], true, &b"HTTP/1.1"[..])
            );
            assert_eq!(told["x-sum"], "7");
        }
    }

    #[test]
    fn what_readers_read_differently_is_refused() {
        for text in [
            "\r\nok",
            " 2\r\nok\r\n",
            "2\nok\r\n",
            "2\r\nokx\r\n",
            "2\r\nok\n\n0\r\n\r\n",
            "0x2\r\nok\r\n",
            "-2\r\nok\r\n",
            "2 x\r\nok\r\n",
            "2;\rx\r\nok\r\n",
            "1000000000000000\r\n",
            "g\r\n",
        ] {
            assert_eq!(all(text.as_bytes(), 64).map(|_| ()), Err(Nonsense), "{text:?}");
        }
        assert!(all(&[b'0'; LINE_BYTES_MAX + 1], 512).is_err(), "a line without an end");
    }

    proptest! {
        #[test]
        fn whatever_was_cut_into_chunks_comes_out_whole(
            body in prop::collection::vec(any::<u8>(), 0..300),
            cut in 1usize..40,
            pieces in 1usize..50,
        ) {
            let mut text = Vec::new();
            for chunk in body.chunks(cut) {
                text.extend(format!("{:x}\r\n", chunk.len()).bytes());
                text.extend(chunk);
                text.extend(b"\r\n");
            }
            text.extend(b"0\r\n\r\n");
            let (got, _, over, rest) = all(&text, pieces).expect("good chunks");
            prop_assert_eq!(got, body);
            prop_assert!(over && rest.is_empty());
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = all(&bytes, 7);
        }
    }
}
