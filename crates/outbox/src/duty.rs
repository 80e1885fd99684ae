//! Runs one sink for every room, on one instance at a time.
//!
//! A lease says which instance. Whoever loses it stops, and so does whoever cannot be certain of it
//! by its own clock: a bus cannot tell two of us apart, and events of one would come between those
//! that the other tells again. Whoever takes it over goes on at the cursors, so at worst some things
//! are told twice.
//! Lives here: the lease, a relay for each room, giving up what nobody fetched in time, and going
//! back in the log when an operator asks for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use waitroom_store::{Error, Head, Lease, LeaseName, Retention, RoomName, SinkName, Store};

use crate::carry::{Carry, Errand};
use crate::figures::SinkFigures;
use crate::names::Names;
use crate::relay::Pace;
use crate::sink::Filter;

/// The rooms that this instance knows; more may come.
pub trait Rooms: Send + Sync + 'static {
    fn rooms(&self) -> Vec<(RoomName, Arc<dyn Names>)>;
}

/// How long an instance that died keeps others from its duty.
const LEASE: Duration = Duration::from_secs(6);
/// Three tries fit in one lease.
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// The part of a lease that is given away, because the store's clock may run faster than ours.
const DOUBT: u32 = 20;
/// New rooms are found within this; their events wait in the log meanwhile.
const ROOMS_EVERY: Duration = Duration::from_millis(500);
/// How often is looked for sinks that are too far behind.
const RETIRE_EVERY: Duration = Duration::from_secs(10);
/// In so many rooms at a time: a lease has to be renewed in between.
const RETIRE_AT_ONCE: usize = 64;

/// What can be asked of a sink while it runs.
#[derive(Debug)]
pub struct Replay {
    pub room: RoomName,
    /// The first event to tell again.
    pub from: u64,
    pub done: oneshot::Sender<Result<(), NotReplayed>>,
}

/// Why nothing is told again. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReplayed {
    /// Another instance runs the sink, or none does.
    NotHere,
    /// It gets nothing of that room.
    NoSuchRoom,
    /// What is asked for is gone; the log begins after this event.
    Trimmed {
        to: u64,
    },
    /// There is no such event yet; the newest is this.
    NotYet {
        head: u64,
    },
    Store {
        why: String,
    },
}

impl From<Error> for NotReplayed {
    fn from(error: Error) -> NotReplayed {
        NotReplayed::Store { why: error.to_string() }
    }
}

/// Operators ask one at a time; more than this at once is nobody.
pub const REPLAYS_MAX: usize = 16;

#[derive(Debug)]
pub struct Duty<S: Store, K: Carry> {
    pub store: Arc<S>,
    /// Who holds the lease.
    pub instance: String,
    pub name: SinkName,
    pub sink: Arc<K>,
    pub filter: Filter,
    pub pace: Pace,
    pub keep: Retention,
    pub figures: Arc<SinkFigures>,
    /// Closed means that nobody will ask.
    pub replays: mpsc::Receiver<Replay>,
}

/// Relays that stop when they are let go of.
#[derive(Default)]
struct Relays(BTreeMap<RoomName, JoinHandle<()>>);

impl Drop for Relays {
    fn drop(&mut self) {
        self.0.values().for_each(JoinHandle::abort);
    }
}

/// What an instance has to do while the sink is its own.
struct Tenure {
    relays: Relays,
    renew: Instant,
    retire: Instant,
    /// Rooms where that is still to be looked for.
    unlooked: Vec<RoomName>,
    /// The lease is ours for certain until then.
    until: Instant,
}

impl Tenure {
    /// Of a lease that was asked for at that time.
    fn since(asked_at: Instant) -> Tenure {
        let (renew, retire) = (asked_at + RENEW_EVERY, asked_at + RETIRE_EVERY);
        let (relays, unlooked) = (Relays::default(), Vec::new());
        Tenure { relays, renew, retire, unlooked, until: certain_until(asked_at) }
    }
}

/// Counted from when it was asked for: the answer may have been long on its way.
fn certain_until(asked_at: Instant) -> Instant {
    asked_at + LEASE - LEASE / DOUBT
}

impl<S: Store, K: Carry> Duty<S, K> {
    /// Runs until it is dropped.
    pub async fn run(mut self, rooms: Arc<dyn Rooms>) {
        let name = format!("outbox/{}", self.name);
        let name = LeaseName::parse(&name).expect("a sink's name fits into a lease's");
        loop {
            let asked_at = Instant::now();
            match self.store.lease(&name, &self.instance, LEASE.as_millis() as u64).await {
                Ok(lease) => {
                    let lost = self.hold(&lease, asked_at, &*rooms).await;
                    let sink = &self.name;
                    tracing::warn!(%sink, error = %lost, "another instance may run this sink now");
                }
                Err(Error::Held { left_ms, .. }) => {
                    while let Ok(replay) = self.replays.try_recv() {
                        let _ = replay.done.send(Err(NotReplayed::NotHere));
                    }
                    sleep(Duration::from_millis(left_ms.clamp(100, 1_000))).await;
                }
                Err(error) => {
                    self.figures.set_trouble(Some(error.to_string()));
                    sleep(RENEW_EVERY).await;
                }
            }
        }
    }

