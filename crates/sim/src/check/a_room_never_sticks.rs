//! Promise 12: while its owner is healthy, with people waiting and a slot and a token free, someone
//! is admitted within a tick; an unclaimed slot returns after `claim_by` or the pass's end.
//!
//! Looks at the room are taken right after a tick. Whatever that tick could have done and did not
//! is a room that sticks.

use crate::history::{Chance, History, Violation};

const PROMISE: u8 = 12;

pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    for chance in &history.chances {
        let Chance { at, version, waiting, slots_free, tokens, admits, overdue_slots } = chance;
        let when = format!("at {} in version {version}", at.0);
        if *admits && *waiting > 0 && *slots_free > 0 && *tokens > 0 {
            found.push(Violation::new(
                PROMISE,
                format!(
                    "{when} a tick left {waiting} waiting with {slots_free} slots and {tokens} \
                     tokens free"
                ),
            ));
        }
        if *overdue_slots > 0 {
            found.push(Violation::new(
                PROMISE,
                format!("{when} a tick left {overdue_slots} slots taken whose time has passed"),
            ));
        }
    }
    found
}
