//! A place that keeps a room's log as it stands: a projection, or a mirror.
//!
//! Unlike a sink it takes whole batches, unfiltered and unchanged, and knows by itself how far it
//! has come; so after any crash the two agree, and nothing comes twice.
//! Lives here: the contract [`Keeper`], and [`Whole`], which carries a log to one.
//! Stays out: what a keeper makes of a batch (`postgres/`, `mirror/`).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use waitroom_store::{Appended, Chain, Error, Gap, Head, RoomName, Store, Stored};

use crate::backoff::Backoff;
use crate::carry::{Carry, Errand};
use crate::figures::RoomFigures;
use crate::names::Names;
use crate::relay::LOOK_EVERY;
use crate::sink::Trouble;

/// How far a keeper has come in a room's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub head: Head,
    /// The chain there. None behind a gap, where it does not know.
    pub chain: Option<Chain>,
}

impl Standing {
    pub const NOWHERE: Standing = Standing { head: Head::EMPTY, chain: Some(Chain::START) };

    /// Where it stands with this batch; none if the batch belongs to another history, as that of a
    /// room that was lost and made again under the same name.
    pub fn with(&self, room: &RoomName, batch: &Stored) -> Option<Standing> {
        let fits = match self.chain {
            Some(chain) => {
                let next = chain.next(room, &batch.link(), &batch.payload);
                batch.after == self.head && batch.chain == next
            }
            None => batch.after <= self.head && self.head < batch.head,
        };
        fits.then_some(Standing { head: batch.head, chain: Some(batch.chain) })
    }

    fn is_on(&self, tip: Appended) -> bool {
        let same = |chain| chain == tip.chain;
        self.head < tip.head || self.head == tip.head && self.chain.is_none_or(same)
    }
}

/// A keeper that holds what never happened here.
pub fn other_history(room: &RoomName, at: Head) -> Trouble {
    Trouble::new(format!("it holds another history of room {room}, up to event {at}"))
}

/// Keeps whole batches of logs.
pub trait Keeper: Send + Sync + 'static {
    /// Where it stands in a room's log. None where it cannot tell; then the cursor in the store
    /// counts, and it must bear with some batches that come twice.
    fn stands(
        &self,
        room: &RoomName,
    ) -> impl Future<Output = Result<Option<Standing>, Trouble>> + Send;

    /// Takes batches that follow each other. `Ok` means that it holds them all for good; after an
    /// error, or when the future is dropped, it is asked where it stands before anything else.
    fn keep(
        &self,
        room: &RoomName,
        names: &dyn Names,
        batches: &[Stored],
    ) -> impl Future<Output = Result<(), Trouble>> + Send;

    /// Everything it holds is acknowledged and nothing else is there to carry.
    fn rest(
        &self,
        room: &RoomName,
        names: &dyn Names,
    ) -> impl Future<Output = Result<(), Trouble>> + Send;

    /// What it misses up to `to` is gone for good: goes on behind it, or says why it cannot.
    fn skip(&self, room: &RoomName, to: Head) -> impl Future<Output = Result<(), Trouble>> + Send;

    /// Forgets all of a room, to be told it from the beginning.
    fn forget(&self, room: &RoomName) -> impl Future<Output = Result<(), Trouble>> + Send;
}

/// A keeper, carried to.
#[derive(Debug)]
pub struct Whole<K>(K);

impl<K: Keeper> Whole<K> {
    pub fn new(keeper: K) -> Whole<K> {
        Whole(keeper)
    }
}

impl<K: Keeper> Carry for Whole<K> {
    async fn carry<S: Store>(self: Arc<Self>, errand: Errand<S>) {
        Carrying { keeper: &self.0, errand: &errand }.run().await;
    }

    async fn go_back(&self, room: &RoomName, to: Head) -> Result<(), Trouble> {
        if to > Head::EMPTY {
            return Err(Trouble::new("it can only be made anew, from event 1 on"));
        }
        self.0.forget(room).await
    }
}

/// How often a keeper at rest is asked again.
const REST_EVERY: Duration = Duration::from_secs(30);

/// Events that are handed over together. A run of joins takes a few bytes however long it is, so
/// bytes alone would bound nothing.
const EVENTS_MAX: u64 = 20_000;

/// How many batches those are; one at least.
fn together(batches: &[Stored]) -> usize {
    let mut events = 0;
    let fits = batches.iter().take_while(|batch| {
        events += u64::from(batch.events);
        events <= EVENTS_MAX
    });
    fits.count().max(1)
}

struct Carrying<'a, S: Store, K: Keeper> {
    keeper: &'a K,
    errand: &'a Errand<S>,
}

/// Where a keeper stands, and what of that the store knows.
struct Progress {
    at: Head,
    kept: Head,
    kept_when: Instant,
    figures: Arc<RoomFigures>,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::new(error)
    }
}

