//! What comes over a live channel, as much of it as a crowd needs: is it a board, and which?

/// How a channel carries its letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    WebSocket,
    Events,
}

impl Carrier {
    pub fn word(self) -> &'static str {
        match self {
            Self::WebSocket => "websocket",
            Self::Events => "events",
        }
    }

    pub fn of_word(word: &str) -> Option<Self> {
        [Self::WebSocket, Self::Events].into_iter().find(|carrier| carrier.word() == word)
    }

    /// The request that opens a channel for a token.
    pub fn request(self, room: &str, token: &str) -> String {
        let (route, upgrade) = match self {
            // The key is the one of RFC 6455: nobody checks that it is random.
            Self::WebSocket => (
                "live",
                "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
            ),
            Self::Events => ("stream", "Accept: text/event-stream\r\n"),
        };
        format!(
            "GET /v1/rooms/{room}/{route} HTTP/1.1\r\nHost: localhost\r\n\
             Authorization: Bearer {token}\r\n{upgrade}\r\n"
        )
    }

    /// The status with which a channel opens.
    pub fn opens_with(self) -> u16 {
        match self {
            Self::WebSocket => 101,
            Self::Events => 200,
        }
    }

    /// Takes one letter off the front of `bytes`: what it is, and how many bytes it took.
    pub fn take(self, bytes: &[u8]) -> Option<(Letter, usize)> {
        match self {
            Self::WebSocket => frame(bytes),
            Self::Events => event(bytes),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letter {
    /// The public board, at a version.
    Board(u64),
    /// A personal frame.
    Ticket,
    Ping,
    /// Comments, which keep a channel open.
    Nothing,
    /// The server ends the channel.
    End,
}

/// A WebSocket frame from a server: not masked, never split.
fn frame(bytes: &[u8]) -> Option<(Letter, usize)> {
    let [first, second, rest @ ..] = bytes else { return None };
    let (length, from): (usize, usize) = match (second & 0x7f, rest) {
        (126, [a, b, ..]) => (usize::from(u16::from_be_bytes([*a, *b])), 4),
        (127, rest) => (usize::try_from(u64::from_be_bytes(*rest.first_chunk()?)).ok()?, 10),
        (126, _) => return None,
        (short, _) => (usize::from(short), 2),
    };
    let payload = bytes.get(from..from.checked_add(length)?)?;
    let letter = match first & 0x0f {
        1 => text(payload),
        9 => Letter::Ping,
        10 => Letter::Nothing,
        _ => Letter::End,
    };
    Some((letter, from + length))
}

/// One event, up to the empty line behind it. Streams have neither a length nor chunks: they end
/// with their connection.
fn event(bytes: &[u8]) -> Option<(Letter, usize)> {
    let ends = bytes.windows(2).position(|it| it == b"\n\n")? + 2;
    let payload = &bytes[..ends];
    let letter = if payload.starts_with(b":") { Letter::Nothing } else { text(payload) };
    Some((letter, ends))
}

/// Our JSON begins with its type, and a board with its version.
fn text(payload: &[u8]) -> Letter {
    let has = |words: &[u8]| payload.windows(words.len()).take(64).any(|window| window == words);
    if has(b"\"type\":\"board\"") {
        Letter::Board(version(payload).unwrap_or(0))
    } else if has(b"\"type\":\"bye\"") {
        Letter::End
    } else {
        Letter::Ticket
    }
}

fn version(payload: &[u8]) -> Option<u64> {
    const NAME: &[u8] = b"\"version\":";
    let at = payload.windows(NAME.len()).position(|window| window == NAME)? + NAME.len();
    let digits = payload[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&payload[at..at + digits]).ok()?.parse().ok()
}

/// A text frame as servers send it.
pub fn text_frame(payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x81];
    match u16::try_from(payload.len()).expect("boards are a few kilobytes") {
        short @ 0..=125 => frame.push(short as u8),
        long => {
            frame.push(126);
            frame.extend(long.to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

/// The answer to a ping: masked, as clients must, with a mask that changes nothing.
pub const PONG: [u8; 6] = [0x8a, 0x80, 0, 0, 0, 0];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOARD: &[u8] = b"{\"type\":\"board\",\"board\":{\"version\":812,\"at\":5}}";

    #[test]
    fn a_board_is_known_by_its_version_over_either_carrier() {
        let framed = text_frame(BOARD);
        let event = [b"event: board\ndata: ", BOARD, b"\n\n"].concat();
        for (carrier, bytes) in [(Carrier::WebSocket, framed), (Carrier::Events, event)] {
            let whole = Some((Letter::Board(812), bytes.len()));
            assert_eq!(carrier.take(&[&bytes[..], b"more"].concat()), whole, "{carrier:?}");
            for cut in 0..bytes.len() {
                assert_eq!(carrier.take(&bytes[..cut]), None, "{carrier:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn pings_personal_frames_and_goodbyes_are_told_apart() {
        assert_eq!(Carrier::WebSocket.take(&[0x89, 0]), Some((Letter::Ping, 2)));
        assert_eq!(Carrier::WebSocket.take(&[0x88, 0]), Some((Letter::End, 2)));
        let ticket = text_frame(b"{\"type\":\"ticket\",\"version\":3}");
        assert_eq!(Carrier::WebSocket.take(&ticket).map(|it| it.0), Some(Letter::Ticket));
        assert_eq!(Carrier::Events.take(b": still here\n\nmore"), Some((Letter::Nothing, 14)));
        let bye = b"event: bye\ndata: {\"type\":\"bye\"}\n\n";
        assert_eq!(Carrier::Events.take(bye), Some((Letter::End, bye.len())));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Carrier::WebSocket.take(&bytes);
            let _ = Carrier::Events.take(&bytes);
        }
    }
}
