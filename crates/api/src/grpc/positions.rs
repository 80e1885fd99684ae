//! `StreamQueuePosition`: positions as they change.
//!
//! The first message comes at once; then one whenever status or position changed, not sooner than
//! [`GAP`] after the last, and not later than [`EVERY`]. After a final status the stream ends. An
//! open stream is a heartbeat.
//!
//! Nothing is queued anywhere: the next message is made when the connection has room for it, from
//! the newest board there is. A slow client skips what it missed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use tonic::Status;
use tonic::codegen::tokio_stream::Stream;
use waitroom_core::{Millis, Presented, when};

use super::House;
use super::calls::look;
use super::checkout::Checkout;
use super::proto::StreamQueuePositionResponse;
use super::refusal::refused;
use super::session::Standing;
use crate::desk::{Pending, RoomDesk};
use crate::problem::{Code, Problem};

/// About once a second; a little less, so that with the time until a board is published an
/// admission is told within a second.
const GAP: Duration = Duration::from_millis(900);
/// The contract's pace of position updates.
const EVERY: Duration = Duration::from_secs(5);

type Told = Result<StreamQueuePositionResponse, Status>;

/// The messages of one stream.
pub struct Positions {
    /// None once the last message is out.
    next: Option<Pending<'static, (Follower, Told)>>,
}

/// Whoever follows one ticket.
struct Follower {
    house: Arc<House>,
    room: Arc<RoomDesk>,
    presented: Presented,
    draining: watch::Receiver<bool>,
    last: Option<Last>,
    over: bool,
}

#[derive(Clone, Copy)]
struct Last {
    standing: Standing,
    at: Instant,
}

impl Positions {
    pub(super) fn open(house: Arc<House>, room: Arc<RoomDesk>, presented: Presented) -> Positions {
        let draining = house.desk.draining.subscribe();
        let follower = Follower { house, room, presented, draining, last: None, over: false };
        Positions { next: Some(Box::pin(follower.next())) }
    }
}

impl std::fmt::Debug for Positions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Positions").finish_non_exhaustive()
    }
}

impl Stream for Positions {
    type Item = Told;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Told>> {
        let me = self.get_mut();
        let Some(next) = &mut me.next else { return Poll::Ready(None) };
        let (follower, told) = ready!(next.as_mut().poll(context));
        me.next = (!follower.over).then(|| Box::pin(follower.next()) as _);
        Poll::Ready(Some(told))
    }
}

/// What one look found.
struct Found {
    standing: Standing,
    /// The board's, so that the next one can be waited for.
    version: u64,
    beat_within: Millis,
    message: Option<StreamQueuePositionResponse>,
}

impl Follower {
    /// The next message, when it is due.
    async fn next(mut self) -> (Follower, Told) {
        let told = self.told().await;
        self.over |= told.is_err();
        (self, told)
    }

    async fn told(&mut self) -> Told {
        if let Some(last) = self.last {
            self.sleep_until(last.at + GAP).await?;
        }
        loop {
            let found = self.find().await.map_err(refused)?;
            if let Some(message) = found.message {
                self.over = found.standing.is_final();
                self.last = Some(Last { standing: found.standing, at: Instant::now() });
                return Ok(message);
            }
            // Two beats may be lost before the place is.
            let beat = Duration::from_millis(found.beat_within.0 / 3);
            let due = self.last.map_or_else(Instant::now, |last| last.at + EVERY);
            self.newer(found.version, due.min(Instant::now() + beat)).await?;
        }
    }

    /// Looks, and makes the message if there is something to tell.
    async fn find(&self) -> Result<Found, Problem> {
        let (house, room) = (&self.house, &self.room);
        look(room, self.presented, |state, sight| {
            let standing = Standing::of(state, sight);
            let told = |last: Last| {
                last.standing.status == standing.status
                    && last.standing.position == standing.position
                    && last.at + EVERY > Instant::now()
            };
            let message = (!self.last.is_some_and(told)).then(|| {
                let Checkout { token, url } = house.checkouts.of(&house.desk, room, state, sight);
                StreamQueuePositionResponse {
                    session_id: sight.id.to_string(),
                    position: standing.position,
                    queue_length: standing.queue_length,
                    status: standing.status.into(),
                    updated_at: when::utc(room.now().0),
                    checkout_token: token,
                    checkout_url: url,
                }
            });
            let beat_within =
                state.settings().map_or_else(Default::default, |it| it.heartbeat_timeout);
            Found { standing, version: sight.version, beat_within, message }
        })
        .await
    }

    async fn newer(&mut self, version: u64, until: Instant) -> Result<(), Status> {
        let newer = timeout_at(until, self.room.handle().next_board(version));
        tokio::select! {
            // Late or not: it is time to look.
            _ = newer => Ok(()),
            _ = self.draining.wait_for(|draining| *draining) => Err(stopping()),
        }
    }

    async fn sleep_until(&mut self, until: Instant) -> Result<(), Status> {
        tokio::select! {
            () = sleep_until(until) => Ok(()),
            _ = self.draining.wait_for(|draining| *draining) => Err(stopping()),
        }
    }
}

fn stopping() -> Status {
    let detail = "open the stream again: another instance, or this one restarted, goes on";
    refused(Problem::new(Code::Stopping, detail))
}
