//! What happened, as far as anybody outside can tell, and what the log says of it.
//!
//! Lives here: the record that a run leaves behind. Checkers (`check/`) judge promises by it and
//! by nothing else, so the same checkers serve the simulator and recorded runs of the real binary.
//! Client histories decide; the log explains, except for promises about the log itself.

use waitroom_core::{
    Command, Entry, Epoch, Event, Identity, JoinKey, Reply, Settings, Status, Ticket, Timestamp,
    What,
};

/// A moment in the order of the run: later is larger, across all clients and instances. Not a
/// clock; two moments that differ really happened one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

#[derive(Clone, Debug, Default)]
pub struct History {
    /// Everything that clients asked, in the order of sending. Operators are clients too, and so
    /// are gates that confirm ended sessions: without its `Release` a slot that is free before
    /// its pass is dead breaks promise 4. A retry is a call of its own.
    pub calls: Vec<Call>,
    /// Positions that clients were shown, in the order of seeing.
    pub seen: Vec<Seen>,
    /// The committed log at the end of the run, whole.
    pub log: Vec<Logged>,
    /// What a sink received, in the order of receiving; it may have been restarted at any point.
    pub published: Vec<Published>,
    /// States reached in different ways that must be the same.
    pub states: Vec<Reached>,
    /// Looks at the room while its owner was healthy: who waited, and what could have entered.
    pub chances: Vec<Chance>,
    /// When each event of the log was decided, in milliseconds of one clock that all share; empty
    /// where nobody looked.
    pub decided: Vec<u64>,
    /// People who were heard of, by the same clock, where whoever heard them could say so.
    pub heard: Vec<HeardOf>,
    /// Every lease of the room that the store granted, in order. None are known of a real run.
    pub grants: Vec<Grant>,
    /// Ids that were tried on a room and did not come from it unaltered.
    pub forgeries: Vec<Forgery>,
    /// Whether the store lost acknowledged data on purpose (wiped, restored from an older copy):
    /// then promise 1 asks for `place_lost` instead of the place.
    pub store_lost_data: bool,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub client: u32,
    pub sent: Moment,
    pub command: Command,
    pub outcome: Outcome,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    /// The reply arrived, true as of this version of the room.
    Answered { at: Moment, reply: Reply, version: u64 },
    /// Refused without effect before it reached the room (overload, no owner, store away).
    NotDone { at: Moment },
    /// Nobody knows: no answer, or `outcome_unknown`.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub client: u32,
    pub at: Moment,
    pub ticket: Ticket,
    pub version: u64,
    /// 1 = next; 0 once admitted; none before a draw or when it is over.
    pub position: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Logged {
    /// Index of the event, counted from 1.
    pub index: u64,
    pub epoch: Epoch,
    pub nonce: u128,
    /// Number of its batch within the epoch.
    pub batch: u64,
    /// The chain hash with its batch.
    pub chain: [u8; 32],
    pub event: Event,
}

#[derive(Clone, Debug)]
pub struct Published {
    pub index: u64,
    pub event: Event,
    /// The ticket's own count of published events, as the sink saw it; none for room events.
    pub seq: Option<(Ticket, u32)>,
}

/// A state at a head: by living through it, by replaying the log, or by a snapshot and the tail.
#[derive(Clone, Debug)]
pub struct Reached {
    pub head: u64,
    pub how: How,
    pub digest: [u8; 32],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Live,
    Replay,
    SnapshotAndTail,
}

/// A healthy owner, right after a tick at `at`.
#[derive(Clone, Debug)]
pub struct Chance {
    pub at: Timestamp,
    pub version: u64,
    pub waiting: u64,
    pub slots_free: u64,
    /// Whole tokens in the bucket.
    pub tokens: u64,
    /// Whether the room admits at all (running, not held, drawn).
    pub admits: bool,
    /// Unclaimed or ended slots whose time has passed and that are still taken.
    pub overdue_slots: u64,
}

/// Somebody was heard of at an instance that was well, and in touch with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeardOf {
    pub ticket: Ticket,
    pub at_ms: u64,
}

/// From this moment on nobody else decides for the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    pub at: Moment,
    pub epoch: Epoch,
}

#[derive(Clone, Debug)]
pub struct Forgery {
    pub what: &'static str,
    /// Whether the room took it for one of its tickets.
    pub accepted: bool,
}

/// One broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub promise: u8,
    pub said: String,
}

impl Violation {
    pub fn new(promise: u8, said: impl Into<String>) -> Violation {
        Violation { promise, said: said.into() }
    }
}

impl History {
    /// A sink receives an event, as all the messages that it makes.
    pub fn publish(&mut self, index: u64, event: &Event) {
        for seq in messages_of(event) {
            self.published.push(Published { index, event: event.clone(), seq });
        }
    }

    /// Settings in force after the event at `index`, as the log has them.
    pub fn settings_at(&self, index: u64) -> Option<&Settings> {
        self.log.iter().take_while(|it| it.index <= index).fold(None, |settings, it| {
            match &it.event.what {
                What::Configured { settings, .. } => Some(&**settings),
                _ => settings,
            }
        })
    }
}

/// Who a join says it is, for checkers that pair joins of one person.
pub fn person(command: &Command) -> Option<(Option<Identity>, Option<JoinKey>)> {
    match command {
        Command::Join(join) => Some((join.identity, join.key)),
        _ => None,
    }
}

/// The messages that an event makes, by the ticket's `seq`: an admission that is a claim as well
/// makes two, and so does a move. What happens beside a ticket's life (renewals, devices, names,
/// slots) has none.
pub fn messages_of(event: &Event) -> Vec<Option<(Ticket, u32)>> {
    match &event.what {
        What::Joined(joined) => vec![Some((joined.ticket, 0))],
        What::Admitted { ticket, entry: Entry::MustClaim { .. }, .. } => vec![Some((*ticket, 1))],
        What::Admitted { ticket, entry: Entry::Claimed(_), .. } => {
            vec![Some((*ticket, 1)), Some((*ticket, 2))]
        }
        What::Claimed { ticket, .. } => vec![Some((*ticket, 2))],
        What::Ended { ticket, was, .. } => {
            let seq = match was {
                Status::Waiting => 1,
                Status::Admitted => 2,
                _ => 3,
            };
            vec![Some((*ticket, seq))]
        }
        What::Moved { from, to, .. } => vec![Some((*from, 1)), Some((*to, 0))],
        _ => vec![None],
    }
}
