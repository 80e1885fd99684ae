//! Remembers: logs, leases, cursors and snapshots of rooms, as bytes.
//!
//! Lives here: the contract [`Store`] and its clauses, the model [`memory`], the embedded default
//! [`mod@file`], the seal for secrets, and the `_system` log.
//! Stays out: tickets, lanes, admissions. A batch is a payload and a count of events; this crate
//! does not depend on `core` and needs no async runtime.
//! Start reading at [`Store`], then [`memory::MemoryStore`], which is the contract in its
//! simplest form.

pub mod contract;
pub mod contract_tests;
pub mod cursor;
pub mod disk;
pub mod error;
pub mod file;
pub mod lease;
pub mod log;
pub mod memory;
pub mod name;
pub mod seal;
pub mod seams;
pub mod shelf;
pub mod sim_disk;
pub mod snapshot;
pub mod system;
pub mod verify;

pub use contract::Store;
pub use cursor::{Cursor, Gap, HeldBy, Retention};
pub use error::{AppendError, Error};
pub use file::FileStore;
pub use lease::{EPOCH_MAX, Holder, Lease, Member};
pub use log::{Appended, Batch, Chain, Head, Link, Stored};
pub use memory::MemoryStore;
pub use name::{BadName, LeaseName, RoomName, SinkName};
pub use seal::{HashKey, KeyError, MasterKey};
pub use seams::{Clock, Entropy, MachineClock, ManualClock, OsEntropy, Seams};
pub use shelf::Shelf;
pub use sim_disk::SimDisk;
pub use snapshot::Snapshot;
pub use system::{System, SystemError};
