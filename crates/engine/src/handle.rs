//! What the rest of the program holds of a room: a way in, the board, and the beats.

use crate::clock::Reading;
use crate::error::Unanswered;
use crate::figures::Figures;
use crate::liveness::{Heard, Liveness, Mark};
use crate::peers::{Answering, Peers};
use crate::waits::Outlook;
use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::{Notify, mpsc, oneshot};
use waitroom_core::estimate::Doors;
use waitroom_core::{Actor, Board, Command, Millis, Reply, Room, Settings, Timestamp, View};
use waitroom_store::{Clock, RoomName};
use waitroom_watch::span;

/// A reply, and the version of the room in which it is true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub reply: Reply,
    /// The ticket that the reply is about, as it stood right after the command, so that an answer
    /// need not wait for a board. None for refusals and for replies about no single ticket.
    ///
    /// `version` is the head of the whole round, and the rest of the round may have gone further:
    /// somebody left, a tick admitted. A position taken earlier in the round is therefore equal to
    /// the one at `version` or larger, never smaller; and as positions never rise, no later answer
    /// with this version or a newer one can show a larger one than this.
    /// In a box, because an answer is handed on eight times between the writer and the visitor, and
    /// a view is two thirds of it.
    pub view: Option<Box<View>>,
    /// Whether the command left anything in the log; a repeat or a refusal did not.
    pub changed: bool,
    pub version: u64,
}

/// A board that is only looked at: no count of holders is touched, so that many threads can read
/// without passing a cache line around. Meant for a short look; to keep a board, take
/// [`RoomHandle::board`].
pub type BoardGuard = arc_swap::Guard<Arc<Board>>;

pub type OutlookGuard = arc_swap::Guard<Arc<Outlook>>;

#[derive(Clone, Debug)]
pub struct RoomHandle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) inbox: mpsc::Sender<Request>,
}

/// Commands that go in together and come back together.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) commands: Commands,
    pub(crate) answer: oneshot::Sender<Result<Answers, Unanswered>>,
    /// The span of the request that waits for this, if it is followed.
    pub(crate) followed: Option<span::Context>,
    /// Instances that sent this on before: a request must not go in circles.
    pub(crate) hops: u8,
}

/// What one request asks of a room, in the form in which instances hand it on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Commands {
    One(Command),
    Many(Vec<Command>),
    Reveal(Beacon),
}

/// The last piece of a draw that was promised to a public beacon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Beacon {
    Value(Vec<u8>),
    Waived { by: Actor },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answers {
    One(Answer),
    Many(Vec<Answer>),
}

/// What waits for an answer.
#[derive(Debug)]
struct Waiting {
    answered: oneshot::Receiver<Result<Answers, Unanswered>>,
    /// The wait as a span, if the request is followed.
    step: Option<span::Open>,
}

impl Waiting {
    /// The room is borrowed: to count its holders up and down for each request would pass a cache
    /// line between all who ask.
    async fn answers(mut self, room: &Shared) -> Result<Answers, Unanswered> {
        // Dropped without an answer: the task broke over this round or went down with the
        // runtime, and nobody can promise that nothing was done.
        let why = || "the room's task ended before it answered".to_owned();
        let answered = (&mut self.answered).await;
        match answered.unwrap_or_else(|_| Err(Unanswered::OutcomeUnknown { why: why() })) {
            Ok(answers) => {
                if let Some(step) = self.step {
                    step.end();
                }
                Ok(answers)
            }
            Err(unanswered) => Err(self.over(room, unanswered)),
        }
    }

    /// There will be no answer.
    fn over(self, room: &Shared, unanswered: Unanswered) -> Unanswered {
        room.figures.missed(&unanswered);
        if let Some(mut step) = self.step {
            step.fail();
            step.end();
        }
        unanswered
    }
}

/// A command on its way through the writer and to the disk. Whoever drops it gives up waiting; the
/// command is done all the same.
#[derive(Debug)]
pub struct Submitted {
    waiting: Waiting,
    room: Arc<Shared>,
}

impl Submitted {
    /// Waits until the effect is durable.
    pub async fn answered(self) -> Result<Answer, Unanswered> {
        self.waiting.answers(&self.room).await.map(Answers::only)
    }
}

impl Answers {
    fn only(self) -> Answer {
        match self {
            Answers::One(answer) => answer,
            Answers::Many(_) => unreachable!("one command has one answer"),
        }
    }
}

