//! Leases: who may do something alone, and how everyone else knows.
//!
//! Lives here: the value types. A lease is an epoch, which never goes down, and a nonce, which
//! tells two grants of one epoch apart should a store ever lose its memory of an epoch.
//! Stays out: who should hold one, and for how long; the engine decides that.

use crate::name::LeaseName;

/// Epochs fit in 24 bits because they are part of the ticket id.
pub const EPOCH_MAX: u32 = (1 << 24) - 1;

/// Longest name of a holder: a host, a port, an instance id. Longer ones are refused.
pub const WHO_BYTES_MAX: usize = 200;

/// Proof of being the holder. An append carries it, and an older one is fenced off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub name: LeaseName,
    /// 1 ..= [`EPOCH_MAX`]; each grant of a name has a higher one.
    pub epoch: u32,
    pub nonce: u128,
}

/// Who holds a lease at this moment, for display and for sending commands to the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub who: String,
    pub epoch: u32,
    pub left_ms: u64,
}

/// An instance that announced itself and has not fallen silent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub instance: String,
    /// Whatever the instance says of itself: addresses, version. Opaque here.
    pub about: Vec<u8>,
    pub left_ms: u64,
}
