//! The task of one room: takes commands in rounds, appends, then answers.
//!
//! Lives here: waiting and order. What a round decides is in `writer.rs`, which the simulator
//! drives as well. If an append fails, the tenure ends and the room is rebuilt from the store:
//! memory that ran ahead of the log is not to be trusted.

mod ending;
mod following;
mod gather;
mod opening;
mod renewal;
mod waiting;

use crate::caught::caught;
use crate::clock::RoomClock;
use crate::config::Config;
use crate::draw_keeper::DrawKeeper;
use crate::error::{OpenError, Unanswered};
use crate::figures::Tally;
use crate::handle::{Answer, Answers, Commands, Request, Shared};
use crate::peers::{Peers, Stance};
use crate::waits::Outlook;
use crate::writer::{Round, Writer};
use following::{Followed, Next};
use opening::Opening;
use renewal::{Renewal, Renewed, renewed, until};
use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use waiting::{changed, deliver, finished, next, sleep};
use waitroom_core::{Board, Command, Phase, PreparedDraw, Reply, State, Timestamp};
use waitroom_store::{AppendError, Appended, Batch, Chain, Head, Lease, Seams, Store};
use waitroom_watch::span;

pub(crate) struct Task<S: Store> {
    pub(crate) store: Arc<S>,
    pub(crate) seams: Seams,
    pub(crate) config: Arc<Config>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) inbox: mpsc::Receiver<Request>,
    pub(crate) stop: watch::Receiver<bool>,
    /// Somebody held the lease: not to be asked for again before that.
    pub(crate) take_after: Option<tokio::time::Instant>,
}

/// How a tenure ended.
enum Ended {
    Stopped,
    /// Handed over in order: whoever should own the room takes it now.
    Given,
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
    /// All but the version, which is that of the round.
    answers: Answers,
    to: oneshot::Sender<Result<Answers, Unanswered>>,
    followed: Option<span::Context>,
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

/// Requests that take the writer about as long to decide as a quick disk takes to sync.
const OVERLAP_MIN: usize = 1_024;

/// Why an owner ends its tenure by itself.
const DOUBTFUL: &str = "the lease may have run out";

/// What the task was waiting for.
enum Came {
    Appended(Result<Appended, AppendError>),
    Draw(Option<PreparedDraw>),
    RenewalDue,
    Renewed(Renewed),
    /// Another instance came or went.
    Peers,
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
        let mut warm = None;
        let peers = self.config.peers.clone();
        loop {
            let failed = match self.serve(&peers, &mut warm, &mut opened, &mut retry).await {
                Ok(true) => continue,
                Ok(false) => return,
                Err(error) => {
                    if let Some(opened) = opened.take() {
                        let _ = opened.send(Err(error));
                        return;
                    }
                    error.to_string()
                }
            };
            warm = None;
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

    /// Follows the room as long as another instance owns it, then owns it. Says whether to go on.
    async fn serve(
        &mut self,
        peers: &Option<Arc<dyn Peers>>,
        warm: &mut Option<Followed>,
        opened: &mut Option<oneshot::Sender<Result<(), OpenError>>>,
        retry: &mut Duration,
    ) -> Result<bool, OpenError> {
        if let Some(peers) = peers {
            // In a box, because it is large, and the task of an owner stays.
            let following = caught(Box::pin(self.follow(peers, warm, opened)).as_mut()).await;
            let following = following.unwrap_or_else(|why| Err(OpenError::Broke { why }));
            match following.inspect_err(|error| self.pass_over(peers, error))? {
                Next::Stop => return Ok(false),
                Next::Take => {}
            }
        }
        let opening = caught(Box::pin(self.open(warm)).as_mut()).await;
        let opening = match opening.unwrap_or_else(|why| Err(OpenError::Broke { why })) {
            Err(OpenError::Store(waitroom_store::Error::Held { left_ms, .. }))
                if peers.is_some() =>
            {
                let pause = Duration::from_millis(left_ms.clamp(10, 250));
                self.take_after = Some(tokio::time::Instant::now() + pause);
                return Ok(true);
            }
            opening => opening.inspect_err(|error| {
                peers.iter().for_each(|peers| self.pass_over(peers, error));
            })?,
        };
        if let Some(opened) = opened.take() {
            let _ = opened.send(Ok(()));
        }
        *retry = Duration::from_millis(50);
        self.shared.figures.opened();
        let (version, epoch) = (opening.tip.head.0, opening.lease.epoch);
        tracing::info!(room = %self.shared.name, version, epoch, "room opened");
        if let Some(peers) = peers {
            peers.owned(&self.shared.name, epoch);
        }
        let name = self.shared.name.clone();
        let mut tenure = Tenure::new(self, opening);
        let ended = caught(pin!(tenure.run())).await;
        let ended = ended.unwrap_or_else(|why| tenure.broke(why));
        if let Ended::Given = ended {
            let followed = tenure.into_followed();
            tracing::info!(room = %name, version = followed.recovered.head, "room handed over");
            if let Some(peers) = peers {
                peers.parted(&name, Some(followed.recovered.head));
            }
            *warm = Some(followed);
            return Ok(true);
        }
        if let Some(peers) = peers {
            peers.parted(&name, None);
        }
        match ended {
            Ended::Given => unreachable!("it was seen to above"),
            Ended::Stopped => {
                self.shared.figures.lost("the instance stops");
                Ok(false)
            }
            Ended::Fenced(epoch) => {
                tracing::warn!(room = %name, epoch, "room has a new owner");
                self.shared.figures.lost("another instance owns the room");
                self.refuse_all(|| Unanswered::NotOwner { epoch });
                Ok(peers.is_some())
            }
            Ended::Failed(why) => Err(OpenError::Broke { why }),
        }
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
        Opening { lease, writer, clock, draws, tip, renewal }: Opening,
    ) -> Self {
        let board_at = writer.state().last_at();
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
            renewal,
        }
    }

