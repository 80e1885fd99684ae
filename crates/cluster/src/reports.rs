//! Who was heard of where: told to the owners once a second, as bitmaps.
//!
//! A beat at this instance is a beat in the room, wherever that is owned. The owner takes nobody
//! for silent unless everybody has reported lately; see [`waitroom_engine::Peers::hears_all`].

use crate::cluster::Cluster;
use crate::proto::{Heard as Told, Report, RoomReport};
use crate::view::Shown;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use waitroom_core::{Block, LaneId, Timestamp};
use waitroom_engine::{Heard, RoomHandle};

/// A fraction of the shortest silence that a room can be set to bear.
const EVERY: Duration = Duration::from_secs(1);

/// Up to when which instance was told of which room. Two may claim the same room for a moment, and
/// what one of them was told the other has not heard.
type Marks = BTreeMap<(String, String), Timestamp>;

impl Cluster {
    /// Reports until it is dropped.
    pub async fn report_beats(self: Arc<Self>) {
        let mut marks = BTreeMap::new();
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
        let others: Vec<String> = self.view().others().map(str::to_owned).collect();
        marks.retain(|(to, _), _| others.contains(to));
        for other in others {
            let theirs = self.view().rooms_of(&other);
            if self.lost_reports(&other) {
                // Who was heard of meanwhile is not known there: everybody is told once more.
                marks.retain(|(to, _), _| *to != other);
            }
            let followed = theirs.iter().filter_map(|name| rooms.room(name));
            let reports = followed.map(|room| report(&other, &room, marks)).collect();
            self.report(&other, Report { rooms: reports });
        }
    }
}

fn report(to: &str, room: &RoomHandle, marks: &mut Marks) -> RoomReport {
    let name = room.name().to_string();
    let now = room.now();
    let since = marks.insert((to.to_owned(), name.clone()), now).unwrap_or_default();
    let told = |heard: Heard| Told {
        lane: u32::from(heard.block.lane.0),
        block: heard.block.index,
        bits: heard.bits,
    };
    let heard = room.heard_since(since).into_iter().map(told).collect();
    let board = room.board_guard();
    let epoch = board.state().epoch().0;
    RoomReport { room: name, version: board.version(), heard, epoch }
}

/// A report of another instance came.
pub(crate) fn hear(cluster: &Cluster, from: &str, report: Report) {
    let Some(rooms) = cluster.rooms() else { return };
    for told in report.rooms {
        let Some(room) = rooms.room(&told.room) else { continue };
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
    let now_ms = cluster.now_ms();
    cluster.view().reported(from, now_ms);
}
