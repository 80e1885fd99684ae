//! HTTP/1: served, and limited in size and time.

use tokio::io::AsyncWriteExt;

use crate::support::{ask, closed, get, hear, let_the_house_read, open};

#[tokio::test]
async fn a_connection_serves_one_request_after_another() {
    let house = open(|_| {});
    let mut guest = house.connect().await;
    for path in ["/a", "/b", "/c"] {
        let heard = get(&mut guest, path).await;
        assert_eq!((heard.status, heard.body), (200, format!("hello {path}")));
    }
    let peer = get(&mut guest, "/peer").await.body;
    let local = guest.local_addr().expect("an address");
    assert_eq!(peer, format!("{local} None Http1 tls=false cert=0"));
    drop(guest);
    let outcome = house.close().await;
    assert_eq!((outcome.connections_served, outcome.cut_off), (1, 0));
}

#[tokio::test]
async fn requests_sent_ahead_are_answered_in_order() {
    let house = open(|_| {});
    let mut guest = house.connect().await;
    let one = |n: u32| format!("GET /{n} HTTP/1.1\r\nhost: test\r\n\r\n");
    let heard = ask(&mut guest, &(0..20).map(one).collect::<String>()).await;
    assert_eq!(heard.body, "hello /0");
    for n in 1..20 {
        assert_eq!(hear(&mut guest).await.body, format!("hello /{n}"));
    }
    house.close().await;
}

#[tokio::test]
async fn a_request_that_comes_byte_by_byte_is_a_request() {
    let house = open(|_| {});
    let mut guest = house.connect().await;
    guest.set_nodelay(true).expect("an option");
    for byte in b"PRIDE /x HTTP/1.1\r\nhost: test\r\n\r\n" {
        guest.write_all(&[*byte]).await.expect("can write");
        let_the_house_read().await;
    }
    assert_eq!(hear(&mut guest).await.body, "hello /x");
    drop(guest);
    house.close().await;
}

#[tokio::test]
async fn a_header_that_is_too_large_is_refused_and_the_connection_closed() {
    let house = open(|settings| settings.header_bytes_max = 9000);
    let mut guest = house.connect().await;
    let large = "x".repeat(9000);
    let heard =
        ask(&mut guest, &format!("GET / HTTP/1.1\r\nhost: t\r\nlarge: {large}\r\n\r\n")).await;
    assert_eq!(heard.status, 431);
    closed(&mut guest).await;
    let mut guest = house.connect().await;
    let fits = "x".repeat(8000);
    let heard =
        ask(&mut guest, &format!("GET / HTTP/1.1\r\nhost: t\r\nlarge: {fits}\r\n\r\n")).await;
    assert_eq!(heard.status, 200);
    drop(guest);
    house.close().await;
}

#[tokio::test]
async fn too_many_headers_are_refused_with_the_default_and_with_another_number() {
    for headers_max in [100, 20] {
        let house = open(|settings| settings.headers_max = headers_max);
        for (count, status) in [(headers_max, 200), (headers_max + 1, 431)] {
            let mut guest = house.connect().await;
            let many = (1..count).map(|n| format!("h{n}: x\r\n")).collect::<String>();
            let heard = ask(&mut guest, &format!("GET / HTTP/1.1\r\nhost: t\r\n{many}\r\n")).await;
            assert_eq!(heard.status, status, "{count} of {headers_max}");
        }
        house.close().await;
    }
}
