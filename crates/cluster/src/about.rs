//! What an instance says of itself: in the store for everybody, and to its peers when it changes.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Where other instances reach it: host and port.
    pub address: String,
    pub release: String,
    /// Counts up with every change: of two, the newer one counts, whichever way it came.
    pub seq: u64,
    /// It is going down: it owns nothing more.
    #[serde(default)]
    pub draining: bool,
    /// It is coming up, and has not opened its rooms yet.
    #[serde(default)]
    pub starting: bool,
    /// It has gone, in order: no gate of it lets anybody in any more.
    #[serde(default)]
    pub left: bool,
    /// Under which it writes live tickets.
    #[serde(default)]
    pub writer: Option<u32>,
    /// The rooms that it owns, with their epochs.
    #[serde(default)]
    pub rooms: BTreeMap<String, u32>,
    /// Rooms that it could not open: others should have them for a while.
    #[serde(default)]
    pub unable: BTreeSet<String>,
}

impl About {
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain data can be written")
    }

    /// None for what no release of ours has written.
    pub fn from_bytes(bytes: &[u8]) -> Option<About> {
        serde_json::from_slice(bytes).ok()
    }
}
