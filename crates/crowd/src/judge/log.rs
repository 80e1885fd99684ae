//! The server's log: it explains what clients saw, and it is judged itself.
//!
//! Lives here: the walk over every room's log, and what the log knows of each ticket. One file
//! per promise, as for clients; each folds the events by itself, with plain vectors, and none
//! asks the core for a decision. Only promise 15 replays the core, because the core's own state
//! is what it is about.
//! Stays out: opening a data folder; whoever calls hands over an open store.
//! A log that was trimmed has lost its beginning: promises that count from the first event are
//! then left out, and the verdict says so.

mod a_paused_room_admits_nobody;
mod a_room_never_sticks;
mod doors;
mod every_act_is_audited;
mod known;
mod never_above_the_pace;
mod never_over_capacity;
mod one_writer;
mod order_kept_in_lane;
mod pace;
mod slots;
mod snapshot_plus_tail_is_replay;
mod source;
mod statuses;
mod tickets_are_conserved;
mod what_clients_saw_is_there;

#[cfg(test)]
mod plant;

use waitroom_core::{Event, codec};
use waitroom_store::{Appended, Chain, Error, Head, RoomName, Store, Stored};

use source::{Of, Source};

use super::{Found, Verdict};
pub use known::Known;

/// An event and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logged<'a> {
    /// Counted from 1.
    pub index: u64,
    pub epoch: u32,
    pub nonce: u128,
    /// The number of its batch within the epoch.
    pub batch: u64,
    pub event: &'a Event,
}

/// One promise, judged by the log of one room.
trait Check {
    fn take(&mut self, it: &Logged<'_>, found: &mut Found);
    fn finish(&mut self, _found: &mut Found) {}
}

/// Those that need the log from its first event on.
fn checks() -> Vec<Box<dyn Check>> {
    vec![
        Box::<never_over_capacity::Check>::default(),
        Box::<never_above_the_pace::Check>::default(),
        Box::<order_kept_in_lane::Check>::default(),
        Box::<a_paused_room_admits_nobody::Check>::default(),
        Box::<a_room_never_sticks::Check>::default(),
        Box::<tickets_are_conserved::Check>::default(),
        Box::<one_writer::Check>::default(),
    ]
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTotals {
    pub rooms: u64,
    pub events: u64,
}

/// Judges the logs of a store, and what clients saw by them. The verdict gets what is found.
pub async fn judge_log<S: Store>(store: &S, verdict: &mut Verdict) -> Result<LogTotals, Error> {
    judge_source(&Of(store), verdict).await
}

async fn judge_source(store: &impl Source, verdict: &mut Verdict) -> Result<LogTotals, Error> {
    let mut totals = LogTotals::default();
    for room in store.rooms().await? {
        totals.rooms += 1;
        let mut checks = checks();
        let mut known = Known::default();
        let trimmed_to = store.trimmed_to(&room).await?;
        let whole = trimmed_to == Head::EMPTY;
        if !whole {
            verdict.notes.push(format!(
                "room \"{room}\": its log was trimmed to event {trimmed_to}; only its chain is judged"
            ));
        }
        let found = &mut verdict.found;
        let read = walk(store, &room, found, |it, found| {
            totals.events += 1;
            known.take(it);
            if whole {
                checks.iter_mut().for_each(|check| check.take(it, found));
            }
        });
        read.await?;
        if whole {
            checks.iter_mut().for_each(|check| check.finish(found));
            snapshot_plus_tail_is_replay::check(store, &room, found).await?;
            what_clients_saw_is_there::check(&room, &known, &verdict.book, found);
            every_act_is_audited::check_room(&room, &known, verdict);
        }
        known.explain(&room, verdict);
    }
    every_act_is_audited::check_system(store, &mut verdict.found).await?;
    Ok(totals)
}

/// Every event of a room's log, in order. Links of the chain that do not hold are promise 16's.
async fn walk(
    store: &impl Source,
    room: &RoomName,
    found: &mut Found,
    mut each: impl FnMut(&Logged<'_>, &mut Found),
) -> Result<(), Error> {
    let told = store.tip(room).await?;
    let mut links = Links { at: store.trimmed_to(room).await?, chain: None };
    if links.at == Head::EMPTY {
        links.chain = Some(Chain::START);
    }
    while links.at < told.head {
        let batches = store.read(room, links.at).await?;
        if batches.is_empty() {
            let said =
                format!("room \"{room}\": its log ends at event {}, not {}", links.at, told.head);
            found.add(every_act_is_audited::PROMISE, said, &[]);
            return Ok(());
        }
        for batch in &batches {
            links.follow(room, batch, found);
            events(room, batch, found, &mut each);
        }
    }
    if (Appended { head: links.at, chain: links.chain.unwrap_or_default() }) != told {
        let said = format!("room \"{room}\": its log does not end in the chain it should");
        found.add(every_act_is_audited::PROMISE, said, &[]);
    }
    Ok(())
}

/// Where the chain is. None before the first batch that a trimmed log still has.
struct Links {
    at: Head,
    chain: Option<Chain>,
}

impl Links {
    fn follow(&mut self, room: &RoomName, batch: &Stored, found: &mut Found) {
        let after = self.at;
        if let Some(chain) = self.chain {
            let next = chain.next(room, &batch.link(), &batch.payload);
            if next != batch.chain || batch.after != after {
                let said = format!("room \"{room}\": the chain breaks after event {after}");
                found.add(every_act_is_audited::PROMISE, said, &[]);
            }
        }
        (self.at, self.chain) = (batch.head, Some(batch.chain));
    }
}

fn events(
    room: &RoomName,
    batch: &Stored,
    found: &mut Found,
    each: &mut impl FnMut(&Logged<'_>, &mut Found),
) {
    let mut index = batch.after.0;
    let read = codec::decode(&batch.payload, |event| {
        index += 1;
        let Stored { epoch, nonce, number, .. } = *batch;
        each(&Logged { index, epoch, nonce, batch: number, event: &event }, found);
    });
    if let Err(damaged) = read {
        let said = format!("room \"{room}\": after event {}: {}", batch.after, damaged.0);
        found.add(every_act_is_audited::PROMISE, said, &[]);
    }
}
