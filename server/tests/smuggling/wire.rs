//! Raw bytes to the gate, and the answers read from its connection one after another.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What came back over one connection.
#[derive(Debug, Default)]
pub struct Talk {
    pub answers: Vec<Answer>,
    /// The gate ended the connection.
    pub closed: bool,
    /// Bytes that are no whole answer.
    pub rest: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Whether the origin wrote it, and not the gate.
    pub fn is_origin_s(&self) -> bool {
        self.header("x-origin").is_some()
    }
}

/// Sends `bytes` in one go and reads until the gate closes, `enough` says so, or `within` is over.
pub fn talk(
    address: &str,
    bytes: &[u8],
    within: Duration,
    enough: impl Fn(&[Answer]) -> bool,
) -> Talk {
    let mut stream = TcpStream::connect(address).expect("the gate listens");
    stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a time-out");
    stream.set_write_timeout(Some(Duration::from_secs(10))).expect("a time-out");
    // The gate may have refused it after the first line: then writing fails, and that is fine.
    let _ = stream.write_all(bytes);
    let mut talk = Talk::default();
    let until = Instant::now() + within;
    let mut buffer = [0; 16_384];
    while Instant::now() < until {
        match stream.read(&mut buffer) {
            Ok(0) => {
                talk.closed = true;
                break;
            }
            Ok(read) => talk.rest.extend(&buffer[..read]),
            Err(error) if is_timeout(&error) => {}
            Err(_) => {
                talk.closed = true;
                break;
            }
        }
        talk.take_answers();
        if enough(&talk.answers) {
            break;
        }
    }
    talk
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

impl Talk {
    fn take_answers(&mut self) {
        while let Some((answer, used)) = first(&self.rest) {
            // 100 Continue is no answer yet.
            if answer.status >= 200 {
                self.answers.push(answer);
            }
            self.rest.drain(..used);
        }
    }
}

/// The first whole answer, and how many bytes it took.
fn first(bytes: &[u8]) -> Option<(Answer, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    assert!(head.starts_with("HTTP/1."), "this is no answer: {head:?}");
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
    let mut answer = Answer { status, head, body: String::new() };
    if status < 200 || status == 204 || status == 304 {
        return Some((answer, end));
    }
    if answer.header("transfer-encoding") == Some("chunked") {
        let mut at = end;
        loop {
            let line = bytes[at..].windows(2).position(|two| two == b"\r\n")?;
            let size = std::str::from_utf8(&bytes[at..at + line]).ok()?;
            let size = usize::from_str_radix(size, 16).expect("the size of a chunk");
            at += line + 2;
            let data = bytes.get(at..at + size + 2)?;
            answer.body.push_str(&String::from_utf8_lossy(&data[..size]));
            at += size + 2;
            if size == 0 {
                return Some((answer, at));
            }
        }
    }
    let length = answer.header("content-length").map_or(0, |it| it.parse().expect("a length"));
    let body = bytes.get(end..end + length)?;
    answer.body = String::from_utf8_lossy(body).into_owned();
    Some((answer, end + length))
}
