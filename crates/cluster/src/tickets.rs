//! Live tickets that one instance wrote and a visitor shows to another: the writer alone says whether
//! they are good, and so each is good once.

use crate::cluster::Cluster;
use crate::link::Letter;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// What tells a live ticket from every other, as instances hand it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsedTicket {
    pub writer: u32,
    pub ends_ms: u64,
    pub name: [u8; 16],
}

/// Uses up a ticket that was written here. Says whether it was good.
pub type UseUp = dyn Fn(&UsedTicket) -> bool + Send + Sync;

/// As long as a visitor should wait for a channel; then they may ask for another ticket.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

impl Cluster {
    /// Live tickets are written here under this name, and used up so.
    pub fn writes_tickets(&self, writer: u32, use_up: Arc<UseUp>) {
        let _ = self.use_up.set(use_up);
        self.change_mine(|mine| mine.writer = Some(writer));
    }

    /// Asks the instance that wrote it. One that is gone, or does not answer, cannot be asked
    /// whether it was used: then it is not good.
    pub async fn use_ticket(&self, ticket: UsedTicket) -> bool {
        let writer = self.view().writer(ticket.writer).map(str::to_owned);
        let Some(writer) = writer else { return false };
        let (answer, answered) = oneshot::channel();
        if !self.hand(&writer, Letter::Used(ticket, answer)) {
            return false;
        }
        matches!(tokio::time::timeout(ANSWERED_WITHIN, answered).await, Ok(Ok(true)))
    }

    /// Somebody used one of ours elsewhere.
    pub(crate) fn use_up_here(&self, ticket: &UsedTicket) -> bool {
        self.use_up.get().is_some_and(|use_up| use_up(ticket))
    }
}
