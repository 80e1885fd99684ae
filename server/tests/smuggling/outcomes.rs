//! Clients and origins that misbehave: each has the outcome that `docs/gate.md` states.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::house::{House, JSON};
use crate::instance::soon;
use crate::node::{Kind, Site};
use crate::wire::talk;

const WITHIN: Duration = Duration::from_secs(20);

/// A connection with something sent over it.
fn begun(house: &House, bytes: &str) -> TcpStream {
    let mut stream = TcpStream::connect(house.address()).expect("the gate listens");
    stream.set_read_timeout(Some(WITHIN)).expect("a time-out");
    stream.write_all(bytes.as_bytes()).expect("sent");
    stream
}

/// What came until the gate ended the connection, which it must within [`WITHIN`].
fn until_cut(mut stream: TcpStream) -> String {
    let (mut all, mut buffer, began) = (Vec::new(), [0; 4_096], Instant::now());
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => all.extend(&buffer[..read]),
            Err(_) if began.elapsed() < WITHIN => break,
            Err(error) => panic!("the connection was not cut: {error}"),
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn a_client_whose_headers_never_end_is_cut() {
    let site = Site::start(Kind::Node);
    let house = House::protect_with(&site.part.url(), "header_timeout = \"1s\"\n", &[]);
    let stream = begun(&house, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
    let mut drip = stream.try_clone().expect("a second handle");
    // A letter now and then does not help: the limit is on the whole of the headers.
    std::thread::spawn(move || {
        while drip.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let said = until_cut(stream);
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 408"), "{said}");
    assert!(site.seen().is_empty());
}

#[test]
fn a_client_whose_body_never_ends_is_told_so_and_the_origin_sees_no_whole_request() {
    let site = Site::start(Kind::Node);
    let house = House::protect_with(&site.part.url(), "[gate]\nanswer_timeout = \"500ms\"\n", &[]);
    let (pass, host) = (house.visitor(), house.address());
    let head =
        format!("POST /case HTTP/1.1\r\nHost: {host}\r\n{pass}\r\nAccept: application/json\r\n");
    let stream = begun(&house, &format!("{head}Content-Length: 10\r\n\r\nabc"));
    let said = until_cut(stream);
    assert!(said.starts_with("HTTP/1.1 408") && said.contains("body_too_slow"), "{said}");
    // Nor when the client goes away in the middle.
    drop(begun(&house, &format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\nab")));
    assert_eq!(house.get("/after", &["-H", &pass]).status, 200);
    let seen = site.seen();
    assert!(seen.iter().all(|it| it.url == "/after"), "{seen:?}");
}

#[test]
fn a_client_that_takes_nothing_is_cut_and_holds_no_place_at_the_origin() {
    let site = Site::start(Kind::Node);
    let config = "write_timeout = \"1s\"\n[gate]\nin_flight_max = 1\n";
    let house = House::protect_with(&site.part.url(), config, &[]);
    let (pass, host) = (house.visitor(), house.address());
    let deaf = begun(&house, &format!("GET /large HTTP/1.1\r\nHost: {host}\r\n{pass}\r\n\r\n"));
    let ask = || house.get("/after", &[&["-H", pass.as_str()][..], &JSON].concat()).status;
    soon("the only place is taken", || (ask() == 503).then_some(()));
    soon("the place is free again", || (ask() == 200).then_some(()));
    drop(deaf);
}

#[test]
fn headers_beyond_the_limit_are_refused_and_those_below_it_go_through() {
    let site = Site::start(Kind::Node);
    let house = House::protect(&site.part.url(), &[]);
    let (pass, host) = (house.visitor(), house.address());
    let ask = |more: &str| {
        let text = format!(
            "GET /after HTTP/1.1\r\nHost: {host}\r\n{pass}\r\nConnection: close\r\n{more}\r\n"
        );
        let spoken = talk(host, text.as_bytes(), WITHIN, |_| false);
        spoken.answers.first().map(|answer| answer.status)
    };
    assert_eq!(ask(&format!("X: {}\r\n", "x".repeat(8_000))), Some(200));
    assert_eq!(ask(&format!("X: {}\r\n", "x".repeat(17_000))), Some(431));
    assert_eq!(ask(&"X: y\r\n".repeat(80)), Some(200));
    assert_eq!(ask(&"X: y\r\n".repeat(120)), Some(431));
}

#[test]
fn a_visitor_s_trailers_say_nothing_that_only_the_gate_may_say() {
    let site = Site::start(Kind::Node);
    let house = House::protect(&site.part.url(), &[]);
    let (pass, host) = (house.visitor(), house.address());
    let lies = [
        "Waitroom-Ticket",
        "Waitroom-Room",
        "X-Forwarded-For",
        "X_Forwarded_For",
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "Connection",
        "Cookie",
        "Authorization",
    ];
    let text = format!(
        "POST /after HTTP/1.1\r\nHost: {host}\r\n{pass}\r\nConnection: close\r\nTE: trailers\r\n\
         Trailer: X-Sum, {}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n{}: lie\r\n\r\n",
        lies.join(", "),
        lies.join(": lie\r\n")
    );
    let spoken = talk(host, text.as_bytes(), WITHIN, |_| false);
    let seen: serde_json::Value =
        serde_json::from_str(&spoken.answers[0].body).expect("the origin's JSON");
    assert_eq!(seen["trailers"], serde_json::json!({"x-sum": "7"}), "{spoken:?}");
}

/// An origin that answers every request with the same bytes, on a connection that it keeps open.
fn canned(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let (mut head, mut byte) = (Vec::new(), [0]);
                while stream.read(&mut byte).is_ok_and(|read| read == 1) {
                    head.push(byte[0]);
                    if head.ends_with(b"\r\n\r\n") {
                        head.clear();
                        if stream.write_all(answer).is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    url
}

#[test]
fn what_an_origin_says_beyond_its_answer_is_nobody_s_answer() {
    let answers: [&'static [u8]; 4] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\npoison",
        b"HTTP/1.1 304 Not Modified\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
    ];
    for answer in answers {
        let house = House::protect(&canned(answer), &[]);
        let (pass, host) = (house.visitor(), house.address());
        let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n{pass}\r\n\r\n");
        for _ in 0..20 {
            // Two on one connection, which may follow each other on one to the origin.
            let both = talk(host, text.repeat(2).as_bytes(), WITHIN, |answers| answers.len() == 2);
            assert_eq!(both.answers.len(), 2, "{both:?}");
            for got in both.answers {
                assert!(!got.body.contains("poison") && got.status != 502, "{got:?}");
            }
        }
    }
}

#[test]
fn an_answer_whose_end_is_in_doubt_is_no_answer() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokx"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nX\x00: y\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\n: y\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\nok",
        b"ok\r\n\r\n",
    ] {
        let house = House::protect(&canned(answer), &[]);
        let pass = house.visitor();
        let got = house.get("/", &[&["-H", pass.as_str()][..], &JSON].concat());
        let told = (got.status, got.json()["code"].as_str().unwrap_or_default().to_owned());
        let shown = String::from_utf8_lossy(answer);
        assert_eq!(told, (502, "origin_broken".to_owned()), "{shown:?}");
    }
}
