//! HTTP/2 comes in, HTTP/1.1 goes out: what is well framed there must not become two requests
//! here. The frames are written by hand, so that nothing between the test and the gate tidies up.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::house::House;
use crate::instance::soon;
use crate::node::{Kind, Site};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("small").to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Fields as HPACK literals that nobody need remember, without Huffman: any byte can be in them.
fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.push(0);
        for text in [name, value] {
            push_length(&mut bytes, text.len());
            bytes.extend(text.bytes());
        }
    }
    bytes
}

/// A length in a prefix of seven bits (RFC 7541, 5.1).
fn push_length(bytes: &mut Vec<u8>, length: usize) {
    if length < 127 {
        bytes.push(length as u8);
        return;
    }
    bytes.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        bytes.push((rest % 128 + 128) as u8);
        rest /= 128;
    }
    bytes.push(rest as u8);
}

/// Sends one request on stream 1, and returns when the gate has answered or refused it: the bytes
/// of its answer's body.
fn ask(
    house: &House,
    head: &[(&str, &str)],
    body: Option<&str>,
    trailers: &[(&str, &str)],
) -> String {
    let mut stream = TcpStream::connect(house.address()).expect("the gate listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(SETTINGS, 0, 0, &[]));
    let end = if body.is_none() { END_STREAM } else { 0 };
    bytes.extend(frame(HEADERS, END_HEADERS | end, 1, &fields(head)));
    if let Some(body) = body {
        let end = if trailers.is_empty() { END_STREAM } else { 0 };
        bytes.extend(frame(DATA, end, 1, body.as_bytes()));
        if !trailers.is_empty() {
            bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields(trailers)));
        }
    }
    let _ = stream.write_all(&bytes);
    let mut said = Vec::new();
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).is_err() {
            return String::from_utf8_lossy(&said).into_owned();
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).expect("a whole frame");
        let (kind, flags) = (head[3], head[4]);
        let on_stream = head[5..] == [0, 0, 0, 1];
        if kind == DATA && on_stream {
            said.extend(payload);
        }
        let ended = on_stream && matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0;
        if ended || kind == GOAWAY || (kind == RESET && on_stream) {
            return String::from_utf8_lossy(&said).into_owned();
        }
    }
}

/// Whether the origin hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Passed,
    Refused,
    /// The origin sees the whole of what was announced, which is nothing; what comes beyond it ends
    /// the stream, as if the visitor had gone away.
    Cut,
}
use Then::{Cut, Passed, Refused};

const HIDDEN: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\nX-Case: hidden\r\n\r\n";

type Field = (&'static str, &'static str);

struct Case {
    /// What is changed in a good request, or added to it.
    changes: Vec<Field>,
    body: Option<&'static str>,
    trailers: Vec<Field>,
    then: Then,
}

fn just(changes: &[Field], then: Then) -> Case {
    Case { changes: changes.to_vec(), body: None, trailers: vec![], then }
}

fn with(changes: &[Field], body: &'static str, then: Then) -> Case {
    Case { body: Some(body), ..just(changes, then) }
}

fn behind(trailer: Field, then: Then) -> Case {
    Case { trailers: vec![trailer], ..with(&[(":method", "POST")], "abc", then) }
}

