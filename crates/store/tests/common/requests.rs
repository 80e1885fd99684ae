//! Random requests that any store can be asked, and how its answers are compared.
//!
//! Lives here: the generator and the picture of a store. The tests of every backend that is compared
//! with the model have it, those of other crates by its path.

#![allow(dead_code, reason = "each test file uses its own part of this")]

use super::{Rng, room};
use waitroom_store::{
    AppendError, Appended, Batch, Error, Head, Lease, LeaseName, MemoryStore, Retention, RoomName,
    SinkName, Store, contract_tests::wait,
};

pub const ROOMS: [&str; 3] = ["ana", "bo", "cy"];
pub const SINKS: [&str; 2] = ["bus", "hook"];

/// A request, decided before either store sees it.
#[derive(Debug, Clone)]
pub enum Request {
    Append { room: RoomName, lease: Option<Lease>, expected: Head, batch: Batch },
    Read { room: RoomName, from: Head, max: usize },
    Snapshot { room: RoomName, at: Appended, chunks: Vec<Vec<u8>> },
    LatestSnapshot { room: RoomName },
    Trim { room: RoomName, to: Head },
    KeepFrom { room: RoomName, floor: Option<Head> },
    Lease { room: RoomName, who: &'static str },
    Renew { lease: Lease },
    Release { lease: Lease },
    Advance { room: RoomName, sink: SinkName, to: Head },
    DropCursor { room: RoomName, sink: SinkName },
    MarkBroken { room: RoomName, sink: SinkName, to: Head },
    Retire { room: RoomName, keep: Retention },
    Remove { room: RoomName },
}

/// The words of a refusal may differ; that it is one may not.
fn without_words(error: Error) -> Error {
    match error {
        Error::Refused { .. } => Error::Refused { why: String::new() },
        other => other,
    }
}

fn append_without_words(error: AppendError) -> AppendError {
    match error {
        AppendError::Refused { .. } => AppendError::Refused { why: String::new() },
        other => other,
    }
}

pub fn ask<S: Store>(store: &S, request: Request) -> String {
    fn told<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
        format!("{:?}", answer.map_err(without_words))
    }
    match request {
        Request::Append { room, lease, expected, batch } => {
            let nobody = Lease { name: LeaseName::room(&room), epoch: 1, nonce: 1 };
            let lease = lease.unwrap_or(nobody);
            let answer = wait(store.append(&room, &lease, expected, batch));
            format!("{:?}", answer.map_err(append_without_words))
        }
        Request::Read { room, from, max } => told(wait(store.read(&room, from, max))),
        Request::Snapshot { room, at, chunks } => {
            told(wait(store.snapshot(&room, at.head, at.chain, chunks.into_iter())))
        }
        Request::LatestSnapshot { room } => told(wait(store.latest_snapshot(&room))),
        Request::Trim { room, to } => told(wait(store.trim(&room, to))),
        Request::KeepFrom { room, floor } => told(wait(store.keep_from(&room, floor))),
        Request::Lease { room, who } => told(wait(store.lease(&LeaseName::room(&room), who, 500))),
        Request::Renew { lease } => told(wait(store.renew(&lease, 500))),
        Request::Release { lease } => told(wait(store.release(&lease))),
        Request::Advance { room, sink, to } => told(wait(store.advance(&room, &sink, to))),
        Request::DropCursor { room, sink } => told(wait(store.drop_cursor(&room, &sink))),
        Request::MarkBroken { room, sink, to } => told(wait(store.mark_broken(&room, &sink, to))),
        Request::Retire { room, keep } => told(wait(store.retire(&room, keep))),
        Request::Remove { room } => told(wait(store.remove_room(&room))),
    }
}

/// Everything that can be asked without changing anything.
pub fn picture<S: Store>(store: &S) -> Vec<String> {
    let mut all = vec![format!("{:?}", wait(store.rooms()))];
    for name in ROOMS {
        let room = room(name);
        let from = wait(store.trimmed_to(&room)).expect("readable");
        all.push(format!("{name}: {:?} trimmed {from}", wait(store.tip(&room))));
        all.push(format!("{:?}", wait(store.read(&room, from, usize::MAX))));
        all.push(format!("{:?} {:?}", wait(store.cursors(&room)), wait(store.trim_limit(&room))));
        all.push(format!("{:?}", wait(store.holder_of(&LeaseName::room(&room)))));
    }
    all
}

