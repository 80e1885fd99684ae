//! The task of one room: takes commands in rounds, appends, then answers.
//!
//! Lives here: waiting and order. What a round decides is in `writer.rs`, which the simulator
//! drives as well. If an append fails, the tenure ends and the room is rebuilt from the store:
//! memory that ran ahead of the log is not to be trusted.

mod gather;

use crate::caught::caught;
use crate::clock::RoomClock;
use crate::config::{Config, FOREVER};
use crate::draw_keeper::DrawKeeper;
use crate::error::{OpenError, Unanswered};
use crate::figures::Tally;
use crate::handle::{Answer, Answers, Commands, Request, Shared};
use crate::recover::recover;
use crate::waits::Outlook;
use crate::writer::{Round, Writer};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use waitroom_core::{Board, Command, Epoch, Phase, PreparedDraw, Reply, State, Timestamp, View};
use waitroom_store::{AppendError, Appended, Batch, Chain, Head, Lease, LeaseName, Seams, Store};
use waitroom_watch::span;

pub(crate) struct Task<S: Store> {
    pub(crate) store: Arc<S>,
    pub(crate) seams: Seams,
    pub(crate) config: Arc<Config>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) inbox: mpsc::Receiver<Request>,
    pub(crate) stop: watch::Receiver<bool>,
}

/// How a tenure ended.
enum Ended {
    Stopped,
    Fenced(u32),
    Failed(String),
}

type Append = Pin<Box<dyn Future<Output = Result<Appended, AppendError>> + Send>>;

/// A round on its way to the disk, with all that waits for it.
struct InFlight {
    append: Append,
    since: std::time::Instant,
    events: u32,
    tally: Tally,
    head: u64,
    closes_draw: bool,
    held: Vec<Held>,
    board: Option<Board>,
    outlook: Option<Outlook>,
    snapshot: Option<State>,
}

/// An answer that must not leave before its round is durable.
struct Held {
    replies: HeldReplies,
    to: oneshot::Sender<Result<Answers, Unanswered>>,
    followed: Option<span::Context>,
}

enum HeldReplies {
    One(Viewed),
    Many(Vec<Viewed>),
}

/// A reply and the ticket it is about, seen right after the command: the next command of the round
/// may already change it.
struct Viewed {
    reply: Reply,
    view: Option<View>,
    changed: bool,
}

/// Everything of one tenure.
struct Tenure<'a, S: Store> {
    task: &'a mut Task<S>,
    lease: Lease,
    writer: Writer,
    clock: RoomClock,
    draws: DrawKeeper,
    drawing: Option<JoinHandle<PreparedDraw>>,
    in_flight: VecDeque<InFlight>,
    committed: u64,
    chain: Chain,
    board_at: Timestamp,
    board_version: u64,
    snapshot_head: u64,
    snapshot: Option<JoinHandle<()>>,
    /// Something was left over by the last tick.
    behind: bool,
    renewal: Renewal,
}

/// Keeps the lease while others could take it.
struct Renewal {
    due: Option<tokio::time::Instant>,
    asked: Option<JoinHandle<Result<(), waitroom_store::Error>>>,
}

/// Four tries fit in one lease: a single lost packet must not cost a takeover, and while a room has
/// no owner nobody is admitted.
const RENEWALS_PER_LEASE: u32 = 4;

/// Requests that take the writer about as long to decide as a quick disk takes to sync.
const OVERLAP_MIN: usize = 1_024;

/// What the task was waiting for.
enum Came {
    Appended(Result<Appended, AppendError>),
    Draw(Option<PreparedDraw>),
    RenewalDue,
    /// The epoch of the new owner, if the lease is lost.
    Renewed(Option<u32>),
    /// None left means that the queue is closed.
    Requests(usize),
    Time,
    Stop,
}

/// A room that cannot be opened is tried again, more and more slowly, up to this: people wait to
/// be let in, and a store that is back should not wait for us.
const RETRY_MAX: Duration = Duration::from_secs(1);

