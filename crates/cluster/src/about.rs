//! What an instance says of itself: in the store for everybody, and to its peers when it changes.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// The rooms that it owns, with their epochs.
    #[serde(default)]
    pub rooms: BTreeMap<String, u32>,
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
