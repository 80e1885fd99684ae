//! Closing the house: requests in progress finish, what hangs is cut, and the outcome says so.

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{PATIENCE, SHORT, closed, get, hear, in_time, open};

const WAIT: &[u8] = b"GET /wait HTTP/1.1\r\nhost: test\r\n\r\n";

#[tokio::test]
async fn a_request_in_progress_is_finished_and_idle_guests_are_let_go() {
    let mut house = open(|settings| settings.timeouts.park = Duration::from_millis(8));
    let (mut busy, mut idle, mut parked, mut silent) = (
        house.connect().await,
        house.connect().await,
        house.connect().await,
        house.connect().await,
    );
    get(&mut parked, "/").await;
    house.counted(|counts| counts.parked == 1).await;
    get(&mut idle, "/").await;
    busy.write_all(WAIT).await.expect("can write");
    in_time(house.waiting.recv()).await.expect("came in");
    house.counted(|counts| counts.open == 4).await;
    assert!(!house.drain.is_on());
    house.call_closed();
    in_time(house.drain.clone().wait()).await;
    assert!(house.drain.is_on());
    for guest in [&mut idle, &mut parked, &mut silent] {
        assert_eq!(closed(guest).await, b"");
    }
    let address = house.address;
    assert!(TcpStream::connect(address).await.is_err(), "nobody new is let in");
    house.go_on.notify_waiters();
    let heard = hear(&mut busy).await;
    assert_eq!(heard.body, "waited");
    assert!(heard.head.contains("connection: close"), "{}", heard.head);
    assert_eq!(closed(&mut busy).await, b"");
    let outcome = house.closed().await;
    assert_eq!((outcome.drained, outcome.cut_off, outcome.upgraded_left), (4, 0, 0));
}

#[tokio::test]
async fn what_hangs_is_cut_at_the_deadline_and_told() {
    let mut house = open(|settings| settings.timeouts.drain = SHORT);
    let (mut hangs, mut half) = (house.connect().await, house.connect().await);
    hangs.write_all(WAIT).await.expect("can write");
    half.write_all(b"GET / HTTP/1.1\r\nhost: te").await.expect("can write");
    in_time(house.waiting.recv()).await.expect("came in");
    house.counted(|counts| counts.open == 2).await;
    let mut quiet = house.connect().await;
    get(&mut quiet, "/").await;
    let called = Instant::now();
    house.call_closed();
    assert_eq!(closed(&mut hangs).await, b"");
    assert!(called.elapsed() >= SHORT);
    closed(&mut half).await;
    let stats = house.stats.clone();
    let outcome = house.closed().await;
    assert!(called.elapsed() < PATIENCE / 2, "the cut is quick: {:?}", called.elapsed());
    assert_eq!((outcome.connections_served, outcome.cut_off), (3, outcome.cut_off));
    assert!((1..=2).contains(&outcome.cut_off), "{outcome:?}");
    assert_eq!(outcome.drained + outcome.cut_off, 3);
    assert_eq!(stats.now().open, 0);
}

#[tokio::test]
async fn an_empty_house_closes_at_once() {
    let house = open(|_| {});
    let outcome = house.close().await;
    assert_eq!((outcome.connections_served, outcome.drained, outcome.cut_off), (0, 0, 0));
}

#[tokio::test]
async fn http2_hears_a_goodbye_and_finishes_its_streams() {
    let mut house = open(|_| {});
    let (client, connection) =
        in_time(h2::client::handshake(house.connect().await)).await.expect("a handshake");
    let talking = tokio::spawn(connection);
    let mut client = in_time(client.ready()).await.expect("ready");
    let request = http::Request::get("http://test/wait").body(()).expect("a request");
    let (response, _) = client.send_request(request, true).expect("sent");
    in_time(house.waiting.recv()).await.expect("came in");
    house.call_closed();
    in_time(house.drain.clone().wait()).await;
    house.go_on.notify_waiters();
    assert_eq!(in_time(response).await.expect("an answer").status(), 200);
    drop(client);
    in_time(talking).await.expect("no panic").expect("a polite end");
    let outcome = house.closed().await;
    assert_eq!((outcome.drained, outcome.cut_off), (1, 0));
}