    /// Keeps a relay for each room, as long as the lease is ours for certain.
    async fn hold(&mut self, lease: &Lease, asked_at: Instant, rooms: &dyn Rooms) -> Error {
        let mut tenure = Tenure::since(asked_at);
        loop {
            // Whatever the store is asked here, it may be silent for longer than the lease lasts.
            let look = timeout_at(tenure.until, self.look(&mut tenure, lease, rooms));
            match look.await {
                Ok(Ok(())) => {}
                Ok(Err(lost)) => return lost,
                // It was renewed meanwhile.
                Err(_) if Instant::now() < tenure.until => {}
                Err(_) => {
                    return Error::Unavailable { why: "the lease may have run out".into() };
                }
            }
        }
    }

    /// Sees to all that is due, then waits for a moment or for somebody who asks for something. May
    /// be dropped at any point.
    async fn look(
        &mut self,
        tenure: &mut Tenure,
        lease: &Lease,
        rooms: &dyn Rooms,
    ) -> Result<(), Error> {
        for (room, names) in rooms.rooms() {
            if self.filter.wants_room(&room) && !tenure.relays.0.contains_key(&room) {
                tenure.relays.0.insert(room.clone(), self.relay(room, names));
            }
        }
        let now = Instant::now();
        if now >= tenure.renew {
            tenure.renew = now + RENEW_EVERY;
            match self.store.renew(lease, LEASE.as_millis() as u64).await {
                Ok(()) => tenure.until = certain_until(now),
                Err(error @ Error::Lost { .. }) => return Err(error),
                // Nobody else can have taken it yet.
                Err(error) => self.figures.set_trouble(Some(error.to_string())),
            }
        }
        if now >= tenure.retire && tenure.unlooked.is_empty() {
            tenure.retire = now + RETIRE_EVERY;
            tenure.unlooked = tenure.relays.0.keys().cloned().collect();
        }
        for _ in 0..RETIRE_AT_ONCE.min(tenure.unlooked.len()) {
            let room = tenure.unlooked.pop().expect("there are at least so many");
            self.give_up_the_hopeless(&room).await;
        }
        // In order, so that a run of the simulator repeats.
        tokio::select! {
            biased;
            Some(replay) = self.replays.recv() => {
                let Replay { room, from, done } = replay;
                let _ = done.send(self.go_back(&mut tenure.relays, &room, from).await);
            }
            () = sleep(ROOMS_EVERY) => {}
        }
        Ok(())
    }

    /// Puts the cursor of a room before `from`. A cursor only moves forward, so this is the end of
    /// the old one; should we be killed in between, all that is kept is told again.
    async fn go_back(
        &self,
        relays: &mut Relays,
        room: &RoomName,
        from: u64,
    ) -> Result<(), NotReplayed> {
        let Some(relay) = relays.0.get(room) else { return Err(NotReplayed::NoSuchRoom) };
        let to = Head(from.saturating_sub(1));
        let (begins, head) =
            (self.store.trimmed_to(room).await?, self.store.committed_head(room).await?);
        if to < begins {
            return Err(NotReplayed::Trimmed { to: begins.0 });
        }
        if from > head.0 {
            return Err(NotReplayed::NotYet { head: head.0 });
        }
        relay.abort();
        if let Some(relay) = relays.0.remove(room) {
            let _ = relay.await;
        }
        self.sink.go_back(room, to).await.map_err(|it| NotReplayed::Store { why: it.why })?;
        self.store.drop_cursor(room, &self.name).await?;
        self.store.advance(room, &self.name, to).await?;
        let sink = &self.name;
        tracing::info!(%room, %sink, from, "events are told again");
        Ok(())
    }

    fn relay(&self, room: RoomName, names: Arc<dyn Names>) -> JoinHandle<()> {
        let errand = Errand {
            store: self.store.clone(),
            room,
            name: self.name.clone(),
            names,
            filter: self.filter.clone(),
            pace: self.pace,
            figures: self.figures.clone(),
        };
        tokio::spawn(self.sink.clone().carry(errand))
    }

    /// A sink that is too far behind must not keep the whole log: it loses a stretch, and that is
    /// said. Joins go on whatever happens here.
    async fn give_up_the_hopeless(&self, room: &RoomName) {
        match self.store.retire(room, self.keep).await {
            Ok(gaps) => {
                for (sink, gap) in gaps {
                    let (after, to) = (gap.after.0, gap.to.0);
                    tracing::error!(%room, %sink, after, to, "a sink is too far behind: these events are given up");
                }
            }
            Err(error) => {
                tracing::warn!(%room, %error, "nobody could look for sinks too far behind")
            }
        }
    }
}
