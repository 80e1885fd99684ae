//! A place that events go to.
//!
//! Lives here: the contract [`Sink`], what goes wrong ([`Trouble`]) and what a sink wants to hear
//! of ([`Filter`]). Stays out: trying again, which is the relay's business.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use waitroom_store::RoomName;

use crate::message::{Kind, Message};

/// Takes messages and says when they are safe.
///
/// - `Ok` means that the other side holds every message of the batch for good.
/// - After an error any part of the batch may have arrived. The same batch comes again, without
///   what [`Trouble::done`] says is held for good, and nothing later comes before it; a sink that
///   sends several messages at once must see to it that none of them is held for the first time
///   after a later one of its room.
/// - A future that is dropped may leave things on their way; they count as not sent.
/// - Of one room, up to [`Sink::AT_ONCE`] deliveries are under way at once, begun in order.
pub trait Sink: Send + Sync + 'static {
    /// More than one only where what was begun later cannot be held before what was begun earlier,
    /// not even when that fails.
    const AT_ONCE: usize = 1;

    fn deliver(&self, batch: &[Message]) -> impl Future<Output = Result<(), Trouble>> + Send;
}

impl<S: Sink> Sink for Arc<S> {
    const AT_ONCE: usize = S::AT_ONCE;

    fn deliver(&self, batch: &[Message]) -> impl Future<Output = Result<(), Trouble>> + Send {
        S::deliver(self, batch)
    }
}

/// Why messages could not be handed over; for operators. A later try may succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    pub why: String,
    /// So many messages from the front of the batch are held for good all the same.
    pub done: usize,
    /// The other side asked to be left alone for so long, at least.
    pub wait: Duration,
    /// Nothing is wrong with the other side: what was under way has to begin again, in order, and
    /// may at once.
    pub at_once: bool,
}

impl Trouble {
    pub fn new(why: impl fmt::Display) -> Trouble {
        Trouble { why: why.to_string(), done: 0, wait: Duration::ZERO, at_once: false }
    }

    pub fn at_once(why: impl fmt::Display) -> Trouble {
        Trouble { at_once: true, ..Trouble::new(why) }
    }

    pub fn after(self, done: usize) -> Trouble {
        Trouble { done, ..self }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for Trouble {}

/// What a sink wants to hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    kinds: Vec<Kind>,
    /// None means every room.
    rooms: Option<Vec<RoomName>>,
}

impl Default for Filter {
    fn default() -> Filter {
        Filter::everything()
    }
}

impl Filter {
    pub fn everything() -> Filter {
        Filter { kinds: Kind::ALL.to_vec(), rooms: None }
    }

    /// Words such as `position.*`, `session.started` or `*`; the one that means nothing comes back.
    pub fn of_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Filter, String> {
        let mut kinds = Vec::new();
        for word in words {
            let before = kinds.len();
            let fits = |kind: &Kind| match word.strip_suffix('*') {
                Some(stem) => kind.word().starts_with(stem),
                None => kind.word() == word,
            };
            kinds.extend(Kind::ALL.iter().copied().filter(fits));
            if kinds.len() == before {
                return Err(word.to_owned());
            }
        }
        Ok(Filter { kinds, rooms: None })
    }

    /// Only these rooms; none means every room.
    pub fn in_rooms(mut self, rooms: Vec<RoomName>) -> Filter {
        self.rooms = (!rooms.is_empty()).then_some(rooms);
        self
    }

    pub fn wants_room(&self, room: &RoomName) -> bool {
        self.rooms.as_ref().is_none_or(|rooms| rooms.contains(room))
    }

    pub fn wants(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_made_of_words_and_says_which_one_means_nothing() {
        let filter = Filter::of_words(["position.*", "session.started"]).expect("words");
        assert!(filter.wants(Kind::Enqueued) && filter.wants(Kind::SessionStarted));
        assert!(!filter.wants(Kind::SessionActive) && !filter.wants(Kind::RoomPaused));
        assert_eq!(Filter::of_words(["*"]).expect("all"), Filter::everything());
        assert_eq!(Filter::of_words(["position.*", "postion"]), Err("postion".to_owned()));
    }

    #[test]
    fn a_filter_without_rooms_wants_them_all() {
        let room = |name| RoomName::parse(name).expect("a name");
        assert!(Filter::everything().in_rooms(vec![]).wants_room(&room("a")));
        let one = Filter::everything().in_rooms(vec![room("a")]);
        assert!(one.wants_room(&room("a")) && !one.wants_room(&room("b")));
    }
}
