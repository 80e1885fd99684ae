//! A full house says no, and never spends the time of those inside on saying it.
//!
//! Whoever finds no seat is told so in a few bytes and closed: in milliseconds, while those inside
//! wait for their turn. To accept and refuse costs more than to serve somebody who is seated, so
//! under a flood it is rationed: when a few were refused in a row the door rests for many times as
//! long as that took. Who comes meanwhile stands in the system's own queue, which costs nothing.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::net::TcpStream;

/// So many are refused without a look at the clock's price.
const IN_A_ROW: u32 = 32;
/// The door rests so many times longer than the refusals took. With the accept, which is not in
/// that time, all of it stays at about a tenth of what the server may use.
const REST_TIMES: u32 = 16;
/// A seat that comes free is not left empty for longer.
const REST_MAX: Duration = Duration::from_millis(50);

/// Refuses, for one accept loop.
#[derive(Debug)]
pub(crate) struct FullHouse {
    /// What is said; none where a plain answer would be no language of the client's.
    answer: Option<Bytes>,
    in_a_row: u32,
    spent: Duration,
}

impl FullHouse {
    pub(crate) fn new(answer: Option<Bytes>) -> FullHouse {
        FullHouse { answer, in_a_row: 0, spent: Duration::ZERO }
    }

    /// Tells one client; comes back when the next may be heard.
    pub(crate) async fn refuse(&mut self, tcp: TcpStream) {
        let began = Instant::now();
        if let Some(answer) = &self.answer
            // As a plain socket it is asked at once, without waiting for the runtime's view of it.
            && let Ok(mut tcp) = tcp.into_std()
        {
            // What has come is taken first: closed on unread bytes, the system would send a reset,
            // and the answer would be lost. What fails here would only have been a courtesy.
            let _ = tcp.read(&mut [0; 4_096]);
            let _ = tcp.write(answer);
        }
        self.in_a_row += 1;
        self.spent += began.elapsed();
        if self.in_a_row == IN_A_ROW {
            let rest = (self.spent * REST_TIMES).min(REST_MAX);
            (self.in_a_row, self.spent) = (0, Duration::ZERO);
            tokio::time::sleep(rest).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    async fn refuse(house: &mut FullHouse, count: u32) -> Duration {
        let door = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = door.local_addr().expect("an address");
        let mut rested = Duration::ZERO;
        for _ in 0..count {
            let (client, guest) = tokio::join!(TcpStream::connect(at), door.accept());
            let began = tokio::time::Instant::now();
            house.refuse(guest.expect("a guest").0).await;
            rested += began.elapsed();
            drop(client);
        }
        rested
    }

    #[tokio::test(start_paused = true)]
    async fn after_some_refusals_the_door_rests_and_not_for_long() {
        let mut house = FullHouse::new(Some("no".into()));
        assert_eq!(refuse(&mut house, IN_A_ROW - 1).await, Duration::ZERO);
        let rested = refuse(&mut house, 1).await;
        // The runtime's timer counts whole milliseconds.
        assert!(rested > Duration::ZERO && rested <= REST_MAX + Duration::from_millis(1));
        assert_eq!(refuse(&mut house, IN_A_ROW - 1).await, Duration::ZERO);
    }
}