fn corpus() -> Vec<Case> {
    vec![
        just(&[], Passed),
        with(&[(":method", "POST")], "abc", Passed),
        with(&[(":method", "POST"), ("content-length", "3")], "abc", Passed),
        with(&[(":method", "POST")], HIDDEN, Passed),
        with(&[], HIDDEN, Passed),
        just(&[("te", "trailers")], Passed),
        just(&[("x", "\u{e9}")], Passed),
        behind(("x-sum", "1"), Passed),
        // H2.CL: a length that is not true.
        with(&[(":method", "POST"), ("content-length", "0")], HIDDEN, Cut),
        with(&[(":method", "POST"), ("content-length", "2")], "abc", Refused),
        with(&[(":method", "POST"), ("content-length", "4")], "abc", Refused),
        with(
            &[(":method", "POST"), ("content-length", "3"), ("content-length", "4")],
            "abc",
            Refused,
        ),
        with(&[(":method", "POST"), ("content-length", "x")], "abc", Refused),
        with(&[(":method", "POST"), ("content-length", "+3")], "abc", Refused),
        just(&[("content-length", "10")], Refused),
        // H2.TE, and whatever else is about one connection.
        with(&[(":method", "POST"), ("transfer-encoding", "chunked")], "0\r\n\r\n", Refused),
        just(&[("transfer-encoding", "chunked")], Refused),
        just(&[("connection", "close")], Refused),
        just(&[("connection", "transfer-encoding")], Refused),
        just(&[("keep-alive", "5")], Refused),
        just(&[("proxy-connection", "close")], Refused),
        just(&[("upgrade", "h2c")], Refused),
        just(&[("te", "gzip")], Refused),
        // Lines inside of what is one field.
        just(&[("x", "y\r\nTransfer-Encoding: chunked")], Refused),
        just(&[("x", "y\nTransfer-Encoding: chunked")], Refused),
        just(&[("x", "y\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")], Refused),
        just(&[("x", "y\u{0}")], Refused),
        just(&[("x\r\ntransfer-encoding", "chunked")], Refused),
        just(&[("transfer-encoding: chunked\r\nx", "y")], Refused),
        just(&[("x: y", "z")], Refused),
        just(&[("x y", "z")], Refused),
        just(&[("X-Upper", "y")], Refused),
        just(&[("", "y")], Refused),
        just(&[(":path", "/case HTTP/1.1\r\nHost: a\r\n\r\nGET /smuggled")], Refused),
        just(&[(":path", "/case x")], Refused),
        just(&[(":path", "/case\r\nX: y")], Refused),
        just(&[(":path", "/case\u{0}")], Refused),
        just(&[(":path", "case")], Refused),
        just(&[(":path", "*")], Refused),
        just(&[(":path", "http://evil.example/case")], Refused),
        just(&[(":method", "GET /smuggled HTTP/1.1\r\nX: y")], Refused),
        just(&[(":method", "GET ")], Refused),
        just(&[(":method", "CONNECT")], Refused),
        just(&[(":method", "TRACE")], Refused),
        just(&[(":scheme", "http://evil.example/?")], Refused),
        // Whom it is for.
        just(&[(":authority", "evil.example"), ("host", "a.example")], Refused),
        just(&[(":authority", "a\r\nX: y")], Refused),
        just(&[(":authority", "user@a.example")], Refused),
        just(&[(":authority", "a/x")], Refused),
        just(&[("host", "a.example"), ("host", "a.example")], Refused),
        just(&[("host", "evil.example")], Refused),
        // Pseudo-headers where they do not belong.
        just(&[("x", "y"), (":path2", "/smuggled")], Refused),
        just(&[(":status", "200")], Refused),
        behind(("x", "y\r\nz: w"), Refused),
        behind(("X-Upper", "y"), Refused),
        // Left out, and the rest is good.
        behind((":path", "/smuggled"), Passed),
    ]
}

#[test]
fn one_request_of_http_2_is_one_request_at_the_origin_or_none() {
    let site = Site::start(Kind::Node);
    let house = House::protect(&site.part.url(), &[]);
    let pass = house.visitor();
    let pass = pass.strip_prefix("Waitroom-Pass: ").expect("a pass");
    let mut wrong = Vec::new();
    for (at, Case { changes, body, trailers, then }) in corpus().into_iter().enumerate() {
        let name = format!("c{at}");
        let mut head = vec![
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/case"),
            (":authority", "a.example"),
        ];
        let mut more = vec![("waitroom-pass", pass), ("x-case", &*name)];
        for (name, value) in &changes {
            match head.iter_mut().find(|(known, _)| known == name) {
                Some(field) => field.1 = value,
                None => more.push((name, value)),
            }
        }
        head.extend(more);
        let said = ask(&house, &head, body, &trailers);
        let answered = said.contains(&format!("\"case\":\"{name}\""));
        if answered != (then == Passed) {
            wrong.push(format!("{changes:?} {body:?} {trailers:?}: wanted {then:?}, got {said:?}"));
        }
        let victim = format!("X-Case: v{at}");
        let got = house.get("/victim", &["-H", &format!("Waitroom-Pass: {pass}"), "-H", &victim]);
        assert!(got.body.contains(&format!("\"case\":\"v{at}\"")), "after {changes:?}: {got:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The origin saw those that passed, once each, and the victims.
    let corpus = corpus();
    let mut wanted: Vec<String> = (0..corpus.len()).map(|at| format!("/victim v{at}")).collect();
    let passed = corpus.iter().enumerate().filter(|(_, case)| case.then != Refused);
    wanted.extend(passed.map(|(at, _)| format!("/case c{at}")));
    let seen = soon("the log is whole", || Some(site.seen()).filter(|it| it.len() >= wanted.len()));
    let mut seen: Vec<String> = seen.iter().map(|it| format!("{} {}", it.url, it.case)).collect();
    wanted.sort();
    seen.sort();
    let more: Vec<_> = seen.iter().filter(|it| !wanted.contains(it)).collect();
    assert!(more.is_empty() && seen == wanted, "{more:?}");
}
