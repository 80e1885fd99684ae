//! The words of a log: heads, batches, and the hash chain through them.
//!
//! Lives here: the value types that an append takes and a read gives back, and the one
//! function that computes a chain, shared by every backend, by export and by `verify`.
//! Stays out: what a payload means. To the store it is bytes and a count of events.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::name::RoomName;

/// How many events a log holds: 0 is empty, and the newest event has this index (counted from 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Head(pub u64);

impl Head {
    pub const EMPTY: Head = Head(0);
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The hash over a log up to some batch. Two logs with the same chain hold the same batches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Chain(pub [u8; 32]);

impl Chain {
    /// The chain of an empty log.
    pub const START: Chain = Chain([0; 32]);

    /// chain_n = SHA-256(chain_{n-1} ‖ room ‖ epoch ‖ nonce ‖ number ‖ after ‖ events ‖ payload),
    /// integers little-endian, the room preceded by its length in one byte so that no two
    /// different batches hash the same bytes.
    pub fn next(&self, room: &RoomName, link: &Link, payload: &[u8]) -> Chain {
        let mut fields = [0u8; 40];
        fields[0..4].copy_from_slice(&link.epoch.to_le_bytes());
        fields[4..20].copy_from_slice(&link.nonce.to_le_bytes());
        fields[20..28].copy_from_slice(&link.number.to_le_bytes());
        fields[28..36].copy_from_slice(&link.after.0.to_le_bytes());
        fields[36..40].copy_from_slice(&link.events.to_le_bytes());
        let room = room.as_str().as_bytes();
        let hash = Sha256::new()
            .chain_update(self.0)
            .chain_update([room.len() as u8])
            .chain_update(room)
            .chain_update(fields)
            .chain_update(payload)
            .finalize();
        Chain(hash.into())
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Sixteen hex digits tell any two chains apart in a test failure.
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("…")
    }
}

/// The fields of a batch that the chain covers, besides room and payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    pub epoch: u32,
    pub nonce: u128,
    pub number: u64,
    pub after: Head,
    pub events: u32,
}

impl Link {
    pub fn head(&self) -> Head {
        Head(self.after.0 + u64::from(self.events))
    }
}

/// What an owner appends in one piece: it is in the log whole, or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Counts up within an epoch. With the lease's epoch and nonce it names the batch for good,
    /// so a retry after `Unknown` is recognised.
    pub number: u64,
    /// How many events the payload encodes; at least one.
    pub events: u32,
    pub payload: Vec<u8>,
}

/// A batch as it stands in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The head before it.
    pub after: Head,
    /// The head with it.
    pub head: Head,
    pub epoch: u32,
    pub nonce: u128,
    pub number: u64,
    pub events: u32,
    /// Wall clock of the store when it was appended. A note for people and for retention by age;
    /// not part of the chain, no evidence of anything.
    pub at_ms: u64,
    pub payload: Vec<u8>,
    /// The chain with it.
    pub chain: Chain,
}

impl Stored {
    pub fn link(&self) -> Link {
        Link {
            epoch: self.epoch,
            nonce: self.nonce,
            number: self.number,
            after: self.after,
            events: self.events,
        }
    }
}

/// Where a log stands: its newest event and the chain there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Appended {
    pub head: Head,
    pub chain: Chain,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> Link {
        Link { epoch: 1, nonce: 2, number: 3, after: Head(4), events: 5 }
    }

    #[test]
    fn every_field_of_a_batch_changes_the_chain() {
        let room = RoomName::parse("r").unwrap();
        let base = Chain::START.next(&room, &link(), b"payload");
        let others = [
            Chain([1; 32]).next(&room, &link(), b"payload"),
            Chain::START.next(&RoomName::parse("s").unwrap(), &link(), b"payload"),
            Chain::START.next(&room, &Link { epoch: 9, ..link() }, b"payload"),
            Chain::START.next(&room, &Link { nonce: 9, ..link() }, b"payload"),
            Chain::START.next(&room, &Link { number: 9, ..link() }, b"payload"),
            Chain::START.next(&room, &Link { after: Head(9), ..link() }, b"payload"),
            Chain::START.next(&room, &Link { events: 9, ..link() }, b"payload"),
            Chain::START.next(&room, &link(), b"payloae"),
        ];
        for other in others {
            assert_ne!(base, other);
        }
    }

    /// Pinned: exported logs and published chains of version 1 depend on these bytes for good.
    #[test]
    fn the_chain_of_a_known_batch_is_pinned() {
        let room = RoomName::parse("spring-sale").unwrap();
        let chain = Chain::START.next(&room, &link(), b"hello");
        let pinned = "0964a87f6a5f3286d05d62b3af0bfd7aa9c3e6b93f7cce7eb3999edb6729f7d4";
        assert_eq!(chain.to_string(), pinned);
    }
}