impl<S: Store> Task<S> {
    /// Brings the room up and says how that went, then runs it until told to stop.
    pub(crate) async fn run(mut self, opened: oneshot::Sender<Result<(), OpenError>>) {
        let mut opened = Some(opened);
        let mut retry = Duration::from_millis(50);
        loop {
            // In a box, because it is large and soon over, and the task stays.
            let opening = caught(Box::pin(self.open()).as_mut()).await;
            let failed = match opening.unwrap_or_else(|why| Err(OpenError::Broke { why })) {
                Ok((lease, writer, clock, draws, tip)) => {
                    if let Some(opened) = opened.take() {
                        let _ = opened.send(Ok(()));
                    }
                    retry = Duration::from_millis(50);
                    self.shared.figures.opened();
                    tracing::info!(
                        room = %self.shared.name,
                        version = tip.head.0,
                        epoch = lease.epoch,
                        "room opened"
                    );
                    let mut tenure = Tenure::new(&mut self, lease, writer, clock, draws, tip);
                    let ended = caught(pin!(tenure.run())).await;
                    match ended.unwrap_or_else(|why| tenure.broke(why)) {
                        Ended::Stopped => {
                            self.shared.figures.lost("the instance stops");
                            return;
                        }
                        Ended::Fenced(epoch) => {
                            tracing::warn!(room = %self.shared.name, epoch, "room has a new owner");
                            self.shared.figures.lost("another instance owns the room");
                            self.refuse_all(|| Unanswered::NotOwner { epoch });
                            return;
                        }
                        Ended::Failed(why) => why,
                    }
                }
                Err(error) => {
                    if let Some(opened) = opened.take() {
                        let _ = opened.send(Err(error));
                        return;
                    }
                    error.to_string()
                }
            };
            self.tell_of_loss(&failed);
            // Who waits in the queue, or comes meanwhile, learns at once that nothing was done.
            let until = tokio::time::Instant::now() + retry;
            loop {
                self.refuse_all(|| Unanswered::Unavailable { why: failed.clone() });
                tokio::select! {
                    biased;
                    _ = self.stop.wait_for(|stop| *stop) => return,
                    _ = tokio::time::sleep_until(until) => break,
                    request = self.inbox.recv() => {
                        let Some(request) = request else { return };
                        let why = failed.clone();
                        let _ = request.answer.send(Err(Unanswered::Unavailable { why }));
                    }
                }
            }
            retry = (retry * 2).min(RETRY_MAX);
        }
    }

    /// Lease first, so that nobody appends behind the end that is read; then the log; then the new
    /// epoch, durable before anything else happens.
    async fn open(
        &mut self,
    ) -> Result<(Lease, Writer, RoomClock, DrawKeeper, Appended), OpenError> {
        let name = LeaseName::room(&self.shared.name);
        let ttl = self.config.lease.unwrap_or(FOREVER).as_millis() as u64;
        let lease = self.store.lease(&name, &self.config.instance, ttl).await?;
        let recovered = recover(&*self.store, &self.shared.name).await?;
        let reading = self.shared.reading();
        let clock = RoomClock::open(recovered.room.state().last_at(), reading);
        let now = recovered.room.state().last_at().max(Timestamp(reading.wall_ms));
        let mut writer = Writer::open(recovered.room, recovered.head, Epoch(lease.epoch), now);
        writer.watch_waits();
        let outlook = writer.outlook(now);
        let first = writer.cut().expect("opening an epoch is an event");
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
        self.shared.publish(Board::new(writer.state().clone(), tip.head.0, now));
        Ok((lease, writer, clock, draws, tip))
    }

    /// Who reads the log at night must see what visitors meet, once for each loss and not for each
    /// try to mend it; `room opened` ends it.
    fn tell_of_loss(&self, why: &str) {
        let figures = &self.shared.figures;
        if figures.trouble().is_none() {
            figures.failures.one();
            let room = &self.shared.name;
            tracing::error!(%room, why, "room lost the store; nobody joins or is admitted until it is open again");
        }
        figures.lost(why);
    }

    fn refuse_all(&mut self, why: impl Fn() -> Unanswered) {
        while let Ok(request) = self.inbox.try_recv() {
            let _ = request.answer.send(Err(why()));
        }
    }
}

