//! How an engine runs its rooms. Every number has its reason beside it.

use crate::peers::Peers;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone)]
pub struct Config {
    /// Who we are, for leases.
    pub instance: String,
    /// Requests that may wait for a room's writer. At 500,000 a second this is 30 ms of work;
    /// more waiting than that helps nobody, so the next is refused at once.
    pub inbox: usize,
    /// Requests decided between two appends at most, so that a batch stays a few milliseconds.
    pub round: usize,
    /// Batches on their way to the disk while the next is decided. Two: one syncs, one waits for
    /// it; a third would only add latency.
    pub in_flight: usize,
    /// How often readers get a new board when things change.
    pub board_every: Duration,
    /// How long a lease lasts; none where nobody else can open the store (one process, one disk).
    pub lease: Option<Duration>,
    /// A snapshot after so many events, so that a restart replays at most about twice as many.
    pub snapshot_every: u64,
    /// How often the housekeeper looks for silent visitors.
    pub sweep_every: Duration,
    /// Seals and opens secrets of rooms (the seed of a draw).
    pub vault: Arc<dyn Vault>,
    /// The other instances on this store; none where this is the only one.
    pub peers: Option<Arc<dyn Peers>>,
}

/// Keeps secrets in the log unreadable without the master key.
pub trait Vault: Send + Sync + 'static {
    fn seal(&self, context: &str, secret: &[u8]) -> Vec<u8>;
    /// None when it was sealed under another key or another context, or altered.
    fn open(&self, context: &str, sealed: &[u8]) -> Option<Vec<u8>>;
}

/// A lease without others to share the store with: a century.
pub(crate) const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Config {
    pub fn new(instance: &str, vault: Arc<dyn Vault>) -> Config {
        Config {
            instance: instance.to_owned(),
            inbox: 16_384,
            round: 8_192,
            in_flight: 2,
            board_every: Duration::from_millis(200),
            lease: None,
            snapshot_every: 1_000_000,
            sweep_every: Duration::from_secs(1),
            vault,
            peers: None,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("instance", &self.instance).finish_non_exhaustive()
    }
}

/// The master key of the store is the vault of every room.
impl Vault for waitroom_store::seal::MasterKey {
    fn seal(&self, context: &str, secret: &[u8]) -> Vec<u8> {
        waitroom_store::seal::MasterKey::seal(self, &waitroom_store::OsEntropy, context, secret)
    }

    fn open(&self, context: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        waitroom_store::seal::MasterKey::open(self, context, sealed)
    }
}
