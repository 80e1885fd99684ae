//! How a tenure begins: the lease, the room, the new epoch.

use super::following::Followed;
use super::renewal::Renewal;
use super::{Task, append};
use crate::caught::caught;
use crate::clock::RoomClock;
use crate::config::FOREVER;
use crate::draw_keeper::DrawKeeper;
use crate::error::OpenError;
use crate::peers::Peers;
use crate::recover::{Recovered, recover};
use crate::waits::Waits;
use crate::writer::Writer;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::Instant;
use waitroom_core::{Board, Epoch, Event, Room, Timestamp};
use waitroom_store::{Appended, Error, Lease, LeaseName, Store};

/// All that a tenure begins with.
pub(super) struct Opening {
    pub(super) lease: Lease,
    pub(super) writer: Writer,
    pub(super) clock: RoomClock,
    pub(super) draws: DrawKeeper,
    pub(super) tip: Appended,
    pub(super) renewal: Renewal,
}

impl<S: Store> Task<S> {
    /// Lease first, so that nobody appends behind the end that is read; then the log, or what is
    /// missing of it; then the new epoch, durable before anything else happens.
    pub(super) async fn open(&mut self, warm: &mut Option<Followed>) -> Result<Opening, OpenError> {
        let name = LeaseName::room(&self.shared.name);
        let ttl = self.config.lease.unwrap_or(FOREVER).as_millis() as u64;
        let asked_at = Instant::now();
        let listing = self.listing();
        let lease = self.store.lease(&name, &self.config.instance, ttl).await?;
        let opening = self.open_under(lease.clone(), asked_at, warm);
        let opened = caught(Box::pin(opening).as_mut()).await;
        let opened = opened.unwrap_or_else(|why| Err(OpenError::Broke { why }));
        match &opened {
            Ok(_) => self.shared.caught_up(listing),
            // Otherwise nobody could have the room until it runs out by itself.
            Err(_) => drop(self.store.release(&lease).await),
        }
        opened
    }

    async fn open_under(
        &mut self,
        lease: Lease,
        asked_at: Instant,
        warm: &mut Option<Followed>,
    ) -> Result<Opening, OpenError> {
        let read = self.recovered(warm.take());
        let (read, asked_at) = self.held(&lease, asked_at, read).await?;
        let (recovered, waits) = read?;
        let reading = self.shared.reading();
        let clock = RoomClock::open(recovered.room.state().last_at(), reading);
        let now = recovered.room.state().last_at().max(Timestamp(reading.wall_ms));
        let mut writer = Writer::open(recovered.room, recovered.head, Epoch(lease.epoch), now);
        writer.learn_on(waits);
        let outlook = writer.outlook(now);
        // A newer epoch is in the log already: reading took longer than the lease lasted.
        let newer = Error::Lost { epoch: writer.state().epoch().0 };
        let first = writer.cut().ok_or(newer)?;
        let tip =
            append(&*self.store, &self.shared, &lease, &first).await.map_err(OpenError::Append)?;
        let mut draws = DrawKeeper::default();
        draws.chain = recovered.draw_chain;
        self.shared.liveness.store(writer.liveness().clone());
        self.shared.set_time(reading, now);
        self.shared.committed.store(tip.head.0, Ordering::Release);
        if let Some(outlook) = outlook {
            self.shared.outlook.store(Arc::new(outlook));
        }
        self.shared.follows.store(false, Ordering::Release);
        self.shared.publish(Board::new(writer.state().clone(), tip.head.0, now));
        let renewal = Renewal::of(self.config.lease, asked_at);
        Ok(Opening { lease, writer, clock, draws, tip, renewal })
    }

    /// As which this instance is listed; nothing where there are no others.
    pub(super) fn listing(&self) -> Option<u64> {
        self.config.peers.as_ref().and_then(|peers| peers.listed())
    }

    /// It cannot be opened here: where that is no fault of the store, another should have it.
    pub(super) fn pass_over(&self, peers: &Arc<dyn Peers>, error: &OpenError) {
        if error.is_ours() {
            peers.failed(&self.shared.name);
        }
    }

    /// Does the work with the lease held: to read a large room takes longer than one lasts. Says
    /// since when it is held.
    async fn held<T>(
        &self,
        lease: &Lease,
        mut asked_at: Instant,
        work: impl Future<Output = T>,
    ) -> Result<(T, Instant), OpenError> {
        let mut work = std::pin::pin!(work);
        let Some(ttl) = self.config.lease else { return Ok((work.await, asked_at)) };
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok((done, asked_at)),
                () = tokio::time::sleep(ttl / 4) => {
                    asked_at = Instant::now();
                    self.store.renew(lease, ttl.as_millis() as u64).await?;
                }
            }
        }
    }

    /// The room as the log has it: what was followed and the rest, or all of it anew.
    async fn recovered(&self, warm: Option<Followed>) -> Result<(Recovered, Waits), OpenError> {
        if let Some(Followed { mut recovered, mut waits }) = warm {
            let tip = self.store.tip(&self.shared.name).await?;
            let see = |event: &Event, room: &Room| waits.note(event, room);
            if recovered.fits(tip)
                && recovered.go_on(&*self.store, &self.shared.name, see).await.is_ok()
            {
                return Ok((recovered, waits));
            }
        }
        Ok((recover(&*self.store, &self.shared.name).await?, Waits::default()))
    }
}
