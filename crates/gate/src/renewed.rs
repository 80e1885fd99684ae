//! Passes that were signed anew, kept for a moment.
//!
//! A browser sends many requests at once, all with the old pass, and a program may show an old one
//! for as long as it is good. Each of them gets the newer pass along with its answer; signing it
//! for each would cost more than all the rest of the request, so a signature is made once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use http::HeaderValue;
use waitroom_core::Timestamp;
use waitroom_core::id::TicketId;

/// The cookies of one visitor's newest pass.
pub type Cookies = Vec<HeaderValue>;

#[derive(Debug, Default)]
pub struct Renewed(Mutex<HashMap<TicketId, Signed>>);

#[derive(Debug)]
struct Signed {
    /// The end of the pass, which no two passes of a ticket share.
    pass_expires_at: Timestamp,
    /// Until then the cookies say the truth about how long they live.
    stale_at_s: u64,
    cookies: Cookies,
}

/// Of so many visitors at once; half a kilobyte or so each. When it is full all are forgotten and
/// signed again as they come.
const KEPT_MAX: usize = 4_096;
/// For how long; a cookie's life may be this much too long, and no longer.
const KEPT_S: u64 = 5;

impl Renewed {
    pub fn cookies(
        &self,
        ticket: TicketId,
        pass_expires_at: Timestamp,
        now_s: u64,
        sign: impl FnOnce() -> Cookies,
    ) -> Cookies {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(signed) = kept().get(&ticket)
            && signed.pass_expires_at == pass_expires_at
            && now_s < signed.stale_at_s
        {
            return signed.cookies.clone();
        }
        // Not under the lock: it takes a while.
        let cookies = sign();
        let mut kept = kept();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        let stale_at_s = now_s + KEPT_S;
        kept.insert(ticket, Signed { pass_expires_at, stale_at_s, cookies: cookies.clone() });
        cookies
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use waitroom_core::id::IdKey;

    use super::*;

    #[test]
    fn a_pass_is_signed_once_for_all_requests_that_come_with_the_old_one() {
        let (renewed, signed) = (Renewed::default(), Cell::new(0));
        let ids = IdKey::derive(&[7; 32]);
        let ticket = |number| ids.name(0, 1, number).expect("an id");
        let ask = |number: u64, expires: u64, now_s: u64| {
            renewed.cookies(ticket(number), Timestamp(expires), now_s, || {
                signed.set(signed.get() + 1);
                vec![HeaderValue::from(expires)]
            })
        };
        for _ in 0..100 {
            assert_eq!(ask(1, 60_000, 10), ["60000"]);
            assert_eq!(ask(2, 60_000, 10), ["60000"]);
        }
        assert_eq!(signed.get(), 2, "one for each visitor");
        assert_eq!(ask(1, 70_000, 11), ["70000"], "a newer session has a newer pass");
        ask(1, 70_000, 11 + KEPT_S);
        assert_eq!(signed.get(), 4, "nothing is kept for long");
        for number in 0..10 * KEPT_MAX as u64 {
            ask(number, 60_000, 10);
        }
        assert!(renewed.0.lock().expect("nobody panicked").len() <= KEPT_MAX);
    }
}
