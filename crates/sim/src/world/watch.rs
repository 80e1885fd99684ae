//! Those who look from outside: an observer who keeps the whole log, and a sink.

use super::bug::Bug;
use crate::history::{History, Logged};
use std::collections::BTreeMap;
use waitroom_core::{AdmitWhy, Epoch, Hold, Millis, Status, Ticket, What, codec};
use waitroom_store::{Head, RoomName, SinkName, Store};

/// Reads every committed batch before anybody can trim it away.
#[derive(Default)]
pub(super) struct Observer {
    pub(super) head: u64,
    /// Epoch and head of each batch seen.
    pub(super) batches: Vec<(u32, u64)>,
}

impl Observer {
    pub(super) fn look<S: Store>(&mut self, store: &S, room: &RoomName, history: &mut History) {
        let Ok(batches) = super::ready(store.read(room, Head(self.head), usize::MAX)) else {
            return;
        };
        for batch in batches {
            let mut index = batch.after.0;
            codec::decode(&batch.payload, |event| {
                index += 1;
                history.log.push(Logged {
                    index,
                    epoch: Epoch(batch.epoch),
                    nonce: batch.nonce,
                    batch: batch.number,
                    chain: batch.chain.0,
                    event,
                });
            })
            .expect("what an engine wrote reads back");
            assert_eq!(index, batch.head.0, "a batch holds as many events as it says");
            self.head = batch.head.0;
            self.batches.push((batch.epoch, batch.head.0));
        }
    }

    pub(super) fn last_epoch(&self) -> u32 {
        self.batches.last().map_or(0, |(epoch, _)| *epoch)
    }
}

/// Publishes the committed log, at least once, with a cursor in the store.
pub(super) struct Sink {
    name: SinkName,
    position: u64,
}

impl Sink {
    pub(super) fn new() -> Sink {
        Sink { name: SinkName::parse("bus").expect("a plain name"), position: 0 }
    }

    /// Makes itself known before anything is trimmed.
    pub(super) fn register<S: Store>(&mut self, store: &S, room: &RoomName) {
        let _ = super::ready(store.advance(room, &self.name, Head(0)));
    }

    /// Reads on and sends; `keep` says whether the cursor is stored this time.
    pub(super) fn run<S: Store>(
        &mut self,
        store: &S,
        room: &RoomName,
        keep: bool,
        history: &mut History,
    ) {
        let Ok(batches) = super::ready(store.read(room, Head(self.position), 4_096)) else {
            return;
        };
        for batch in batches {
            let mut index = batch.after.0;
            codec::decode(&batch.payload, |event| {
                index += 1;
                if index > self.position {
                    history.publish(index, &event);
                }
            })
            .expect("what an engine wrote reads back");
            self.position = batch.head.0;
        }
        if keep {
            let _ = super::ready(store.advance(room, &self.name, Head(self.position)));
        }
    }

    /// Forgets all that is not in the store.
    pub(super) fn restart<S: Store>(&mut self, store: &S, room: &RoomName, bug: Option<Bug>) {
        if let Ok(cursor) = super::ready(store.cursor(room, &self.name)) {
            self.position = cursor.map_or(0, |cursor| cursor.at.0);
            if bug == Some(Bug::SinkSkipsOne) {
                self.position += 1;
            }
        }
    }
}

