//! A snapshot: a room's state at some head, so that recovery need not fold the whole log.
//!
//! Lives here: the value type. Chunks are opaque and come back in the order they were given.
//! Stays out: how chunks are made (core) and where they are kept (each backend).

use crate::log::{Chain, Head};

/// The newest usable snapshot of a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub at: Head,
    /// The chain of the log at `at`: the tail must continue from here.
    pub chain: Chain,
    pub chunks: Vec<Vec<u8>>,
    /// Newer snapshots that were damaged and passed over, in words for the operator.
    /// Not empty means: something is wrong with the disk, look before it gets worse.
    pub passed_over: Vec<String>,
}
