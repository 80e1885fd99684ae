//! How often somebody may ask.
//!
//! Lives here: [`Meter`], a bounded table of "when would this caller be even again", and the
//! limits of each route. A refused request costs one hash and one load, and never touches a
//! writer. Stays out: who the caller is.
//!
//! A row holds a tag of the caller and one time, the earliest moment at which the caller has no
//! debt (the generic cell rate algorithm): a request moves it by its share of the span, and is refused
//! when it lies more than the burst ahead. A row whose time has passed belongs to nobody, so the
//! table cleans itself. Callers share a set of rows by hash; when all rows of a set are in debt,
//! the newcomer goes uncounted: the table errs towards visitors and never grows. The hash is keyed
//! by chance at start, so nobody can aim at somebody else's row.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// `count` requests in `per_ms`, and `burst` of them at once: an office behind one address clicks
/// together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub count: u32,
    pub per_ms: u64,
    pub burst: u32,
}

/// Routes with a limit of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    Join,
    Status,
    Heartbeat,
    Session,
}

/// What is allowed on each route; none means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Per client address.
    pub join: Option<Limit>,
    /// Per token.
    pub status: Option<Limit>,
    pub heartbeat: Option<Limit>,
    pub session: Option<Limit>,
    /// Addresses are counted by these prefixes: one home or one phone, not one of its many
    /// addresses.
    pub prefix_v4: u8,
    pub prefix_v6: u8,
    /// Callers that may be in debt at the same time; 8 bytes each.
    pub callers_max: usize,
}

impl Limit {
    pub const fn a_minute(count: u32) -> Limit {
        Limit { count, per_ms: 60_000, burst: count }
    }

    /// What one request costs, in time until it is forgotten.
    fn cost_ms(self) -> u64 {
        (self.per_ms / u64::from(self.count.max(1))).max(1)
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            join: Some(Limit::a_minute(10)),
            status: Some(Limit::a_minute(60)),
            heartbeat: Some(Limit::a_minute(30)),
            session: Some(Limit::a_minute(100)),
            prefix_v4: 32,
            prefix_v6: 64,
            callers_max: 262_144,
        }
    }
}

impl Limits {
    pub fn none() -> Limits {
        Limits { join: None, status: None, heartbeat: None, session: None, ..Limits::default() }
    }

    pub fn of(&self, route: Route) -> Option<Limit> {
        match route {
            Route::Join => self.join,
            Route::Status => self.status,
            Route::Heartbeat => self.heartbeat,
            Route::Session => self.session,
        }
    }

    /// The part of an address that is counted.
    pub fn network(&self, address: std::net::IpAddr) -> u128 {
        match address {
            std::net::IpAddr::V4(address) => {
                let bits = u32::from(address);
                let cut = 32 - u32::from(self.prefix_v4.min(32));
                u128::from(bits.checked_shr(cut).unwrap_or(0)) | 1 << 100
            }
            std::net::IpAddr::V6(address) => {
                let cut = 128 - u32::from(self.prefix_v6.min(128));
                u128::from(address).checked_shr(cut).unwrap_or(0)
            }
        }
    }
}

/// The limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany {
    pub retry_after_ms: u64,
}

/// How a caller stands with a limit, for those interfaces that tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub limit: u32,
    pub remaining: u32,
    pub reset_ms: u64,
}

/// Rows of a set are neighbours in one cache line.
const SET: usize = 8;
const TAG_BITS: u32 = 24;
/// Times are milliseconds since the meter was made: 34 years in 40 bits.
const TIME_BITS: u32 = 64 - TAG_BITS;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

pub struct Meter {
    keys: [u64; 2],
    sets: Box<[[AtomicU64; SET]]>,
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter").field("sets", &self.sets.len()).finish_non_exhaustive()
    }
}

impl Meter {
    /// A table for about `callers` in debt at the same time; 8 bytes each, once and for all.
    pub fn new(callers: usize) -> Meter {
        let sets = callers.div_ceil(SET).next_power_of_two();
        let empty = || std::array::from_fn(|_| AtomicU64::new(0));
        let chance = RandomState::new();
        let keys = [chance.hash_one(0), chance.hash_one(1)];
        Meter { keys, sets: (0..sets).map(|_| empty()).collect() }
    }

