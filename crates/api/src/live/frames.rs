//! The bytes of live frames, for both carriers.
//!
//! A WebSocket frame from a server is a short header and the text (RFC 6455, section 5.2); it is
//! the same for everyone, so it is made once and shared. Frames from clients are read here too:
//! they are masked, small and few (beats, pongs, goodbyes), so a few bytes of buffer will do; a
//! general WebSocket library keeps kilobytes for each connection and copies each frame.

use bytes::{BufMut, Bytes, BytesMut};

/// Which carrier a connection uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    WebSocket,
    Events,
}

/// A letter of `kind` with this JSON, as the carrier wants it.
pub fn letter(carrier: Carrier, kind: &str, json: &[u8]) -> Bytes {
    match carrier {
        Carrier::WebSocket => frame(Opcode::Text, json),
        Carrier::Events => {
            let mut bytes = BytesMut::with_capacity(json.len() + kind.len() + 24);
            bytes.put_slice(b"event: ");
            bytes.put_slice(kind.as_bytes());
            bytes.put_slice(b"\ndata: ");
            // JSON as we write it has no line breaks, so one data line holds it.
            bytes.put_slice(json);
            bytes.put_slice(b"\n\n");
            bytes.freeze()
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    Text = 1,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

/// An unmasked, whole frame, as servers send them.
pub fn frame(opcode: Opcode, payload: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(payload.len() + 10);
    bytes.put_u8(0x80 | opcode as u8);
    match payload.len() {
        short @ 0..=125 => bytes.put_u8(short as u8),
        medium @ 126..=65_535 => {
            bytes.put_u8(126);
            bytes.put_u16(medium as u16);
        }
        long => {
            bytes.put_u8(127);
            bytes.put_u64(long as u64);
        }
    }
    bytes.put_slice(payload);
    bytes.freeze()
}

/// The close frame with a status code (RFC 6455, section 7.4).
pub fn close(code: u16) -> Bytes {
    frame(Opcode::Close, &code.to_be_bytes())
}

/// Nothing that a client has to say to us is longer.
pub const CLIENT_PAYLOAD_MAX: usize = 1_024;

/// What a client said.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// A message or a pong: a sign of life. What it says does not matter.
    Alive,
    Ping(Vec<u8>),
    Close,
}

/// Why a connection is closed: the status code of the protocol.
pub const PROTOCOL_ERROR: u16 = 1002;
pub const TOO_BIG: u16 = 1009;
pub const GOING_AWAY: u16 = 1001;
pub const NORMAL: u16 = 1000;

/// Takes one whole frame off the front of `buffer`; none while it is incomplete.
pub fn take(buffer: &mut Vec<u8>) -> Result<Option<Said>, u16> {
    let [first, second, rest @ ..] = &buffer[..] else { return Ok(None) };
    let (fin, reserved, opcode) = (first & 0x80 != 0, first & 0x70, first & 0x0F);
    let control = opcode & 0x08 != 0;
    let length = usize::from(second & 0x7F);
    // Clients must mask; extensions were not agreed on; control frames are short and whole.
    if second & 0x80 == 0 || reserved != 0 || control && (!fin || length > 125) {
        return Err(PROTOCOL_ERROR);
    }
    let (length, rest) = match (length, rest) {
        (126, [high, low, rest @ ..]) => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        (126, _) => return Ok(None),
        (127, _) => return Err(TOO_BIG),
        (length, rest) => (length, rest),
    };
    if length > CLIENT_PAYLOAD_MAX {
        return Err(TOO_BIG);
    }
    if rest.len() < 4 + length {
        return Ok(None);
    }
    let (mask, rest) = rest.split_at(4);
    let payload: Vec<u8> = match opcode {
        9 => {
            rest[..length].iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect()
        }
        _ => Vec::new(),
    };
    let said = match opcode {
        0..=2 | 10 => Said::Alive,
        8 => Said::Close,
        9 => Said::Ping(payload),
        _ => return Err(PROTOCOL_ERROR),
    };
    let taken = buffer.len() - (rest.len() - length);
    buffer.drain(..taken);
    Ok(Some(said))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn masked(opcode: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [1, 2, 3, 4];
        let mut bytes = vec![0x80 | opcode];
        match payload.len() {
            short @ 0..=125 => bytes.push(0x80 | short as u8),
            medium => {
                bytes.push(0x80 | 126);
                bytes.extend((medium as u16).to_be_bytes());
            }
        }
        bytes.extend(mask);
        bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        bytes
    }

    #[test]
    fn frames_split_at_every_byte_are_read_whole() {
        let whole =
            [masked(1, b"{\"type\":\"beat\"}"), masked(9, b"hi"), masked(8, &[3, 232])].concat();
        for cut in 0..=whole.len() {
            let mut buffer = whole[..cut].to_vec();
            let mut said = Vec::new();
            while let Some(one) = take(&mut buffer).expect("a good frame") {
                said.push(one);
            }
            buffer.extend(&whole[cut..]);
            while let Some(one) = take(&mut buffer).expect("a good frame") {
                said.push(one);
            }
            assert_eq!(
                said,
                [Said::Alive, Said::Ping(b"hi".to_vec()), Said::Close],
                "cut at {cut}"
            );
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn what_breaks_the_protocol_is_told_so() {
        assert_eq!(take(&mut vec![0x81, 0x05, 1, 2, 3]), Err(PROTOCOL_ERROR), "unmasked");
        assert_eq!(take(&mut vec![0xC1, 0x80, 0, 0, 0, 0]), Err(PROTOCOL_ERROR), "reserved bit");
        assert_eq!(take(&mut vec![0x09, 0x80, 0, 0, 0, 0]), Err(PROTOCOL_ERROR), "split control");
        assert_eq!(take(&mut vec![0x81, 0xFF, 0, 0]), Err(TOO_BIG));
        assert_eq!(take(&mut masked(1, &[7; 1_025])), Err(TOO_BIG));
        assert_eq!(take(&mut masked(3, b"")), Err(PROTOCOL_ERROR), "unknown opcode");
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic_and_never_grow(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut buffer = bytes.clone();
            while let Ok(Some(_)) = take(&mut buffer) {}
            prop_assert!(buffer.len() <= bytes.len());
        }
    }
}