impl<'a, S: Store> Tenure<'a, S> {
    fn new(
        task: &'a mut Task<S>,
        lease: Lease,
        writer: Writer,
        clock: RoomClock,
        draws: DrawKeeper,
        tip: Appended,
    ) -> Self {
        let board_at = writer.state().last_at();
        let every = task.config.lease.map(|lease| lease / RENEWALS_PER_LEASE);
        let due = every.map(|every| tokio::time::Instant::now() + every);
        Tenure {
            task,
            lease,
            writer,
            clock,
            draws,
            drawing: None,
            in_flight: VecDeque::new(),
            committed: tip.head.0,
            chain: tip.chain,
            board_at,
            board_version: tip.head.0,
            snapshot_head: tip.head.0,
            snapshot: None,
            behind: true,
            renewal: Renewal { due, asked: None },
        }
    }

    async fn run(&mut self) -> Ended {
        let mut requests = Vec::new();
        let mut stopping = false;
        loop {
            let now = self.now();
            let may_decide = self.may_decide();
            let wake = self.wake(now).filter(|_| may_decide);
            let round = self.task.config.round;
            let came = tokio::select! {
                biased;
                appended = next(&mut self.in_flight), if !self.in_flight.is_empty() => {
                    Came::Appended(appended)
                }
                prepared = finished(&mut self.drawing), if self.drawing.is_some() && may_decide => {
                    Came::Draw(prepared.ok())
                }
                count = self.task.inbox.recv_many(&mut requests, round), if may_decide => {
                    Came::Requests(count)
                }
                renewed = renewed(&mut self.renewal.asked), if self.renewal.asked.is_some() => {
                    Came::Renewed(renewed)
                }
                _ = until(self.renewal.due), if self.renewal.due.is_some() => Came::RenewalDue,
                _ = sleep(wake), if wake.is_some() => Came::Time,
                _ = self.task.shared.nudge.notified() => Came::Time,
                _ = self.task.stop.wait_for(|stop| *stop), if !stopping => Came::Stop,
            };
            match came {
                Came::Appended(appended) => match self.appended(appended) {
                    Ok(()) => continue,
                    Err(ended) => return ended,
                },
                Came::Draw(prepared) => {
                    self.drawing = None;
                    let reveal =
                        prepared.and_then(|it| self.draws.reveal(self.writer.room_mut(), it));
                    if let Some(reveal) = reveal {
                        let now = self.now();
                        self.writer.apply(now, &reveal);
                    }
                }
                Came::RenewalDue => {
                    self.renew();
                    continue;
                }
                Came::Renewed(lost) => {
                    self.renewal.asked = None;
                    match lost {
                        Some(epoch) => return self.lose(epoch),
                        None => continue,
                    }
                }
                Came::Requests(0) => return self.finish().await,
                Came::Requests(_) if self.in_flight.is_empty() => self.gather(&mut requests).await,
                Came::Requests(_) => {}
                Came::Time => {}
                Came::Stop => {
                    stopping = true;
                    self.task.inbox.close();
                }
            }
            self.round(&mut requests);
        }
    }

    /// Whether another round may begin. While one is on its way to the disk the next gathers: a
    /// batch costs the same system calls whatever its size. Only a crowd that would keep the writer
    /// busy meanwhile is worth a second one.
    fn may_decide(&self) -> bool {
        match self.in_flight.len() {
            0 => true,
            on_the_way if on_the_way < self.task.config.in_flight => {
                self.task.inbox.len() >= OVERLAP_MIN
            }
            _ => false,
        }
    }

