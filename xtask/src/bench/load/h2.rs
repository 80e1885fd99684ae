//! As much of HTTP/2 as it takes to make gRPC calls, in bytes.
//!
//! A general client costs more than the server it asks; this one writes frames that were made
//! before and reads nothing of an answer but its frames. Headers go the way of real clients:
//! written out once on each connection, a byte each from then on.

/// RFC 9113, section 6.
pub const DATA: u8 = 0x0;
pub const HEADERS: u8 = 0x1;
pub const RST_STREAM: u8 = 0x3;
pub const SETTINGS: u8 = 0x4;
pub const PING: u8 = 0x6;
pub const GOAWAY: u8 = 0x7;
const WINDOW_UPDATE: u8 = 0x8;

pub const END_STREAM: u8 = 0x1;
pub const ACK: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// SETTINGS_INITIAL_WINDOW_SIZE, and the largest value it may have.
const INITIAL_WINDOW: u16 = 0x4;
const WINDOW_MAX: u32 = (1 << 31) - 1;
const WINDOW_AT_START: u32 = 65_535;
/// After so many bytes the other side gets as many again.
pub const WINDOW_STEP: u32 = 1 << 30;

pub const FRAME_HEAD: usize = 9;
/// Our side never raised the largest frame above what everyone starts with.
pub const FRAME_BYTES_MAX: usize = 16_384;

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub bytes: usize,
}

impl Frame {
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, kind, flags, stream @ ..] = bytes.first_chunk::<FRAME_HEAD>()?;
        Some(Self {
            kind: *kind,
            flags: *flags,
            stream: u32::from_be_bytes(*stream) & WINDOW_MAX,
            bytes: u32::from_be_bytes([0, *a, *b, *c]) as usize,
        })
    }
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(payload.len()).expect("our frames are small");
    out.extend_from_slice(&length.to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// What a client says first: that it takes all that the server has to give.
pub fn hello(out: &mut Vec<u8>) {
    out.extend_from_slice(PREFACE);
    let mut setting = INITIAL_WINDOW.to_be_bytes().to_vec();
    setting.extend(WINDOW_MAX.to_be_bytes());
    frame(SETTINGS, 0, 0, &setting, out);
    window(WINDOW_MAX - WINDOW_AT_START, out);
}

/// The connection may send so many bytes more.
pub fn window(bytes: u32, out: &mut Vec<u8>) {
    frame(WINDOW_UPDATE, 0, 0, &bytes.to_be_bytes(), out);
}

/// The headers of one gRPC method for one caller (RFC 7541).
#[derive(Debug, Clone)]
pub struct CallHeaders {
    first: Vec<u8>,
    later: Vec<u8>,
}

impl CallHeaders {
    pub fn new(path: &str, key: &str) -> Self {
        // Of the table that both sides know: ":method: POST", ":scheme: http", then names.
        let mut first = vec![0x83, 0x86];
        for (name, value) in [
            (Name::Known(4), path),
            (Name::Known(1), "localhost"),
            (Name::Known(31), "application/grpc"),
            (Name::New("te"), "trailers"),
            (Name::Known(23), &format!("Bearer {key}")),
        ] {
            name.write(&mut first);
            string(value, &mut first);
        }
        // The five that were just written are at the front of the table now, the last one first.
        let later = vec![0x83, 0x86, 0x80 | 66, 0x80 | 65, 0x80 | 64, 0x80 | 63, 0x80 | 62];
        Self { first, later }
    }

    /// A whole call with its message; the first on a connection says the headers in full.
    pub fn call(&self, first: bool, stream: u32, message: &[u8], out: &mut Vec<u8>) {
        let headers = if first { &self.first } else { &self.later };
        frame(HEADERS, END_HEADERS, stream, headers, out);
        frame(DATA, END_STREAM, stream, message, out);
    }
}

enum Name {
    Known(u8),
    New(&'static str),
}

impl Name {
    /// As a literal that both sides add to their tables.
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Known(index) => out.push(0x40 | index),
            Self::New(name) => {
                out.push(0x40);
                string(name, out);
            }
        }
    }
}

/// A string of at most 126 bytes, as it is.
fn string(text: &str, out: &mut Vec<u8>) {
    let length = u8::try_from(text.len()).ok().filter(|length| *length < 127);
    out.push(length.expect("our headers are short"));
    out.extend_from_slice(text.as_bytes());
}

/// A message as gRPC frames it: not compressed, its length, its bytes. Ours is one string, as
/// field 1 of a protobuf message.
pub fn message(text: &str) -> Vec<u8> {
    let mut payload = vec![0x0a];
    string(text, &mut payload);
    let mut message = vec![0];
    message.extend(u32::try_from(payload.len()).expect("it is short").to_be_bytes());
    message.extend(payload);
    message
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        let mut bytes = vec![];
        frame(DATA, END_STREAM, 7, b"hello", &mut bytes);
        let read = Frame::read(&bytes).expect("it is whole");
        assert_eq!(read, Frame { kind: DATA, flags: END_STREAM, stream: 7, bytes: 5 });
        assert_eq!(&bytes[FRAME_HEAD..], b"hello");
        assert_eq!(Frame::read(&bytes[..8]), None);
    }

    #[test]
    fn a_message_is_one_string_in_field_one() {
        assert_eq!(message("ab"), [0, 0, 0, 0, 4, 0x0a, 2, b'a', b'b']);
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            let _ = Frame::read(&bytes);
        }
    }
}
