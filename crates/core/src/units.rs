//! The small types that everything else is made of: times, lanes, numbers, tickets.
//!
//! Lives here: newtypes, so that a number is never taken for an order or a time for a span.
//! Stays out: behaviour. Times are integers of milliseconds; nothing here reads a clock.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A moment of room time, in milliseconds since the Unix epoch. Stamped once per batch by the
/// engine, never running backwards within a room.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

/// A span of time in milliseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub u64);

/// A priority class of a room. Lane 0 is everybody's.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct LaneId(pub u8);

/// A ticket's number in its lane: dense, given once, never used again.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Number(pub u64);

/// The index at which a ticket is served in its lane.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Order(pub u64);

/// The tenure of an owner. Grows with every opening of the room, fits 24 bits.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(pub u32);

/// How often a place changed hands (moved to another device). Tokens with an older count are dead.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Holder(pub u8);

/// A person's place: a lane and a number in it. The room is known from the context.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Ticket {
    pub lane: LaneId,
    pub number: Number,
}

/// A ticket as somebody presents it: the id names lane, number and joining epoch; a visitor's
/// token adds the holder count, a service with an API key has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Presented {
    pub ticket: Ticket,
    pub epoch: Epoch,
    pub holder: Option<Holder>,
}

/// A known person, as the keyed hash of who the shop says they are. All zero means nobody.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Identity(pub [u8; 16]);

/// An `Idempotency-Key`: 96 bits of a keyed hash of the key, 32 bits of a hash of the body.
/// Found again by the first, told from a misuse of the key by the second.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct JoinKey {
    pub key: [u8; 12],
    pub body: [u8; 4],
}

impl LaneId {
    /// The lane of those who come back within their re-entry credit. A fixed id, so that adding
    /// an ordinary lane later never renames it.
    pub const RETURNING: LaneId = LaneId(255);
}

impl Epoch {
    /// Ids carry 24 bits of it.
    pub const MAX: Epoch = Epoch((1 << 24) - 1);
}

impl Number {
    /// Ids carry 40 bits of it.
    pub const MAX: Number = Number((1 << 40) - 1);
}

impl Ticket {
    pub fn new(lane: u8, number: u64) -> Self {
        Ticket { lane: LaneId(lane), number: Number(number) }
    }

    /// Lane and number in 48 bits, for tables that hold nothing else.
    pub(crate) fn packed(self) -> u64 {
        (self.lane.0 as u64) << 40 | self.number.0
    }

    pub(crate) fn unpacked(packed: u64) -> Self {
        Ticket { lane: LaneId((packed >> 40) as u8), number: Number(packed & Number::MAX.0) }
    }
}

impl Presented {
    /// As a service presents it that proved itself by an API key.
    pub fn by_service(ticket: Ticket, epoch: Epoch) -> Self {
        Presented { ticket, epoch, holder: None }
    }
}

impl Identity {
    pub fn is_nobody(&self) -> bool {
        self.0 == [0; 16]
    }
}

impl JoinKey {
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..12].copy_from_slice(&self.key);
        bytes[12..].copy_from_slice(&self.body);
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        let mut it = JoinKey::default();
        it.key.copy_from_slice(&bytes[..12]);
        it.body.copy_from_slice(&bytes[12..]);
        it
    }
}

impl Timestamp {
    pub fn after(self, span: Millis) -> Timestamp {
        Timestamp(self.0.saturating_add(span.0))
    }

    /// How long ago `earlier` was; zero when it lies ahead.
    pub fn since(self, earlier: Timestamp) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}

impl Millis {
    pub const fn from_secs(seconds: u64) -> Millis {
        Millis(seconds * 1000)
    }
}

impl fmt::Display for LaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == LaneId::RETURNING { f.write_str("returning") } else { write!(f, "{}", self.0) }
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.lane, self.number.0)
    }
}