/// Falsifies the finished record, for bugs that sit in what is kept rather than in what is done.
pub(super) fn falsify(history: &mut History, bug: Bug) {
    let log = &mut history.log;
    match bug {
        Bug::AdmitsTwice => {
            if let Some(at) =
                log.iter().rposition(|it| matches!(it.event.what, What::Admitted { .. }))
            {
                let again = log[at].clone();
                log.push(again);
                renumber(log);
            }
        }
        Bug::NeighboursSwapped => swap_neighbours(log),
        Bug::DrawCountOffByOne => {
            for it in log {
                if let What::DrawClosed { counts } = &mut it.event.what
                    && let Some((_, count)) = counts.iter_mut().find(|(_, count)| *count > 0)
                {
                    *count -= 1;
                }
            }
        }
        Bug::DrawOtherSeed => {
            for it in log {
                if let What::Drawn { seed, .. } = &mut it.event.what {
                    seed[0] ^= 1;
                }
            }
        }
        Bug::SinkResendsOther => {
            if let Some(it) = history.published.last().cloned() {
                let mut other = it;
                other.event.at.0 += 1;
                history.published.push(other);
            }
        }
        Bug::EndsTwice => {
            if let Some(at) = log.iter().position(|it| matches!(it.event.what, What::Ended { .. }))
            {
                let again = log[at].clone();
                log.insert(at + 1, again);
                renumber(log);
            }
        }
        Bug::WaitingOffByOne => {
            for it in log {
                if let What::Ended { waiting, was: Status::Waiting, .. } = &mut it.event.what {
                    *waiting += 1;
                }
            }
        }
        Bug::OldEpochLands => {
            if let Some(at) = log.iter().rposition(|it| it.epoch.0 > 1) {
                log[at].epoch.0 -= 1;
            }
        }
        Bug::NumberTwice => number_twice(log),
        Bug::OneMoreAfterPause => admit_in_the_pause(log),
        Bug::OneTokenAtTakeover => admit_at_takeover(log),
        _ => {}
    }
}

fn renumber(log: &mut [Logged]) {
    for (i, it) in log.iter_mut().enumerate() {
        it.index = i as u64 + 1;
    }
}

/// Two neighbours of one lane, admitted one after the other, the wrong way round.
fn swap_neighbours(log: &mut [Logged]) {
    let mut last: BTreeMap<u8, usize> = BTreeMap::new();
    for at in 0..log.len() {
        let What::Admitted { ticket, .. } = log[at].event.what else { continue };
        if let Some(before) = last.insert(ticket.lane.0, at) {
            let What::Admitted { ticket: earlier, .. } = log[before].event.what else { continue };
            set_ticket(&mut log[before], ticket);
            set_ticket(&mut log[at], earlier);
        }
    }
}

/// The first who is admitted after a pause was admitted just before it ended.
fn admit_in_the_pause(log: &mut [Logged]) {
    let mut paused: Option<usize> = None;
    for at in 0..log.len() {
        match (&log[at].event.what, paused) {
            (What::Held { hold: Hold::Paused { .. }, .. }, _) => paused = Some(at),
            (What::Admitted { .. }, Some(pause)) => {
                let moved = log[at].event.clone();
                log[pause + 1..=at].rotate_right(1);
                log[pause + 1].event = moved;
                renumber(log);
                return;
            }
            _ => {}
        }
    }
}

/// The first who is let in after a takeover is let in with it.
fn admit_at_takeover(log: &mut [Logged]) {
    let mut opened = None;
    for it in log {
        match (&it.event.what, opened) {
            (What::Opened { .. }, _) => opened = Some(it.event.at),
            (What::Admitted { why: AdmitWhy::Paced, .. }, Some(at)) => {
                it.event.at = at;
                opened = None;
            }
            _ => {}
        }
    }
}

fn set_ticket(it: &mut Logged, to: Ticket) {
    if let What::Admitted { ticket, .. } = &mut it.event.what {
        *ticket = to;
    }
}

fn number_twice(log: &mut [Logged]) {
    let mut before: Option<Ticket> = None;
    for it in log {
        if let What::Joined(joined) = &mut it.event.what {
            match before {
                Some(ticket) if ticket.lane == joined.ticket.lane => {
                    joined.ticket = ticket;
                    return;
                }
                _ => before = Some(joined.ticket),
            }
        }
    }
}

/// How far a claim that is repeated under `ClaimOffByOneMilli` lies from the first.
pub(super) const MILLI: Millis = Millis(1);
