//! What is on its way to a sink: batches of messages, the oldest first.
//!
//! While one batch waits for its acknowledgement the next is read, translated and, where the sink
//! keeps the order of what is under way ([`Sink::AT_ONCE`]), sent, from one read of the log to the
//! next. Otherwise a bus would stand idle while we work, and we while it does.
//! Promise: the relay's progress moves over the oldest batch only, and only when it is acknowledged.
//! When it fails, everything behind it is called back, and begins again when it has arrived: a
//! batch that is refused for an hour does not take seven others along each time.
//! Lives here: that order, and trying again. Stays out: reading and translating (`relay.rs`).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::time::sleep;
use waitroom_store::{Error, Head, Store};

use crate::backoff::Backoff;
use crate::message::Message;
use crate::relay::{LOOK_EVERY, Progress, Relay};
use crate::sink::{Sink, Trouble};
use crate::trail::Trail;

pub(crate) struct Flight<'a, S: Store, K: Sink> {
    relay: &'a Relay<S, K>,
    /// Never more than the sink takes at once.
    deliveries: VecDeque<Delivery<'a>>,
    /// The oldest failed and has not arrived since: the others stay here.
    alone: bool,
    backoff: Backoff,
}

/// What a batch tells of: everything up to `head`, of which the oldest waits since then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upto {
    pub head: Head,
    pub since_ms: u64,
}

/// A batch, and how far its delivery has come.
struct Delivery<'a> {
    upto: Upto,
    /// Shared with the delivery, which is dropped when it is called back.
    messages: Arc<Vec<Message>>,
    /// So many from the front have arrived for good.
    done: usize,
    state: State<'a>,
}

enum State<'a> {
    /// Not begun, or called back.
    Here,
    UnderWay(Pin<Box<dyn Future<Output = Result<(), Trouble>> + Send + 'a>>),
    Over(Result<(), Trouble>),
}

