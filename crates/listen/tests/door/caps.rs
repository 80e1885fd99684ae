//! Caps: the house is full, one address has its share, and who leaves makes room.

use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use waitroom_listen::{Error, Listener, Nets};

use crate::support::{closed, get, in_time, open};

#[tokio::test]
async fn a_full_house_closes_at_once_and_opens_again() {
    let house = open(|settings| settings.connections_max = 3);
    let mut inside = Vec::new();
    for _ in 0..3 {
        let mut guest = house.connect().await;
        assert_eq!(get(&mut guest, "/").await.status, 200);
        inside.push(guest);
    }
    let mut late = house.connect().await;
    assert_eq!(closed(&mut late).await, b"");
    assert_eq!(house.counted(|counts| counts.refused_full == 1).await.open, 3);
    // Those inside do not notice.
    assert_eq!(get(&mut inside[0], "/").await.status, 200);
    inside.pop();
    house.counted(|counts| counts.open == 2).await;
    let mut guest = house.connect().await;
    assert_eq!(get(&mut guest, "/").await.status, 200);
    let outcome = house.close().await;
    assert_eq!(outcome.connections_served, 4);
}

#[tokio::test]
async fn a_full_house_says_so_to_whoever_comes_with_a_request_in_hand_or_without() {
    let words = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n\r\n";
    let house = open(|settings| {
        settings.connections_max = 1;
        settings.full_answer = Some(words.into());
    });
    let mut inside = house.connect().await;
    assert_eq!(get(&mut inside, "/").await.status, 200);
    // More than are refused in a row, so that the door has rested in between.
    for index in 0..100 {
        let mut late = house.connect().await;
        if index % 2 == 0 {
            let request = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
            in_time(late.write_all(request)).await.expect("the system takes it");
        }
        assert_eq!(closed(&mut late).await, words.as_bytes(), "the {index}th");
    }
    assert_eq!(house.counted(|counts| counts.refused_full == 100).await.open, 1);
    assert_eq!(get(&mut inside, "/").await.status, 200);
    house.close().await;
}

#[tokio::test]
async fn one_address_has_its_share_and_takes_nobody_elses() {
    let house = open(|settings| settings.per_address_max = 2);
    let mut inside = Vec::new();
    for ip in ["127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2"] {
        let mut guest = house.connect_from(ip).await;
        assert_eq!(get(&mut guest, "/").await.status, 200);
        inside.push(guest);
    }
    for ip in ["127.0.0.1", "127.0.0.2"] {
        assert_eq!(closed(&mut house.connect_from(ip).await).await, b"");
    }
    let mut third = house.connect_from("127.0.0.3").await;
    assert_eq!(get(&mut third, "/").await.status, 200);
    let counts = house.counted(|counts| counts.open == 5).await;
    assert_eq!((counts.refused_address, counts.refused_full), (2, 0));
    drop(inside.remove(0));
    house.counted(|counts| counts.open == 4).await;
    let mut again = house.connect_from("127.0.0.1").await;
    assert_eq!(get(&mut again, "/").await.status, 200);
    house.close().await;
}

#[tokio::test]
async fn a_trusted_proxy_may_bring_many() {
    let house = open(|settings| {
        settings.per_address_max = 1;
        settings.trusted_hops = Nets::parse(&["127.0.0.1"]).expect("a network");
    });
    let mut inside = Vec::new();
    for _ in 0..5 {
        let mut guest = house.connect().await;
        assert_eq!(get(&mut guest, "/").await.status, 200);
        inside.push(guest);
    }
    assert_eq!(house.counts().refused_address, 0);
    house.close().await;
}

#[tokio::test]
async fn a_taken_port_is_told_with_its_address() {
    let house = open(|_| {});
    let mut settings = crate::support::settings();
    settings.addresses = vec![house.address];
    let error = Listener::bind(settings).expect_err("the port is taken");
    assert!(matches!(error, Error::Bind { .. }));
    let text = error.to_string();
    assert!(text.contains(&house.address.to_string()), "{text}");
    assert!(text.contains("another process has this port"), "{text}");
    house.close().await;
}

#[tokio::test]
async fn one_listener_hears_on_several_addresses() {
    let house = open(|settings| {
        let more = ["127.0.0.2:0", "[::1]:0"];
        settings.addresses.extend(more.map(|text| text.parse::<SocketAddr>().expect(text)));
    });
    assert_eq!(house.addresses.len(), 3);
    for address in &house.addresses {
        let mut guest = in_time(TcpStream::connect(address)).await.expect("a connection");
        let local = guest.local_addr().expect("an address");
        assert!(get(&mut guest, "/peer").await.body.starts_with(&local.to_string()));
    }
    house.close().await;
}

#[tokio::test]
async fn the_limit_of_files_bends_the_cap_and_is_told() {
    let house = open(|settings| settings.connections_max = usize::MAX);
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    match files {
        Some(files) => {
            assert!((house.limits.connections_max as u64) < files);
            assert_eq!(house.limits.connections_wanted, Some(usize::MAX));
        }
        None => assert_eq!(house.limits.connections_wanted, None),
    }
    house.close().await;
}
