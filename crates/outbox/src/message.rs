//! One thing that outsiders are told: what it is called, whom it is about, and the facts.
//!
//! Lives here: [`Message`] and its [`Kind`], as plain data. Stays out: how a sink writes it
//! (`body.rs`), and which event it came from (`translate.rs`).

use std::fmt;
use std::sync::Arc;

use waitroom_core::id::TicketId;
use waitroom_core::{Ending, Millis, Session, Timestamp};
use waitroom_store::RoomName;

/// `room:head:index`: the event by its place in the log, and which of its messages. The same for
/// ever, so that whoever gets a message twice can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageId {
    pub room: RoomName,
    pub head: u64,
    pub index: u8,
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.room, self.head, self.index)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub id: MessageId,
    pub kind: Kind,
    pub at: Timestamp,
    /// Whom it is about; none for what happens to the room.
    pub about: Option<About>,
    pub fact: Fact,
}

/// A ticket, as outsiders know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    pub id: TicketId,
    /// Counts the messages of a ticket's life from 0, without a gap. None for what happens beside
    /// it, which may happen any number of times.
    pub seq: Option<u32>,
    pub lane: u8,
    /// The shop's name for the user, where the room keeps it and the event carries it.
    pub user: Option<String>,
}

macro_rules! kinds {
    ($($kind:ident $word:literal;)*) => {
        /// What happened, in the words that subjects, filters and envelopes use.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $($kind,)*
        }

        impl Kind {
            pub const ALL: &[Kind] = &[$(Kind::$kind,)*];

            pub fn word(self) -> &'static str {
                match self { $(Kind::$kind => $word,)* }
            }

            /// `waitingroom.position.enqueued.v1`: the subject on NATS, and the type everywhere.
            pub fn event_type(self) -> &'static str {
                match self { $(Kind::$kind => concat!("waitingroom.", $word, ".v1"),)* }
            }
        }
    };
}

kinds! {
    Enqueued "position.enqueued";
    Admitted "position.admitted";
    Expired "position.expired";
    Cancelled "position.cancelled";
    SessionStarted "session.started";
    SessionActive "session.active";
    SessionExpired "session.expired";
    SessionTerminated "session.terminated";
    RoomCreated "queue.created";
    RoomUpdated "queue.updated";
    RoomPaused "queue.paused";
    RoomResumed "queue.resumed";
    RoomMaintenance "queue.maintenance";
    Capacity "capacity.increased";
}

/// What there is to know about it.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A place was given. Lengths are unknown for a place that was moved from another lane.
    Enqueued {
        position: Option<u64>,
        waiting: Option<u64>,
        joined_at: Timestamp,
        metadata: Option<Arc<[u8]>>,
    },
    /// Somebody may enter. Without a session the visitor must come and claim it by then.
    Admitted {
        waited: Millis,
        waiting: u64,
        expires_at: Timestamp,
        pass: Option<String>,
    },
    /// A place is over before its session began.
    PlaceOver {
        ending: Option<Ending>,
        waited: Millis,
        waiting: Option<u64>,
        moved_to: Option<TicketId>,
    },
    SessionOn(Session),
    SessionOver {
        ending: Ending,
    },
    /// Something about the room: a word for what it is, and its details.
    Room {
        change: &'static str,
        details: serde_json::Value,
    },
    /// An operator let so many in.
    LetIn {
        granted: u64,
    },
}
