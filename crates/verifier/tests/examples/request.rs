//! One request over a socket, and the answer as it came.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

#[derive(Debug)]
pub struct Got {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Got {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// `target` goes out to the letter: no client of ours tidies it up.
pub fn get(port: u16, target: &str, headers: &[(&str, &str)]) -> std::io::Result<Got> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    // HTTP/1.0, so that nobody answers in chunks or keeps the connection.
    let mut text = format!("GET {target} HTTP/1.0\r\nHost: shop.example\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    stream.write_all((text + "\r\n").as_bytes())?;
    let mut all = vec![];
    stream.read_to_end(&mut all)?;
    let all = String::from_utf8_lossy(&all).into_owned();
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other(format!("no answer: {all:?}")))?;
    Ok(Got { status, head: head.to_owned(), body: body.to_owned() })
}
