//! A room that another instance owns: its log is followed, and requests are sent on.
//!
//! The state here is the fold of the same log, so it answers every look exactly, a moment later.
//! It is also what the next tenure begins with: a follower that is at the head of the log takes a
//! room over without reading it again.
//! While nobody owns the room, requests wait here for a moment: a planned handover takes
//! milliseconds, and nobody should notice it.

use super::Task;
use crate::clock::RoomClock;
use crate::error::{OpenError, Unanswered};
use crate::handle::Request;
use crate::liveness::Liveness;
use crate::peers::{Peers, Stance};
use crate::recover::{Recovered, recover};
use crate::waits::Waits;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use waitroom_core::{Board, Timestamp, What};
use waitroom_store::{Error, Head, Store};

/// How long requests wait for somebody to own the room. Longer than a handover, shorter than
/// anybody's patience; then they are told to come back.
const OWNER_AWAITED: Duration = Duration::from_millis(1_500);

/// Requests that are sent on at once.
const CARRIED_MAX: usize = 1_024;

/// How often a request is sent on: to the owner we knew, and from there to the next, twice. Whoever
/// is further behind than that should ask again.
const HOPS_MAX: u8 = 3;

/// After a store could not be read: soon, but not in circles.
const RETRY: Duration = Duration::from_millis(200);

/// A room as far as it was followed.
pub(super) struct Followed {
    pub(super) recovered: Recovered,
    pub(super) waits: Waits,
}

/// What comes after following.
pub(super) enum Next {
    Take,
    Stop,
}

/// What the follower was waiting for.
enum Came {
    Stop,
    /// None left means that the queue is closed.
    Requests(usize),
    /// The owner appended something, or the store could not be asked.
    Ahead(Result<Head, Error>),
    /// Somebody wants to see the newest.
    Nudge,
    Time,
}

type Ahead = Pin<Box<dyn Future<Output = Result<Head, Error>> + Send>>;

/// What a follower shows, and when it last did.
struct Shown {
    clock: RoomClock,
    liveness: Arc<Liveness>,
    board_at: Instant,
    version: u64,
}

impl<S: Store> Task<S> {
    /// Follows until this instance should own the room, or stop.
    pub(super) async fn follow(
        &mut self,
        peers: &Arc<dyn Peers>,
        warm: &mut Option<Followed>,
        opened: &mut Option<oneshot::Sender<Result<(), OpenError>>>,
    ) -> Result<Next, OpenError> {
        let name = self.shared.name.clone();
        // Whoever opens it reads it under the lease anyway.
        if warm.is_none() && self.should_take(peers) {
            return Ok(Next::Take);
        }
        self.shared.follows.store(true, Ordering::Release);
        // What was followed before is compared once: who owned the room meanwhile is not known.
        let (mut compared, mut listing) = (None, None);
        let mut beats = Some(self.shared.liveness.load_full());
        if warm.is_none() {
            beats = None;
            (compared, listing) = (Some(peers.owner(&name)), peers.listed());
            let recovered = recover(&*self.store, &name).await?;
            *warm = Some(Followed { recovered, waits: Waits::default() });
        }
        let followed = warm.as_mut().expect("it was made above");
        let mut shown = self.begin(followed, beats);
        self.shared.caught_up(listing);
        self.shared.figures.opened();
        if let Some(opened) = opened.take() {
            let _ = opened.send(Ok(()));
        }
        tracing::debug!(room = %name, version = followed.recovered.head, "room followed");
        let mut changes = peers.changes();
        let mut requests = Vec::new();
        let (mut unowned_since, mut stopping, mut retry_at) = (None, false, Instant::now());
        let mut ahead = self.ahead(followed, retry_at);
        // A look at the store that is due: asked for while the store was away, it is still wanted
        // when that is over.
        let mut look = false;
        loop {
            if !stopping && self.should_take(peers) {
                return Ok(Next::Take);
            }
            let now = Instant::now();
            let owned = peers.has_owner(&name);
            let since = *unowned_since.get_or_insert(now);
            let may_send = owned || stopping || now >= since + OWNER_AWAITED;
            if owned {
                unowned_since = None;
            }
            let board_due = (followed.recovered.head > shown.version)
                .then(|| shown.board_at + self.config.board_every);
            // A new owner may have found a shorter log than this one: then nothing would ever be
            // ahead of us, and we would show what was lost.
            look |= compared.as_ref() != Some(&peers.owner(&name));
            // And the others may not have counted with us, and waited for nothing that we show.
            look |= peers.listed().is_some_and(|listing| !self.shared.is_caught_up(listing));
            let look_due = look.then_some(retry_at);
            let wake = [board_due, look_due, (!may_send).then_some(since + OWNER_AWAITED)];
            let wake = wake.into_iter().flatten().min();
            let wake = wake.into_iter().chain(self.take_after.filter(|at| *at > now)).min();
            let came = tokio::select! {
                biased;
                _ = self.stop.wait_for(|stop| *stop), if !stopping => Came::Stop,
                count = self.inbox.recv_many(&mut requests, CARRIED_MAX), if may_send => {
                    Came::Requests(count)
                }
                _ = changes.changed() => Came::Time,
                () = self.shared.nudge.notified() => Came::Nudge,
                head = &mut ahead => Came::Ahead(head),
                () = super::renewal::until(wake), if wake.is_some() => Came::Time,
            };
            look |= matches!(came, Came::Nudge | Came::Ahead(Ok(_)));
            match came {
                Came::Stop => {
                    stopping = true;
                    self.inbox.close();
                }
                Came::Requests(0) => return Ok(Next::Stop),
                Came::Requests(_) => {
                    let epoch = followed.recovered.room.state().epoch().0;
                    for request in requests.drain(..) {
                        self.send_on(peers, request, owned, epoch);
                    }
                }
                Came::Ahead(Err(error)) => {
                    self.tell_of_loss(&error.to_string());
                    retry_at = Instant::now() + RETRY;
                    ahead = self.ahead(followed, retry_at);
                }
                // The store answers again, whatever happened before.
                Came::Ahead(Ok(_)) => retry_at = Instant::now(),
                Came::Nudge | Came::Time => {}
            }
            if look && Instant::now() >= retry_at {
                let asked = self.shared.looks_asked.load(Ordering::Acquire);
                let owner = peers.owner(&name);
                listing = peers.listed();
                match self.read_on(followed, &shown.liveness).await {
                    Ok(()) => {
                        (look, compared) = (false, Some(owner));
                        self.shared.figures.opened();
                        ahead = self.ahead(followed, retry_at);
                        self.show(followed, &mut shown);
                        self.shared.caught_up(listing);
                        self.shared.looks_taken.fetch_max(asked, Ordering::AcqRel);
                        self.shared.published.notify_waiters();
                    }
                    Err(OpenError::Store(
                        error @ (Error::Unavailable { .. } | Error::Unknown { .. }),
                    )) => {
                        self.tell_of_loss(&error.to_string());
                        retry_at = Instant::now() + RETRY;
                        ahead = self.ahead(followed, retry_at);
                    }
                    // Behind the trim, or another log: it is read from the beginning.
                    Err(error) => {
                        *warm = None;
                        if let OpenError::Diverged { .. } = error {
                            // Of this log nobody knows any version yet.
                            self.shared.committed.store(0, Ordering::Release);
                        }
                        return Err(error);
                    }
                }
            } else if board_due.is_some_and(|due| Instant::now() >= due) {
                self.show(followed, &mut shown);
            }
        }
    }