    async fn run(&mut self) -> Ended {
        let mut requests = Vec::new();
        let mut stopping = false;
        let mut changes = self.task.config.peers.as_ref().map(|peers| peers.changes());
        // What changed while the room was opened counts as well.
        changes.iter_mut().for_each(watch::Receiver::mark_changed);
        // Another should have the room, and could not be given it yet.
        let mut owed = false;
        loop {
            if owed && self.drawing.is_none() {
                owed = false;
                if self.should_give() {
                    return self.give().await;
                }
            }
            if self.in_flight.is_empty() && !self.renewal.is_certain() {
                return Ended::Failed(DOUBTFUL.into());
            }
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
                // Before requests: a crowd must not keep the owner from staying one.
                renewed = renewed(&mut self.renewal.asked), if self.renewal.asked.is_some() => {
                    Came::Renewed(renewed)
                }
                _ = until(self.renewal.due), if self.renewal.due.is_some() => Came::RenewalDue,
                () = changed(&mut changes), if !stopping => Came::Peers,
                count = self.task.inbox.recv_many(&mut requests, round), if may_decide => {
                    Came::Requests(count)
                }
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
                Came::Renewed(renewed) => {
                    let listing = self.renewal.note(&renewed, self.task.config.lease);
                    self.task.shared.caught_up(listing);
                    match renewed {
                        Renewed::Lost(epoch) => return self.lose(epoch),
                        Renewed::Kept | Renewed::Unasked => continue,
                    }
                }
                Came::Peers if self.should_give() => return self.give().await,
                Came::Peers => {
                    owed = self.drawing.is_some();
                    continue;
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
            if self.renewal.is_certain() {
                self.round(&mut requests);
            } else {
                // Time has stood still for us since we last looked: this may be another's room.
                let why = || Unanswered::Unavailable { why: DOUBTFUL.into() };
                for request in requests.drain(..) {
                    let _ = request.answer.send(Err(why()));
                }
            }
        }
    }

    /// Whether another round may begin. While one is on its way to the disk the next gathers: a
    /// batch costs the same system calls whatever its size. Only a crowd that would keep the writer
    /// busy meanwhile is worth a second one.
    fn may_decide(&self) -> bool {
        match self.in_flight.len() {
            _ if !self.renewal.is_certain() => false,
            0 => true,
            on_the_way if on_the_way < self.task.config.in_flight => {
                self.task.inbox.len() >= OVERLAP_MIN
            }
            _ => false,
        }
    }

    /// Whether another instance should have the room. A draw that is being worked out is waited
    /// for: the next owner would have to begin again.
    fn should_give(&self) -> bool {
        let stance = |peers: &Arc<dyn Peers>| peers.stance(&self.task.shared.name);
        self.drawing.is_none()
            && self.task.config.peers.as_ref().map(stance) == Some(Stance::Follow)
    }

    /// Decides all that came, ticks what is due, and sends the batch on its way.
    fn round(&mut self, requests: &mut Vec<Request>) {
        let now = self.now();
        let mut held = Vec::with_capacity(requests.len());
        for request in requests.drain(..) {
            // By reference: a command is large, and nobody needs it afterwards.
            let answers = match &request.commands {
                Commands::One(command) => Answers::One(self.apply(now, command)),
                Commands::Many(commands) => {
                    Answers::Many(commands.iter().map(|command| self.apply(now, command)).collect())
                }
                Commands::Reveal(beacon) => {
                    self.draws.beacon = Some(beacon.clone());
                    let reply = Reply::Done;
                    Answers::One(Answer { reply, view: None, changed: false, version: 0 })
                }
            };
            held.push(Held { answers, to: request.answer, followed: request.followed });
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

    /// The answer but for its version, which is known when the round is durable. The ticket is
    /// seen right after the command: the next one of the round may already change it.
    fn apply(&mut self, now: Timestamp, command: &Command) -> Answer {
        let before = self.writer.round_events().len();
        let reply = self.writer.apply(now, command);
        let view = self.writer.view_of(now, &reply).map(Box::new);
        let changed = self.writer.round_events().len() > before;
        Answer { reply, view, changed, version: 0 }
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

/// A command that the housekeeper sends on nobody's behalf.
pub(crate) fn lapse(tickets: Vec<waitroom_core::Ticket>) -> Command {
    Command::Lapse { tickets }
}
