//! What every interface shares: the rooms of this instance and all that is needed to answer for
//! them.
//!
//! Lives here: finding a room, naming tickets, looking at one, and sending commands on somebody's
//! behalf. HTTP, gRPC and the adapters are thin over this; none of them speaks to the engine
//! itself. Stays out: bytes of requests and answers.

mod opening;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Notify, watch};
use waitroom_core::estimate::{Interval, Unknown};
use waitroom_core::id::{IdKey, TicketId};
use waitroom_core::{
    Board, Command, Epoch, Holder, Identity, LaneId, Number, Presented, Refusal, Reply, Session,
    Settings, Ticket, Timestamp,
};
use waitroom_engine::{Answer, RoomHandle, Submitted, Unanswered};
use waitroom_pass::{
    AdapterTokens, Binding, JoinTokens, LiveMark, LiveTickets, PassClaims, Passes, TicketTokens,
    Verifier,
};
use waitroom_store::{Clock, RoomName, seal::HashKey};

use crate::adapters::Memory;
use crate::admin::office::Office;
use crate::answer::Sight;
use crate::binding::Bind;
use crate::caller::ApiCaller;
use crate::limits::{Limits, Meter, Route, Standing, TooMany};
use crate::live::Hub;
use crate::metrics::Metrics;
use crate::problem::{Code, Problem};
use crate::pulse::Pulse;
use crate::told::{Newest, Told};
use crate::unopened::Unopened;

pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the installation keeps besides rooms: keys, secrets, the audit. The server implements it
/// over whatever store it was started with, so that no interface is generic over stores.
pub trait Installation: Send + Sync + 'static {
    /// The room, opened here; made first if there is none of that name.
    fn open_room<'a>(
        &'a self,
        room: &'a RoomName,
        who: &'a str,
    ) -> Pending<'a, Result<RoomKit, Problem>>;
    /// Who presents this API key, if it is a live one.
    fn api_key(&self, secret: &str) -> Option<ApiCaller>;
    /// What operators ask for besides rooms; none where nothing of the kind is kept.
    fn office(&self) -> Option<&dyn Office> {
        None
    }
    /// Waits until no other instance acts on the room, and keeps them from it until
    /// [`Installation::end_turn`] or for a few seconds.
    fn begin_turn<'a>(&'a self, _room: &'a RoomName) -> Pending<'a, Result<Turn, Problem>> {
        Box::pin(async { Ok(Turn::default()) })
    }
    fn end_turn<'a>(&'a self, _room: &'a RoomName, _turn: Turn) -> Pending<'a, ()> {
        Box::pin(async {})
    }
    /// One entry in the audit of the installation.
    fn audit<'a>(
        &'a self,
        who: &'a str,
        room: Option<&'a RoomName>,
        action: &'a str,
        detail: serde_json::Value,
    ) -> Pending<'a, Result<(), Problem>>;
}

/// An operator's turn in a room that several instances serve.
#[derive(Debug, Default)]
pub struct Turn {
    /// Others had their turn since ours: the audit may miss an act of theirs.
    pub others_acted: bool,
    /// Ours for certain until then; none where nobody else can have one.
    pub until: Option<std::time::Instant>,
    /// What was taken from the store for it.
    pub lease: Option<waitroom_store::Lease>,
}

impl Turn {
    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| std::time::Instant::now() >= until)
    }
}

/// What operators ask of the other instances, where there are any. Known here only by what it can
/// say.
pub trait ClusterDesk: Send + Sync + 'static {
    /// Every instance that is there, and who owns which room.
    fn picture(&self) -> serde_json::Value;
    fn figures(&self) -> ClusterFigures;
    /// Uses a live ticket up at the instance that wrote it. Says whether it was good.
    fn use_live_ticket(&self, mark: LiveMark) -> Pending<'static, bool>;
}

/// What the cluster counts at this instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterFigures {
    pub instances: u64,
    pub rooms_owned: u64,
    pub sent_on: u64,
    pub taken_in: u64,
    pub unknown: u64,
    pub takeovers: u64,
    pub handovers: u64,
}

