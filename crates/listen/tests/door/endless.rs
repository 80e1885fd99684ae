//! Answers that go on for as long as the client stays: whole, in order, and without hyper.

use tokio::io::AsyncWriteExt;

use crate::support::papers::{Known, Papers, shake};
use crate::support::{ENDLESS, ask, closed, get, hear, in_time, open};

fn request(method: &str, path: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: test\r\n\r\n")
}

/// Head and body of what is left of a connection.
fn parted(rest: Vec<u8>) -> (String, String) {
    let text = String::from_utf8(rest).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").expect("a whole head");
    (head.to_ascii_lowercase(), body.to_owned())
}

#[tokio::test]
async fn it_ends_with_its_connection_and_says_so() {
    let house = open(|_| {});
    let mut guest = house.connect().await;
    assert_eq!(get(&mut guest, "/before").await.body, "hello /before");
    guest.write_all(request("GET", "/endless").as_bytes()).await.expect("can write");
    let (head, body) = parted(closed(&mut guest).await);
    assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
    assert!(head.contains("connection: close") && head.contains("\r\ndate: "), "{head}");
    // The end of the connection is the only measure of its length.
    assert!(!head.contains("content-length") && !head.contains("transfer-encoding"), "{head}");
    assert_eq!(body, ENDLESS);
    house.close().await;
}

#[tokio::test]
async fn answers_to_requests_before_it_come_first() {
    let house = open(|_| {});
    let mut guest = house.connect().await;
    let all = [request("GET", "/1"), request("GET", "/2"), request("GET", "/endless")].concat();
    assert_eq!(ask(&mut guest, &all).await.body, "hello /1");
    assert_eq!(hear(&mut guest).await.body, "hello /2");
    assert_eq!(parted(closed(&mut guest).await).1, ENDLESS);
    house.close().await;
}

#[tokio::test]
async fn one_that_is_still_on_its_way_is_not_cut_short() {
    let house = open(|_| {});
    let mut guest = house.connect().await;
    let both = [request("GET", "/large"), request("GET", "/endless")].concat();
    guest.write_all(both.as_bytes()).await.expect("can write");
    let large = hear(&mut guest).await;
    assert_eq!(large.body.len(), 64 << 20);
    // By hyper or by us: here either is right, if it is all there.
    let mut rest = Vec::new();
    in_time(async {
        while !rest.ends_with(ENDLESS.as_bytes()) {
            let mut byte = [0];
            let read = tokio::io::AsyncReadExt::read(&mut guest, &mut byte).await;
            assert_eq!(read.expect("can read"), 1, "ended after {rest:?}");
            rest.push(byte[0]);
        }
    })
    .await;
    drop(guest);
    house.close().await;
}

#[tokio::test]
async fn the_answer_to_a_head_request_has_no_body() {
    let house = open(|_| {});
    let mut guest = house.connect().await;
    let mut twice = request("HEAD", "/endless");
    twice.push_str("GET /after HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    guest.write_all(twice.as_bytes()).await.expect("can write");
    let text = String::from_utf8(closed(&mut guest).await).expect("text");
    assert!(!text.contains(ENDLESS) && text.ends_with("hello /after"), "{text}");
    house.close().await;
}

#[tokio::test]
async fn it_goes_through_tls_as_well() {
    let papers = Papers::new();
    let house = open(|settings| settings.tls = Some(papers.files()));
    let client = papers.client(&["http/1.1"], Known::No);
    let mut guest = shake(&client, house.connect().await).await.expect("a handshake");
    guest.write_all(request("GET", "/endless").as_bytes()).await.expect("can write");
    assert_eq!(parted(closed(&mut guest).await).1, ENDLESS);
    house.close().await;
}