    /// Waits for the next append of the owner, asking the store from then on.
    fn ahead(&self, followed: &Followed, from: Instant) -> Ahead {
        let follow = self.store.follow(&self.shared.name, Head(followed.recovered.head));
        Box::pin(async move {
            tokio::time::sleep_until(from).await;
            follow.await
        })
    }

    fn should_take(&self, peers: &Arc<dyn Peers>) -> bool {
        self.take_after.is_none_or(|at| Instant::now() >= at)
            && peers.stance(&self.shared.name) == Stance::Own
    }

    fn send_on(&self, peers: &Arc<dyn Peers>, request: Request, owned: bool, epoch: u32) {
        let (commands, hops, answer) = request.into_parts(&self.shared);
        if owned && hops < HOPS_MAX {
            peers.carry(&self.shared.name, commands, hops + 1, answer);
        } else {
            answer.give(Err(Unanswered::NotOwner { epoch }));
        }
    }

    /// The first picture; everybody's beats go on, or are kept anew where the room was read anew.
    fn begin(&self, followed: &mut Followed, beats: Option<Arc<Liveness>>) -> Shown {
        let state = followed.recovered.room.state();
        let reading = self.shared.reading();
        let clock = RoomClock::open(state.last_at(), reading);
        let now = state.last_at().max(Timestamp(reading.wall_ms));
        let liveness = beats.unwrap_or_else(|| {
            let liveness = Arc::new(Liveness::open(state, now));
            // Of some of those who were heard of before the owner may not have been told.
            liveness.hear_of_all(&self.shared.liveness.load(), now);
            self.shared.liveness.store(liveness.clone());
            liveness
        });
        let mut shown = Shown { clock, liveness, board_at: Instant::now(), version: 0 };
        self.show(followed, &mut shown);
        shown
    }

    /// Publishes what was followed so far.
    fn show(&self, followed: &mut Followed, shown: &mut Shown) {
        let Followed { recovered, waits } = followed;
        let reading = self.shared.reading();
        let last_at = recovered.room.state().last_at();
        let mut now = shown.clock.now(reading);
        if now < last_at {
            // The owner's clock is ahead of ours, and events are right.
            shown.clock = RoomClock::open(last_at, reading);
            now = shown.clock.now(reading);
        }
        self.shared.set_time(reading, now);
        if let Some(outlook) = waits.advance(now, &recovered.room) {
            self.shared.outlook.store(Arc::new(outlook));
        }
        self.shared.committed.fetch_max(recovered.head, Ordering::AcqRel);
        shown.board_at = Instant::now();
        if recovered.head > shown.version || recovered.head == 0 {
            shown.version = recovered.head;
            let state = recovered.room.state().clone();
            self.shared.publish(Board::new(state, recovered.head, now));
        }
    }

    /// Absorbs what the owner appended since. Where that is nothing, looks whether the log still
    /// ends as it did.
    async fn read_on(&self, followed: &mut Followed, live: &Liveness) -> Result<(), OpenError> {
        let Followed { recovered, waits } = followed;
        let see = |event: &waitroom_core::Event, room: &waitroom_core::Room| {
            waits.note(event, room);
            match &event.what {
                What::Joined(joined) => live.joined(joined.ticket, event.at),
                What::Moved { to, .. } => live.joined(*to, event.at),
                What::ForgotTickets(block) => live.forgot(*block),
                _ => {}
            }
        };
        let before = recovered.head;
        recovered.go_on(&*self.store, &self.shared.name, see).await?;
        if recovered.head == before && !recovered.fits(self.store.tip(&self.shared.name).await?) {
            return Err(OpenError::Diverged { at: before });
        }
        Ok(())
    }
}