/// What operators ask of the gate, where there is one. The gate stands on this crate, so it is
/// only known here by what it can say.
pub trait GateDesk: Send + Sync + 'static {
    /// Every site: its verdicts and bypasses by reason, its origins.
    fn report(&self) -> serde_json::Value;
    /// How the origins behind a room do, in totals since the start; none where no site of ours
    /// has one.
    fn origin(&self, room: &str) -> Option<serde_json::Value>;
    /// A gate elsewhere says which version of the room it goes by, and hears who ended early;
    /// none when nobody said that there is such a gate.
    fn hear(&self, room: &str, gate: &str, confirmed: u64) -> Option<serde_json::Value>;
    /// A staff pass for a room.
    fn staff_pass(&self, room: &str, number: u64, expires_s: u32) -> String;
}

/// What operators see of the outbox, where there is one. Known here only by what it can say.
pub trait OutboxDesk: Send + Sync + 'static {
    fn sinks(&self) -> Vec<SinkPicture>;

    /// Tells a sink the events of a room again, from this one on.
    fn replay<'a>(
        &'a self,
        sink: &'a str,
        room: &'a RoomName,
        from: u64,
    ) -> Pending<'a, Result<(), Problem>>;

    /// Messages that a webhook did not take: what there is, one of them, sent again, thrown away.
    fn dead<'a>(&'a self, asked: DeadAsked<'a>) -> Pending<'a, Result<serde_json::Value, Problem>>;

    /// Checkouts heard, as (bus, what came of it, how many).
    fn checkouts(&self) -> Vec<(&'static str, &'static str, u64)>;
}

/// What is asked of dead letters. A letter's id is `SINK.EVENT.INDEX`.
#[derive(Clone, Copy, Debug)]
pub enum DeadAsked<'a> {
    List,
    Show { room: &'a RoomName, id: &'a str },
    Replay { room: &'a RoomName, id: &'a str },
    Drop { room: &'a RoomName, id: &'a str },
}

/// Words to visitors whose turn comes near, where there are any. Known here only by what it can do.
pub trait NoticeDesk: Send + Sync + 'static {
    /// The channels that a room offers; empty where it offers none.
    fn channels(&self, room: &RoomName) -> Vec<&'static str>;
    /// By which browsers know us, where push is offered.
    fn push_key(&self) -> Option<String>;
    /// `waiting` or `sent`; none where nothing was asked for.
    fn state(&self, room: &RoomName, ticket: TicketId) -> Option<&'static str>;
    /// Keeps a wish. What is wrong with its address is said without repeating it.
    fn ask<'a>(
        &'a self,
        room: &'a RoomName,
        ticket: TicketId,
        wish: serde_json::Value,
    ) -> Pending<'a, Result<(), Problem>>;
    fn forget<'a>(
        &'a self,
        room: &'a RoomName,
        ticket: TicketId,
    ) -> Pending<'a, Result<(), Problem>>;
    /// Messages, as (channel, outcome, how many).
    fn counts(&self) -> Vec<(&'static str, &'static str, u64)>;
    /// How many wait for theirs in each room.
    fn waiting(&self) -> Vec<(RoomName, u64)>;
}

/// A place that events go to, at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SinkPicture {
    pub name: String,
    /// Messages acknowledged, deliveries that failed, and stretches given up.
    pub sent: u64,
    pub failures: u64,
    pub gaps: u64,
    /// Dead letters; none for a sink that has none ever.
    pub dead: Option<u64>,
    /// Why the last delivery failed; none since one went well.
    pub trouble: Option<String>,
    pub lags: Vec<SinkLag>,
}

/// How far a sink is behind in one room.
#[derive(Clone, Debug, PartialEq)]
pub struct SinkLag {
    pub room: RoomName,
    /// Everything up to this event is acknowledged.
    pub at: u64,
    pub events: u64,
    pub seconds: f64,
}

