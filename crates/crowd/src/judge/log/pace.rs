//! What the pace still allows, from events alone.
//!
//! All windows at once, exactly: what is left of the fullest window that ends now. Time adds to
//! it, up to the burst; an admission takes one; a returned one gives one back. The unit is
//! `1 / rate.per` of an admission, so everything is a whole number.
//! Nothing that was saved up survives a stretch in which nobody could enter: a restart, a pause,
//! the time before the start, a draw, the end.

use std::collections::HashSet;

use waitroom_core::settings::{NoShow, Rate};
use waitroom_core::{AdmitWhy, Ending, Settings, Ticket, Timestamp, What};

#[derive(Debug, Default)]
pub(super) struct Allowance {
    left: u128,
    at: Timestamp,
    pace: Option<Pace>,
    returns: bool,
    paced: HashSet<Ticket>,
}

/// How many units arrive per millisecond, how many one admission costs, how many can be saved up.
#[derive(Clone, Copy, Debug)]
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
    /// Folds an event in. Says by how much an admission is too many.
    pub fn take(&mut self, at: Timestamp, what: &What) -> Option<String> {
        if let Some(pace) = self.pace {
            let waited = u128::from(at.since(self.at).0);
            self.left = (self.left + waited * pace.per_ms).min(pace.burst);
        }
        self.at = self.at.max(at);
        match what {
            What::Configured { settings, .. } => {
                let is = Pace::of(settings);
                self.left = match (self.pace, is) {
                    // Rounded up, in the room's favour, by less than one unit.
                    (Some(was), Some(is)) => (self.left * is.one).div_ceil(was.one).min(is.burst),
                    _ => 0,
                };
                (self.pace, self.returns) = (is, settings.no_show == NoShow::Return);
            }
            What::Opened { .. }
            | What::Resumed { .. }
            | What::SaleStarted
            | What::Drawn { .. }
            | What::Reopened { .. } => self.left = 0,
            What::Admitted { ticket, why: AdmitWhy::Paced | AdmitWhy::Straight, .. } => {
                return self.admit(*ticket);
            }
            What::Ended { ticket, ending, .. } => {
                if self.paced.remove(ticket)
                    && *ending == Ending::NoShow
                    && self.returns
                    && let Some(pace) = self.pace
                {
                    self.left += pace.one;
                }
            }
            _ => {}
        }
        None
    }

    fn admit(&mut self, ticket: Ticket) -> Option<String> {
        if self.returns {
            self.paced.insert(ticket);
        }
        let one = self.pace.map_or(1, |pace| pace.one);
        match self.left.checked_sub(one).filter(|_| self.pace.is_some()) {
            Some(left) => {
                self.left = left;
                None
            }
            None => {
                let left = std::mem::take(&mut self.left);
                Some(format!("the pace leaves room for {left}/{one} of an admission"))
            }
        }
    }

    /// In how many milliseconds one may be admitted; none if the room has no pace.
    pub fn next_in_ms(&self) -> Option<u64> {
        let pace = self.pace?;
        let missing = pace.one.saturating_sub(self.left);
        Some(u64::try_from(missing.div_ceil(pace.per_ms.max(1))).unwrap_or(u64::MAX))
    }
}