    /// One multiplication under keys of chance. Whoever cannot see the keys cannot find two
    /// callers that meet, and tickets' names are random to begin with.
    fn hash(&self, route: Route, who: u128) -> u64 {
        let [one, other] = self.keys;
        let (high, low) = ((who >> 64) as u64, who as u64 ^ (route as u64).rotate_right(8));
        let product = u128::from(low ^ one) * u128::from(high ^ other);
        let folded = (product >> 64) as u64 ^ product as u64;
        folded.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// Counts one request of `who` on `route` at `now_ms`, or refuses it uncounted.
    pub fn count(
        &self,
        route: Route,
        who: u128,
        limit: Limit,
        now_ms: u64,
    ) -> Result<Standing, TooMany> {
        let hash = self.hash(route, who);
        let set = &self.sets[(hash as usize) & (self.sets.len() - 1)];
        // Zero marks an empty row, so no tag is zero.
        let tag = (hash >> (64 - TAG_BITS)).max(1);
        let cost_ms = limit.cost_ms();
        let ahead_max = cost_ms * u64::from(limit.burst.max(1));
        let now = now_ms & TIME_MASK;
        let mut row = set.iter().find(|row| row.load(Ordering::Relaxed) >> TIME_BITS == tag);
        if row.is_none() {
            row = set.iter().find(|row| row.load(Ordering::Relaxed) & TIME_MASK <= now);
        }
        let uncounted = Standing { limit: limit.burst, remaining: limit.burst, reset_ms: 0 };
        let Some(row) = row else { return Ok(uncounted) };
        loop {
            let found = row.load(Ordering::Relaxed);
            let (whose, even_at) = (found >> TIME_BITS, found & TIME_MASK);
            if whose != tag && even_at > now {
                // Somebody took the row meanwhile.
                return Ok(uncounted);
            }
            let even_at = if whose == tag { even_at.max(now) } else { now };
            let next = even_at + cost_ms;
            if next > now + ahead_max {
                return Err(TooMany { retry_after_ms: next - now - ahead_max });
            }
            let taken = tag << TIME_BITS | next & TIME_MASK;
            let swapped =
                row.compare_exchange_weak(found, taken, Ordering::Relaxed, Ordering::Relaxed);
            if swapped.is_ok() {
                let remaining = ((now + ahead_max - next) / cost_ms) as u32;
                return Ok(Standing { limit: limit.burst, remaining, reset_ms: next - now });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn allowed(meter: &Meter, who: u128, limit: Limit, at: u64, tries: usize) -> usize {
        (0..tries).filter(|_| meter.count(Route::Status, who, limit, at).is_ok()).count()
    }

    #[test]
    fn sixty_a_minute_are_sixty_and_the_next_hears_when_to_come_back() {
        let (meter, limit) = (Meter::new(1_000), Limit::a_minute(60));
        assert_eq!(allowed(&meter, 7, limit, 5_000, 100), 60);
        let refused = meter.count(Route::Status, 7, limit, 5_000).expect_err("all are used up");
        assert_eq!(refused.retry_after_ms, 1_000);
        assert_eq!(allowed(&meter, 7, limit, 5_999, 10), 0);
        assert_eq!(allowed(&meter, 7, limit, 6_000, 10), 1);
        assert_eq!(allowed(&meter, 7, limit, 66_000, 100), 60);
    }

    #[test]
    fn one_caller_and_one_route_do_not_use_up_another_s() {
        let (meter, limit) = (Meter::new(1_000), Limit::a_minute(10));
        assert_eq!(allowed(&meter, 1, limit, 9, 20), 10);
        assert_eq!(allowed(&meter, 2, limit, 9, 20), 10);
        assert!(meter.count(Route::Heartbeat, 1, limit, 9).is_ok());
    }

    #[test]
    fn a_full_table_lets_newcomers_pass_and_never_refuses_the_innocent() {
        let (meter, limit) = (Meter::new(8), Limit::a_minute(1));
        for who in 0..1_000 {
            assert!(meter.count(Route::Join, who, limit, 1).is_ok(), "first request of {who}");
        }
    }

    #[test]
    fn what_is_left_is_told() {
        let (meter, limit) = (Meter::new(100), Limit::a_minute(3));
        let left =
            |at| meter.count(Route::Join, 5, limit, at).map(|standing| standing.remaining).ok();
        assert_eq!([left(0), left(0), left(0), left(0)], [Some(2), Some(1), Some(0), None]);
    }

    #[test]
    fn addresses_are_counted_by_network() {
        let limits = Limits { prefix_v4: 24, ..Limits::default() };
        let network = |text: &str| limits.network(text.parse::<IpAddr>().expect("an address"));
        assert_eq!(network("192.0.2.1"), network("192.0.2.200"));
        assert_ne!(network("192.0.2.1"), network("192.0.3.1"));
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        let all = Limits { prefix_v4: 0, prefix_v6: 0, ..Limits::default() };
        assert_ne!(all.network("192.0.2.1".parse().unwrap()), all.network("::1".parse().unwrap()));
    }
}