impl<S: Store, K: Keeper> Carrying<'_, S, K> {
    async fn run(&self) {
        let Errand { store, room, name: sink, pace, figures, .. } = self.errand;
        let seed = room.as_str().bytes().chain(sink.as_str().bytes());
        let seed = seed.fold(0, |seed: u64, byte| seed.rotate_left(7) ^ u64::from(byte));
        let mut backoff = Backoff::new(pace.retry_first, pace.retry_most, seed);
        loop {
            let trouble = match self.begin().await {
                Ok(mut progress) => loop {
                    match self.round(&mut progress).await {
                        Ok(()) if backoff.tries() > 0 => {
                            tracing::info!(%room, %sink, "the log is carried again");
                            figures.set_trouble(None);
                            backoff.reset();
                        }
                        Ok(()) => {}
                        Err(trouble) => break trouble,
                    }
                },
                Err(trouble) => trouble,
            };
            figures.failures.one();
            // Said once for each outage: a database that is away for an hour fills no log.
            if backoff.tries() == 0 {
                tracing::warn!(%room, %sink, %trouble, "the log cannot be carried; trying again");
            }
            figures.set_trouble(Some(trouble.why));
            if let Ok(head) = store.committed_head(room).await {
                figures.room(room).grows(head.0);
            }
            sleep(backoff.wait()).await;
        }
    }

    /// The keeper knows best where it stands; the cursor follows it, so that nothing is trimmed
    /// that it has not got.
    async fn begin(&self) -> Result<Progress, Trouble> {
        let Errand { store, room, name, figures, .. } = self.errand;
        let held = self.keeper.stands(room).await?;
        let cursor = store.cursor(room, name).await?;
        let begins = store.trimmed_to(room).await?;
        let tip = store.tip(room).await?;
        let mut at = match (held, cursor) {
            (Some(held), _) => held.head,
            (None, Some(cursor)) => cursor.at,
            (None, None) => Head::EMPTY,
        };
        if held.is_some_and(|held| !held.is_on(tip)) {
            return Err(other_history(room, at));
        }
        if at < begins {
            self.keeper.skip(room, begins).await?;
            figures.gap(room, name.as_str(), Gap { after: at, to: begins });
            at = begins;
        }
        if cursor.is_some_and(|cursor| cursor.broken || cursor.at > at) {
            store.drop_cursor(room, name).await?;
        }
        store.advance(room, name, at).await?;
        let figures = figures.room(room);
        figures.acknowledged(at.0);
        Ok(Progress { at, kept: at, kept_when: Instant::now(), figures })
    }

    /// Reads what there is and hands it over, or waits for more.
    async fn round(&self, progress: &mut Progress) -> Result<(), Trouble> {
        let Errand { store, room, names, pace, figures, .. } = self.errand;
        let stored = store.read(room, progress.at, pace.read_bytes).await?;
        let Some(newest) = stored.last() else {
            self.keeper.rest(room, &**names).await?;
            figures.set_trouble(None);
            return self.wait(progress).await;
        };
        progress.figures.grows(newest.head.0);
        progress.figures.waits_since(stored[0].at_ms);
        let mut left = &stored[..];
        while !left.is_empty() {
            let (now, later) = left.split_at(together(left));
            self.hand_over(now, progress).await?;
            let head = now.last().expect("one batch at least").head;
            figures.delivered.add(head.0 - progress.at.0);
            progress.at = head;
            progress.figures.acknowledged(head.0);
            if progress.kept_when.elapsed() >= pace.advance_every {
                self.note(progress).await?;
            }
            left = later;
        }
        Ok(())
    }

    /// While a delivery takes its time, somebody looks how far the log has gone on.
    async fn hand_over(&self, stored: &[Stored], progress: &Progress) -> Result<(), Trouble> {
        let Errand { store, room, names, .. } = self.errand;
        let mut delivery = std::pin::pin!(self.keeper.keep(room, &**names, stored));
        loop {
            tokio::select! {
                kept = &mut delivery => return kept,
                () = sleep(LOOK_EVERY) => {
                    if let Ok(head) = store.committed_head(room).await {
                        progress.figures.grows(head.0);
                    }
                }
            }
        }
    }

    /// Waits for the next commit, but not longer than the cursor may be behind.
    async fn wait(&self, progress: &mut Progress) -> Result<(), Trouble> {
        let Errand { store, room, pace, .. } = self.errand;
        let more = store.follow(room, progress.at);
        let due = progress.kept_when + pace.advance_every;
        tokio::select! {
            more = more => more.map(|_| ()).map_err(Trouble::from),
            () = sleep_until(due), if progress.kept < progress.at => self.note(progress).await,
            // A keeper may have something to do at rest.
            () = sleep(REST_EVERY) => Ok(()),
        }
    }

    async fn note(&self, progress: &mut Progress) -> Result<(), Trouble> {
        let Errand { store, room, name, .. } = self.errand;
        store.advance(room, name, progress.at).await?;
        progress.kept = progress.at;
        progress.kept_when = Instant::now();
        Ok(())
    }
}
