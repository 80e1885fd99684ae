//! What operators ask of the installation, beyond its rooms: keys, the audit, logs.
//!
//! Lives here: [`Office`], which the server implements over whatever store it was started with.
//! Stays out: roles and JSON (the routes' own files), and how any of it is kept.

use waitroom_core::Event;
use waitroom_store::RoomName;
use waitroom_store::system::{ApiKey, AuditLine};

use crate::caller::Role;
use crate::desk::Pending;
use crate::problem::{Code, Problem};

pub trait Office: Send + Sync {
    /// All keys ever made, with when they were last used as far as this instance knows.
    fn keys(&self) -> Pending<'_, Vec<ApiKey>>;

    /// A new key, and the text of it, which is shown once and kept nowhere.
    fn create_key<'a>(&'a self, wanted: WantedKey<'a>) -> Pending<'a, Result<MadeKey, Problem>>;

    /// A new key in place of another, which works on for a while.
    fn rotate_key<'a>(
        &'a self,
        who: &'a str,
        id: &'a str,
        overlap_ms: u64,
    ) -> Pending<'a, Result<MadeKey, Problem>>;

    fn revoke_key<'a>(&'a self, who: &'a str, id: &'a str) -> Pending<'a, Result<ApiKey, Problem>>;

    /// Acts after this index of the audit, the oldest first.
    fn audit_after<'a>(
        &'a self,
        after: u64,
        limit: usize,
        room: Option<&'a str>,
    ) -> Pending<'a, Result<AuditPage, Problem>>;

    /// Writes the audit entries that a crash or a failing store kept from being written: acts that
    /// are in the room's log and not in the audit.
    fn catch_up<'a>(&'a self, room: &'a RoomName) -> Pending<'a, Result<(), Problem>>;

    /// Events of a room's log after this one, as many as fit into about so many bytes of log.
    fn events<'a>(
        &'a self,
        room: &'a RoomName,
        after: u64,
        bytes_max: usize,
    ) -> Pending<'a, Result<LogPage, Problem>>;
}

/// A key to be made.
#[derive(Clone, Copy, Debug)]
pub struct WantedKey<'a> {
    pub who: &'a str,
    pub role: Role,
    pub note: &'a str,
    pub life_ms: Option<u64>,
}

pub struct MadeKey {
    pub key: ApiKey,
    pub secret: String,
}

/// Says nothing of the secret.
impl std::fmt::Debug for MadeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MadeKey").field("key", &self.key.id).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub struct AuditPage {
    pub lines: Vec<AuditLine>,
    /// The newest entry of the log, and the hash of the chain up to it: whoever writes both down
    /// can tell later whether the log was rewritten.
    pub head: u64,
    pub chain: String,
    /// Where to go on; equal to `head` when all was shown.
    pub next: u64,
}

#[derive(Debug, Default)]
pub struct LogPage {
    pub events: Vec<(u64, Event)>,
    /// Events up to this one are no longer in the log.
    pub trimmed_to: u64,
    pub head: u64,
}

/// The answer of an installation that keeps none of this.
pub(super) fn none() -> Problem {
    Problem::new(Code::NotFound, "this server keeps neither keys nor logs")
}