impl<'a, S: Store, K: Sink> Flight<'a, S, K> {
    pub fn new(relay: &'a Relay<S, K>) -> Flight<'a, S, K> {
        Flight { relay, deliveries: VecDeque::new(), alone: false, backoff: relay.backoff() }
    }

    /// Puts messages, which tell of everything up to there, on their way; waits only while too much
    /// is under way already.
    pub async fn send(
        &mut self,
        messages: Vec<Message>,
        upto: Upto,
        progress: &mut Progress,
        trail: &mut Trail,
    ) -> Result<(), Error> {
        self.settle(K::AT_ONCE.max(1) - 1, progress).await?;
        trail.sends(upto.head);
        if self.deliveries.is_empty() {
            progress.figures.waits_since(upto.since_ms);
        }
        let messages = Arc::new(messages);
        self.deliveries.push_back(Delivery { upto, messages, done: 0, state: State::Here });
        self.begin().await;
        Ok(())
    }

    /// How far the log is told when all of it has arrived; none if nothing is under way.
    pub fn told_up_to(&self) -> Option<Head> {
        self.deliveries.back().map(|newest| newest.upto.head)
    }

    /// Waits for something else, and looks after what is under way meanwhile: a delivery that
    /// nobody polls would keep what it holds of the sink from the other rooms.
    pub async fn beside<T>(&mut self, other: impl Future<Output = T>) -> T {
        let mut other = pin!(other);
        poll_fn(|cx| {
            self.go_on(cx);
            other.as_mut().poll(cx)
        })
        .await
    }

    /// Waits until no more than so many batches are under way.
    pub async fn settle(&mut self, left: usize, progress: &mut Progress) -> Result<(), Error> {
        while self.deliveries.len() > left {
            match self.oldest(progress).await {
                Ok(()) => self.arrived(progress).await?,
                Err(trouble) => self.failed(trouble, progress).await?,
            }
        }
        Ok(())
    }

    /// Begins whatever is not under way and may be, oldest first, and lets each write what it can.
    async fn begin(&mut self) {
        let sink = &self.relay.sink;
        let most = if self.alone { 1 } else { self.deliveries.len() };
        let failed = |it: &Delivery<'_>| matches!(it.state, State::Over(Err(_)));
        let most = self.deliveries.iter().position(failed).map_or(most, |at| most.min(at));
        for delivery in self.deliveries.iter_mut().take(most) {
            if matches!(delivery.state, State::Here) {
                let (messages, done) = (delivery.messages.clone(), delivery.done);
                delivery.state = State::UnderWay(Box::pin(async move {
                    match &messages[done..] {
                        // All of it was left out by a filter: the cursor moves, and that is all.
                        [] => Ok(()),
                        some => sink.deliver(some).await,
                    }
                }));
            }
        }
        poll_fn(|cx| {
            self.go_on(cx);
            Poll::Ready(())
        })
        .await;
    }

    /// Always from the oldest to the newest: what a sink has in hand first it sends first. What is
    /// behind a failure is called back at once: it would arrive before what failed is sent again,
    /// and one that was only left alone could hold what the oldest waits for.
    fn go_on(&mut self, cx: &mut Context<'_>) {
        let mut behind_a_failure = false;
        for delivery in &mut self.deliveries {
            if behind_a_failure {
                delivery.state = State::Here;
                continue;
            }
            if let State::UnderWay(future) = &mut delivery.state
                && let Poll::Ready(result) = future.as_mut().poll(cx)
            {
                delivery.state = State::Over(result);
            }
            behind_a_failure = matches!(delivery.state, State::Over(Err(_)));
        }
    }

    /// What becomes of the oldest. While it takes its time, somebody looks how far the log has gone
    /// on.
    async fn oldest(&mut self, progress: &Progress) -> Result<(), Trouble> {
        let Relay { store, room, .. } = self.relay;
        loop {
            let over = poll_fn(|cx| {
                self.go_on(cx);
                match self.deliveries.front().map(|it| &it.state) {
                    Some(State::Over(result)) => Poll::Ready(result.clone()),
                    _ => Poll::Pending,
                }
            });
            tokio::select! {
                biased;
                result = over => return result,
                () = sleep(LOOK_EVERY) => {
                    if let Ok(head) = self.beside(store.committed_head(room)).await {
                        progress.figures.grows(head.0);
                    }
                }
            }
        }
    }

    async fn arrived(&mut self, progress: &mut Progress) -> Result<(), Error> {
        let arrived = self.deliveries.pop_front().expect("the oldest has just arrived");
        let Relay { figures, room, name: sink, pace, .. } = self.relay;
        if !arrived.messages.is_empty() {
            figures.delivered.add((arrived.messages.len() - arrived.done) as u64);
            if self.backoff.tries() > 0 {
                tracing::info!(%room, %sink, "the sink takes events again");
            }
            figures.set_trouble(None);
            self.backoff.reset();
        }
        progress.at = arrived.upto.head;
        progress.figures.acknowledged(progress.at.0);
        if let Some(next) = self.deliveries.front() {
            progress.figures.waits_since(next.upto.since_ms);
        }
        if std::mem::take(&mut self.alone) {
            self.begin().await;
        }
        if progress.kept_when.elapsed() >= pace.advance_every {
            let relay = self.relay;
            self.beside(relay.keep(progress)).await?;
        }
        Ok(())
    }

    /// Calls back all that is under way, waits, and begins again with the oldest.
    async fn failed(&mut self, trouble: Trouble, progress: &Progress) -> Result<(), Error> {
        for delivery in &mut self.deliveries {
            delivery.state = State::Here;
        }
        // Once: what fails by itself too is in trouble, whatever it says.
        if !std::mem::replace(&mut self.alone, true) && trouble.at_once {
            self.begin().await;
            return Ok(());
        }
        let Relay { figures, room, name: sink, .. } = self.relay;
        figures.failures.one();
        if trouble.done > 0 {
            figures.delivered.add(trouble.done as u64);
            self.deliveries.front_mut().expect("the oldest failed").done += trouble.done;
            self.backoff.reset();
        }
        // Said once for each outage: a bus that is away for an hour fills no log.
        if self.backoff.tries() == 0 {
            tracing::warn!(%room, %sink, %trouble, "the sink takes no events");
        }
        figures.set_trouble(Some(trouble.why));
        sleep(self.backoff.wait().max(trouble.wait)).await;
        self.relay.gave_up(progress).await?;
        self.begin().await;
        Ok(())
    }
}