/// What a room is opened with.
#[derive(Debug)]
pub struct RoomKit {
    pub handle: RoomHandle,
    pub ids: IdKey,
    /// Hashes what identifies a person, so that only the hash is kept.
    pub identities: HashKey,
    /// Seals the shop's name for a user where the room keeps it.
    pub users: waitroom_store::seal::MasterKey,
}

/// How this instance treats its callers.
#[derive(Clone, Debug)]
pub struct Manners {
    /// Plain HTTP on loopback, for development: cookies without `__Host-` and Secure.
    pub dev: bool,
    /// Whoever asks the demo's own interface is its operator; for development on one machine, and
    /// never where visitors of a real site come.
    pub keyless: bool,
    pub limits: Limits,
    pub body_bytes_max: usize,
    pub admin_body_bytes_max: usize,
    pub body_timeout: Duration,
    /// What passes are tied to.
    pub bind: Bind,
    /// Where browsers reach the public listener, for links in answers; empty means unknown.
    pub public_url: String,
}

pub struct Desk {
    /// By name. A few hundred at most: looked through by halves, which beats any hash.
    rooms: ArcSwap<Vec<Arc<RoomDesk>>>,
    /// Those that should be there and cannot be opened.
    pub unopened: Unopened,
    /// Open, and without their settings yet.
    unlisted: Mutex<BTreeMap<RoomName, Arc<RoomDesk>>>,
    opening: tokio::sync::Mutex<()>,
    pub installation: Arc<dyn Installation>,
    pub signatures: Signatures,
    pub manners: Manners,
    pub meter: Meter,
    /// What requests have counted here.
    pub metrics: Metrics,
    told: Arc<Told>,
    pub clock: Arc<dyn Clock>,
    /// What the earlier interfaces keep to themselves.
    pub earlier: Memory,
    /// Rings when the store begins or ceases to take what a room writes; see `RoomDesk::pulse`.
    pub alarm: Arc<Notify>,
    /// Turns true when the instance drains: live channels say goodbye.
    pub draining: watch::Sender<bool>,
    /// Set once there is a gate, which holds this desk in turn.
    pub gate: OnceLock<Weak<dyn GateDesk>>,
    /// Set once events are published anywhere.
    pub outbox: OnceLock<Arc<dyn OutboxDesk>>,
    /// Set where several instances share the rooms.
    pub cluster: OnceLock<Arc<dyn ClusterDesk>>,
    /// Set where visitors can ask for a word when their turn comes near.
    pub notices: OnceLock<Arc<dyn NoticeDesk>>,
}

/// All that this instance signs and checks.
#[derive(Debug)]
pub struct Signatures {
    pub tokens: TicketTokens,
    /// For the earlier interfaces.
    pub adapter_tokens: AdapterTokens,
    /// Of the shop.
    pub join_tokens: JoinTokens,
    pub live_tickets: LiveTickets,
    pub passes: Arc<Passes>,
}

/// One room, as the interfaces see it.
pub struct RoomDesk {
    kit: RoomKit,
    verifier: Verifier,
    verifier_anywhere: Verifier,
    told: Arc<Told>,
    newest_told: Newest,
    /// Tells this room's tickets from another's in tables for all rooms.
    salt: u64,
    pub hub: Hub,
    /// How commands fare on their way to the disk.
    pub pulse: Pulse,
    alarm: Arc<Notify>,
    /// Held while an operator acts here; true while the audit may miss an act of this room.
    pub(crate) acting: tokio::sync::Mutex<bool>,
}

/// How long a reader waits for the version that a client has seen elsewhere.
const CATCH_UP: Duration = Duration::from_secs(1);

