//! Promise 5: for every window, paced admissions minus returned ones ≤ rate × window + burst; no
//! catch-up burst after restart, pause or failover.
//!
//! All windows at once, exactly, in one pass: keep what the fullest window that ends here still
//! has room for, `left = burst − max over starts of (paced − returned − rate × time since)`. Time
//! adds to it, an admission takes one, a returned one gives one back, and it never exceeds the
//! burst, for a window may also start right here. Below zero, some window holds too many.
//! The unit is `1 / rate.per` of an admission, so everything is a whole number.
//!
//! Windows that span a change of settings: the bound is the sum of each rate over its part of the
//! window, plus the burst at its start; and what was left before the change counts after it only
//! up to the new burst (the design's "a live change keeps min(old, new burst)"). Carrying over
//! into another unit rounds up, in the room's favour, by less than one unit. Coming from or going
//! to no rate at all leaves nothing.
//! Windows that span a stretch in which nobody could enter (a restart, a pause, the time before
//! the start, the draw or after the end): nothing that was saved up survives it, so the bound
//! behind it is rate × time, without burst.

use waitroom_core::settings::{NoShow, Rate};
use waitroom_core::{AdmitWhy, Ending, Settings, Ticket, Timestamp, What};

use super::quick::Set;
use crate::history::{History, Violation};

const PROMISE: u8 = 5;

pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut settings: Option<&Settings> = None;
    let mut room = Allowance { left: 0, at: Timestamp(0) };
    let mut paced: Set<Ticket> = Set::default();
    for it in &history.log {
        let at = it.event.at;
        if let Some(pace) = settings.and_then(Pace::of) {
            room.wait_until(at, pace);
        }
        room.at = room.at.max(at);
        match &it.event.what {
            What::Configured { settings: new, .. } => {
                room.left = match (settings.and_then(Pace::of), Pace::of(new)) {
                    (Some(was), Some(is)) => (room.left * is.one).div_ceil(was.one),
                    _ => 0,
                };
                settings = Some(new);
            }
            What::Opened { .. }
            | What::Resumed { .. }
            | What::SaleStarted
            | What::Drawn { .. }
            | What::Reopened { .. } => room.left = 0,
            What::Admitted { ticket, why: AdmitWhy::Paced | AdmitWhy::Straight, .. } => {
                paced.insert(*ticket);
                let one = settings.and_then(Pace::of).map(|pace| pace.one);
                match one.and_then(|one| room.left.checked_sub(one)) {
                    Some(left) => room.left = left,
                    None => {
                        let (left, index) = (room.left, it.index);
                        room.left = 0;
                        found.push(Violation::new(
                            PROMISE,
                            format!(
                                "event {index}: {ticket} is admitted at {} where the pace leaves \
                                 room for {left}/{} of an admission",
                                at.0,
                                one.unwrap_or(1)
                            ),
                        ));
                    }
                }
            }
            What::Ended { ticket, ending, .. } => {
                if paced.remove(ticket)
                    && *ending == Ending::NoShow
                    && let Some(settings) = settings
                    && settings.no_show == NoShow::Return
                    && let Some(pace) = Pace::of(settings)
                {
                    room.left += pace.one;
                }
            }
            _ => {}
        }
    }
    found
}

/// What may still be admitted at a moment.
struct Allowance {
    left: u128,
    at: Timestamp,
}

/// The pace in units: how many arrive per millisecond, how many one admission costs, and how many
/// can be saved up.
#[derive(Clone, Copy)]
struct Pace {
    per_ms: u128,
    one: u128,
    burst: u128,
}

impl Pace {
    fn of(settings: &Settings) -> Option<Pace> {
        let Rate { count, per } = settings.rate?;
        let (per_ms, one) = (u128::from(count), u128::from(per.0));
        let burst = match settings.burst {
            Some(burst) => u128::from(burst) * one,
            // One tick's worth, at least one.
            None => (per_ms * u128::from(settings.tick.0)).max(one),
        };
        Some(Pace { per_ms, one, burst })
    }
}

impl Allowance {
    /// Called before every event, so what the event before gave above the burst ends here too.
    fn wait_until(&mut self, at: Timestamp, pace: Pace) {
        let waited = u128::from(at.since(self.at).0);
        self.left = (self.left + waited * pace.per_ms).min(pace.burst);
    }
}
