//! HTTP/2: served by prior knowledge, and limited against those who abuse it.

use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use waitroom_listen::Protocols;

use crate::support::frames::{
    CONTINUATION, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, GREETING, HEADERS, RST_STREAM,
    SETTINGS, frame, get_headers, goaway_reason,
};
use crate::support::{House, SHORT, closed, get, in_time, let_the_house_read, open};

type Client = h2::client::SendRequest<bytes::Bytes>;

/// A well-behaved client; its connection runs by itself.
async fn client(house: &House) -> (Client, tokio::task::JoinHandle<Result<(), h2::Error>>) {
    let (client, connection) =
        in_time(h2::client::handshake(house.connect().await)).await.expect("a handshake");
    (in_time(client.ready()).await.expect("ready"), tokio::spawn(connection))
}

async fn status_of(client: &mut Client, path: &str, headers: usize) -> u16 {
    let mut request = http::Request::get(format!("http://test{path}"));
    for n in 0..headers {
        request = request.header(format!("h{n}"), "x");
    }
    let request = request.body(()).expect("a request");
    let (response, _) = client.send_request(request, true).expect("sent");
    in_time(response).await.expect("an answer").status().as_u16()
}

/// A guest who writes frames by hand, past the greeting.
async fn rough_guest(house: &House) -> TcpStream {
    let mut guest = house.connect().await;
    guest.write_all(GREETING).await.expect("can write");
    guest.write_all(&frame(SETTINGS, 0, 0, &[])).await.expect("can write");
    guest
}

#[tokio::test]
async fn both_protocols_are_told_apart_in_the_clear() {
    let house = open(|_| {});
    let (mut client, _talking) = client(&house).await;
    assert_eq!(status_of(&mut client, "/", 0).await, 200);
    assert_eq!(get(&mut house.connect().await, "/").await.status, 200);
    // The greeting in two pieces, cut at every byte.
    for cut in 1..GREETING.len() {
        let mut guest = house.connect().await;
        guest.set_nodelay(true).expect("an option");
        guest.write_all(&GREETING[..cut]).await.expect("can write");
        let_the_house_read().await;
        guest.write_all(&GREETING[cut..]).await.expect("can write");
        guest.write_all(&frame(SETTINGS, 0, 0, &[])).await.expect("can write");
        let mut head = [0; 9];
        in_time(guest.read_exact(&mut head)).await.expect("settings");
        assert_eq!(head[3], SETTINGS, "cut at {cut}");
    }
    house.close().await;
}

#[tokio::test]
async fn a_listener_for_one_protocol_does_not_speak_the_other() {
    let house = open(|settings| settings.protocols = Protocols::Http2);
    let mut guest = house.connect().await;
    guest.write_all(b"GET / HTTP/1.1\r\nhost: t\r\n\r\n").await.expect("can write");
    closed(&mut guest).await;
    house.counted(|counts| counts.failed_http == 1 && counts.open == 0).await;
    house.close().await;
    let house = open(|settings| settings.protocols = Protocols::Http1);
    let mut guest = rough_guest(&house).await;
    closed(&mut guest).await;
    house.counted(|counts| counts.open == 0).await;
    house.close().await;
}

#[tokio::test]
async fn rapid_resets_end_the_connection() {
    let house = open(|_| {});
    let mut guest = rough_guest(&house).await;
    let mut flood = Vec::new();
    for n in 0..200 {
        let stream = 2 * n + 1;
        flood.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, &get_headers()));
        flood.extend(frame(RST_STREAM, 0, stream, &8u32.to_be_bytes()));
    }
    let _may_be_closed_already = guest.write_all(&flood).await;
    assert_eq!(goaway_reason(&mut guest).await, Some(ENHANCE_YOUR_CALM));
    house.counted(|counts| counts.failed_http == 1 && counts.open == 0).await;
    house.close().await;
}

