//! Rooms that the installation has and that cannot be opened here.
//!
//! Lives here: which ones, why, and what is said of them. One of them must not cost the others
//! their sale, so it is known by name, answered for with 503, told to operators and counted, and
//! whoever runs the instance tries it again.
//! Stays out: opening ([`Desk::open`](crate::Desk::open)), when it is tried again (the server).

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Notify;
use waitroom_store::RoomName;

use crate::problem::{Code, Problem};

/// When a caller should come back: what is damaged needs a person, what is away passes sooner.
const RETRY_AFTER_MS: u64 = 10_000;

#[derive(Debug, Default)]
pub struct Unopened {
    rooms: ArcSwap<BTreeMap<RoomName, String>>,
    more: Notify,
}

impl Unopened {
    /// Their names, and why.
    pub fn rooms(&self) -> Arc<BTreeMap<RoomName, String>> {
        self.rooms.load_full()
    }

    pub fn is_empty(&self) -> bool {
        self.rooms.load().is_empty()
    }

    /// Notes that a room could not be opened. Says whether that is news: the room was not among
    /// them, or for another reason.
    pub fn note(&self, room: &RoomName, why: &str) -> bool {
        let known = self.rooms.load().get(room).cloned();
        if known.as_deref() == Some(why) {
            return false;
        }
        self.rooms.rcu(|rooms| {
            let mut rooms = BTreeMap::clone(rooms);
            rooms.insert(room.clone(), why.to_owned());
            rooms
        });
        if known.is_none() {
            self.more.notify_one();
        }
        true
    }

    /// It is open.
    pub(crate) fn forget(&self, room: &RoomName) {
        if self.rooms.load().contains_key(room) {
            self.rooms.rcu(|rooms| {
                let mut rooms = BTreeMap::clone(rooms);
                rooms.remove(room);
                rooms
            });
        }
    }

    /// Waits until a room is noted that was not among them. For one waiter.
    pub async fn more(&self) {
        self.more.notified().await;
    }

    /// What anybody hears who asks for such a room: nothing of the inside.
    pub(crate) fn problem(&self, name: &str) -> Option<Problem> {
        let rooms = self.rooms.load();
        let (room, _) = rooms.iter().find(|(room, _)| room.as_str() == name)?;
        let detail = "the room cannot be opened here (WR-2105); nothing was done, places are kept, \
                      and it is tried again by itself";
        Some(Problem::new(Code::Unavailable, detail).in_room(room).retry_after(RETRY_AFTER_MS))
    }

    /// What an operator hears: the cause as well.
    pub(crate) fn told_to_operators(&self, problem: Problem) -> Problem {
        let rooms = self.rooms.load();
        let why = problem.room.as_ref().and_then(|room| rooms.get(room));
        match why {
            Some(why) => Problem {
                detail: format!(
                    "the room cannot be opened here (WR-2105): {why}; it is tried again by itself"
                ),
                ..problem
            },
            None => problem,
        }
    }

    /// A ticket that no open room knows may be of a room that is not open.
    pub(crate) fn not_found(&self, problem: Problem) -> Problem {
        if self.is_empty() {
            return problem;
        }
        let detail = "no room that is open knows it, and a room cannot be opened here (WR-2105)";
        Problem::new(Code::Unavailable, detail).retry_after(RETRY_AFTER_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitors_hear_that_it_is_closed_and_operators_why() {
        let unopened = Unopened::default();
        let room = RoomName::parse("spring-sale").expect("a name");
        assert!(unopened.problem("spring-sale").is_none());
        assert!(unopened.note(&room, "damaged: chunk 3 of /data"));
        assert!(!unopened.note(&room, "damaged: chunk 3 of /data"), "told once");
        let said = unopened.problem("spring-sale").expect("it is known");
        assert_eq!((said.code, said.retry_after_ms), (Code::Unavailable, Some(10_000)));
        assert!(!said.detail.contains("/data"), "{}", said.detail);
        assert!(unopened.told_to_operators(said).detail.contains("chunk 3 of /data"));
        assert!(unopened.note(&room, "damaged: its end is wrong"), "another reason is news");
        let unknown = Problem::new(Code::TicketUnknown, "no such ticket");
        assert_eq!(unopened.not_found(unknown.clone()).code, Code::Unavailable);
        unopened.forget(&room);
        assert_eq!(unopened.not_found(unknown).code, Code::TicketUnknown);
        assert!(unopened.problem("spring-sale").is_none());
    }
}