    /// Decides all that came, ticks what is due, and sends the batch on its way.
    fn round(&mut self, requests: &mut Vec<Request>) {
        let now = self.now();
        let mut held = Vec::with_capacity(requests.len());
        for request in requests.drain(..) {
            let replies = match request.commands {
                Commands::One(command) => HeldReplies::One(self.apply(now, &command)),
                Commands::Many(commands) => HeldReplies::Many(
                    commands.iter().map(|command| self.apply(now, command)).collect(),
                ),
                Commands::Reveal(beacon) => {
                    self.draws.beacon = Some(beacon);
                    HeldReplies::One(Viewed { reply: Reply::Done, view: None, changed: false })
                }
            };
            held.push(Held { replies, to: request.answer, followed: request.followed });
        }
        let entropy = self.task.seams.entropy.clone();
        self.behind = self.writer.tick(now, || entropy.next_u128().to_be_bytes());
        self.see_to_the_draw(now);
        match self.writer.cut() {
            Some(round) => {
                let append =
                    Box::pin(append(&*self.task.store, &self.task.shared, &self.lease, &round));
                self.in_flight.push_back(InFlight {
                    append,
                    since: std::time::Instant::now(),
                    events: round.events,
                    tally: round.tally,
                    head: round.head,
                    closes_draw: round.closes_draw,
                    held,
                    board: None,
                    outlook: None,
                    snapshot: None,
                });
            }
            // Nothing happened, but what was answered may rest on a round that is still on its
            // way: the answers wait for it.
            None => match self.in_flight.back_mut() {
                Some(last) => last.held.extend(held),
                None => deliver(held, self.committed),
            },
        }
        self.capture(now);
    }

    fn apply(&mut self, now: Timestamp, command: &Command) -> Viewed {
        let before = self.writer.round_events().len();
        let reply = self.writer.apply(now, command);
        let view = self.writer.view_of(now, &reply);
        Viewed { reply, view, changed: self.writer.round_events().len() > before }
    }

    /// Takes the pictures that are due; they go out when all that they show is durable.
    fn capture(&mut self, now: Timestamp) {
        if let Some(outlook) = self.writer.outlook(now) {
            match self.in_flight.back_mut() {
                Some(last) => last.outlook = Some(outlook),
                None => self.task.shared.outlook.store(Arc::new(outlook)),
            }
        }
        let head = self.writer.head();
        let wanted = self.task.shared.wanted.load(Ordering::Acquire) > self.board_version;
        let every = self.task.config.board_every.as_millis() as u64;
        if head > self.board_version && (wanted || now.since(self.board_at).0 >= every) {
            let board = Board::new(self.writer.state().clone(), head, now);
            self.board_at = now;
            self.board_version = head;
            match self.in_flight.back_mut() {
                Some(last) => last.board = Some(board),
                None => self.task.shared.publish(board),
            }
        }
        let due = head - self.snapshot_head >= self.task.config.snapshot_every;
        let idle = self.snapshot.as_ref().is_none_or(JoinHandle::is_finished);
        // While a draw is open its close must stay in the log: the draw needs the chain there.
        if due
            && idle
            && self.writer.state().phase() != Phase::Drawing
            && let Some(last) = self.in_flight.back_mut()
        {
            last.snapshot = Some(self.writer.state().clone());
            self.snapshot_head = head;
        }
    }

    fn appended(&mut self, appended: Result<Appended, AppendError>) -> Result<(), Ended> {
        let round = self.in_flight.pop_front().expect("something was on its way");
        let tip = match appended {
            Ok(tip) => tip,
            Err(error) => return Err(self.fail(round, error)),
        };
        debug_assert_eq!(tip.head.0, round.head, "the store counts events as we do");
        self.count(&round);
        self.committed = tip.head.0;
        // Before anybody hears of it: whoever was told of a version can ask for its board.
        self.task.shared.committed.store(self.committed, Ordering::Release);
        self.chain = tip.chain;
        if round.closes_draw {
            self.draws.chain = Some(tip.chain);
        }
        // First, so that whoever hears of their place finds what goes with it.
        if let Some(outlook) = round.outlook {
            self.task.shared.outlook.store(Arc::new(outlook));
        }
        deliver(round.held, self.committed);
        if let Some(board) = round.board {
            self.task.shared.publish(board);
        }
        if let Some(state) = round.snapshot {
            let (store, name) = (self.task.store.clone(), self.task.shared.name.clone());
            self.snapshot = Some(tokio::spawn(async move {
                keep_snapshot(&*store, &name, tip, state).await;
            }));
        }
        Ok(())
    }