impl Desk {
    pub fn new(
        installation: Arc<dyn Installation>,
        signatures: Signatures,
        manners: Manners,
        clock: Arc<dyn Clock>,
    ) -> Desk {
        Desk {
            rooms: ArcSwap::default(),
            unopened: Unopened::default(),
            unlisted: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            installation,
            signatures,
            meter: Meter::new(manners.limits.callers_max),
            manners,
            metrics: Metrics::default(),
            told: Arc::default(),
            clock,
            earlier: Memory::default(),
            alarm: Arc::default(),
            draining: watch::Sender::new(false),
            gate: OnceLock::new(),
            outbox: OnceLock::new(),
            cluster: OnceLock::new(),
            notices: OnceLock::new(),
        }
    }

    /// Wall time in whole seconds, as tokens tell it.
    pub fn now_s(&self) -> u64 {
        self.clock.wall_ms() / 1_000
    }

    pub fn room(&self, name: &str) -> Result<Arc<RoomDesk>, Problem> {
        let rooms = self.rooms.load();
        let found = rooms.binary_search_by(|room| room.name().as_str().cmp(name));
        found.map(|at| rooms[at].clone()).map_err(|_| {
            if let Some(problem) = self.unopened.problem(name) {
                return problem;
            }
            let name: String = name.chars().take(64).collect();
            Problem::new(Code::RoomUnknown, format!("no room is called {name:?}"))
        })
    }

    pub fn rooms(&self) -> Vec<Arc<RoomDesk>> {
        Vec::clone(&self.rooms.load())
    }

    /// The room that wrote this id. Ids carry no room, so each is asked; a guess passes with a
    /// chance of 2⁻⁵².
    pub fn find(&self, id: TicketId) -> Option<(Arc<RoomDesk>, Presented)> {
        let rooms = self.rooms.load();
        rooms.iter().find_map(|room| Some((room.clone(), room.presented(id, None)?)))
    }

    /// Counts a request against a limit; trusted callers are not counted.
    pub fn meter(&self, route: Route, who: u128) -> Result<Option<Standing>, Problem> {
        let Some(limit) = self.manners.limits.of(route) else { return Ok(None) };
        match self.meter.count(route, who, limit, self.clock.now_ms()) {
            Ok(standing) => Ok(Some(standing)),
            Err(TooMany { retry_after_ms }) => {
                self.metrics.limited(route);
                let seconds = limit.per_ms.div_ceil(1_000);
                let detail = format!("at most {} requests in {seconds} s", limit.count);
                Err(Problem::new(Code::RateLimited, detail).retry_after(retry_after_ms))
            }
        }
    }

    /// Counts a request that is within its limit; none for one that is not, uncounted.
    pub(crate) fn within_limit(&self, route: Route, who: u128) -> Option<()> {
        let Some(limit) = self.manners.limits.of(route) else { return Some(()) };
        self.meter.count(route, who, limit, self.clock.now_ms()).ok().map(drop)
    }

    /// The pass of a session: a function of its times and of what it is tied to, so a repeat signs
    /// the same claims.
    pub fn pass(
        &self,
        room: &RoomDesk,
        id: TicketId,
        session: &Session,
        binding: Binding,
    ) -> String {
        self.metrics.passes.one();
        let claims = PassClaims::of(id, room.name().as_str(), session).bound(binding);
        self.signatures.passes.sign(&claims)
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").field("manners", &self.manners).finish_non_exhaustive()
    }
}

impl RoomDesk {
    pub fn name(&self) -> &RoomName {
        self.kit.handle.name()
    }

    /// Checks passes of this room.
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// The same, leaving what a pass is bound to to the gate.
    pub fn verifier_anywhere(&self) -> &Verifier {
        &self.verifier_anywhere
    }

    pub fn handle(&self) -> &RoomHandle {
        &self.kit.handle
    }

    pub fn now(&self) -> Timestamp {
        self.kit.handle.now()
    }

    /// The id of a ticket; none for one that this room never gave out.
    pub fn id_of(&self, board: &Board, ticket: Ticket) -> Option<TicketId> {
        Some(self.id(&board.state().named(ticket)?))
    }

    pub fn id(&self, presented: &Presented) -> TicketId {
        let Ticket { lane, number } = presented.ticket;
        self.kit
            .ids
            .name(lane.0, presented.epoch.0, number.0)
            .expect("rooms give no numbers and epochs beyond what an id holds")
    }

