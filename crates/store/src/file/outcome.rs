//! What is asked of the journal besides appends, and how it answers.
//!
//! Lives here: the value types between the journal and whoever drives it, and the one rule that
//! needs both: an answer is settled when the fate of its group is known.
//! Stays out: the journal.

use crate::{
    cursor::{Cursor, Gap},
    error::{AppendError, Error},
    lease::Lease,
    log::{Appended, Head, Stored},
    name::{LeaseName, RoomName, SinkName},
};

/// A request other than an append.
#[derive(Debug)]
pub enum Control {
    Lease {
        name: LeaseName,
        who: String,
        ttl_ms: u64,
    },
    Release {
        lease: Lease,
    },
    Advance {
        room: RoomName,
        sink: SinkName,
        to: Head,
    },
    DropCursor {
        room: RoomName,
        sink: SinkName,
    },
    MarkBroken {
        room: RoomName,
        sink: SinkName,
        to: Head,
    },
    Trim {
        room: RoomName,
        to: Head,
    },
    KeepFrom {
        room: RoomName,
        floor: Option<Head>,
    },
    Remove {
        room: RoomName,
    },
    /// An import begins; `epoch` is the highest in it, and the next lease gets a higher one.
    Adopt {
        room: RoomName,
        base: Appended,
        until: Head,
        epoch: u32,
    },
    /// The import's next batch.
    Adopted {
        room: RoomName,
        stored: Box<Stored>,
    },
    /// After a restore: leave these many epochs out.
    RaiseEpochs {
        by: u32,
    },
}

/// What a [`Control`] led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Controlled {
    Done,
    Lease(Lease),
    Cursor(Cursor),
    Gap(Gap),
}

/// What a staged append will answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staged {
    pub appended: Appended,
    /// A retry of a batch that is in the log: true whatever becomes of this group.
    pub committed: bool,
}

impl Staged {
    /// The answer once the fate of the group is known. A refusal by a group that failed may rest
    /// on something that never came to be, so it is only "nothing was written", which is true.
    pub fn settle(
        staged: Result<Staged, AppendError>,
        group: &Result<(), Failure>,
    ) -> Result<Appended, AppendError> {
        match (staged, group) {
            (Ok(staged), Ok(())) => Ok(staged.appended),
            (Ok(staged), Err(_)) if staged.committed => Ok(staged.appended),
            (Ok(_), Err(failure)) => Err(failure.into()),
            (Err(refusal), Ok(())) => Err(refusal),
            (Err(_), Err(failure)) => Err(AppendError::Refused { why: failure.why.clone() }),
        }
    }
}

impl Controlled {
    /// As [`Staged::settle`].
    pub fn settle(
        staged: Result<Controlled, Error>,
        group: &Result<(), Failure>,
    ) -> Result<Controlled, Error> {
        match (staged, group) {
            (staged, Ok(())) => staged,
            (Ok(_), Err(failure)) => Err(failure.into()),
            (Err(_), Err(failure)) => Err(Error::refused(failure.why.clone())),
        }
    }
}

/// A commit that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Whether the group is certainly not in the journal.
    pub gone: bool,
    pub why: String,
}

impl From<&Failure> for AppendError {
    fn from(failure: &Failure) -> AppendError {
        let why = failure.why.clone();
        if failure.gone { AppendError::Refused { why } } else { AppendError::Unknown { why } }
    }
}

impl From<&Failure> for Error {
    fn from(failure: &Failure) -> Error {
        let why = failure.why.clone();
        if failure.gone { Error::Refused { why } } else { Error::Unknown { why } }
    }
}