pub(crate) struct Shared {
    pub(crate) name: RoomName,
    pub(crate) board: ArcSwap<Board>,
    pub(crate) liveness: ArcSwap<Liveness>,
    pub(crate) outlook: ArcSwap<Outlook>,
    pub(crate) figures: Figures,
    pub(crate) published: Notify,
    /// The newest version that some reader is waiting for.
    pub(crate) wanted: AtomicU64,
    /// The newest version that is durable; the board may still be behind it.
    pub(crate) committed: AtomicU64,
    /// Wakes the room's task when a board is wanted or housekeeping is due.
    pub(crate) nudge: Notify,
    /// Whether another instance owns the room, and this one follows its log.
    pub(crate) follows: AtomicBool,
    /// Looks at the store that somebody asked for, and those that were taken.
    pub(crate) looks_asked: AtomicU64,
    pub(crate) looks_taken: AtomicU64,
    /// The last listing of this instance in which what is shown was the newest; see
    /// [`Peers::listed`].
    pub(crate) caught_up: AtomicU64,
    /// The longest life of a pass that was seen in the room's settings.
    pass_life_ms: AtomicU64,
    pub(crate) peers: Option<Arc<dyn Peers>>,
    clock: Arc<dyn Clock>,
    /// Room time minus the monotonic clock, so that anybody can tell the time without the writer.
    offset: AtomicU64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("name", &self.name).finish_non_exhaustive()
    }
}

/// One request holds at most this many commands: a batch of a batch stays bounded.
pub const COMMANDS_MAX: usize = 1_024;

impl Shared {
    pub(crate) fn new(
        name: RoomName,
        clock: Arc<dyn Clock>,
        peers: Option<Arc<dyn Peers>>,
    ) -> Shared {
        let empty = Room::new();
        Shared {
            name,
            board: ArcSwap::from_pointee(Board::new(empty.state().clone(), 0, Timestamp(0))),
            liveness: ArcSwap::from_pointee(Liveness::open(empty.state(), Timestamp(0))),
            outlook: ArcSwap::from_pointee(Outlook::unknown(Doors::NotStarted)),
            figures: Figures::default(),
            published: Notify::new(),
            wanted: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            nudge: Notify::new(),
            follows: AtomicBool::new(false),
            looks_asked: AtomicU64::new(0),
            looks_taken: AtomicU64::new(0),
            caught_up: AtomicU64::new(0),
            pass_life_ms: AtomicU64::new(0),
            peers,
            clock,
            offset: AtomicU64::new(0),
        }
    }

    /// What is shown was the newest at some time of this listing.
    pub(crate) fn caught_up(&self, listing: Option<u64>) {
        if let Some(listing) = listing {
            self.caught_up.fetch_max(listing, Ordering::AcqRel);
        }
    }

    pub(crate) fn is_caught_up(&self, listing: u64) -> bool {
        self.caught_up.load(Ordering::Acquire) >= listing
    }

    pub(crate) fn reading(&self) -> Reading {
        Reading { monotonic_ms: self.clock.now_ms(), wall_ms: self.clock.wall_ms() }
    }

    /// The writer tells what time it is in the room.
    pub(crate) fn set_time(&self, reading: Reading, now: Timestamp) {
        self.offset.store(now.0.wrapping_sub(reading.monotonic_ms), Ordering::Relaxed);
    }

    pub(crate) fn publish(&self, board: Board) {
        self.board.store(Arc::new(board));
        self.published.notify_waiters();
    }
}

impl RoomHandle {
    pub fn name(&self) -> &RoomName {
        &self.shared.name
    }

    /// Sends one command to the room's writer and waits until its effect is durable. A full queue
    /// is refused at once, so that load never grows memory.
    pub async fn send(&self, command: Command) -> Result<Answer, Unanswered> {
        self.request(Commands::One(command)).await.map(Answers::only)
    }

    /// The first half of [`RoomHandle::send`]: the command is in the writer's queue, and what is
    /// left to wait with is small.
    pub fn submit(&self, command: Command) -> Result<Submitted, Unanswered> {
        let waiting = self.put_in(Commands::One(command), 0)?;
        Ok(Submitted { waiting, room: self.shared.clone() })
    }

    /// Sends up to [`COMMANDS_MAX`] commands that belong to different people: one way through the
    /// queue, one durable batch, one answer each.
    pub async fn send_many(&self, commands: Vec<Command>) -> Result<Vec<Answer>, Unanswered> {
        assert!(commands.len() <= COMMANDS_MAX, "a request holds at most {COMMANDS_MAX} commands");
        match self.request(Commands::Many(commands)).await? {
            Answers::Many(answers) => Ok(answers),
            Answers::One(_) => unreachable!("many commands have many answers"),
        }
    }