    /// The ticket that an id names in this room.
    pub fn presented(&self, id: TicketId, holder: Option<Holder>) -> Option<Presented> {
        let named = self.kit.ids.read(&id)?;
        let ticket = Ticket { lane: LaneId(named.lane), number: Number(named.number) };
        Some(Presented { ticket, epoch: Epoch(named.epoch), holder })
    }

    /// The shop's name for a user becomes what the room remembers of a person.
    pub fn identity(&self, user: &str) -> Identity {
        let hash = self.kit.identities.hash(user.as_bytes());
        let mut identity = Identity::default();
        identity.0.copy_from_slice(&hash[..16]);
        identity
    }

    pub fn keyed_hash(&self, what: &[u8]) -> [u8; 32] {
        self.kit.identities.hash(what)
    }

    /// The user's name, sealed for the log.
    pub fn seal_user(&self, user: &str) -> Arc<[u8]> {
        let context = format!("user/{}", self.name());
        self.kit.users.seal(&waitroom_store::OsEntropy, &context, user.as_bytes()).into()
    }

    pub fn open_user(&self, sealed: &[u8]) -> Option<String> {
        let context = format!("user/{}", self.name());
        String::from_utf8(self.kit.users.open(&context, sealed)?).ok()
    }

    pub fn estimate(&self, ahead: u64, lane: LaneId) -> Result<Interval, Unknown> {
        self.kit.handle.outlook_guard().estimate(ahead, lane.0)
    }

    /// A board that knows at least `seen`, or the newest there is after a second; then the second
    /// value is true.
    pub async fn board_since(&self, seen: u64) -> (Arc<Board>, bool) {
        let board = self.kit.handle.board();
        if board.version() >= seen {
            return (board, false);
        }
        match tokio::time::timeout(CATCH_UP, self.kit.handle.board_at(seen)).await {
            Ok(board) => (board, false),
            Err(_) => (self.kit.handle.board(), true),
        }
    }

    /// A board of all that is durable now, decided here or elsewhere; after a second the newest
    /// there is, and the second value is true.
    pub async fn newest_board(&self) -> (Arc<Board>, bool) {
        match tokio::time::timeout(CATCH_UP, self.kit.handle.newest_board()).await {
            Ok(board) => (board, false),
            Err(_) => (self.kit.handle.board(), true),
        }
    }

    /// Whether a board may simply be too old to know the ticket: tokens are genuine, so one that
    /// the board does not know was given out since. Where another instance owns the room, nobody
    /// here knows how far it has gone on.
    pub fn is_behind(&self, board: &Board, problem: &Problem) -> bool {
        matches!(problem.code, Code::TicketUnknown | Code::PlaceLost)
            && (board.version() < self.kit.handle.committed() || self.kit.handle.follows())
    }

    /// What to say of a ticket that is not on a board although a newer one was waited for, in vain if
    /// it is `stale`: the store takes its time, or is away and nobody knows it yet. To call the place
    /// lost would make people give it up.
    pub fn waited(&self, stale: bool, problem: Problem) -> Problem {
        match problem.code {
            Code::TicketUnknown | Code::PlaceLost if stale => self.refused(Refusal::NotReady),
            _ => problem,
        }
    }

    /// Looks a ticket up on a board.
    pub fn look(&self, board: &Board, presented: &Presented) -> Result<Sight, Problem> {
        self.look_at(self.now(), board, presented)
    }

    pub(crate) fn look_at(
        &self,
        now: Timestamp,
        board: &Board,
        presented: &Presented,
    ) -> Result<Sight, Problem> {
        let view = board.look(now, presented).map_err(|refusal| {
            let problem = self.refused(refusal);
            // A room that lost its store shows its last board. Who joined after it has a place that
            // nobody can show now; to call it lost would make people give it up.
            let lost_store = || self.kit.handle.figures().trouble().is_some();
            if self.is_behind(board, &problem) && lost_store() {
                return self.refused(Refusal::NotReady);
            }
            problem
        })?;
        Ok(self.sight(board, *presented, view, board.version()))
    }

