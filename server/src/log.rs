//! `waitroom log`: a room's history, event by event, each link of the chain checked on the way.
//!
//! Lives here: flags and lines. How an event reads is in
//! `waitroom_api::facts`, how the chain is followed in
//! `walk.rs`. Events go to stdout; what the chain came to goes to stderr, or into the last line of
//! the JSON.

pub mod walk;

use clap::Args;
use serde_json::json;
use waitroom_api::facts::Told;
use waitroom_core::{Event, codec};
use waitroom_sim::rehearsal::human::number;
use waitroom_store::{RoomName, Store, Stored};

use crate::data::{Data, Room, each_batch, failed, now, untrusted};
use crate::failure::{Exit, Failure};
use crate::out::Out;
use walk::Walk;

/// Prints a room's events in order and checks the hash chain through all of them.
///
/// Of a log that was trimmed, the first batch still there is taken as given. Metadata, identities
/// and sealed values are not printed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    waitroom log --data data --room spring-sale --from 1000\n  \
    waitroom log --data data --room spring-sale --json | jq 'select(.event == \"admitted\")'")]
pub struct Log {
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    room: Room,
    /// The first event to print; those before are checked, not shown.
    #[arg(long, value_name = "N", default_value_t = 1)]
    from: u64,
    /// Prints one JSON object per line.
    #[arg(long)]
    pub json: bool,
}

impl Log {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let store = self.data.open()?;
        let room = self.room.find(&self.data, &store)?;
        let told = now(store.tip(room)).map_err(|error| failed("read the head", &error))?;
        let trimmed_to = now(store.trimmed_to(room));
        let trimmed_to = trimmed_to.map_err(|error| failed("read the log", &error))?;
        let mut walk = Walk::new(room, trimmed_to);
        each_batch(&store, room, |batch| {
            walk.step(batch).map_err(|broken| untrusted(format!("room \"{room}\": {broken}")))?;
            if batch.head.0 < self.from {
                return Ok(());
            }
            let indices = batch.after.0 + 1..;
            for (index, event) in indices.zip(events(room, batch)?) {
                if index >= self.from && index > trimmed_to.0 {
                    show(out, index, &event)?;
                }
            }
            Ok(())
        })?;
        if walk.at() != told {
            let said = format!("room \"{room}\": its log does not end in the chain it should");
            return Err(untrusted(said));
        }
        let first = trimmed_to.0 + 1;
        if out.json {
            let chain = told.chain.to_string();
            out.line(json!({ "checked": { "from": first, "to": told.head.0, "chain": chain } }))?;
        } else {
            let (first, last) = (number(first), number(told.head.0));
            eprintln!("the chain holds from event {first} to {last}: {}", told.chain);
        }
        Ok(Exit::Fine)
    }
}

fn show(out: &mut Out, index: u64, event: &Event) -> Result<(), Failure> {
    let told = Told::of(event);
    if out.json { out.line(told.json(index)) } else { out.line(told.line(index)) }
}

fn events(room: &RoomName, batch: &Stored) -> Result<Vec<Event>, Failure> {
    let mut events = Vec::with_capacity(batch.events as usize);
    let read = codec::decode(&batch.payload, |event| events.push(event));
    let bad = |why: &str| untrusted(format!("room \"{room}\": after event {}: {why}", batch.after));
    read.map_err(|damaged| bad(damaged.0))?;
    if events.len() as u64 != u64::from(batch.events) {
        return Err(bad("a batch holds more or fewer events than it says"));
    }
    Ok(events)
}