    /// A round is durable: it is counted, and those who follow a request of it see how long that
    /// took.
    fn count(&self, round: &InFlight) {
        let figures = &self.task.shared.figures;
        let took = round.since.elapsed();
        figures.append.note(took.as_micros() as u64);
        figures.batch.note(u64::from(round.events));
        figures.durable(&round.tally);
        for followed in round.held.iter().filter_map(|held| held.followed) {
            let from_ns = span::now_ns().saturating_sub(took.as_nanos() as u64);
            let mut step = span::Open::past("journal append", followed, from_ns);
            step.note("waitroom.batch_events", u64::from(round.events));
            step.end();
        }
    }

    /// A failed append ends the tenure. Its own people hear what is known of their outcome, and
    /// so do those whose rounds were built on it.
    fn fail(&mut self, round: InFlight, error: AppendError) -> Ended {
        let why = error.to_string();
        let unanswered = |error: &AppendError| match error {
            AppendError::Unknown { .. } => Unanswered::OutcomeUnknown { why: why.clone() },
            AppendError::Fenced { epoch } => Unanswered::NotOwner { epoch: *epoch },
            _ => Unanswered::Unavailable { why: why.clone() },
        };
        for held in round.held {
            let _ = held.to.send(Err(unanswered(&error)));
        }
        // Those behind it were decided on a head that may never come.
        for round in self.in_flight.drain(..) {
            for held in round.held {
                let _ = held.to.send(Err(match &error {
                    AppendError::Fenced { .. } => unanswered(&error),
                    _ => Unanswered::OutcomeUnknown { why: why.clone() },
                }));
            }
        }
        match error {
            AppendError::Fenced { epoch } => Ended::Fenced(epoch),
            _ => Ended::Failed(why),
        }
    }

    fn renew(&mut self) {
        let Some(ttl) = self.task.config.lease else { return };
        self.renewal.due = Some(tokio::time::Instant::now() + ttl / RENEWALS_PER_LEASE);
        if self.renewal.asked.is_none() {
            let (store, lease) = (self.task.store.clone(), self.lease.clone());
            let ttl = ttl.as_millis() as u64;
            self.renewal.asked = Some(tokio::spawn(async move { store.renew(&lease, ttl).await }));
        }
    }

    /// Another owns the room: nothing that is on its way will be in the log.
    fn lose(&mut self, epoch: u32) -> Ended {
        self.abandon("the room has a new owner");
        Ended::Fenced(epoch)
    }

    /// We panicked. What is on its way may arrive; the room is rebuilt from what did.
    fn broke(&mut self, why: String) -> Ended {
        self.abandon(&why);
        Ended::Failed(why)
    }

    fn abandon(&mut self, why: &str) {
        for round in self.in_flight.drain(..) {
            for held in round.held {
                let why = why.to_owned();
                let _ = held.to.send(Err(Unanswered::OutcomeUnknown { why }));
            }
        }
    }

    fn see_to_the_draw(&mut self, now: Timestamp) {
        let (vault, entropy) = (&self.task.config.vault, &self.task.seams.entropy);
        let name = &self.task.shared.name;
        let commitment = self.draws.commitment(self.writer.room(), name, vault, entropy);
        if let Some(commitment) = commitment {
            self.writer.apply(now, &commitment);
        }
        if let Some(job) = self.draws.job(self.writer.room(), name, vault) {
            self.drawing = Some(tokio::task::spawn_blocking(move || job.run()));
        }
    }

    /// How long until somebody should look, if nothing comes first.
    fn wake(&self, now: Timestamp) -> Option<Duration> {
        let board_due = (self.writer.head() > self.board_version).then(|| {
            self.board_at
                .after(waitroom_core::Millis(self.task.config.board_every.as_millis() as u64))
        });
        let work = if self.behind { Some(now) } else { self.writer.next_deadline(now) };
        let wanted = self.task.shared.wanted.load(Ordering::Acquire) > self.board_version
            && self.writer.head() > self.board_version;
        let outlook_due = self.writer.outlook_due();
        let due = [board_due, work, wanted.then_some(now), outlook_due];
        let due = due.into_iter().flatten().min()?;
        Some(Duration::from_millis(due.since(now).0.min(3_600_000)))
    }

