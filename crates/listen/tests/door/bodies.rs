//! Bodies: read with an end in bytes and in time.

use tokio::io::AsyncWriteExt;

use crate::support::{BODY_BYTES_MAX, SHORT, ask, hear, let_the_house_read, open};

fn post(length: usize, body: &str) -> String {
    format!("POST /body HTTP/1.1\r\nhost: test\r\ncontent-length: {length}\r\n\r\n{body}")
}

#[tokio::test]
async fn a_body_is_read_whole_in_one_piece_or_many_or_none() {
    let house = open(|_| {});
    let mut guest = house.connect().await;
    let full = "x".repeat(BODY_BYTES_MAX);
    assert_eq!(ask(&mut guest, &post(0, "")).await.body, "0 bytes");
    assert_eq!(ask(&mut guest, &post(full.len(), &full)).await.body, "1000 bytes");
    let chunked = "POST /body HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n";
    let many = "5\r\nhello\r\n".repeat(200) + "0\r\n\r\n";
    assert_eq!(ask(&mut guest, &format!("{chunked}{many}")).await.body, "1000 bytes");
    guest.write_all(post(10, "12345").as_bytes()).await.expect("can write");
    let_the_house_read().await;
    assert_eq!(ask(&mut guest, "67890").await.body, "10 bytes");
    drop(guest);
    house.close().await;
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_announced_or_not() {
    let house = open(|_| {});
    let mut guest = house.connect().await;
    // Announced: not a byte of it has to come.
    let heard = ask(&mut guest, &post(BODY_BYTES_MAX + 1, "")).await;
    assert_eq!((heard.status, heard.body.as_str()), (400, "TooLarge"));
    let mut guest = house.connect().await;
    let chunked = "POST /body HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n";
    let many = "5\r\nhello\r\n".repeat(201);
    let heard = ask(&mut guest, &format!("{chunked}{many}")).await;
    assert_eq!((heard.status, heard.body.as_str()), (400, "TooLarge"));
    drop(guest);
    house.close().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let house = open(|settings| settings.timeouts.header = SHORT);
    let mut guest = house.connect().await;
    let heard = ask(&mut guest, &post(10, "12345")).await;
    assert_eq!((heard.status, heard.body.as_str()), (400, "TooSlow"));
    drop(guest);
    house.close().await;
}

#[tokio::test]
async fn a_body_that_breaks_its_framing_is_broken() {
    let house = open(|_| {});
    let mut guest = house.connect().await;
    let chunked = "POST /body HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n";
    guest.write_all(chunked.as_bytes()).await.expect("can write");
    assert_eq!(hear(&mut guest).await.body, "Broken");
    drop(guest);
    house.close().await;
}
