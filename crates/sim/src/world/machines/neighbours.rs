//! The other instances, as one of them sees them: the real view, over letters that may get lost.
//!
//! Lives here: what a link between instances does with requests, answers, news and reports, in the
//! words of letters: a request that found nobody is tried again, one that was sent and not answered
//! ends unknown. Who should own a room is decided by the cluster's own view; what is done about it,
//! by the engine.

use super::super::bug::Bug;
use super::tray::{Letter, Told, Tray};
use super::wire::Wire;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use waitroom_cluster::{About, Envelope, MEMBER_TTL, Marks, Sight};
use waitroom_engine::{Answering, Answers, Commands, Peers, RoomHandle, Stance, Unanswered};
use waitroom_store::{Clock, Error, RoomName, Store};

// The paces of the cluster's own links.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const ANNOUNCE_EVERY: Duration = Duration::from_millis(500);
const RETRY_AFTER: Duration = Duration::from_millis(100);
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
const HOPS_MAX: u8 = 3;

pub(super) struct Neighbours {
    itself: Weak<Neighbours>,
    me: usize,
    pub(super) name: String,
    room: RoomName,
    sight: Mutex<Sight>,
    changes: watch::Sender<u64>,
    /// What we say of ourselves has changed.
    dirty: Notify,
    clock: Arc<dyn Clock>,
    tray: Tray,
    pending: Mutex<BTreeMap<u64, (Sent, Instant)>>,
    next: AtomicU64,
    handle: OnceLock<RoomHandle>,
    instances: usize,
    bug: Option<Bug>,
    /// By instance: when the last reports to it were written, for planted bugs.
    written: Mutex<BTreeMap<usize, Vec<u64>>>,
    /// Up to when each of the others was told of whom we heard.
    marks: Mutex<Marks>,
}

/// A request on its way.
struct Sent {
    commands: Commands,
    hops: u8,
    answer: Answering,
}

pub(super) fn name_of(instance: usize) -> String {
    format!("instance {instance}")
}

impl Neighbours {
    pub(super) fn new(
        me: usize,
        instances: usize,
        room: &RoomName,
        clock: Arc<dyn Clock>,
        tray: Tray,
        life: u64,
        bug: Option<Bug>,
    ) -> Arc<Neighbours> {
        let name = name_of(me);
        // Whoever comes back says newer things than it did before it went down.
        let mine = About { seq: life << 32, ..About::default() };
        Arc::new_cyclic(|itself| Neighbours {
            itself: itself.clone(),
            me,
            sight: Mutex::new(Sight::new(&name, mine, life)),
            name,
            room: room.clone(),
            changes: watch::Sender::new(0),
            dirty: Notify::new(),
            clock,
            tray,
            pending: Mutex::default(),
            // Answers to what was asked before it went down find nobody.
            next: AtomicU64::new(life << 32),
            handle: OnceLock::new(),
            instances,
            bug,
            written: Mutex::default(),
            marks: Mutex::default(),
        })
    }

    pub(super) fn handle(&self) -> Option<&RoomHandle> {
        self.handle.get()
    }

    pub(super) fn serves(&self, handle: RoomHandle) {
        let _ = self.handle.set(handle);
    }

    pub(super) fn owns(&self) -> bool {
        self.sight().mine().rooms.contains_key(self.room.as_str())
    }

    pub(super) fn drain(&self, draining: bool) {
        self.change_mine(|mine| mine.draining = draining);
    }

    fn sight(&self) -> MutexGuard<'_, Sight> {
        self.sight.lock().expect("one thread, and nobody panics while holding it")
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<u64, (Sent, Instant)>> {
        self.pending.lock().expect("one thread, and nobody panics while holding it")
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        let me = self.me;
        (0..self.instances).filter(move |at| *at != me)
    }

