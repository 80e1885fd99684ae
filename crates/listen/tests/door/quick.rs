//! The short way: who takes it, who does not, and that every limit holds there too.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{SHORT, ask, closed, get, hear, in_time, let_the_house_read, open};

const QUICK: &[u8] = b"GET /quick HTTP/1.1\r\nhost: test\r\n\r\n";
const WAIT: &[u8] = b"GET /quick-wait HTTP/1.1\r\nhost: test\r\n\r\n";

#[tokio::test]
async fn a_plain_request_is_answered_without_hyper_and_another_by_it() {
    let house = open(|_| {});
    let mut guest = house.connect().await;
    for _ in 0..3 {
        assert_eq!(get(&mut guest, "/quick").await.body, "quick");
    }
    assert_eq!(get(&mut guest, "/other").await.body, "hello /other");
    house.close().await;
}

#[tokio::test]
async fn what_comes_in_pieces_is_hyper_s() {
    let house = open(|_| {});
    for cut in [1, 14, 20, QUICK.len() - 1] {
        let mut guest = house.connect().await;
        guest.write_all(&QUICK[..cut]).await.expect("can write");
        let_the_house_read().await;
        house.counted(|counts| counts.open > 0).await;
        guest.write_all(&QUICK[cut..]).await.expect("can write");
        // Loopback may bring both together after all; either way it is one good answer.
        let heard = hear(&mut guest).await;
        assert!(["quick", "hello /quick"].contains(&&*heard.body), "{cut}: {}", heard.body);
    }
    house.close().await;
}

#[tokio::test]
async fn a_parked_connection_comes_back_to_the_short_way() {
    let house = open(|settings| settings.timeouts.park = Duration::from_millis(8));
    let mut guest = house.connect().await;
    for round in 0..3 {
        assert_eq!(get(&mut guest, "/quick").await.body, "quick");
        house.counted(|counts| counts.parked == 2 * round + 1).await;
        // From hyper's hands too.
        assert_eq!(get(&mut guest, "/other").await.body, "hello /other");
        house.counted(|counts| counts.parked == 2 * round + 2).await;
    }
    drop(guest);
    house.counted(|counts| counts.open == 0).await;
    house.close().await;
}

#[tokio::test]
async fn several_requests_at_once_are_answered_one_after_the_other() {
    let mut house = open(|_| {});
    let mut guest = house.connect().await;
    let other = b"GET /other HTTP/1.1\r\nhost: test\r\n\r\n";
    guest.write_all(&[QUICK, WAIT, QUICK, other, QUICK].concat()).await.expect("can write");
    assert_eq!(hear(&mut guest).await.body, "quick");
    in_time(house.waiting.recv()).await.expect("came in");
    house.go_on.notify_waiters();
    for body in ["quick after all", "quick", "hello /other", "hello /quick"] {
        assert_eq!(hear(&mut guest).await.body, body);
    }
    house.close().await;
}

#[tokio::test]
async fn an_idle_guest_of_the_short_way_is_closed_in_time() {
    for park in [Duration::from_millis(1), 10 * SHORT] {
        let house = open(|settings| {
            settings.timeouts.idle = SHORT;
            settings.timeouts.park = park;
        });
        let mut guest = house.connect().await;
        let rested = Instant::now();
        assert_eq!(get(&mut guest, "/quick").await.body, "quick");
        assert_eq!(closed(&mut guest).await, b"");
        assert!(rested.elapsed() >= SHORT);
        house.counted(|counts| counts.late_idle == 1 && counts.open == 0).await;
        house.close().await;
    }
}

#[tokio::test]
async fn an_answer_that_nobody_takes_is_cut_as_such() {
    let house = open(|settings| {
        settings.timeouts.write = 2 * SHORT;
        // Shorter: a guest who owes nothing but to read is not late with a request.
        settings.timeouts.header = SHORT;
        settings.timeouts.idle = SHORT;
    });
    let mut guest = house.connect().await;
    let request = b"GET /quick-large HTTP/1.1\r\nhost: test\r\n\r\n";
    guest.write_all(request).await.expect("can write");
    let mut head = [0; 100];
    in_time(guest.read_exact(&mut head)).await.expect("the answer begins");
    let counts = house.counted(|counts| counts.open == 0).await;
    assert_eq!((counts.late_write, counts.late_header, counts.late_idle), (1, 0, 0));
    house.close().await;
}

#[tokio::test]
async fn an_answer_may_take_longer_than_any_time_out_of_its_connection() {
    let mut house = open(|settings| {
        settings.timeouts.header = SHORT;
        settings.timeouts.idle = SHORT;
        settings.timeouts.park = SHORT;
    });
    let mut guest = house.connect().await;
    let waited = async {
        let heard = ask(&mut guest, "GET /quick-wait HTTP/1.1\r\nhost: test\r\n\r\n").await;
        assert_eq!(heard.body, "quick after all");
        assert_eq!(get(&mut guest, "/quick").await.body, "quick");
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
async fn when_the_house_closes_the_last_answer_says_so_and_the_idle_are_let_go() {
    let mut house = open(|_| {});
    let (mut busy, mut idle) = (house.connect().await, house.connect().await);
    assert_eq!(get(&mut idle, "/quick").await.body, "quick");
    busy.write_all(WAIT).await.expect("can write");
    in_time(house.waiting.recv()).await.expect("came in");
    house.call_closed();
    in_time(house.drain.clone().wait()).await;
    assert_eq!(closed(&mut idle).await, b"");
    house.go_on.notify_waiters();
    let heard = hear(&mut busy).await;
    assert_eq!(heard.body, "quick after all");
    assert!(heard.head.contains("connection: close"), "{}", heard.head);
    assert_eq!(closed(&mut busy).await, b"");
    let outcome = house.closed().await;
    assert_eq!((outcome.drained, outcome.cut_off), (2, 0));
}
