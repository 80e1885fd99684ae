//! Cursors: how far each sink has read, and what was given up for a dead one.
//!
//! Lives here: the value types of cursors, gaps and retention.
//! Stays out: publishing. The outbox moves cursors; the store only keeps them and what they pin.

use crate::log::Head;

/// Events a sink will never see: those after `after`, up to and including `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub after: Head,
    pub to: Head,
}

/// How far a sink has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    /// Everything up to here was published, or is in the gap.
    pub at: Head,
    /// A broken cursor pins nothing. Advancing it past its gap makes it whole again.
    pub broken: bool,
    /// The last gap, kept after the sink came back: it is the record that something was lost.
    pub gap: Option<Gap>,
}

/// How much of a log is kept for sinks that do not keep up (`outbox_keep`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Payload bytes behind the head, per room and sink.
    pub keep_bytes: u64,
    /// Age of the oldest batch a sink has not taken, by the store's wall clock.
    pub keep_age_ms: u64,
}

/// What stands in the way of trimming.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldBy {
    /// A sink has not read that far.
    Cursor(crate::name::SinkName),
    /// No snapshot reaches that far, so the room could not be rebuilt.
    Snapshot,
    /// `keep_from` says so, or it is the `_system` log, which is never trimmed.
    Retention,
}
