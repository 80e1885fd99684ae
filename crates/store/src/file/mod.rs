//! The embedded default: one journal for all rooms of the instance.
//!
//! Lives here: everything that puts a room on this machine's disk. From the bottom up:
//! `record` is how things are spelled on disk; `state` is what the records add up to; `index`
//! knows where a room's batches lie; `journal` stages, commits and heals, with `controls` and `tidy`
//! as its other halves; `recover` reads it all back; `snapshots`, `backup`, `portable` and `repair` are files beside the journal; `store` puts
//! threads around it and speaks the contract.
//! Stays out: the filesystem itself, which is behind [`crate::disk::Disk`].
//!
//! One journal, because then one fdatasync acknowledges everything that arrived while the last one
//! ran, for all rooms together: five hundred idle rooms cost nothing, and a busy one pays for
//! nobody else. ADR 0003 tells what that costs at trimming. `docs/store.md` is for operators.

mod backup;
mod book;
mod controls;
mod copying;
mod index;
mod journal;
mod outcome;
mod portable;
mod portable_any;
mod record;
mod recover;
mod repair;
mod segment;
mod snapshots;
mod state;
mod store;
mod threads;
mod tidy;

pub use backup::{BackupReport, EPOCHS_LEFT_OUT, restore};
pub use book::{Alarm, Options};
pub use copying::Copying;
pub use journal::Journal;
pub use outcome::{Control, Controlled, Failure, Staged};
pub use portable::{
    Import, Portable, PortableError, check as check_portable, snapshot as snapshot_of_portable,
};
pub use portable_any::export_of;
pub use recover::{Cut, OpenError, RecoveryReport};
pub use repair::{CutReport, cut};
pub use store::FileStore;
