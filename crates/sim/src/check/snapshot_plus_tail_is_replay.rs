//! Promise 15: snapshot + tail = full replay = live state.
//!
//! However a state was reached, at one head there is one digest.

use super::quick::Map;
use crate::history::{History, Reached, Violation};

const PROMISE: u8 = 15;

pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut first: Map<u64, &Reached> = Map::default();
    for state in &history.states {
        let first = first.entry(state.head).or_insert(state);
        if first.digest != state.digest {
            found.push(Violation::new(
                PROMISE,
                format!(
                    "at head {} the state by {:?} is not the one by {:?}",
                    state.head, state.how, first.how
                ),
            ));
        }
    }
    found
}