    /// Looks a ticket up, and notes that its holder was heard of: under the name that it has now,
    /// if it was moved. One look at the clock for both.
    pub fn hear(&self, board: &Board, presented: &Presented) -> Result<Sight, Problem> {
        let now = self.now();
        let sight = self.look_at(now, board, presented)?;
        self.kit.handle.beat_at(sight.view.ticket, now);
        Ok(sight)
    }

    fn sight(
        &self,
        board: &Board,
        presented: Presented,
        view: waitroom_core::View,
        version: u64,
    ) -> Sight {
        // A ticket that was moved goes on under its new name.
        let moved = view.ticket != presented.ticket;
        let now_named = moved.then(|| board.state().named(view.ticket)).flatten();
        let presented = match now_named {
            Some(named) => Presented { holder: presented.holder, ..named },
            None => presented,
        };
        Sight { id: self.id(&presented), presented, view, version, stale: false }
    }

    /// Sends a command that is about one ticket, and says what became of the ticket.
    pub async fn act(
        &self,
        presented: Presented,
        command: Command,
    ) -> Result<(Sight, Reply), Problem> {
        let answer = self.send(command).await?;
        let board = self.kit.handle.board();
        let view = match answer.view {
            Some(view) => *view,
            None => board.look(self.now(), &presented).map_err(|it| self.refused(it))?,
        };
        Ok((self.sight(&board, presented, view, answer.version), answer.reply))
    }

    /// The version that this ticket's holder was told of, if the board is older than that.
    pub fn told_more(&self, board: &Board, ticket: Ticket) -> Option<u64> {
        let version = board.version();
        if self.newest_told.version() <= version {
            return None;
        }
        Some(self.told(ticket)).filter(|told| *told > version)
    }

    /// The version that this ticket's holder was told of, if a command of theirs was answered here.
    pub fn told(&self, ticket: Ticket) -> u64 {
        self.told.version(self.salt, ticket)
    }

    /// Sends a command and waits until it is durable. A refusal becomes a problem.
    pub async fn send(&self, command: Command) -> Result<Answer, Problem> {
        self.answered(self.submit(command)?).await
    }

    /// The first half of [`RoomDesk::send`].
    pub fn submit(&self, command: Command) -> Result<Submitted, Problem> {
        let submitted = self.kit.handle.submit(command);
        submitted.map_err(|error| Problem::unanswered(&error).in_room(self.name()))
    }

    /// The second half.
    pub async fn answered(&self, submitted: Submitted) -> Result<Answer, Problem> {
        let sent = std::time::Instant::now();
        let answer = submitted.answered().await;
        self.pulse.note(sent.elapsed());
        let news = match &answer {
            Ok(_) => self.pulse.works(),
            Err(Unanswered::Unavailable { why } | Unanswered::OutcomeUnknown { why }) => {
                self.pulse.fails(why)
            }
            Err(_) => false,
        };
        if news {
            self.alarm.notify_one();
        }
        let answer = answer.map_err(|error| Problem::unanswered(&error).in_room(self.name()))?;
        if let Some(view) = &answer.view {
            // The row first: whoever sees the newest version looks for it there.
            self.told.note(self.salt, view.ticket, answer.version);
            self.newest_told.note(answer.version);
        }
        match answer.reply {
            Reply::Refused(refusal) => Err(self.refused(refusal)),
            _ => Ok(answer),
        }
    }

    pub fn refused(&self, refusal: Refusal) -> Problem {
        Problem::refused(refusal).in_room(self.name())
    }

    /// The settings that hold now.
    pub fn settings(&self) -> Option<Arc<Settings>> {
        self.kit.handle.board().state().settings().cloned()
    }
}

impl std::fmt::Debug for RoomDesk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RoomDesk").field("name", self.name()).finish_non_exhaustive()
    }
}
