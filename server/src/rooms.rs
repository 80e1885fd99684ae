//! `waitroom rooms`: what lies in a data folder.
//!
//! Lives here: rooms with their heads, snapshots and sizes. Stays out: who waits in them, which
//! only a running room can tell in time.

use std::path::Path;

use clap::Args;
use serde_json::{Value, json};
use waitroom_sim::rehearsal::human::number;
use waitroom_store::{Appended, FileStore, Head, RoomName, Store};

use crate::data::{Data, each_batch, failed, now};
use crate::failure::{Exit, Failure};
use crate::out::Out;

/// Lists the rooms in a data folder: where their logs begin and end, their snapshots and sizes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  waitroom rooms --data data")]
pub struct Rooms {
    #[command(flatten)]
    data: Data,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

struct Row {
    room: RoomName,
    tip: Appended,
    trimmed_to: Head,
    log_bytes: u64,
    /// Newest last.
    snapshots: Vec<Snapshot>,
}

struct Snapshot {
    at: u64,
    bytes: u64,
}

impl Rooms {
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let store = self.data.open()?;
        let rooms = now(store.rooms()).map_err(|error| failed("list the rooms", &error))?;
        let look = |room| look(&store, &self.data.dir, room);
        let rows = rooms.into_iter().map(look).collect::<Result<Vec<Row>, Failure>>()?;
        let (bytes, segments) = store.journal_size();
        if out.json {
            let rooms: Vec<Value> = rows.iter().map(Row::json).collect();
            let journal = json!({ "bytes": bytes, "segments": segments });
            out.line(json!({ "rooms": rooms, "journal": journal }))?;
            return Ok(Exit::Fine);
        }
        let width = rows.iter().map(|row| row.room.as_str().len()).max().unwrap_or(0).max(4);
        if !rows.is_empty() {
            out.line(format!(
                "{:width$}  {:>14}  {:>14}  {:>15}  {:>14}  {:>15}",
                "room", "first event", "last event", "log bytes", "snapshot at", "snapshot bytes"
            ))?;
        }
        for row in &rows {
            let newest = row.snapshots.last();
            let or_dash = |it: Option<u64>| it.map_or("-".into(), number);
            out.line(format!(
                "{:width$}  {:>14}  {:>14}  {:>15}  {:>14}  {:>15}",
                row.room.as_str(),
                number(row.trimmed_to.0 + 1),
                number(row.tip.head.0),
                number(row.log_bytes),
                or_dash(newest.map(|it| it.at)),
                or_dash(newest.map(|it| it.bytes))
            ))?;
        }
        out.line(format!(
            "rooms {}, journal {} bytes, segments {}",
            number(rows.len() as u64),
            number(bytes),
            number(segments as u64)
        ))?;
        Ok(Exit::Fine)
    }
}

impl Row {
    fn json(&self) -> Value {
        let snapshot = |it: &Snapshot| json!({ "at": it.at, "bytes": it.bytes });
        json!({
            "room": self.room.as_str(),
            "trimmed_to": self.trimmed_to.0,
            "head": self.tip.head.0,
            "chain": self.tip.chain.to_string(),
            "log_bytes": self.log_bytes,
            "snapshots": self.snapshots.iter().map(snapshot).collect::<Vec<_>>(),
        })
    }
}

fn look(store: &FileStore, data: &Path, room: RoomName) -> Result<Row, Failure> {
    let unknown = |error| failed(&format!("look at room {room}"), &error);
    let tip = now(store.tip(&room)).map_err(unknown)?;
    let trimmed_to = now(store.trimmed_to(&room)).map_err(unknown)?;
    let mut log_bytes = 0;
    each_batch(store, &room, |batch| {
        log_bytes += batch.payload.len() as u64;
        Ok(())
    })?;
    let snapshots = snapshots(&data.join("snapshots").join(room.as_str()));
    Ok(Row { room, tip, trimmed_to, log_bytes, snapshots })
}

/// The snapshot files of a room, by their names: reading them would take as long as recovery.
fn snapshots(folder: &Path) -> Vec<Snapshot> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let at = name.to_str().and_then(|name| name.strip_suffix(".snap"));
        if let (Some(at), Ok(about)) = (at.and_then(|at| at.parse().ok()), entry.metadata()) {
            found.push(Snapshot { at, bytes: about.len() });
        }
    }
    found.sort_by_key(|it| it.at);
    found
}