    async fn request(&self, commands: Commands) -> Result<Answers, Unanswered> {
        self.put_in(commands, 0)?.answers(&self.shared).await
    }

    /// A request that another instance sent on, because it took this one for the owner.
    pub async fn take_in(&self, commands: Commands, hops: u8) -> Result<Answers, Unanswered> {
        self.put_in(commands, hops)?.answers(&self.shared).await
    }

    fn put_in(&self, commands: Commands, hops: u8) -> Result<Waiting, Unanswered> {
        let mut step = span::step("room command");
        if let Some(step) = &mut step {
            step.note("waitroom.room", self.name().as_str());
            step.note("waitroom.command", commands.word());
        }
        let followed = step.as_ref().map(span::Open::context);
        let (answer, answered) = oneshot::channel();
        let sent = self.inbox.try_send(Request { commands, answer, followed, hops });
        let waiting = Waiting { answered, step };
        match sent {
            Ok(()) => Ok(waiting),
            Err(error) => {
                let unanswered = match error {
                    mpsc::error::TrySendError::Full(_) => Unanswered::Overloaded,
                    mpsc::error::TrySendError::Closed(_) => Unanswered::Stopping,
                };
                Err(waiting.over(&self.shared, unanswered))
            }
        }
    }

    /// What the room counts of itself.
    pub fn figures(&self) -> &Figures {
        &self.shared.figures
    }

    /// Requests that wait for the writer now.
    pub fn queued(&self) -> u64 {
        (self.inbox.max_capacity() - self.inbox.capacity()) as u64
    }

    /// How long readers have been shown an older picture than there is; zero when they see the
    /// newest. An idle room's board may be old, but nothing is newer.
    pub fn behind(&self) -> waitroom_core::Millis {
        let board = self.board_guard();
        if board.version() >= self.committed() {
            return waitroom_core::Millis(0);
        }
        self.now().since(board.published_at())
    }

    /// The newest published picture of the room, to keep for a while.
    pub fn board(&self) -> Arc<Board> {
        self.shared.board.load_full()
    }

    /// The newest published picture of the room, for one look.
    pub fn board_guard(&self) -> BoardGuard {
        self.shared.board.load()
    }

    /// The first board newer than this version: the newest at once if it is, otherwise the next
    /// that is published. Whoever calls again with the version it got sees every change, and none
    /// is missed in between; but a caller that is slow finds only the newest. Waits for ever in a
    /// room that nothing happens in, or that was stopped.
    pub async fn next_board(&self, after_version: u64) -> Arc<Board> {
        self.published(|board| board.version() > after_version, || ()).await
    }

    /// A board of at least this version; it is published early if somebody waits for it. Whoever
    /// calls sets the time limit.
    pub async fn board_at(&self, version: u64) -> Arc<Board> {
        let hurry = || {
            self.shared.wanted.fetch_max(version, Ordering::AcqRel);
            self.shared.nudge.notify_one();
        };
        self.published(|board| board.version() >= version, hurry).await
    }

    /// Waits for a board that fits; `missing` is called before each wait.
    async fn published(&self, fits: impl Fn(&Board) -> bool, missing: impl Fn()) -> Arc<Board> {
        loop {
            // Made before the look: what is published after it wakes this, polled or not.
            let published = self.shared.published.notified();
            if fits(&self.board_guard()) {
                return self.board();
            }
            missing();
            published.await;
        }
    }

    /// Whether another instance owns the room. What is shown here then comes from its log.
    pub fn follows(&self) -> bool {
        self.shared.follows.load(Ordering::Acquire)
    }

    /// A board of everything that was durable when this was called, wherever that was decided.
    /// Whoever calls sets the time limit.
    pub async fn newest_board(&self) -> Arc<Board> {
        let look = self.shared.looks_asked.fetch_add(1, Ordering::AcqRel) + 1;
        let taken = || self.shared.looks_taken.load(Ordering::Acquire) >= look;
        loop {
            // The owner knows all that is durable; it may become one while this waits.
            if !self.follows() {
                return self.board_at(self.committed()).await;
            }
            let published = self.shared.published.notified();
            if taken() {
                return self.board();
            }
            self.shared.nudge.notify_one();
            published.await;
        }
    }

