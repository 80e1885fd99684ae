//! Why a command got no reply from its room.

use serde::{Deserialize, Serialize};
use std::fmt;
use waitroom_core::Damaged;

/// What a caller hears instead of a reply. `core` answers with refusals; these are about the way
/// there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unanswered {
    /// The room's queue is full: come back later. Nothing was done.
    Overloaded,
    /// The store did not take it. Nothing was done; the room resumes by itself.
    Unavailable { why: String },
    /// It may be done or not. The same `Idempotency-Key` finds out.
    OutcomeUnknown { why: String },
    /// Another instance owns the room now. Nothing was done here.
    NotOwner { epoch: u32 },
    /// The engine is going down.
    Stopping,
}

/// Why a room could not be brought up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    Store(waitroom_store::Error),
    /// The first append of the tenure failed.
    Append(waitroom_store::AppendError),
    /// A batch or a snapshot does not read back. Needs a person.
    Damaged {
        at: u64,
        what: Damaged,
    },
    AlreadyOpen,
    /// The log is not the one that was followed: the store lost its end, or was put back.
    Diverged {
        at: u64,
    },
    /// We panicked over it: a mistake of ours, or a log that no release of ours has written.
    Broke {
        why: String,
    },
}

impl OpenError {
    /// Whether the same may go better elsewhere: the log is there, and we cannot read it. What the
    /// store refuses, or does not answer, says nothing about us.
    pub(crate) fn is_ours(&self) -> bool {
        use waitroom_store::Error;
        match self {
            OpenError::Store(Error::Damaged { .. }) => true,
            OpenError::Damaged { .. } | OpenError::Broke { .. } => true,
            // It is away, full, or another's for now; behind the trim it is read again from the
            // snapshot. Whoever asks next is told the same.
            OpenError::Store(_) | OpenError::Append(_) => false,
            // It is read again from the beginning.
            OpenError::Diverged { .. } | OpenError::AlreadyOpen => false,
        }
    }
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unanswered::Overloaded => f.write_str("the room's queue is full; nothing was done"),
            Unanswered::Unavailable { why } => write!(f, "nothing was done: {why}"),
            Unanswered::OutcomeUnknown { why } => {
                write!(f, "the outcome is unknown, repeat with the same key: {why}")
            }
            Unanswered::NotOwner { epoch } => {
                write!(f, "another instance owns the room since epoch {epoch}")
            }
            Unanswered::Stopping => f.write_str("the instance is stopping; nothing was done"),
        }
    }
}

impl std::error::Error for Unanswered {}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Store(error) => write!(f, "the store could not be read: {error}"),
            OpenError::Append(error) => write!(f, "the new epoch could not be written: {error}"),
            OpenError::Damaged { at, what } => {
                write!(f, "the log does not read back after event {at}: {what}")
            }
            OpenError::Diverged { at } => {
                write!(f, "the log after event {at} is not the one that was followed")
            }
            OpenError::AlreadyOpen => f.write_str("the room is already open here"),
            OpenError::Broke { why } => f.write_str(why),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<waitroom_store::Error> for OpenError {
    fn from(error: waitroom_store::Error) -> OpenError {
        OpenError::Store(error)
    }
}
