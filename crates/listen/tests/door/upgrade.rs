//! Upgrades: the bare socket, what was sent early, and the seat go to the new owner.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use waitroom_listen::Socket;

use crate::support::papers::{Known, Papers, shake};
use crate::support::{ask, closed, in_time, open};

const UPGRADE: &str =
    "GET /upgrade HTTP/1.1\r\nhost: t\r\nconnection: upgrade\r\nupgrade: test\r\n\r\n";

#[tokio::test]
async fn an_upgrade_hands_over_the_bare_socket_and_its_seat() {
    let mut house = open(|_| {});
    let mut guest = house.connect().await;
    let heard = ask(&mut guest, &format!("{UPGRADE}early bird")).await;
    assert_eq!(heard.status, 101);
    let mut taken = in_time(house.taken.recv()).await.expect("a socket");
    let counts = house.counts();
    assert_eq!((counts.upgraded, counts.open), (1, 1));
    // What came with the request may sit in the system still; together it is all there.
    let mut early = taken.early.to_vec();
    let mut rest = vec![0; 10 - early.len()];
    in_time(taken.socket.read_exact(&mut rest)).await.expect("the rest");
    early.extend(rest);
    assert_eq!(early, b"early bird");
    let Socket::Plain(mut tcp) = taken.socket else { panic!("no TLS here") };
    assert!(tcp.nodelay().expect("an option"));
    tcp.write_all(b"hello").await.expect("can write");
    let mut heard = [0; 5];
    in_time(guest.read_exact(&mut heard)).await.expect("heard");
    assert_eq!(&heard, b"hello");
    // The seat is kept until its owner lets go, whatever became of the socket.
    drop(tcp);
    assert_eq!(closed(&mut guest).await, b"");
    assert_eq!(house.counts().open, 1);
    drop(taken.seat);
    assert_eq!(house.counts().open, 0);
    house.close().await;
}

#[tokio::test]
async fn an_upgrade_without_early_bytes_keeps_no_memory_of_hypers() {
    let mut house = open(|_| {});
    let mut guest = house.connect().await;
    assert_eq!(ask(&mut guest, UPGRADE).await.status, 101);
    let taken = in_time(house.taken.recv()).await.expect("a socket");
    assert!(taken.early.is_empty());
    // An empty `Bytes` that owns no buffer is unique for lack of anything to share.
    assert_eq!(taken.early.as_ptr(), bytes::Bytes::new().as_ptr());
    drop((taken, guest));
    house.close().await;
}

#[tokio::test]
async fn an_upgraded_socket_is_not_swept_and_the_drain_tells_who_keeps_it() {
    let short = crate::support::SHORT;
    let mut house = open(|settings| {
        settings.timeouts.header = short;
        settings.timeouts.idle = short;
        settings.timeouts.drain = short;
    });
    let mut guest = house.connect().await;
    assert_eq!(ask(&mut guest, UPGRADE).await.status, 101);
    let mut taken = in_time(house.taken.recv()).await.expect("a socket");
    tokio::time::sleep(3 * short).await;
    guest.write_all(b"x").await.expect("still open");
    assert_eq!(in_time(taken.socket.read_u8()).await.expect("still open"), b'x');
    let outcome = house.close().await;
    assert_eq!((outcome.drained, outcome.cut_off, outcome.upgraded_left), (0, 0, 1));
}

#[tokio::test]
async fn an_upgrade_works_over_tls() {
    let papers = Papers::new();
    let mut house = open(|settings| settings.tls = Some(papers.files()));
    let client = papers.client(&["http/1.1"], Known::No);
    let mut guest = shake(&client, house.connect().await).await.expect("a handshake");
    assert_eq!(ask(&mut guest, UPGRADE).await.status, 101);
    let mut taken = in_time(house.taken.recv()).await.expect("a socket");
    assert!(matches!(taken.socket, Socket::Tls(_)));
    taken.socket.write_all(b"hello").await.expect("can write");
    taken.socket.flush().await.expect("can write");
    let mut heard = [0; 5];
    in_time(guest.read_exact(&mut heard)).await.expect("heard");
    assert_eq!(&heard, b"hello");
    drop(taken);
    house.close().await;
}
