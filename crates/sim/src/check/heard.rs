//! Of promise 1: nobody's place lapses who was heard of.
//!
//! A visitor may speak to any instance; the owner hears of it within a moment, or knows that it may
//! not have. So between two times that somebody was heard of where all was well, and since the
//! last, there is less than the settings allow, or the place may end; and it may still end a moment
//! after they came back too late, when the owner has not heard of that yet.
//! Judged by one clock that all share, where there is one.

use waitroom_core::{Ending, Millis, Ticket, What};

use super::quick::Map;
use crate::history::{History, Violation};

const PROMISE: u8 = 1;

/// Until the owner has heard of it: a report a second, and the longest way that it waits for.
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
            What::Joined(joined) => heard.entry(joined.ticket).or_default().push(*decided),
            What::Moved { to, .. } => heard.entry(*to).or_default().push(*decided),
            What::Ended { ticket, ending: Ending::Silent, .. } => {
                let mut times = heard.remove(ticket).unwrap_or_default();
                times.retain(|at| at <= decided);
                times.sort_unstable();
                if let Some(silent) = too_early(&times, *decided, timeout) {
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

/// How long before the end somebody was heard of whose place ended although they were never silent
/// for so long.
fn too_early(times: &[u64], ended: u64, timeout: Millis) -> Option<u64> {
    // The owner's clock may run faster than the one that all share.
    let enough = timeout.0 - timeout.0 / 20;
    let silent = ended - times.last()?;
    let came_back = |pair: &[u64]| pair[1] - pair[0] >= enough && ended - pair[1] < WORD_MS;
    (silent < enough && !times.windows(2).any(came_back)).then_some(silent)
}
