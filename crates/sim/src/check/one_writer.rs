//! Promise 14: one writer. Epochs never go down; no append of an old lease after a newer one; no
//! number is given twice.
//!
//! Judged on the log: indexes from 1 without a gap; epochs that never fall, each begun by
//! its own `Opened` and by nothing else, under one nonce; batches counted from 0 within an epoch,
//! one chain hash each and another one for the next; time that never runs backwards; numbers
//! dense in every lane. And on answers, where leases are known: nobody who asked after a lease was
//! granted is answered under an older one; and no number is told to two people as theirs.

use waitroom_core::{Fresh, LaneId, Reply, Ticket, Timestamp, What};

use super::quick::{Map, Set};
use crate::history::{History, Logged, Outcome, Violation};

const PROMISE: u8 = 14;

pub fn check(history: &History) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut next_number: Map<LaneId, u64> = Map::default();
    let mut before: Option<&Logged> = None;
    for it in &history.log {
        let mut broken = |said: String| {
            found.push(Violation::new(PROMISE, format!("event {}: {said}", it.index)));
        };
        follows(before, it, &mut broken);
        let given: Option<Ticket> = match &it.event.what {
            What::Joined(joined) => Some(joined.ticket),
            What::Moved { to, .. } => Some(*to),
            _ => None,
        };
        if let Some(ticket) = given {
            let next = next_number.entry(ticket.lane).or_insert(0);
            if ticket.number.0 != *next {
                broken(format!("{ticket} is given where number {next} is next"));
            }
            *next = (*next).max(ticket.number.0.saturating_add(1));
        }
        before = Some(it);
    }
    nobody_speaks_for_another(history, &mut found);
    no_number_is_told_twice(history, &mut found);
    found
}

/// An answer of version `v` was given under the epoch of event `v`. Whoever asked after a newer
/// lease was granted is answered under that one: an owner that was frozen or cut off must have
/// noticed by its own clock, for nothing else tells it before it answers what needs no append.
fn nobody_speaks_for_another(history: &History, found: &mut Vec<Violation>) {
    for call in &history.calls {
        let Outcome::Answered { version, .. } = call.outcome else { continue };
        let granted = history.grants.partition_point(|grant| grant.at < call.sent);
        let (Some(grant), Some(event)) = (
            granted.checked_sub(1).map(|last| history.grants[last]),
            version.checked_sub(1).and_then(|place| history.log.get(place as usize)),
        ) else {
            continue;
        };
        if event.epoch < grant.epoch {
            found.push(Violation::new(
                PROMISE,
                format!(
                    "client {} asked after epoch {} was granted and was answered under epoch {}, \
                     at version {version}",
                    call.client, grant.epoch.0, event.epoch.0
                ),
            ));
        }
    }
}

/// What one owner has told somebody no other gives to another, whatever became of the log.
fn no_number_is_told_twice(history: &History, found: &mut Vec<Violation>) {
    if history.store_lost_data {
        return;
    }
    let mut told = Set::default();
    for call in &history.calls {
        let Outcome::Answered { reply, .. } = &call.outcome else { continue };
        let Reply::Joined { ticket, fresh: Fresh::New, .. } = reply else { continue };
        if !told.insert(*ticket) {
            let said = format!("client {} was given {ticket}, as another was before", call.client);
            found.push(Violation::new(PROMISE, said));
        }
    }
}

fn follows(before: Option<&Logged>, it: &Logged, broken: &mut impl FnMut(String)) {
    let index = before.map_or(0, |before| before.index).saturating_add(1);
    if it.index != index {
        broken(format!("where {index} is next"));
    }
    let at = before.map_or(Timestamp(0), |before| before.event.at);
    if it.event.at < at {
        broken(format!("happens at {}, after one at {}", it.event.at.0, at.0));
    }
    let same_epoch = before.filter(|before| before.epoch == it.epoch);
    let opened = match it.event.what {
        What::Opened { epoch } => Some(epoch),
        _ => None,
    };
    let Some(before) = same_epoch else {
        if before.is_some_and(|before| before.epoch > it.epoch) {
            broken(format!("of epoch {} comes after a newer one's", it.epoch.0));
        }
        if opened != Some(it.epoch) {
            broken(format!("begins epoch {} and does not open it", it.epoch.0));
        }
        if it.batch != 0 {
            broken(format!("begins epoch {} with batch {}", it.epoch.0, it.batch));
        }
        return;
    };
    if opened.is_some() {
        broken(format!("opens an epoch in the middle of epoch {}", it.epoch.0));
    }
    if it.nonce != before.nonce {
        broken(format!("is written under another lease of epoch {}", it.epoch.0));
    }
    let same_batch = it.batch == before.batch;
    if !same_batch && it.batch != before.batch.saturating_add(1) {
        broken(format!("is in batch {}, after batch {}", it.batch, before.batch));
    }
    if same_batch != (it.chain == before.chain) {
        broken(format!("batch {} and the chain do not go together", it.batch));
    }
}
