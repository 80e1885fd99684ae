//! Time-outs: who is slow, silent or deaf is cut, and nobody else.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{PATIENCE, SHORT, ask, closed, get, in_time, open};

#[tokio::test]
async fn who_connects_and_says_nothing_is_cut() {
    let house = open(|settings| settings.timeouts.header = SHORT);
    let came = Instant::now();
    let mut guest = house.connect().await;
    assert_eq!(closed(&mut guest).await, b"");
    assert!(came.elapsed() >= SHORT, "cut after {:?}", came.elapsed());
    house.counted(|counts| counts.late_header == 1 && counts.open == 0).await;
    house.close().await;
}

#[tokio::test]
async fn a_header_that_trickles_is_cut_however_busily() {
    let house = open(|settings| settings.timeouts.header = SHORT);
    let came = Instant::now();
    let (mut hear, mut say) = house.connect().await.into_split();
    let trickle = tokio::spawn(async move {
        let mut pace = tokio::time::interval(Duration::from_millis(5));
        say.write_all(b"GET / HTTP/1.1\r\nhost: test\r\nx: ").await.expect("can write");
        while say.write_all(b"x").await.is_ok() {
            pace.tick().await;
        }
    });
    assert_eq!(closed(&mut hear).await, b"");
    assert!(came.elapsed() >= SHORT);
    in_time(trickle).await.expect("ends when the door closes");
    house.counted(|counts| counts.late_header == 1 && counts.open == 0).await;
    house.close().await;
}

#[tokio::test]
async fn a_later_request_has_its_own_time_for_its_header() {
    let house = open(|settings| settings.timeouts.header = SHORT);
    let mut guest = house.connect().await;
    assert_eq!(get(&mut guest, "/").await.status, 200);
    // Idle is not slow: longer than a header may take, and still served.
    tokio::time::sleep(2 * SHORT).await;
    assert_eq!(get(&mut guest, "/").await.status, 200);
    let began = Instant::now();
    guest.write_all(b"GET / HT").await.expect("can write");
    assert_eq!(closed(&mut guest).await, b"");
    assert!(began.elapsed() >= SHORT);
    house.counted(|counts| (counts.late_header, counts.late_idle) == (1, 0)).await;
    house.close().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_parked_or_not() {
    for park in [Duration::from_millis(1), PATIENCE] {
        let house = open(|settings| {
            settings.timeouts.idle = SHORT;
            settings.timeouts.park = park;
        });
        let mut guest = house.connect().await;
        assert_eq!(get(&mut guest, "/").await.status, 200);
        let rested = Instant::now();
        assert_eq!(closed(&mut guest).await, b"");
        assert!(rested.elapsed() >= SHORT);
        let counts = house.counted(|counts| counts.late_idle == 1 && counts.open == 0).await;
        assert_eq!(counts.parked > 0, park < SHORT);
        house.close().await;
    }
}

#[tokio::test]
async fn a_request_may_take_longer_than_any_time_out_of_its_connection() {
    let mut house = open(|settings| {
        settings.timeouts.header = SHORT;
        settings.timeouts.idle = SHORT;
        settings.timeouts.write = SHORT;
        settings.timeouts.park = SHORT;
    });
    let mut guest = house.connect().await;
    let waited = async {
        let heard = ask(&mut guest, "GET /wait HTTP/1.1\r\nhost: test\r\n\r\n").await;
        assert_eq!(heard.body, "waited");
        // And its end starts the idle time anew.
        assert_eq!(get(&mut guest, "/").await.status, 200);
    };
    let hold = async {
        in_time(house.waiting.recv()).await.expect("came in");
        tokio::time::sleep(4 * SHORT).await;
        house.go_on.notify_waiters();
    };
    tokio::join!(waited, hold);
    house.close().await;
}

#[tokio::test]
async fn who_takes_no_bytes_is_cut() {
    let house = open(|settings| settings.timeouts.write = SHORT);
    let mut guest = house.connect().await;
    guest.write_all(b"GET /large HTTP/1.1\r\nhost: test\r\n\r\n").await.expect("can write");
    let mut head = [0; 100];
    in_time(guest.read_exact(&mut head)).await.expect("the answer begins");
    house.counted(|counts| counts.late_write == 1 && counts.open == 0).await;
    house.close().await;
}

#[tokio::test]
async fn who_takes_bytes_slowly_but_steadily_is_not_cut() {
    let house = open(|settings| settings.timeouts.write = 4 * SHORT);
    let mut guest = house.connect().await;
    guest.write_all(b"GET /large HTTP/1.1\r\nhost: test\r\n\r\n").await.expect("can write");
    let began = Instant::now();
    let (mut bytes, mut pace) = (vec![0; 4 << 20], tokio::time::interval(SHORT / 2));
    let mut heard = 0;
    while began.elapsed() < 8 * SHORT && heard < 48 << 20 {
        pace.tick().await;
        heard += in_time(guest.read_exact(&mut bytes)).await.expect("goes on");
    }
    assert_eq!(house.counts().late_write, 0);
    house.close().await;
}

#[tokio::test]
async fn a_parked_connection_goes_on_as_if_nothing_had_been() {
    let house = open(|settings| settings.timeouts.park = Duration::from_millis(8));
    let mut guest = house.connect().await;
    for round in 1..=5 {
        assert_eq!(get(&mut guest, "/peer").await.status, 200);
        house.counted(|counts| counts.parked == round).await;
    }
    // In pieces, with a park asked for in between: a request once begun is not parked.
    guest.write_all(b"GET /pieces HTTP/1.1\r\n").await.expect("can write");
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(ask(&mut guest, "host: test\r\n\r\n").await.body, "hello /pieces");
    drop(guest);
    house.counted(|counts| counts.open == 0).await;
    house.close().await;
}

#[tokio::test]
async fn a_guest_who_leaves_while_parked_frees_the_seat() {
    let house = open(|settings| settings.timeouts.park = Duration::from_millis(8));
    let mut guest = house.connect().await;
    get(&mut guest, "/").await;
    house.counted(|counts| counts.parked == 1).await;
    drop(guest);
    let counts = house.counted(|counts| counts.open == 0).await;
    assert_eq!(counts.failed_http, 0);
    house.close().await;
}