/// What the generator remembers, so that requests make sense often enough.
#[derive(Debug, Default)]
pub struct Memory {
    pub leases: Vec<Lease>,
    numbers: u64,
    tips: Vec<(RoomName, Appended)>,
    sent: Vec<Request>,
}

pub fn request(rng: &mut Rng, model: &MemoryStore, memory: &mut Memory) -> Request {
    let name = room(ROOMS[rng.below(3) as usize]);
    let tip = wait(model.tip(&name)).expect("readable");
    let trimmed = wait(model.trimmed_to(&name)).expect("readable").0;
    let sink = SinkName::parse(SINKS[rng.below(2) as usize]).expect("a good name");
    let lease = memory.leases.iter().rev().find(|lease| lease.name.is_of(&name)).cloned();
    let mut near = |head: u64| {
        let low = trimmed.saturating_sub(1);
        Head(low + rng.next() % (head + 2 - low.min(head)))
    };
    let somewhere = near(tip.head.0);
    match rng.below(40) {
        0..18 => {
            memory.numbers += 1;
            let expected = if rng.below(12) == 0 { somewhere } else { tip.head };
            let events = rng.below(4) as u32 + u32::from(rng.below(10) > 0);
            let batch = Batch { number: memory.numbers, events, payload: rng.bytes(90) };
            Request::Append { room: name, lease, expected, batch }
        }
        18..20 if !memory.sent.is_empty() => {
            // An earlier append once more, perhaps under another name.
            let at = memory.sent.len() - 1 - rng.below(memory.sent.len().min(30) as u64) as usize;
            memory.sent[at].clone()
        }
        18..22 => Request::Read { room: name, from: somewhere, max: rng.below(400) as usize },
        22..25 => {
            let at = match memory.tips.len() as u64 {
                0 => tip,
                tips if rng.below(3) == 0 => memory.tips[rng.below(tips) as usize].1,
                _ => tip,
            };
            let chunks = (0..rng.below(3)).map(|_| rng.bytes(50)).collect();
            Request::Snapshot { room: name, at, chunks }
        }
        25 => Request::LatestSnapshot { room: name },
        26..28 => {
            let limit = wait(model.trim_limit(&name)).expect("readable");
            let to = if rng.below(2) == 0 { limit } else { somewhere };
            Request::Trim { room: name, to }
        }
        28 => Request::KeepFrom { room: name, floor: (rng.below(3) == 0).then_some(somewhere) },
        29..32 => Request::Lease { room: name, who: ["me", "you"][rng.below(2) as usize] },
        32 if lease.is_some() => Request::Renew { lease: lease.expect("some") },
        33 if lease.is_some() => Request::Release { lease: lease.expect("some") },
        34 | 35 => {
            let to = if rng.below(2) == 0 { tip.head } else { somewhere };
            Request::Advance { room: name, sink, to }
        }
        36 => Request::MarkBroken { room: name, sink, to: somewhere },
        37 => {
            let keep = Retention { keep_bytes: rng.below(500), keep_age_ms: rng.below(20_000) };
            Request::Retire { room: name, keep }
        }
        38 => Request::DropCursor { room: name, sink },
        _ if rng.below(6) == 0 => Request::Remove { room: name },
        _ => Request::Lease { room: name, who: "me" },
    }
}

/// Keeps what later requests can use: leases that were granted, tips that were reached.
pub fn remember(model: &MemoryStore, request: &Request, answer: &str, memory: &mut Memory) {
    match request {
        Request::Lease { room, .. } if answer.starts_with("Ok") => {
            memory.numbers = 0;
            let name = LeaseName::room(room);
            // The answer is text; the lease is asked back from it by its only two numbers.
            let number = |key: &str| {
                let rest = &answer[answer.find(key).expect("a lease") + key.len()..];
                let end = rest.find([',', ' ', '}']).expect("an end");
                rest[..end].parse::<u128>().expect("a number")
            };
            let (epoch, nonce) = (number("epoch: ") as u32, number("nonce: "));
            memory.leases.push(Lease { name, epoch, nonce });
        }
        Request::Append { room, .. } => {
            memory.sent.push(request.clone());
            let tip = wait(model.tip(room)).expect("readable");
            memory.tips.push((room.clone(), tip));
        }
        _ => {}
    }
    if memory.tips.len() > 40 {
        memory.tips.drain(..20);
    }
}
