//! When a client should come back.
//!
//! Near the front every second counts; far back an answer changes little, and a million waiters
//! must cost a known number of requests. So the pause grows with the wait that is left and with
//! the crowd, and is never longer than a third of the time after which a silent visitor loses the
//! place: two beats may be lost.

use waitroom_core::{Millis, Ticket};

/// Requests a second that all waiters of a room together may cost one instance. A status costs
/// some ten microseconds, so this is a fraction of one core.
const REQUESTS_A_SECOND: u64 = 10_000;
/// The status limit is 60 a minute; a client that follows us never meets it.
const SOONEST_MS: u64 = 1_500;
const LATEST_MS: u64 = 60_000;
/// Whoever is that near is told at the fastest pace.
const NEAR: u64 = 20;

/// What the pause depends on.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub position: Option<u64>,
    pub likely_wait_ms: Option<u64>,
    pub waiting: u64,
    pub heartbeat_timeout: Millis,
}

pub fn next_check_ms(place: Place, ticket: Ticket, version: u64) -> u64 {
    let wanted = match (place.position, place.likely_wait_ms) {
        (Some(position), _) if position <= NEAR => SOONEST_MS,
        // A tenth of what is left: the answer has then changed by about as much.
        (Some(_), Some(wait)) => wait / 10,
        // Unknown pace: distance stands in for it.
        (Some(position), None) => SOONEST_MS + position * 5,
        // A draw to come, or a ticket that is over: nothing changes soon.
        (None, _) => 10_000,
    };
    let crowd = place.waiting * 1_000 / REQUESTS_A_SECOND;
    let most = (place.heartbeat_timeout.0 / 3).clamp(500, LATEST_MS);
    let pause = wanted.max(crowd).clamp(SOONEST_MS, LATEST_MS).min(most);
    // Up to a tenth earlier, by ticket and version: whoever was told the same moment does not
    // come back at the same moment. Earlier, never later: the bound above is a promise.
    let mixed = (ticket.number.0 ^ version.rotate_left(32) ^ u64::from(ticket.lane.0) << 56)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    pause - pause / 10 * (mixed >> 48) / (1 << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(position: u64, wait: Option<u64>, waiting: u64) -> u64 {
        let timeout = Millis::from_secs(120);
        let place = Place {
            position: Some(position),
            likely_wait_ms: wait,
            waiting,
            heartbeat_timeout: timeout,
        };
        next_check_ms(place, Ticket::new(0, position), 9)
    }

    #[test]
    fn the_front_is_told_soon_and_the_back_later() {
        assert!((1_350..=1_500).contains(&pause(1, Some(900_000), 50)));
        assert!((27_000..=30_000).contains(&pause(5_000, Some(300_000), 9_000)));
        assert!(pause(1_000, None, 1_000) < pause(5_000, None, 5_000));
    }

    #[test]
    fn two_beats_may_be_lost_before_the_place_is() {
        for position in [1, 100, 1_000_000, 20_000_000] {
            assert!(pause(position, Some(u64::MAX / 20), 20_000_000) <= 40_000);
        }
    }

    #[test]
    fn a_million_waiters_cost_a_known_number_of_requests() {
        let every = pause(900_000, None, 300_000);
        assert!(every >= 27_000, "300,000 waiters at 10,000 requests a second: {every}");
    }

    #[test]
    fn neighbours_do_not_come_back_together() {
        let pauses: std::collections::BTreeSet<u64> =
            (5_000..5_100).map(|position| pause(position, Some(200_000), 9_000)).collect();
        assert!(pauses.len() > 80, "{} different pauses", pauses.len());
    }
}
