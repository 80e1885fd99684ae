//! WebSockets through the gate, and upgrades that are none.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::house::House;
use crate::origin::Origin;

fn ask(house: &House, path: &str, headers: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(house.address()).expect("the gate listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    let host = house.address();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n").expect("sent");
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    (stream, String::from_utf8_lossy(&head).into_owned())
}

const SOCKET: &str = "Connection: Upgrade\r\nUpgrade: websocket\r\n\
                      Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n";

#[test]
fn a_websocket_goes_through_for_who_has_a_pass_and_ends_with_the_session() {
    let house = House::protect(&Origin::start().url(), &["--capacity", "1"]);
    let (_, refused) = ask(&house, "/socket", SOCKET);
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    let pass = house.visitor();
    let (mut stream, head) = ask(&house, "/socket", &format!("{SOCKET}{pass}\r\n"));
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    assert!(head.to_ascii_lowercase().contains("upgrade: websocket"), "{head}");
    for word in ["hello", "again"] {
        stream.write_all(word.as_bytes()).expect("sent");
        let mut back = [0; 5];
        stream.read_exact(&mut back).expect("echoed");
        assert_eq!(&back, word.as_bytes());
    }
    // Whoever is done is outside, also on a connection that was open before.
    assert_eq!(house.get("/complete", &["-H", &pass]).status, 200);
    let began = Instant::now();
    let ended = matches!(stream.read(&mut [0; 8]), Ok(0) | Err(_));
    assert!(ended && began.elapsed() < Duration::from_secs(19), "it was not cut");
}

#[test]
fn any_other_upgrade_goes_on_as_an_ordinary_request() {
    let house = House::protect(&Origin::start().url(), &[]);
    let pass = house.visitor();
    let h2c = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n";
    let (mut stream, head) = ask(&house, "/seen", &format!("{h2c}{pass}\r\nConnection: close\r\n"));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let mut body = String::new();
    let _ = stream.read_to_string(&mut body);
    // By lines: a pass may have any three letters in it.
    let said = body.to_ascii_lowercase();
    let upgrades = |line: &str| line.starts_with("upgrade:") || line.starts_with("http2-settings:");
    assert!(said.starts_with("get /seen") && !said.lines().any(upgrades), "{body}");
}