#[tokio::test]
async fn a_flood_of_continuations_ends_the_connection() {
    let house = open(|_| {});
    let mut guest = rough_guest(&house).await;
    guest.write_all(&frame(HEADERS, END_STREAM, 1, &get_headers())).await.expect("can write");
    let empty = frame(CONTINUATION, 0, 1, &[]);
    let mut ended = false;
    for _ in 0..1000 {
        if guest.write_all(&empty.repeat(100)).await.is_err() {
            ended = true;
            break;
        }
        ended = house.counts().failed_http == 1;
        if ended {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(ended, "100,000 continuations were taken");
    house.counted(|counts| counts.failed_http == 1 && counts.open == 0).await;
    house.close().await;
}

#[tokio::test]
async fn a_continuation_that_never_ends_is_cut_in_time() {
    let house = open(|settings| settings.timeouts.header = SHORT);
    let mut guest = rough_guest(&house).await;
    guest.write_all(&frame(HEADERS, END_STREAM, 1, &get_headers())).await.expect("can write");
    let began = Instant::now();
    closed(&mut guest).await;
    assert!(began.elapsed() >= SHORT / 2);
    house.counted(|counts| counts.late_header == 1 && counts.open == 0).await;
    house.close().await;
}

#[tokio::test]
async fn streams_above_the_cap_are_refused_and_the_others_live() {
    let mut house = open(|settings| settings.http2.concurrent_streams_max = 3);
    let mut guest = rough_guest(&house).await;
    // "/wait" as a literal path.
    let wait = [&[0x82, 0x86, 0x04, 0x05][..], b"/wait", &[0x41, 0x01, b'a']].concat();
    for n in 0..4 {
        let headers = frame(HEADERS, END_HEADERS | END_STREAM, 2 * n + 1, &wait);
        guest.write_all(&headers).await.expect("can write");
    }
    for _ in 0..3 {
        in_time(house.waiting.recv()).await.expect("came in");
    }
    let (stream, reason) = in_time(reset(&mut guest)).await;
    assert_eq!((stream, reason), (7, 7), "the fourth is refused (REFUSED_STREAM)");
    assert!(house.waiting.try_recv().is_err(), "and never reaches the service");
    house.go_on.notify_waiters();
    drop(guest);
    house.close().await;
}

/// The first reset that comes: which stream, and why.
async fn reset(guest: &mut TcpStream) -> (u32, u32) {
    loop {
        let mut head = [0; 9];
        guest.read_exact(&mut head).await.expect("a frame");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        guest.read_exact(&mut payload).await.expect("a frame");
        if head[3] == RST_STREAM {
            let stream = u32::from_be_bytes(head[5..9].try_into().expect("four bytes"));
            return (stream, u32::from_be_bytes(payload[..4].try_into().expect("four bytes")));
        }
    }
}

#[tokio::test]
async fn headers_are_limited_in_number_and_size() {
    let house = open(|settings| settings.headers_max = 20);
    let (mut client, _talking) = client(&house).await;
    assert_eq!(status_of(&mut client, "/", 20).await, 200);
    assert_eq!(status_of(&mut client, "/", 21).await, 431);
    let large = http::Request::get("http://test/").header("large", "x".repeat(17_000));
    let sent = client.send_request(large.body(()).expect("a request"), true);
    let refused = match sent {
        Ok((response, _)) => match in_time(response).await {
            Ok(response) => response.status().as_u16() == 431,
            Err(_) => true,
        },
        Err(_) => true,
    };
    assert!(refused);
    drop(client);
    house.close().await;
}

#[tokio::test]
async fn an_idle_connection_hears_a_goodbye() {
    let house = open(|settings| settings.timeouts.idle = SHORT);
    let (mut client, talking) = client(&house).await;
    assert_eq!(status_of(&mut client, "/", 0).await, 200);
    let rested = Instant::now();
    // The client's handle is kept: it is the house that ends this.
    in_time(talking).await.expect("no panic").expect("a polite end");
    assert!(rested.elapsed() >= SHORT / 2);
    let counts = house.counted(|counts| counts.late_idle == 1 && counts.open == 0).await;
    assert_eq!(counts.failed_http, 0);
    house.close().await;
}

#[tokio::test]
async fn a_goodbye_that_is_not_heard_is_followed_by_the_cut() {
    let house = open(|settings| {
        settings.timeouts.idle = SHORT;
        settings.timeouts.header = SHORT;
    });
    let mut guest = rough_guest(&house).await;
    let headers = frame(HEADERS, END_HEADERS | END_STREAM, 1, &get_headers());
    guest.write_all(&headers).await.expect("can write");
    // Never answers a ping and never closes.
    house.counted(|counts| counts.late_idle == 1 && counts.open == 0).await;
    house.close().await;
}

#[tokio::test]
async fn who_does_not_answer_a_ping_is_gone() {
    let house = open(|settings| {
        settings.http2.ping_every = SHORT / 2;
        settings.http2.ping_timeout = SHORT / 2;
    });
    let mut guest = rough_guest(&house).await;
    let headers = frame(HEADERS, END_HEADERS | END_STREAM, 1, &get_headers());
    guest.write_all(&headers).await.expect("can write");
    let counts = house.counted(|counts| counts.accepted == 1 && counts.open == 0).await;
    assert_eq!((counts.late_idle, counts.late_header), (0, 0));
    house.close().await;
}
