//! Reads the committed log of one room and hands it to one sink, from where it left off.
//!
//! The cursor in the store is all that it remembers. It moves only over what the sink has
//! acknowledged, so a relay that is killed at any point sends some things again and forgets none.
//! It reads what is committed and nothing else, so it tells of nothing that did not happen.
//! A log that went back and was written anew (a fail-over on `redis-async`) is noticed while the
//! relay runs: what took the places of events that were told already is given up as a gap, since
//! nobody could tell them apart, and the relay goes on behind it.
//!
//! Lives here: the order of reading, translating and moving the cursor.
//! Stays out: what is on its way and trying again (`flight.rs`), sinks, and who runs a relay where
//! (`duty.rs`).
//! A dead sink costs the memory of what may be under way at once, and a cursor that stands still;
//! the room does not notice.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout};
use waitroom_core::{Epoch, codec};
use waitroom_store::{Error, Head, RoomName, SinkName, Store, Stored};

use crate::backoff::Backoff;
use crate::figures::{RoomFigures, SinkFigures};
use crate::flight::{Flight, Upto};
use crate::message::Message;
use crate::names::Names;
use crate::sink::{Filter, Sink};
use crate::trail::Trail;
use crate::translate::{NotKnownYet, Place, translate};

/// How a relay goes about its work.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Messages in one delivery. Enough to fill a pipe to the bus, little enough to send again.
    pub batch: usize,
    /// Payload bytes in one read of the log.
    pub read_bytes: usize,
    /// How often the cursor is written. Each time is a write to the disk that joins wait for as
    /// well; what was sent since would be sent again after a crash.
    pub advance_every: Duration,
    /// The first wait after a failure, and the longest.
    pub retry_first: Duration,
    pub retry_most: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            batch: 1_024,
            read_bytes: 256 << 10,
            advance_every: Duration::from_millis(200),
            retry_first: Duration::from_millis(100),
            retry_most: Duration::from_secs(10),
        }
    }
}

/// While a delivery takes its time, this often somebody looks how far the log has gone on; and
/// while a log is quiet, whether it is still the same.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

const LOOK_MOST: Duration = Duration::from_secs(16);

/// Boards come several times a second. One that takes longer than this is in trouble, and so are
/// we: try again from the cursor.
const NAMES_WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Relay<S: Store, K: Sink> {
    pub store: Arc<S>,
    pub room: RoomName,
    pub name: SinkName,
    pub sink: K,
    pub names: Arc<dyn Names>,
    pub filter: Filter,
    pub pace: Pace,
    pub figures: Arc<SinkFigures>,
}

/// Where a relay stands: what the sink holds, and what of that the store knows.
#[derive(Debug)]
pub(crate) struct Progress {
    pub at: Head,
    pub kept: Head,
    pub kept_when: Instant,
    pub figures: Arc<RoomFigures>,
}

impl<S: Store, K: Sink> Relay<S, K> {
    /// Runs until it is dropped, which may happen at any point.
    pub async fn run(&self) {
        let mut backoff = self.backoff();
        // Outlives every failure: during a fail-over the store is away, and comes back changed.
        let mut trail = Trail::default();
        loop {
            let error = match self.begin().await {
                Ok(mut progress) => {
                    let mut flight = Flight::new(self);
                    loop {
                        match self.round(&mut progress, &mut flight, &mut trail).await {
                            Ok(()) => backoff.reset(),
                            Err(error) => break error,
                        }
                    }
                }
                Err(error) => error,
            };
            let (room, sink) = (&self.room, &self.name);
            tracing::warn!(%room, %sink, %error, "the relay cannot go on; it will try again");
            self.figures.set_trouble(Some(error.to_string()));
            sleep(backoff.wait()).await;
        }
    }

