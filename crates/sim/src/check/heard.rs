//! Of promise 1: nobody's place lapses who was heard of.
//!
//! A visitor may speak to any instance; the owner hears of it within a moment. So of a place that
//! ends for silence nobody who was well had heard for as long as the settings say, up to that
//! moment. Judged by one clock that all share, where there is one.

use waitroom_core::{Ending, Millis, Ticket, What};

use super::quick::Map;
use crate::history::{History, Violation};

const PROMISE: u8 = 1;

/// Until the owner has heard of it: a report a second, and the longest way there.
const WORD_MS: u64 = 8_000;

pub(super) fn check(history: &History) -> Vec<Violation> {
    let mut heard: Map<Ticket, Vec<u64>> = Map::default();
    for it in &history.heard {
        heard.entry(it.ticket).or_default().push(it.at_ms);
    }
    let mut found = Vec::new();
    let mut timeout = Millis(0);
    for (it, decided) in history.log.iter().zip(&history.decided) {
        match &it.event.what {
            What::Configured { settings, .. } => timeout = settings.heartbeat_timeout,
            What::Ended { ticket, ending: Ending::Silent, .. } => {
                // The owner's clock may run faster than the one that all share. What was heard
                // of just now the owner may not know yet.
                let told = WORD_MS..timeout.0 - timeout.0 / 20;
                let times = heard.get(ticket).into_iter().flatten();
                let silent = times.filter_map(|at| decided.checked_sub(*at));
                if let Some(silent) = silent.filter(|silent| told.contains(silent)).min() {
                    let index = it.index;
                    found.push(Violation::new(
                        PROMISE,
                        format!(
                            "event {index}: {ticket} lapses {silent} ms after it was heard of; it \
                             may be silent for {} ms",
                            timeout.0
                        ),
                    ));
                }
            }
            _ => {}
        }
    }
    found
}
