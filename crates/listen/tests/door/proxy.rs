//! The PROXY header on a marked listener: good, bad, in pieces, from strangers.

use tokio::io::AsyncWriteExt;
use waitroom_listen::{Nets, Settings};

use crate::support::papers::{Known, Papers, shake};
use crate::support::{SHORT, closed, get, hear, let_the_house_read, open};

const V1: &[u8] = b"PROXY TCP4 203.0.113.9 10.0.0.1 56324 443\r\n";
const V2: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\x00\x71\x09\x0a\x00\x00\x01\xdc\x04\x01\xbb";

fn marked(settings: &mut Settings) {
    settings.proxy_protocol = Some(Nets::parse(&["127.0.0.1"]).expect("a network"));
}

#[tokio::test]
async fn both_versions_tell_who_is_there() {
    let house = open(marked);
    for header in [V1, V2] {
        let mut guest = house.connect().await;
        guest.write_all(header).await.expect("can write");
        let heard = get(&mut guest, "/peer").await.body;
        let via = guest.local_addr().expect("an address");
        assert_eq!(heard, format!("203.0.113.9:56324 Some({via}) Http1 tls=false cert=0"));
    }
    house.close().await;
}

#[tokio::test]
async fn a_header_split_at_every_byte_is_the_same_header() {
    let house = open(marked);
    for header in [V1, V2] {
        let request = b"GET /peer HTTP/1.1\r\nhost: t\r\n\r\n";
        let bytes = [header, request].concat();
        for cut in 1..=header.len() + 1 {
            let mut guest = house.connect().await;
            guest.set_nodelay(true).expect("an option");
            guest.write_all(&bytes[..cut]).await.expect("can write");
            let_the_house_read().await;
            guest.write_all(&bytes[cut..]).await.expect("can write");
            let heard = hear(&mut guest).await.body;
            assert!(heard.starts_with("203.0.113.9:56324"), "cut at {cut}: {heard}");
        }
    }
    assert_eq!(house.counts().failed_proxy, 0);
    house.close().await;
}

#[tokio::test]
async fn a_proxy_that_checks_our_health_speaks_for_itself() {
    let house = open(marked);
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\0\0";
    for header in [&local[..], b"PROXY UNKNOWN\r\n"] {
        let mut guest = house.connect().await;
        guest.write_all(header).await.expect("can write");
        let heard = get(&mut guest, "/peer").await.body;
        let own = guest.local_addr().expect("an address");
        assert!(heard.starts_with(&format!("{own} None")), "{heard}");
    }
    house.close().await;
}

#[tokio::test]
async fn what_is_no_header_is_closed_without_an_answer() {
    let house = open(marked);
    let bad: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\nhost: t\r\n\r\n",
        b"PROXY TCP4 203.0.113.9 10.0.0.1 99999 443\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff",
        b"PROXY UNKNOWN xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ];
    for (count, bytes) in (1..).zip(bad) {
        let mut guest = house.connect().await;
        guest.write_all(bytes).await.expect("can write");
        assert_eq!(closed(&mut guest).await, b"");
        house.counted(|counts| counts.failed_proxy == count && counts.open == 0).await;
    }
    house.close().await;
}

#[tokio::test]
async fn a_stranger_on_a_marked_listener_is_not_heard() {
    let house = open(marked);
    let mut guest = house.connect_from("127.0.0.2").await;
    let _may_be_closed_already = guest.write_all(V1).await;
    assert_eq!(closed(&mut guest).await, b"");
    let counts = house.counted(|counts| counts.refused_proxy == 1).await;
    assert_eq!((counts.accepted, counts.open), (0, 0));
    house.close().await;
}

#[tokio::test]
async fn a_header_on_an_ordinary_listener_is_a_bad_request() {
    let house = open(|_| {});
    let mut guest = house.connect().await;
    guest.write_all(V1).await.expect("can write");
    assert_eq!(hear(&mut guest).await.status, 400);
    house.close().await;
}

#[tokio::test]
async fn a_header_that_does_not_come_is_cut() {
    let house = open(|settings| {
        marked(settings);
        settings.timeouts.handshake = SHORT;
    });
    for beginning in [&V1[..20], &V2[..20], b""] {
        let mut guest = house.connect().await;
        guest.write_all(beginning).await.expect("can write");
        assert_eq!(closed(&mut guest).await, b"");
    }
    house.counted(|counts| counts.late_handshake == 3 && counts.open == 0).await;
    house.close().await;
}

#[tokio::test]
async fn the_cap_per_address_counts_those_behind_the_proxy() {
    let house = open(|settings| {
        marked(settings);
        settings.per_address_max = 1;
    });
    let mut inside = house.connect().await;
    inside.write_all(V1).await.expect("can write");
    assert_eq!(get(&mut inside, "/").await.status, 200);
    let mut again = house.connect().await;
    again.write_all(V2).await.expect("can write");
    assert_eq!(closed(&mut again).await, b"");
    assert_eq!(house.counts().refused_address, 1);
    let mut other = house.connect().await;
    other.write_all(b"PROXY TCP4 203.0.113.10 10.0.0.1 1 443\r\n").await.expect("can write");
    assert_eq!(get(&mut other, "/").await.status, 200);
    house.close().await;
}

#[tokio::test]
async fn tls_begins_right_behind_the_header() {
    let papers = Papers::new();
    let house = open(|settings| {
        marked(settings);
        settings.tls = Some(papers.files());
    });
    let mut tcp = house.connect().await;
    tcp.write_all(V2).await.expect("can write");
    let client = papers.client(&["http/1.1"], Known::No);
    let mut guest = shake(&client, tcp).await.expect("a handshake");
    let heard = get(&mut guest, "/peer").await.body;
    assert!(heard.starts_with("203.0.113.9:56324") && heard.contains("tls=true"), "{heard}");
    house.close().await;
}
