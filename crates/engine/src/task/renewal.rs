//! The lease of a room's owner: renewed in good time, and believed in only while it is certain.
//!
//! The store refuses appends of an owner whose lease was granted anew. But some answers leave
//! without an append: the pass of somebody who claims a second time. So an owner that was frozen,
//! or cut off from the store, must stop by its own clock: it decides nothing once its lease may
//! have run out, and begins again by asking for one.

use super::Tenure;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use waitroom_store::{Error, Store};

/// Four tries fit in one lease: a single lost packet must not cost a takeover, and while a room has
/// no owner nobody is admitted.
const RENEWALS_PER_LEASE: u32 = 4;

/// The part of a lease that is given away, because the store's clock may run faster than ours.
const DOUBT: u32 = 20;

/// Keeps the lease while others could take it.
#[derive(Debug, Default)]
pub(super) struct Renewal {
    pub(super) due: Option<Instant>,
    pub(super) asked: Option<JoinHandle<Result<(), Error>>>,
    asked_at: Option<Instant>,
    /// As which this instance was listed then.
    listing: Option<u64>,
    /// Ours for certain until then; none where nobody else can take it.
    until: Option<Instant>,
}

/// How a renewal went.
pub(super) enum Renewed {
    Kept,
    /// To this epoch.
    Lost(u32),
    /// Nobody could be asked; the next one tries again.
    Unasked,
}

impl Renewal {
    /// For a lease that was asked for at that time.
    pub(super) fn of(ttl: Option<Duration>, asked_at: Instant) -> Renewal {
        let mut renewal = Renewal::default();
        if let Some(ttl) = ttl {
            renewal.due = Some(Instant::now() + ttl / RENEWALS_PER_LEASE);
            renewal.until = Some(asked_at + ttl - ttl / DOUBT);
        }
        renewal
    }

    /// Whether nobody else can have the lease.
    pub(super) fn is_certain(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }

    /// The answer to a renewal came.
    /// Says as which listed an owner was when it asked and was still the only one to decide.
    pub(super) fn note(&mut self, renewed: &Renewed, ttl: Option<Duration>) -> Option<u64> {
        self.asked = None;
        // Counted from when it was asked for: the answer may have been long on its way.
        if let (Renewed::Kept, Some(ttl), Some(at)) = (renewed, ttl, self.asked_at) {
            self.until = Some(at + ttl - ttl / DOUBT);
            return self.listing;
        }
        None
    }
}

impl<S: Store> Tenure<'_, S> {
    pub(super) fn renew(&mut self) {
        let Some(ttl) = self.task.config.lease else { return };
        let now = Instant::now();
        self.renewal.due = Some(now + ttl / RENEWALS_PER_LEASE);
        if self.renewal.asked.is_none() {
            let (store, lease) = (self.task.store.clone(), self.lease.clone());
            let ttl = ttl.as_millis() as u64;
            self.renewal.asked_at = Some(now);
            self.renewal.listing = self.task.listing();
            self.renewal.asked = Some(tokio::spawn(async move { store.renew(&lease, ttl).await }));
        }
    }
}

pub(super) async fn renewed(asked: &mut Option<JoinHandle<Result<(), Error>>>) -> Renewed {
    match asked {
        Some(handle) => match handle.await {
            Ok(Ok(())) => Renewed::Kept,
            Ok(Err(Error::Lost { epoch })) => Renewed::Lost(epoch),
            _ => Renewed::Unasked,
        },
        None => std::future::pending().await,
    }
}

pub(super) async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