    pub(crate) fn backoff(&self) -> Backoff {
        // Any number that differs between relays will do.
        let texts = [self.room.as_str(), self.name.as_str()];
        let bytes = texts.iter().flat_map(|text| text.bytes());
        let seed = bytes.fold(0, |seed: u64, byte| seed.rotate_left(7) ^ u64::from(byte));
        Backoff::new(self.pace.retry_first, self.pace.retry_most, seed)
    }

    /// Finds the cursor, or makes one at the beginning of what is kept, so that nothing is trimmed
    /// before this sink had it.
    async fn begin(&self) -> Result<Progress, Error> {
        let (room, sink) = (&self.room, &self.name);
        let at = match self.store.cursor(room, sink).await? {
            Some(cursor) if cursor.broken => {
                let mut gap = cursor.gap;
                let mut to = gap.map_or(cursor.at, |gap| gap.to.max(cursor.at));
                // More may have been trimmed since it was given up.
                let begins = self.store.trimmed_to(room).await?;
                if begins > to {
                    gap = Some(self.store.mark_broken(room, sink, begins).await?);
                    to = begins;
                }
                if let Some(gap) = gap {
                    self.figures.gap(room, sink.as_str(), gap);
                }
                self.store.advance(room, sink, to).await?.at
            }
            Some(cursor) => cursor.at,
            None => {
                let begins = self.store.trimmed_to(room).await?;
                self.store.advance(room, sink, begins).await?.at
            }
        };
        let figures = self.figures.room(room);
        figures.acknowledged(at.0);
        Ok(Progress { at, kept: at, kept_when: Instant::now(), figures })
    }

