//! Who was heard of where: told to the owners once a second, as bitmaps.
//!
//! A beat at this instance is a beat in the room, wherever that is owned. The owner takes nobody
//! for silent whom another may have heard of since it last told; see `told.rs` and
//! [`waitroom_engine::Peers::unheard_ms`].

use crate::cluster::Cluster;
use crate::proto::{Heard as Bits, Report, RoomReport, Stamp as Written};
use crate::told::{Envelope, Marks, Stamp};
use crate::view::Shown;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use waitroom_core::{Block, LaneId};
use waitroom_engine::{Heard, Mark, RoomHandle};

/// A fraction of the shortest silence that a room can be set to bear.
const EVERY: Duration = Duration::from_secs(1);

impl Cluster {
    /// Reports until it is dropped.
    pub async fn report_beats(self: Arc<Self>) {
        let mut marks = Marks::default();
        loop {
            tokio::time::sleep(EVERY).await;
            let cluster = self.clone();
            // Twenty million places are looked at in some tens of milliseconds: not on a thread
            // that answers visitors.
            let told = tokio::task::spawn_blocking(move || {
                cluster.report_once(&mut marks);
                marks
            });
            marks = told.await.unwrap_or_default();
        }
    }

    fn report_once(&self, marks: &mut Marks) {
        let Some(rooms) = self.rooms() else { return };
        let (others, remembered) = {
            let view = self.view();
            (view.others().map(str::to_owned).collect::<Vec<_>>(), view.remembered())
        };
        marks.keep(&remembered);
        for to in others {
            // Written before anybody is looked for: whoever is heard of meanwhile may be missing.
            let (envelope, arrived_ms, theirs) = {
                let view = self.view();
                (view.envelope(&to, self.now_ms()), view.arrived_ms(&to), view.rooms_of(&to))
            };
            let Envelope { written, answers } = envelope;
            let mut report = Report {
                written: Some(written.into()),
                answers: answers.map(Into::into),
                ..Report::default()
            };
            let mut ends = BTreeMap::new();
            for name in theirs {
                let Some(room) = rooms.room(&name) else {
                    report.without.push(name);
                    continue;
                };
                let (told, end) = of(&room, marks.since(&to, &name, arrived_ms));
                report.rooms.push(told);
                ends.insert(name, end);
            }
            marks.wrote(&to, written.at_ms, ends, arrived_ms);
            self.report(&to, report);
        }
    }
}

fn of(room: &RoomHandle, since: Option<Mark>) -> (RoomReport, Mark) {
    let bits = |heard: Heard| Bits {
        lane: u32::from(heard.block.lane.0),
        block: heard.block.index,
        bits: heard.bits,
    };
    let (heard, end) = room.heard_since(since);
    let heard = heard.into_iter().map(bits).collect();
    let board = room.board_guard();
    let (version, epoch) = (board.version(), board.state().epoch().0);
    (RoomReport { room: room.name().to_string(), version, heard, epoch }, end)
}

/// A report of another instance came.
pub(crate) fn hear(cluster: &Cluster, from: &str, report: Report) {
    let Some(rooms) = cluster.rooms() else { return };
    let mut about = report.without;
    for told in report.rooms {
        // One that is not open here opens later, and then nobody in it is silent.
        if let Some(room) = rooms.room(&told.room) {
            let heard = told.heard.into_iter().filter_map(|told| {
                let lane = LaneId(u8::try_from(told.lane).ok()?);
                Some(Heard { block: Block { lane, index: told.block }, bits: told.bits })
            });
            room.hear(&heard.collect::<Vec<_>>());
            let shown = Shown { epoch: told.epoch, version: told.version };
            let first = cluster.view().shows(from, &told.room, shown);
            if first {
                cluster.ring();
            }
        }
        about.push(told.room);
    }
    // Last of all: from now on these rooms count as heard of.
    if let Some(written) = report.written {
        let answers = report.answers.map(Into::into);
        let envelope = Envelope { written: written.into(), answers };
        cluster.view().reported(from, envelope, about.iter().map(String::as_str));
    }
}

impl From<Stamp> for Written {
    fn from(Stamp { life, at_ms }: Stamp) -> Written {
        Written { life, at_ms }
    }
}

impl From<Written> for Stamp {
    fn from(Written { life, at_ms }: Written) -> Stamp {
        Stamp { life, at_ms }
    }
}
