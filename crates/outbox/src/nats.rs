//! NATS JetStream: events go out to streams, checkouts come in from one.
//!
//! Lives here: the connection. [`sink`] publishes, [`source`] consumes, `system` says how we are.

pub mod sink;
pub mod source;
mod streams;
mod system;
mod under_way;
mod written;

use std::path::PathBuf;
use std::time::Duration;

use async_nats::jetstream::{self, context::ContextBuilder};

use crate::sink::Trouble;

pub use sink::NatsSink;
pub use source::NatsSource;
pub use streams::Streams;
pub use system::{System, SystemLine};

/// How long an acknowledgement may take. A bus that needs longer is away.
const ACK_WITHIN: Duration = Duration::from_secs(5);

/// The longest wait between two looks for a server. The client's own is four seconds, in which a
/// sale of two thousand joins a second falls eight thousand events further behind.
const RECONNECT_MOST: Duration = Duration::from_millis(250);

/// Doubles from 10 ms on; a server that is away for an hour is asked four times a second.
fn reconnect_after(tries: usize) -> Duration {
    let doublings = tries.saturating_sub(1).min(5) as u32;
    (Duration::from_millis(10) * 2u32.pow(doublings)).min(RECONNECT_MOST)
}

/// Where the servers are and who we are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// `nats://127.0.0.1:4222`, or several with commas between them.
    pub servers: String,
    /// A credentials file (`.creds`).
    pub credentials: Option<PathBuf>,
}

/// A connection that is made as soon as there is a server, and made again whenever it breaks.
pub async fn connect(link: &Link) -> Result<jetstream::Context, Trouble> {
    let mut options = async_nats::ConnectOptions::new()
        .name("waitroom")
        .retry_on_initial_connect()
        .reconnect_delay_callback(reconnect_after);
    if let Some(path) = &link.credentials {
        let creds = tokio::task::spawn_blocking({
            let path = path.clone();
            move || std::fs::read_to_string(path)
        });
        let creds = creds.await.map_err(Trouble::new)?;
        let unread = |error| Trouble::new(format!("{}: {error}", path.display()));
        options = options.credentials(&creds.map_err(unread)?).map_err(unread)?;
    }
    let servers: Vec<&str> = link.servers.split(',').map(str::trim).collect();
    let client = options.connect(servers.as_slice()).await.map_err(Trouble::new)?;
    Ok(ContextBuilder::new().timeout(ACK_WITHIN).build(client))
}