    /// Reads what there is and hands it over; or, when all is handed over, waits until it has
    /// arrived and for more.
    async fn round<'a>(
        &'a self,
        progress: &mut Progress,
        flight: &mut Flight<'a, S, K>,
        trail: &mut Trail,
    ) -> Result<(), Error> {
        if let Some(twice) = trail.twice() {
            return self.pass_over(twice, progress, trail).await;
        }
        let from = flight.told_up_to().unwrap_or(progress.at);
        let read = self.store.read(&self.room, from, self.pace.read_bytes);
        let stored = flight.beside(read).await?;
        let Some(newest) = stored.last() else {
            flight.settle(0, progress).await?;
            return self.wait(progress, trail).await;
        };
        if !stored.iter().all(|stored| trail.fits(&self.room, stored)) {
            // Of the log that was: it arrives before anything of the new one is told.
            flight.settle(0, progress).await?;
            self.went_back(trail);
            return Ok(());
        }
        progress.figures.grows(newest.head.0);
        if flight.told_up_to().is_none() {
            // Before it is told: an event that cannot be waits as well.
            progress.figures.waits_since(stored[0].at_ms);
        }
        let mut batch = Vec::new();
        let mut upto = Upto { head: from, since_ms: stored[0].at_ms };
        for stored in &stored {
            self.tell(stored, &mut upto, &mut batch, flight, progress, trail).await?;
        }
        flight.send(batch, upto, progress, trail).await
    }

    /// Says that the log is another one by now. Counted at once: how long it takes until the new
    /// log is as long as the old one was, nobody knows.
    fn went_back(&self, trail: &mut Trail) {
        let twice = trail.broke();
        let (room, sink) = (&self.room, &self.name);
        tracing::error!(
            %room, %sink, to = twice.0,
            "the log went back and was written anew: events up to here are not told, because \
             others were told under their names"
        );
        self.figures.gaps.one();
        self.figures.set_trouble(Some("the log went back".into()));
    }

    /// Waits until the log is past the places that mean two things, marks them as a gap, and goes
    /// on behind it.
    async fn pass_over(
        &self,
        twice: Head,
        progress: &mut Progress,
        trail: &mut Trail,
    ) -> Result<(), Error> {
        let (room, sink) = (&self.room, &self.name);
        let head = self.store.committed_head(room).await?;
        if head < twice {
            return self.store.follow(room, head).await.map(|_| ());
        }
        self.store.mark_broken(room, sink, twice).await?;
        progress.at = self.store.advance(room, sink, twice).await?.at;
        progress.kept = progress.at;
        progress.kept_when = Instant::now();
        progress.figures.acknowledged(progress.at.0);
        trail.is_over();
        self.figures.set_trouble(None);
        Ok(())
    }

    /// Nothing is left to send: waits for the next commit, but not longer than the cursor may be
    /// behind what was sent.
    async fn wait(&self, progress: &mut Progress, trail: &mut Trail) -> Result<(), Error> {
        let mut more = std::pin::pin!(self.store.follow(&self.room, progress.at));
        let due = progress.kept_when + self.pace.advance_every;
        let mut look = LOOK_EVERY;
        loop {
            // In order, so that a run of the simulator repeats.
            tokio::select! {
                biased;
                more = &mut more => return more.map(|_| ()),
                () = sleep_until(due), if progress.kept < progress.at => {
                    return self.keep(progress).await;
                }
                () = sleep(look) => {
                    if trail.contradicts(self.store.tip(&self.room).await?) {
                        self.went_back(trail);
                        return Ok(());
                    }
                    // A room that is quiet for long costs next to nothing.
                    look = (look * 2).min(LOOK_MOST);
                }
            }
        }
    }

    /// Translates what is behind `upto` in one batch of the log, and sends whenever enough has come
    /// together.
    async fn tell<'a>(
        &'a self,
        stored: &Stored,
        upto: &mut Upto,
        batch: &mut Vec<Message>,
        flight: &mut Flight<'a, S, K>,
        progress: &mut Progress,
        trail: &mut Trail,
    ) -> Result<(), Error> {
        let mut events = Vec::with_capacity(stored.events as usize);
        codec::decode(&stored.payload, |event| events.push(event)).map_err(|damaged| {
            Error::Damaged { why: format!("batch at {}: {damaged:?}", stored.head) }
        })?;
        for (head, event) in (stored.after.0 + 1..).zip(&events) {
            if head <= upto.head.0 {
                continue;
            }
            upto.head = Head(head);
            let place = Place { room: &self.room, head, epoch: Epoch(stored.epoch) };
            let before = batch.len();
            if translate(place, event, &*self.names, batch) == Err(NotKnownYet) {
                // Nobody looks after what is under way while we wait: a sink would keep its locks,
                // and what it acknowledges would be forgotten if the name never comes.
                flight.settle(0, progress).await?;
                let known = timeout(NAMES_WITHIN, self.names.known_up_to(head)).await;
                let told = translate(place, event, &*self.names, batch);
                if known.is_err() || told.is_err() {
                    self.keep(progress).await?;
                    let why = format!("event {head} is about a ticket that no board knows");
                    return Err(Error::Unavailable { why });
                }
            }
            let unwanted = |message: &mut Message| !self.filter.wants(message.kind);
            batch.extract_if(before.., unwanted).for_each(drop);
            if batch.len() >= self.pace.batch {
                flight.send(std::mem::take(batch), *upto, progress, trail).await?;
            }
        }
        Ok(())
    }

    /// Between two tries: whether the cursor was broken meanwhile, and how far the log has gone on.
    pub(crate) async fn gave_up(&self, progress: &Progress) -> Result<(), Error> {
        let cursor = self.store.cursor(&self.room, &self.name).await?;
        if cursor.is_some_and(|cursor| cursor.broken) {
            return Err(Error::Refused { why: "the sink was given up for its delay".into() });
        }
        let head = self.store.committed_head(&self.room).await?;
        progress.figures.grows(head.0);
        Ok(())
    }

    pub(crate) async fn keep(&self, progress: &mut Progress) -> Result<(), Error> {
        self.store.advance(&self.room, &self.name, progress.at).await?;
        progress.kept = progress.at;
        progress.kept_when = Instant::now();
        Ok(())
    }
}