    fn now(&mut self) -> Timestamp {
        let reading = self.task.shared.reading();
        let now = self.clock.now(reading);
        self.task.shared.set_time(reading, now);
        now
    }

    /// The queue is closed and empty: waits for what is on its way and gives the lease back.
    async fn finish(&mut self) -> Ended {
        while !self.in_flight.is_empty() {
            let appended = next(&mut self.in_flight).await;
            if let Err(ended) = self.appended(appended) {
                return ended;
            }
        }
        let board = Board::new(self.writer.state().clone(), self.committed, self.board_at);
        self.task.shared.publish(board);
        if let Some(snapshot) = self.snapshot.take() {
            let _ = snapshot.await;
        }
        // A restart then begins where this ended, without a replay.
        if self.committed > self.snapshot_head + self.task.config.snapshot_every / 100
            && self.writer.state().phase() != Phase::Drawing
        {
            let tip = Appended { head: Head(self.committed), chain: self.chain };
            let state = self.writer.state().clone();
            keep_snapshot(&*self.task.store, &self.task.shared.name, tip, state).await;
        }
        let _ = self.task.store.release(&self.lease).await;
        Ended::Stopped
    }
}

fn append<S: Store>(
    store: &S,
    shared: &Shared,
    lease: &Lease,
    round: &Round,
) -> impl Future<Output = Result<Appended, AppendError>> + Send + 'static + use<S> {
    let Round { number, events, .. } = *round;
    let batch = Batch { number, events, payload: round.payload.clone() };
    store.append(&shared.name, lease, Head(round.expected), batch)
}

/// Writes a snapshot, then lets go of the log that it makes unnecessary. A snapshot that fails
/// costs a longer replay, nothing else.
async fn keep_snapshot<S: Store>(
    store: &S,
    name: &waitroom_store::RoomName,
    tip: Appended,
    state: State,
) {
    if store.snapshot(name, tip.head, tip.chain, state.into_snapshot()).await.is_ok()
        && let Ok(limit) = store.trim_limit(name).await
    {
        let _ = store.trim(name, limit).await;
    }
}

fn deliver(held: Vec<Held>, version: u64) {
    for Held { replies, to, .. } in held {
        let answer = |Viewed { reply, view, changed }| Answer { reply, view, changed, version };
        let answers = match replies {
            HeldReplies::One(reply) => Answers::One(answer(reply)),
            HeldReplies::Many(replies) => Answers::Many(replies.into_iter().map(answer).collect()),
        };
        // Whoever gave up waiting has still joined; a repeat finds the place.
        let _ = to.send(Ok(answers));
    }
}

/// The oldest append on its way; answers come in order.
async fn next(in_flight: &mut VecDeque<InFlight>) -> Result<Appended, AppendError> {
    poll_fn(|context| match in_flight.front_mut() {
        Some(round) => round.append.as_mut().poll(context),
        None => Poll::Pending,
    })
    .await
}

async fn finished(
    drawing: &mut Option<JoinHandle<PreparedDraw>>,
) -> Result<PreparedDraw, tokio::task::JoinError> {
    match drawing {
        Some(handle) => handle.await,
        None => std::future::pending().await,
    }
}

/// How a renewal went: the new owner's epoch if it was refused, nothing if it worked or could not
/// be asked; then the next one tries again.
async fn renewed(asked: &mut Option<JoinHandle<Result<(), waitroom_store::Error>>>) -> Option<u32> {
    match asked {
        Some(handle) => match handle.await {
            Ok(Err(waitroom_store::Error::Lost { epoch })) => Some(epoch),
            _ => None,
        },
        None => std::future::pending().await,
    }
}

async fn until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

async fn sleep(wake: Option<Duration>) {
    match wake {
        Some(wake) => tokio::time::sleep(wake).await,
        None => std::future::pending().await,
    }
}

/// A command that the housekeeper sends on nobody's behalf.
pub(crate) fn lapse(tickets: Vec<waitroom_core::Ticket>) -> Command {
    Command::Lapse { tickets }
}
