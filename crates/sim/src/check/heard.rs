//! Of promise 1: nobody's place lapses who was heard of.
//!
//! A visitor may speak to any instance; the owner hears of it within a moment. So a place that
//! ended for silence was not heard of for as long as the settings say, less that moment: by
//! anybody who was well. Judged by one clock that all share, where there is one.

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
    for (it, landed) in history.log.iter().zip(&history.landed) {
        match &it.event.what {
            What::Configured { settings, .. } => timeout = settings.heartbeat_timeout,
            What::Ended { ticket, ending: Ending::Silent, .. } => {
                // The owner's clock may run faster than the one that all share.
                let least = (timeout.0 - timeout.0 / 20).saturating_sub(WORD_MS);
                let last = heard.get(ticket).into_iter().flatten();
                let last = last.copied().filter(|at| at <= landed).max();
                if let Some(silent) = last.map(|at| landed - at).filter(|silent| *silent < least) {
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
