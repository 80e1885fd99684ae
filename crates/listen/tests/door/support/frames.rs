//! HTTP/2 by hand: frames that no well-behaved client sends.

use tokio::io::{AsyncRead, AsyncReadExt};

use super::in_time;

pub const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

pub const ENHANCE_YOUR_CALM: u32 = 11;

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame's length").to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// GET / over http to "a", by the static table of HPACK.
pub fn get_headers() -> Vec<u8> {
    vec![0x82, 0x86, 0x84, 0x41, 0x01, b'a']
}

/// Reads frames until a GOAWAY with a reason other than "no error"; that reason.
pub async fn goaway_reason<S: AsyncRead + Unpin>(stream: &mut S) -> Option<u32> {
    in_time(async {
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let mut payload = vec![0; length];
            stream.read_exact(&mut payload).await.ok()?;
            if head[3] == GOAWAY {
                let reason = payload[4..8].try_into().expect("four bytes");
                match u32::from_be_bytes(reason) {
                    0 => continue,
                    reason => return Some(reason),
                }
            }
        }
    })
    .await
}