    /// The newest version that no instance is behind of: neither those that are here nor those that
    /// disappeared, as long as a pass can be good that they took for good.
    pub fn shown_everywhere(&self) -> u64 {
        let (here, life_ms) = {
            let board = self.board_guard();
            (board.version(), board.state().settings().map_or(0, |it| pass_life_ms(it)))
        };
        // A pass that was given out before the settings were changed lives as long as it was to.
        let life_ms = self.shared.pass_life_ms.fetch_max(life_ms, Ordering::AcqRel).max(life_ms);
        let peers = self.shared.peers.as_ref();
        peers.map_or(here, |peers| peers.shown_lately(self.name(), life_ms).min(here))
    }

    /// Whether the other instances count with this one for certain, and it shows what they decided
    /// while they did not. One that is cut off goes by the board it has and by nothing newer: its
    /// slots wait for it just as long.
    pub fn is_listed(&self) -> bool {
        self.shared.peers.as_ref().is_none_or(|peers| {
            peers.listed().is_some_and(|listing| self.shared.is_caught_up(listing))
        })
    }

    /// Who was heard of here since then, for the owner, and the mark for the next time.
    pub fn heard_since(&self, since: Option<Mark>) -> (Vec<Heard>, Mark) {
        self.shared.liveness.load().heard_since(since, self.now())
    }

    /// Who was heard of elsewhere.
    pub fn hear(&self, heard: &[Heard]) {
        let (liveness, now) = (self.shared.liveness.load(), self.now());
        heard.iter().for_each(|heard| liveness.hear(heard, now));
    }

    /// The newest durable version. A reader that misses something it knows to exist asks for the
    /// board of this version.
    pub fn committed(&self) -> u64 {
        self.shared.committed.load(Ordering::Acquire)
    }

    /// What visitors can be told of their waits: as new as the boards, but made less often.
    pub fn outlook(&self) -> Arc<Outlook> {
        self.shared.outlook.load_full()
    }

    /// The same for one look, as with [`RoomHandle::board_guard`].
    pub fn outlook_guard(&self) -> OutlookGuard {
        self.shared.outlook.load()
    }

    /// The visitor was heard of: no queue, no log, no disk.
    pub fn beat(&self, ticket: waitroom_core::Ticket) {
        self.beat_at(ticket, self.now());
    }

    /// The same for whoever knows the room's time already.
    pub fn beat_at(&self, ticket: waitroom_core::Ticket, now: Timestamp) {
        self.shared.liveness.load().beat(ticket, now);
    }

    pub fn liveness(&self) -> Arc<Liveness> {
        self.shared.liveness.load_full()
    }

    /// Room time, without asking the writer.
    pub fn now(&self) -> Timestamp {
        let offset = self.shared.offset.load(Ordering::Relaxed);
        Timestamp(self.shared.clock.now_ms().wrapping_add(offset))
    }

    /// Hands in what the public beacon said (or, as an operator's act, goes on without it): the
    /// draw of a room that has closed for it can be made.
    pub async fn reveal_draw(&self, beacon: Beacon) -> Result<(), Unanswered> {
        self.request(Commands::Reveal(beacon)).await.map(|_| ())
    }
}

/// How long a pass can be good anywhere, and a twentieth more, for clocks that differ.
fn pass_life_ms(settings: &Settings) -> u64 {
    let life = match settings.pass_life {
        Millis(0) => settings.session_timeout,
        life => life,
    };
    let all = life.0.saturating_add(settings.pass_leeway.0);
    all.saturating_add(all / 20)
}

impl Commands {
    fn word(&self) -> &'static str {
        match self {
            Commands::One(command) => word(command),
            Commands::Many(_) => "many",
            Commands::Reveal(_) => "reveal",
        }
    }
}

fn word(command: &Command) -> &'static str {
    match command {
        Command::Join(_) => "join",
        Command::Claim(_) => "claim",
        Command::Leave(_) => "leave",
        Command::Renew(_) => "renew",
        Command::HandOver(_) => "hand_over",
        Command::End { .. } => "end",
        Command::Move { .. } => "move",
        Command::Lapse { .. } => "lapse",
        Command::Configure { .. } => "configure",
        Command::Hold { .. } => "hold",
        Command::Resume { .. } => "resume",
        Command::AdmitNow { .. } => "admit",
        Command::Finish { .. } => "finish",
        Command::Reopen { .. } => "reopen",
        _ => "other",
    }
}

impl Request {
    /// For whoever sends it on.
    pub(crate) fn into_parts(self, shared: &Arc<Shared>) -> (Commands, u8, Answering) {
        (self.commands, self.hops, Answering { to: self.answer, shared: shared.clone() })
    }
}
