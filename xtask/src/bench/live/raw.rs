//! The peer: accepts channels, and on the order `push` writes the same frame to every socket in
//! one loop. Nobody can push with less.

use std::io::{self, BufRead, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use super::frames::text_frame;
use crate::failure::{Failure, OrFail, Outcome};

const OPENED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n\
    upgrade: websocket\r\n\r\n";

/// Serves `count` channels with the board in `file`, whose version rises with each push.
pub fn run(count: usize, file: &Path) -> Outcome {
    let board = std::fs::read_to_string(file).or_fail(|| format!("read {}", file.display()))?;
    let listener = TcpListener::bind("127.0.0.1:0").or_fail(|| "listen on loopback")?;
    println!("{}", listener.local_addr().or_fail(|| "ask where we listen")?);
    let mut version = 1;
    let mut all: Vec<TcpStream> = Vec::with_capacity(count);
    while all.len() < count {
        let (mut stream, _) = listener.accept().or_fail(|| "accept a channel")?;
        until_headers_end(&mut stream).or_fail(|| "read a request")?;
        stream.set_nodelay(true).or_fail(|| "switch Nagle's algorithm off")?;
        stream.write_all(&[OPENED, &frame(&board, version)?].concat()).or_fail(|| "answer")?;
        stream.set_nonblocking(true).or_fail(|| "answer")?;
        all.push(stream);
    }
    for order in io::stdin().lock().lines() {
        if order.or_fail(|| "read an order")? != "push" {
            return Err(Failure::new("no such order"));
        }
        version += 1;
        let frame = frame(&board, version)?;
        for stream in &mut all {
            let sent = stream.write(&frame).or_fail(|| "push a frame")?;
            if sent != frame.len() {
                return Err(Failure::new("a channel took only part of a frame"));
            }
        }
    }
    Ok(())
}

fn until_headers_end(stream: &mut TcpStream) -> io::Result<()> {
    let (mut read, mut buffer) = (vec![], [0; 1024]);
    while !read.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => read.extend_from_slice(&buffer[..more]),
        }
    }
    Ok(())
}

/// The board as a frame, with its version written over by one of the same width.
fn frame(board: &str, version: u64) -> Outcome<Vec<u8>> {
    const NAME: &str = "\"version\":";
    let at = board.find(NAME).ok_or_else(|| Failure::new("the board has no version"))? + NAME.len();
    let digits = board[at..].bytes().take_while(u8::is_ascii_digit).count();
    // Beginning with a 1, so that JSON has no leading zero to complain about.
    let version = format!("1{version:0width$}", width = digits.saturating_sub(1));
    let rest = &board[at + digits..];
    let json = format!("{{\"type\":\"board\",\"board\":{}{version}{rest}}}", &board[..at]);
    Ok(text_frame(json.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::super::frames::{Carrier, Letter};
    use super::*;

    #[test]
    fn every_push_is_news_and_as_long_as_the_board() {
        let board = "{\"version\":812345,\"at\":5}";
        let (first, second) =
            (frame(board, 1).expect("it has one"), frame(board, 2).expect("it has one"));
        assert_eq!(first.len(), second.len());
        let version = |frame: &[u8]| match Carrier::WebSocket.take(frame) {
            Some((Letter::Board(version), _)) => version,
            other => panic!("{other:?}"),
        };
        assert_eq!((version(&first), version(&second)), (100_001, 100_002));
    }
}