    fn ring(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn change_mine(&self, change: impl FnOnce(&mut About)) {
        let mine = {
            let mut sight = self.sight();
            sight.change_mine(change);
            sight.mine().clone()
        };
        for to in self.others() {
            self.tray.post(self.me, to, Letter::About(mine.clone()));
        }
        self.dirty.notify_one();
        self.ring();
    }

    // --- what it does by itself

    /// Says that it is here and looks who else is, for ever.
    pub(super) async fn look_on(&self, wire: &Wire) {
        let mut announced = Instant::now();
        loop {
            let dirty = tokio::time::timeout(LOOK_EVERY, self.dirty.notified()).await.is_ok();
            if dirty || announced.elapsed() >= ANNOUNCE_EVERY {
                announced = Instant::now();
                let _ = self.announce(wire).await;
            }
            let _ = self.look_around(wire).await;
            self.give_up();
        }
    }

    pub(super) async fn look(&self, wire: &Wire) -> Result<(), Error> {
        self.announce(wire).await?;
        self.look_around(wire).await
    }

    async fn announce(&self, wire: &Wire) -> Result<(), Error> {
        let about = self.sight().mine().to_bytes();
        wire.announce(&self.name, about, MEMBER_TTL.as_millis() as u64).await
    }

    async fn look_around(&self, wire: &Wire) -> Result<(), Error> {
        let members = wire.instances().await?;
        let named = members
            .into_iter()
            .filter_map(|member| Some((member.instance, About::from_bytes(&member.about)?)));
        let (named, now_ms) = (named.collect(), self.clock.now_ms());
        if self.sight().members(named, now_ms) {
            self.ring();
        }
        Ok(())
    }

    fn give_up(&self) {
        let over = |at: &Instant| at.elapsed() >= ANSWERED_WITHIN;
        let gone: Vec<u64> =
            self.pending().iter().filter(|(_, (_, at))| over(at)).map(|(id, _)| *id).collect();
        for id in gone {
            let sent = self.pending().remove(&id);
            if let Some((sent, _)) = sent {
                let why = "the room's owner did not answer".to_owned();
                sent.answer.give(Err(Unanswered::OutcomeUnknown { why }));
            }
        }
    }

    /// Tells the owner whom we heard of, and everybody that we are there.
    pub(super) fn report(&self) {
        let Some(handle) = self.handle() else { return };
        let mut marks = self.marks.lock().expect("one thread");
        for to in self.others() {
            let (name, room, now_ms) = (name_of(to), self.room.as_str(), self.clock.now_ms());
            let (envelope, arrived_ms, owns) = {
                let sight = self.sight();
                let owns = sight.rooms_of(&name).iter().any(|it| it == room);
                (sight.envelope(&name, now_ms), sight.arrived_ms(&name), owns)
            };
            let arrived_ms = self.spoil_arrived(to, now_ms, arrived_ms);
            let mut ends = BTreeMap::new();
            let told = owns.then(|| {
                let (heard, end) = handle.heard_since(marks.since(&name, room, arrived_ms));
                ends.insert(room.to_owned(), end);
                let board = handle.board_guard();
                Told { epoch: board.state().epoch().0, version: board.version(), heard }
            });
            marks.wrote(&name, now_ms, ends, arrived_ms);
            self.tray.post(self.me, to, Letter::Report { envelope, told });
        }
    }

    /// What a planted bug makes of the last report that has arrived.
    fn spoil_arrived(&self, to: usize, now_ms: u64, arrived_ms: Option<u64>) -> Option<u64> {
        let mut written = self.written.lock().expect("one thread");
        let written = written.entry(to).or_default();
        let last = written.last().copied();
        let next = written.iter().copied().find(|at_ms| Some(*at_ms) > arrived_ms);
        written.push(now_ms);
        match self.bug {
            Some(Bug::LostReportsUnnoticed) => last,
            Some(Bug::OneReportTooFar) => next.or(arrived_ms),
            _ => arrived_ms,
        }
    }

    /// The owner takes the silent ones out, once it knows whom the others heard of.
    pub(super) async fn sweep(&self) {
        let Some(handle) = self.handle() else { return };
        if handle.follows() || !self.hears_all(&self.room) {
            return;
        }
        let silent = waitroom_engine::silent(handle);
        if !silent.is_empty() {
            let _ = handle.send(waitroom_core::Command::Lapse { tickets: silent }).await;
        }
    }

    // --- what it hears

    /// A letter arrives. Called with the instance's runtime entered.
    pub(super) fn receive(self: &Arc<Self>, from: usize, letter: Letter) {
        match letter {
            Letter::About(about) => {
                if self.sight().told(&name_of(from), about) {
                    self.ring();
                }
            }
            Letter::Report { envelope, told } => self.hear(from, envelope, told),
            Letter::Answer { id, answer } => self.returned(id, answer),
            Letter::Request { id, commands, hops } => {
                let (itself, handle) = (self.clone(), self.handle().cloned());
                tokio::spawn(async move {
                    let answer = match handle {
                        Some(handle) => handle.take_in(commands, hops).await,
                        None => Err(Unanswered::NotOwner { epoch: 0 }),
                    };
                    itself.tray.post(itself.me, from, Letter::Answer { id, answer });
                });
            }
        }
    }

    fn hear(&self, from: usize, envelope: Envelope, told: Option<Told>) {
        let (name, mut about) = (name_of(from), Vec::new());
        if let Some(Told { epoch, version, heard }) = told {
            about.push(self.room.as_str());
            if let Some(handle) = self.handle() {
                handle.hear(&heard);
                let first = self.sight().shows(&name, self.room.as_str(), epoch, version);
                if first {
                    self.ring();
                }
            }
        }
        self.sight().reported(&name, envelope, &about);
    }

    fn returned(&self, id: u64, answer: Result<Answers, Unanswered>) {
        let sent = self.pending().remove(&id);
        let Some((sent, _)) = sent else { return };
        match answer {
            // It owns the room no more, and did nothing.
            Err(Unanswered::NotOwner { .. } | Unanswered::Stopping) => self.later(sent),
            answer => sent.answer.give(answer),
        }
    }

    // --- sending on

    fn dispatch(&self, sent: Sent) {
        let owner = self.sight().owner(self.room.as_str()).map(|(name, _)| name.to_owned());
        let owner = owner.and_then(|name| (0..self.instances).find(|at| name_of(*at) == name));
        let Some(to) = owner else { return self.later(sent) };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (commands, hops) = (sent.commands.clone(), sent.hops);
        self.pending().insert(id, (sent, Instant::now()));
        self.tray.post(self.me, to, Letter::Request { id, commands, hops });
    }

    /// Nothing was done about this request: it is tried once more, a moment later.
    fn later(&self, mut sent: Sent) {
        if sent.hops >= HOPS_MAX {
            return sent.answer.give(Err(Unanswered::NotOwner { epoch: 0 }));
        }
        sent.hops += 1;
        let itself = self.itself.clone();
        tokio::spawn(async move {
            sleep(RETRY_AFTER).await;
            let Some(itself) = itself.upgrade() else { return };
            match itself.handle().filter(|_| itself.owns()) {
                Some(here) => sent.answer.give(here.take_in(sent.commands, sent.hops).await),
                None => itself.dispatch(sent),
            }
        });
    }
}

impl Peers for Neighbours {
    fn stance(&self, room: &RoomName) -> Stance {
        self.sight().stance(room.as_str(), self.clock.now_ms())
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn owned(&self, room: &RoomName, epoch: u32) {
        self.tray.pile().took += u64::from(epoch > 1);
        self.change_mine(|mine| {
            mine.rooms.insert(room.to_string(), epoch);
        });
    }

    fn parted(&self, room: &RoomName, head: Option<u64>) {
        self.tray.pile().gave += u64::from(head.is_some());
        self.change_mine(|mine| {
            mine.rooms.remove(room.as_str());
        });
    }

    fn has_owner(&self, room: &RoomName) -> bool {
        self.sight().owner(room.as_str()).is_some()
    }

    fn carry(&self, _room: &RoomName, commands: Commands, hops: u8, answer: Answering) {
        self.dispatch(Sent { commands, hops, answer });
    }

    fn hears_all(&self, room: &RoomName) -> bool {
        self.bug == Some(Bug::ReportsNeverOld)
            || self.sight().hears_all(room.as_str(), self.clock.now_ms())
    }

    fn shown(&self, room: &RoomName) -> u64 {
        self.sight().shown(room.as_str())
    }

    fn shown_lately(&self, room: &RoomName, within_ms: u64) -> u64 {
        self.sight().shown_lately(room.as_str(), within_ms, self.clock.now_ms())
    }

    fn unheard_ms(&self, room: &RoomName) -> u64 {
        match self.bug {
            Some(Bug::ReportsNeverOld) => 0,
            _ => self.sight().unheard_ms(room.as_str(), self.clock.now_ms()),
        }
    }

    fn owner(&self, room: &RoomName) -> Option<(String, u32)> {
        self.sight().owner(room.as_str()).map(|(name, epoch)| (name.to_owned(), epoch))
    }

    fn failed(&self, room: &RoomName) {
        let now_ms = self.clock.now_ms();
        self.sight().failed(room.as_str(), now_ms);
        self.change_mine(|_| ());
    }
}
