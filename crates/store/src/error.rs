//! What can go wrong, told so that the caller knows what is true now.
//!
//! Lives here: two types. [`AppendError`] has exactly the outcomes of design section 6, because
//! the engine does something different for each. [`Error`] is for every other call.
//! The store knows no HTTP and no codes; the server gives messages their codes and pages.

use std::fmt;

use crate::{cursor::HeldBy, log::Head};

/// Why a batch was not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendError {
    /// The log is not where the caller thinks. Nothing was written.
    Stale { head: Head },
    /// Another lease is current. Nothing was written, and nothing more of this lease ever will be.
    Fenced { epoch: u32 },
    /// The store did not take it and nothing was written: full disk, full queue, bad batch.
    Refused { why: String },
    /// It may be in the log or not. The same batch sent again settles it, as does reopening.
    Unknown { why: String },
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AppendError::Stale { head } => write!(f, "stale: the log is at {head}"),
            AppendError::Fenced { epoch } => write!(f, "fenced: epoch {epoch} is current"),
            AppendError::Refused { why } => write!(f, "refused, nothing was written: {why}"),
            AppendError::Unknown { why } => write!(f, "outcome unknown: {why}"),
        }
    }
}

impl std::error::Error for AppendError {}

/// Why any other call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// That part of the log is gone; it begins after `to`.
    Trimmed { to: Head },
    /// Trimming to there would take something still needed; `floor` is as far as it may go.
    AboveFloor { floor: Head, held_by: HeldBy },
    /// Somebody else holds the lease.
    Held { who: String, left_ms: u64 },
    /// The lease was released or granted anew; `epoch` is the newest.
    Lost { epoch: u32 },
    /// The request makes no sense now. Nothing changed.
    Refused { why: String },
    /// It may have happened or not.
    Unknown { why: String },
    /// What was stored cannot be trusted.
    Damaged { why: String },
    /// The store could not be asked. Never reported as an empty answer.
    Unavailable { why: String },
}

impl Error {
    pub(crate) fn refused(why: impl Into<String>) -> Error {
        Error::Refused { why: why.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Trimmed { to } => write!(f, "the log up to {to} was trimmed"),
            Error::AboveFloor { floor, held_by } => {
                write!(f, "cannot trim above {floor}: ")?;
                match held_by {
                    HeldBy::Cursor(sink) => write!(f, "sink {sink} has read no further"),
                    HeldBy::Snapshot => f.write_str("no snapshot reaches further"),
                    HeldBy::Retention => f.write_str("the log is to be kept from there"),
                }
            }
            Error::Held { who, left_ms } => write!(f, "held by {who} for {left_ms} ms more"),
            Error::Lost { epoch } => write!(f, "the lease was lost; epoch {epoch} is current"),
            Error::Refused { why } => write!(f, "refused, nothing changed: {why}"),
            Error::Unknown { why } => write!(f, "outcome unknown: {why}"),
            Error::Damaged { why } => write!(f, "damaged: {why}"),
            Error::Unavailable { why } => write!(f, "the store cannot be reached: {why}"),
        }
    }
}

impl std::error::Error for Error {}
